//! One requirement: a name, extras, versions and a marker, and nothing that leads elsewhere.

use std::fmt;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifier, VersionSpecifiers};

use crate::marker::Marker;
use crate::{Name, RequirementError};

/// Longest text of a requirement.
const MAX_BYTES: usize = 2048;
/// Most extras of one requirement.
const MAX_EXTRAS: usize = 50;

/// A package of an index, such as `uvicorn[standard]>=0.30; python_version > "3.8"`. It is printed from its parts: no
/// character of the text that it was read from reaches a program in any other way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    name: Name,
    extras: Vec<Name>,
    versions: VersionSpecifiers,
    marker: Option<Marker>,
}

impl Requirement {
    /// Reads a requirement of a person, a model or a manifest.
    ///
    /// # Errors
    /// For everything but a package of an index: also for what pip would take for an address, a path or an option.
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        if text.len() > MAX_BYTES {
            return Err(RequirementError::TooLong(MAX_BYTES));
        }
        if let Some(letter) = text.chars().find(|letter| !matches!(letter, ' '..='~')) {
            return Err(RequirementError::Character(letter));
        }
        let (head, marker) = match text.split_once(';') {
            Some((head, marker)) => (head.trim(), Some(marker)),
            None => (text.trim(), None),
        };
        if head.contains(['@', '/', '\\', ':']) {
            return Err(RequirementError::Address);
        }
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let end = head.find(|letter| !is_of_name(letter)).unwrap_or(head.len());
        let (name, rest) = head.split_at(end);
        let name = Name::new(name)?;
        let (extras, rest) = extras(rest.trim_start())?;
        let versions = versions(rest.trim())?;
        let marker = marker.map(Marker::parse).transpose()?;
        Ok(Self { name, extras, versions, marker })
    }

    /// A package in exactly one version.
    #[must_use]
    pub fn exactly(name: Name, version: Version) -> Self {
        let versions = VersionSpecifiers::from(VersionSpecifier::equals_version(version));
        Self { name, extras: Vec::new(), versions, marker: None }
    }

    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    #[must_use]
    pub fn extras(&self) -> &[Name] {
        &self.extras
    }

    #[must_use]
    pub fn versions(&self) -> &VersionSpecifiers {
        &self.versions
    }

    /// Whether it holds on some machines only.
    #[must_use]
    pub fn has_marker(&self) -> bool {
        self.marker.is_some()
    }

    /// The same with a lowest version, where it names none.
    #[must_use]
    pub fn at_least(mut self, version: Version) -> Self {
        if self.versions.is_empty() {
            let lowest = VersionSpecifier::greater_than_equal_version(version.without_local());
            self.versions = VersionSpecifiers::from(lowest);
        }
        self
    }

    /// The same with these extras instead of its own.
    #[must_use]
    pub fn with_extras(mut self, extras: Vec<Name>) -> Self {
        self.extras = extras;
        self
    }

    /// The same where another requirement's marker holds too.
    #[must_use]
    pub(crate) fn under(mut self, other: &Self) -> Self {
        self.marker = match (self.marker.take(), &other.marker) {
            (Some(own), Some(outer)) => Some(outer.and(&own)),
            (own, outer) => own.or_else(|| outer.clone()),
        };
        self
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.name)?;
        if !self.extras.is_empty() {
            let extras: Vec<&str> = self.extras.iter().map(Name::as_str).collect();
            write!(out, "[{}]", extras.join(","))?;
        }
        let versions: Vec<String> = self.versions.iter().map(ToString::to_string).collect();
        write!(out, "{}", versions.join(","))?;
        self.marker.iter().try_for_each(|marker| write!(out, " ; {marker}"))
    }
}

impl FromStr for Requirement {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

/// `[a, b]` and what follows it.
fn extras(text: &str) -> Result<(Vec<Name>, &str), RequirementError> {
    let Some(inner) = text.strip_prefix('[') else { return Ok((Vec::new(), text)) };
    let (inner, rest) = inner.split_once(']').ok_or_else(|| RequirementError::Name(text.to_owned()))?;
    let mut extras: Vec<Name> = if inner.trim().is_empty() {
        Vec::new()
    } else {
        inner.split(',').map(|extra| Name::new(extra.trim())).collect::<Result<_, _>>()?
    };
    extras.sort();
    extras.dedup();
    if extras.len() > MAX_EXTRAS {
        return Err(RequirementError::Name(format!("more than {MAX_EXTRAS} extras")));
    }
    Ok((extras, rest))
}

/// `>=1, <2`, also in parentheses as in old metadata.
fn versions(text: &str) -> Result<VersionSpecifiers, RequirementError> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text).trim();
    if inner.is_empty() {
        return Ok(VersionSpecifiers::empty());
    }
    let refused = |why: String| RequirementError::Version(why);
    let mut specifiers = Vec::new();
    for one in inner.split(',') {
        let one = one.trim();
        let rest = one.trim_start_matches(['<', '>', '=', '~', '!']).trim_start();
        // pip reads a list line by line: what begins like an option after a space is one.
        if rest.len() == one.len() || !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()) {
            return Err(refused(format!("expected an operator and a version such as `>=1.0`, got `{one}`")));
        }
        specifiers.push(VersionSpecifier::from_str(one).map_err(|error| refused(error.to_string()))?);
    }
    Ok(specifiers.into_iter().collect())
}
