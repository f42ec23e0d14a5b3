//! What is wrong with a file of personas, where, and what to do.

use tgp_contract::{Code, ToolError};
use tgp_text::LineCol;
use tgp_text::yaml::{YamlError, YamlErrorKind};

/// What to do about a file that names no personas, not even none.
pub(super) const NONE: &str =
    "write one, such as `personas: [{name: guardian, filters: [\"src/**\"]}]`, or `personas: []` for none";

/// A problem at a place, which still lacks the next step.
pub(super) struct Fault<'f> {
    pub(super) file: &'f str,
    pub(super) location: LineCol,
    /// The path into the file, such as `personas[0].name`; empty where it is not known.
    pub(super) field: String,
    pub(super) message: String,
}

impl Fault<'_> {
    pub(super) fn help(self, help: impl Into<String>) -> ToolError {
        let place = self.location.in_file(self.file);
        let error =
            ToolError::new(Code::Config, format!("{place}: {}", self.message)).place(&place).help(help);
        if self.field.is_empty() { error } else { error.detail("field", self.field) }
    }
}

/// What the parser says of a file, with what helps people who write globs and personas.
pub(super) fn unreadable(file: &str, error: YamlError) -> ToolError {
    let YamlError { location, kind, message, help } = error;
    let said = |field: &str| Fault { file, location, field: field.to_owned(), message };
    match &kind {
        YamlErrorKind::MissingField("personas") => said("personas").help(NONE),
        YamlErrorKind::MissingField(field) => said(field).help(help),
        YamlErrorKind::UnknownField(field) | YamlErrorKind::DuplicateField(field) => said(field).help(help),
        YamlErrorKind::Documents => said("").help("remove the `---`, and keep all personas in one list"),
        YamlErrorKind::Malformed => {
            said("").help(format!("{help}; put a glob or pattern that begins with `*`, `!` or `[` in quotes"))
        }
        YamlErrorKind::Refused => said("").help(help),
    }
}
