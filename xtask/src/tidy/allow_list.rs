//! Lists of what a rule does not yet reach: one exact line per exception. A line that excepts nothing is a problem, so
//! that the lists only get shorter.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The exceptions of one rule.
pub(super) struct AllowList {
    file: &'static str,
    unused: BTreeSet<String>,
    lines: BTreeSet<String>,
}

impl AllowList {
    pub(super) fn read(root: &Path, file: &'static str) -> Result<Self> {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        Ok(Self::parse(file, &text))
    }

    fn parse(file: &'static str, text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines: BTreeSet<String> = lines.map(str::to_owned).collect();
        Self { file, unused: lines.clone(), lines }
    }

    /// Whether the list has the line.
    pub(super) fn allows(&mut self, line: &str) -> bool {
        self.unused.remove(line);
        self.lines.contains(line)
    }

    /// The lines that were never asked for.
    pub(super) fn report_unused(self, problems: &mut Vec<String>) {
        let Self { file, unused, .. } = self;
        problems.extend(unused.iter().map(|line| format!("{file} has an unused line; remove it: {line}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_allows_and_an_unused_line_is_a_problem() {
        let mut list = AllowList::parse("list.txt", "# why\n\na.rs: one\nb.rs: two\n");
        assert!(list.allows("a.rs: one"));
        assert!(list.allows("a.rs: one"));
        assert!(!list.allows("a.rs: on"));
        assert!(!list.allows("# why"));
        let mut problems = Vec::new();
        list.report_unused(&mut problems);
        assert_eq!(problems, ["list.txt has an unused line; remove it: b.rs: two"]);
    }
}
