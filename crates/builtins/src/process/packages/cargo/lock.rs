//! `Cargo.lock`: which packages it names, and which of them are new.

use std::collections::BTreeSet;

use serde::Deserialize;

/// The index that every cargo uses by itself.
pub(super) const DEFAULT_INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Packages of one lock file.
const MAX_PACKAGES: usize = 20_000;

/// Longest name and longest version.
const MAX_WORD_BYTES: usize = 128;

/// A package of a lock file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Locked {
    pub(super) name: String,
    pub(super) version: String,
    /// None for a package of the project itself.
    pub(super) source: Option<String>,
    checksum: Option<String>,
    replace: Option<String>,
}

/// What a lock file says.
#[derive(Debug, Default, Deserialize)]
pub(super) struct LockFile {
    #[serde(default, rename = "package")]
    pub(super) packages: Vec<Locked>,
}

impl LockFile {
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(text).map_err(|_| "is not text")?;
        let lock: Self = toml::from_str(text).map_err(|_| "cannot be read as a lock file of cargo")?;
        if lock.packages.len() > MAX_PACKAGES {
            return Err("lists more than 20,000 packages");
        }
        Ok(lock)
    }

    /// Refuses a package that is not in `before`, unless it is one of the default index with a checksum, or one of the project.
    ///
    /// # Errors
    /// The package, and why.
    pub(super) fn check_new(&self, before: &Self) -> Result<(), (String, String)> {
        let old: BTreeSet<&Locked> = before.packages.iter().collect();
        for package in self.packages.iter().filter(|package| !old.contains(package)) {
            package.check().map_err(|why| (package.name.clone(), why))?;
        }
        Ok(())
    }

    /// Whether a package from a source that a manifest names was there already.
    pub(super) fn has(&self, name: &str, source: &str) -> bool {
        let is_same = |package: &&Locked| {
            // The lock file adds the commit that was taken.
            let known = package.source.as_deref().and_then(|known| known.split('#').next());
            package.name == name && known == Some(source)
        };
        self.packages.iter().any(|package| is_same(&package))
    }

    /// The packages of the default index, whose archives can be checked.
    pub(super) fn published(&self) -> impl Iterator<Item = Published<'_>> {
        self.packages.iter().filter_map(Locked::published)
    }
}

/// A package of the default index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Published<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) checksum: &'a str,
}

impl Published<'_> {
    /// How its archive and its directory of sources begin.
    pub(super) fn file_stem(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

impl Locked {
    fn published(&self) -> Option<Published<'_>> {
        let checksum = self.checksum.as_deref().filter(|checksum| is_checksum(checksum))?;
        let is_usable = self.source.as_deref() == Some(DEFAULT_INDEX) && self.is_plain();
        is_usable.then_some(Published { name: &self.name, version: &self.version, checksum })
    }

    /// Both become parts of paths.
    fn is_plain(&self) -> bool {
        is_name(&self.name) && is_version(&self.version)
    }

    fn check(&self) -> Result<(), String> {
        if self.replace.is_some() {
            return Err("is replaced by another package".to_owned());
        }
        match self.source.as_deref() {
            // A package of the project, which the list of cargo places.
            None if self.checksum.is_none() => Ok(()),
            None => Err("has a checksum and no source".to_owned()),
            Some(source) if source.starts_with("git+") => {
                Err(format!("comes from a repository of git (`{}`)", shortened(source)))
            }
            Some(DEFAULT_INDEX) if !self.is_plain() => Err("has no name and version of an index".to_owned()),
            Some(DEFAULT_INDEX) => match &self.checksum {
                Some(checksum) if is_checksum(checksum) => Ok(()),
                _ => Err("has no checksum of an index".to_owned()),
            },
            Some(source) => Err(format!("comes from another registry (`{}`)", shortened(source))),
        }
    }
}

