//! What is wrong with a file of personas, where, and what to do.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{Error, Location, MessageFormatter, UserMessageFormatter};
use tgp_contract::{Code, ToolError};
use tgp_text::{LineCol, nearest};

/// What to do about a file that names no personas, not even none.
pub(super) const NONE: &str =
    "write one, such as `personas: [{name: guardian, filters: [\"src/**\"]}]`, or `personas: []` for none";

/// A problem at a place, which still lacks the next step.
pub(super) struct Fault<'f> {
    pub(super) file: &'f str,
    pub(super) location: Location,
    /// The path into the file, such as `personas[0].name`; empty where it is not known.
    pub(super) field: String,
    pub(super) message: String,
}

impl Fault<'_> {
    pub(super) fn help(self, help: impl Into<String>) -> ToolError {
        let place = LineCol::from_parser(self.location.line(), self.location.column()).in_file(self.file);
        let error =
            ToolError::new(Code::Config, format!("{place}: {}", self.message)).place(&place).help(help);
        if self.field.is_empty() { error } else { error.detail("field", self.field) }
    }
}

/// What the parser says of a file, in our words.
pub(super) fn unreadable(file: &str, error: &Error) -> ToolError {
    let error = error.without_snippet();
    let location = error.location().unwrap_or(Location::UNKNOWN);
    let said = |field: &str, message: String| Fault { file, location, field: field.to_owned(), message };
    let choice = |word: &str, expected: &[&'static str]| match nearest(word, expected.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of: {}", expected.join(", ")),
    };
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            said(field, format!("`{}` is no field that can stand here", field.escape_debug()))
                .help(choice(field, expected))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            said("", format!("`{}` is not one of the words that can stand here", variant.escape_debug()))
                .help(choice(variant, expected))
        }
        Error::SerdeMissingField { field: "personas", .. } => {
            said("personas", "`personas` is missing".to_owned()).help(NONE)
        }
        Error::SerdeMissingField { field, .. } => {
            said(field, format!("`{field}` is missing")).help(format!("add `{field}:`"))
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            said(key, format!("`{}` is given twice", key.escape_debug())).help("keep one of them")
        }
        Error::Budget { breach: BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. }, .. } => {
            said("", "anchors and aliases are not part of this file".to_owned())
                .help("write the value out where it is needed")
        }
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } | Error::MultipleDocuments { .. } => {
            said("", "a second document begins here".to_owned())
                .help("remove the `---`, and keep all personas in one list")
        }
        Error::Budget { .. } => {
            said("", "the file has too many or too deeply nested values".to_owned()).help("keep it flat")
        }
        Error::UnknownAnchor { .. } => {
            said("", "to YAML a `*` at the beginning is an alias".to_owned()).help("put the glob in quotes")
        }
        Error::Unexpected { expected: "sequence start", .. } => {
            said("", "a list has to stand here".to_owned())
                .help("write `[one, two]`, or each on a line of its own after `- `")
        }
        Error::Unexpected { expected: "mapping start", .. } => {
            said("", "a mapping has to stand here".to_owned()).help("write fields such as `name: value`")
        }
        other => {
            // The parser quotes the file, so its control characters must not reach a terminal.
            let message = UserMessageFormatter.format_message(other);
            let shown = message.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
            said("", shown.collect())
                .help("correct the YAML at this place; a glob or pattern that begins with `*`, `!` or `[` stands in quotes")
        }
    }
}
