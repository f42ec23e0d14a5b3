//! `requirements.txt`: the requirements in it, and an edit that keeps every other line.

use crate::{ManifestError, Name, Requirement};

/// Largest list.
const MAX_BYTES: usize = 1 << 20;
/// Most lines of one list.
const MAX_LINES: usize = 20_000;

/// A list of requirements, as pip reads it, without what leads out of it.
#[derive(Clone, Debug)]
pub struct RequirementsFile {
    /// Each with its line ending.
    lines: Vec<String>,
    items: Vec<Item>,
    includes: Vec<String>,
}

/// A requirement, and the lines that it is on.
#[derive(Clone, Debug)]
struct Item {
    first: usize,
    count: usize,
    requirement: Requirement,
    comment: Option<String>,
}

impl RequirementsFile {
    /// # Errors
    /// For options, addresses, paths and what is not a requirement, with the number of the line.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        if text.len() > MAX_BYTES {
            return Err(ManifestError::TooLarge(MAX_BYTES));
        }
        // pip decodes such a list by its mark of byte order.
        if let Some(letter) = text.chars().find(|letter| is_refused(*letter)) {
            return Err(ManifestError::NotText(format!(
                "it has the character `{}`",
                letter.escape_default()
            )));
        }
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        if lines.len() > MAX_LINES {
            return Err(ManifestError::TooLarge(MAX_BYTES));
        }
        let mut file = Self { lines: Vec::new(), items: Vec::new(), includes: Vec::new() };
        let mut first = 0;
        let mut logical = String::new();
        for (at, line) in lines.iter().enumerate() {
            let line = line.trim_end_matches(['\r', '\n']);
            // A comment is not continued.
            let is_comment = line.trim_start().starts_with('#');
            match line.strip_suffix('\\').filter(|_| !is_comment) {
                Some(start) if at + 1 < lines.len() => logical.push_str(start),
                _ => {
                    logical.push_str(line);
                    file.add(first, at + 1 - first, &logical)?;
                    first = at + 1;
                    logical.clear();
                }
            }
        }
        file.lines = lines;
        Ok(file)
    }

    fn add(&mut self, first: usize, count: usize, text: &str) -> Result<(), ManifestError> {
        let refused = |problem: String| ManifestError::Line { line: first + 1, problem };
        let (text, comment) = without_comment(text);
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        if let Some(name) = included(text) {
            self.includes.push(name.to_owned());
            return Ok(());
        }
        if text.starts_with('-') {
            let option = text.split([' ', '=', '\t']).next().unwrap_or_default();
            return Err(refused(format!("the option `{option}` is not supported")));
        }
        if text.contains(" --hash") || text.contains("\t--hash") {
            return Err(refused("`--hash` is not supported: checksums are those of the index".to_owned()));
        }
        let requirement = Requirement::parse(&text.replace('\t', " "))
            .map_err(|error| refused(format!("`{}`: {error}", shown(text))))?;
        self.items.push(Item { first, count, requirement, comment: comment.map(str::to_owned) });
        Ok(())
    }

    /// The requirements, in their order.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.items.iter().map(|item| &item.requirement)
    }

    /// Lists beside this one that it takes in by `-r`: plain names.
    #[must_use]
    pub fn includes(&self) -> &[String] {
        &self.includes
    }

    /// Whether it lists a package.
    #[must_use]
    pub fn lists(&self, name: &Name) -> bool {
        self.requirements().any(|requirement| requirement.name() == name)
    }

    /// Adds a requirement, or puts it in the place of the one with this name.
    ///
    /// # Errors
    /// For a package that is listed more than once.
    pub fn set(&mut self, requirement: &Requirement) -> Result<(), ManifestError> {
        let ending = if self.lines.iter().any(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
        let same: Vec<usize> = self
            .items
            .iter()
            .enumerate()
            .filter(|(_, item)| item.requirement.name() == requirement.name())
            .map(|(at, _)| at)
            .collect();
        let (first, count, comment) = match same.as_slice() {
            [] => {
                if let Some(last) = self.lines.last_mut().filter(|line| !line.ends_with('\n')) {
                    last.push_str(ending);
                }
                // A last line with a backslash, if only in its comment, would take the new one to itself.
                if self.lines.last().is_some_and(|line| line.trim_end().ends_with('\\')) {
                    self.lines.push(ending.to_owned());
                }
                (self.lines.len(), 0, None)
            }
            [at] => match self.items.get(*at) {
                Some(item) => (item.first, item.count, item.comment.clone()),
                None => (self.lines.len(), 0, None),
            },
            [_, second, ..] => {
                let line = self.items.get(*second).map_or(0, |item| item.first + 1);
                let problem = format!("`{}` is listed more than once", requirement.name());
                return Err(ManifestError::Line { line, problem });
            }
        };
        // A backslash at its end would take the line behind it to the comment.
        let comment =
            comment.map(|comment| format!("  {}", comment.trim_end_matches('\\'))).unwrap_or_default();
        let line = format!("{requirement}{comment}{ending}");
        self.lines.splice(first..first + count, [line]);
        *self = Self::parse(&self.text())?;
        Ok(())
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        self.lines.concat()
    }
}

fn is_refused(letter: char) -> bool {
    let is_end = matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}');
    is_end || (letter.is_control() && !matches!(letter, '\t' | '\r' | '\n'))
}

/// A line without its comment, and the comment.
fn without_comment(text: &str) -> (&str, Option<&str>) {
    let mut before = None;
    for (at, letter) in text.char_indices() {
        if letter == '#' && before.is_none_or(char::is_whitespace) {
            let (text, comment) = text.split_at(at);
            return (text, Some(comment.trim_end()));
        }
        before = Some(letter);
    }
    (text, None)
}

/// The plain name of a list beside this one that a line takes in.
fn included(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("-r").or_else(|| text.strip_prefix("--requirement"))?;
    let name = rest.strip_prefix(['=', ' ', '\t'])?.trim();
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    (is_plain && name.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && name.ends_with(".txt"))
        .then_some(name)
}

fn shown(text: &str) -> String {
    text.chars().take(120).collect()
}