/// An address for a message: without its query, and not longer than a line.
fn shortened(source: &str) -> String {
    let plain = source.split(['?', '#']).next().unwrap_or_default();
    plain.chars().take(120).flat_map(char::escape_default).collect()
}

fn is_checksum(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a text is the name of a package.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= MAX_WORD_BYTES
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
}

/// Whether a text is a version such as `1.2.3`, `1.2.3-rc.1` or `1.2.3+build`.
fn is_version(text: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '+');
    text.len() <= MAX_WORD_BYTES
        && text.starts_with(|letter: char| letter.is_ascii_digit())
        && text.chars().all(is_letter)
        && text.split(['-', '+']).next().is_some_and(|numbers| numbers.split('.').count() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "8f42a60cbdf9a97f5d2305f08a87dc4e09308d1276d28c869c684d7777685682";

    fn lock(package: &str) -> LockFile {
        LockFile::parse(format!("version = 4\n[[package]]\n{package}").as_bytes()).unwrap()
    }

    #[test]
    fn only_packages_of_the_default_index_are_new() {
        let source = format!("source = \"{DEFAULT_INDEX}\"");
        let good = lock(&format!("name = \"itoa\"\nversion = \"1.0.18\"\n{source}\nchecksum = \"{SUM}\""));
        good.check_new(&LockFile::default()).unwrap();
        let published: Vec<_> = good.published().collect();
        assert_eq!(published.len(), 1);
        assert_eq!(published[0].file_stem(), "itoa-1.0.18");
        lock("name = \"shop\"\nversion = \"0.1.0\"").check_new(&LockFile::default()).unwrap();
        for (package, why) in [
            (format!("name = \"itoa\"\nversion = \"1.0.18\"\n{source}"), "checksum"),
            (format!("name = \"itoa\"\nversion = \"1.0.18\"\n{source}\nchecksum = \"../..\""), "checksum"),
            (format!("name = \"../itoa\"\nversion = \"1.0.18\"\n{source}\nchecksum = \"{SUM}\""), "name"),
            (format!("name = \"itoa\"\nversion = \"1.0/8\"\n{source}\nchecksum = \"{SUM}\""), "version"),
            (format!("name = \"itoa\"\nversion = \"..\"\n{source}\nchecksum = \"{SUM}\""), "version"),
            (
                "name = \"itoa\"\nversion = \"1.0.0\"\nsource = \"git+https://example.org/itoa?rev=1#2\""
                    .to_owned(),
                "git",
            ),
            (
                format!(
                    "name = \"itoa\"\nversion = \"1.0.0\"\nsource = \"registry+https://example.org/\"\nchecksum = \"{SUM}\""
                ),
                "registry",
            ),
            (
                format!(
                    "name = \"itoa\"\nversion = \"1.0.0\"\nsource = \"sparse+https://example.org/\"\nchecksum = \"{SUM}\""
                ),
                "registry",
            ),
            (
                format!(
                    "name = \"itoa\"\nversion = \"1.0.0\"\nsource = \"{DEFAULT_INDEX}/\"\nchecksum = \"{SUM}\""
                ),
                "registry",
            ),
            (
                format!(
                    "name = \"itoa\"\nversion = \"1.0.0\"\n{source}\nchecksum = \"{SUM}\"\nreplace = \"x\""
                ),
                "replaced",
            ),
        ] {
            let lock = lock(&package);
            let (name, reason) = lock.check_new(&LockFile::default()).unwrap_err();
            assert!(reason.contains(why) && name.contains("itoa"), "{package}: {reason}");
            // What was there before is the user's.
            lock.check_new(&lock).unwrap();
            if why != "replaced" {
                assert_eq!(lock.published().count(), 0, "{package}");
            }
        }
        assert!(LockFile::parse(b"[[package]]\nname = 1").is_err() && LockFile::parse(b"\xff").is_err());
        assert!(LockFile::parse(b"").unwrap().packages.is_empty());
    }
}
