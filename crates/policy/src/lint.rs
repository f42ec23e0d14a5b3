//! Rules that can be read and most likely do not mean what their author wanted.

use crate::{Policy, PolicyProblem};

impl Policy {
    /// Patterns of rules that match none of these names and aliases of tools: most likely misspelt.
    #[must_use]
    pub fn idle_patterns(&self, names: &[&str]) -> Vec<PolicyProblem> {
        self.selectors()
            .filter_map(|(head, selector)| selector.tools.as_ref().map(|tools| (head, tools)))
            .flat_map(|(head, tools)| tools.idle(names).map(move |word| (head, word.to_owned())))
            .map(|(head, word)| PolicyProblem {
                place: head.place.clone(),
                message: format!("`{word}` of rule `{}` is the name of no tool", head.id),
                help: "correct the name, or leave it when the tool comes later".to_owned(),
            })
            .collect()
    }

    /// Kinds of statements in rules that no statement has: most likely misspelt. Such a rule never matches.
    #[must_use]
    pub fn unknown_kinds(&self, kinds: &[&str]) -> Vec<PolicyProblem> {
        self.selectors()
            .flat_map(|(head, selector)| selector.statement_kinds().map(move |kind| (head, kind)))
            .filter(|(_, kind)| !kinds.contains(kind))
            .map(|(head, kind)| PolicyProblem {
                place: head.place.clone(),
                message: format!(
                    "unknown kind of statement `{kind}` in rule `{}`: it matches no statement",
                    head.id
                ),
                help: "write the verb of the statement, such as `drop`, `delete` or `update`".to_owned(),
            })
            .collect()
    }

    /// Texts of `command` with a `*`, as globs have it elsewhere in a rule. A text is compared as it is, so such a rule
    /// matches only the command that a person types with that `*`.
    #[must_use]
    pub fn command_wildcards(&self) -> Vec<PolicyProblem> {
        self.selectors()
            .flat_map(|(head, selector)| selector.exact_commands().map(move |text| (head, text)))
            .filter(|(_, text)| text.contains('*'))
            .map(|(head, text)| PolicyProblem {
                place: head.place.clone(),
                message: format!(
                    "`{}` of rule `{}` is the exact text of a command: its `*` stands for nothing but itself",
                    text.escape_debug(),
                    head.id
                ),
                help: format!(
                    "to mean any text in its place, write `command: {{regex: {}}}`",
                    pattern_of(text)
                ),
            })
            .collect()
    }
}

/// A command with `*` as an expression, as YAML.
fn pattern_of(text: &str) -> String {
    let expression = text.split('*').map(regex::escape).collect::<Vec<_>>().join(".*");
    // Only in single quotes does a backslash need no other.
    if expression.contains(['\\', '"']) {
        format!("'{}'", expression.replace('\'', "''"))
    } else {
        format!("\"{expression}\"")
    }
}
