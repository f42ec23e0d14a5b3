//! Strict YAML: one document that says what it says at the place where it says it.
//!
//! Anchors, aliases, merge keys, foreign tags, doubled keys and further documents are refused, and depth and number of
//! values are bounded, so that a small file can neither hide a value nor grow into a large one.

use serde::de::DeserializeOwned;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{
    DuplicateKeyPolicy, Error, Location, MergeKeyPolicy, MessageFormatter, Spanned, UserMessageFormatter,
};

use crate::{LineCol, did_you_mean};

/// How large a document may be.
#[derive(Clone, Copy, Debug)]
pub struct YamlLimits {
    /// Values inside of values. Parsers recurse over them.
    pub depth: usize,
    /// Values altogether.
    pub nodes: usize,
}

/// Why a text is not the document that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    pub location: LineCol,
    pub kind: YamlErrorKind,
    pub message: String,
    /// The next step.
    pub help: String,
}

/// What a [`YamlError`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum YamlErrorKind {
    /// A field that does not exist here.
    UnknownField(String),
    MissingField(&'static str),
    DuplicateField(String),
    /// A second document in the text.
    Documents,
    /// The text is not YAML, or a value has another type.
    Malformed,
    /// Anything else that is refused.
    Refused,
}

/// Reads a document. Wrap a value in [`Spanned`] to learn its location with [`location`].
///
/// # Errors
/// The first problem, with its location.
pub fn read<T: DeserializeOwned>(text: &str, limits: YamlLimits) -> Result<T, YamlError> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_anchors: 0,
            max_merge_keys: 0,
            max_depth: limits.depth,
            max_nodes: limits.nodes,
            max_documents: 1,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| explain(&error))
}

/// Where a value begins.
pub fn location<T>(value: &Spanned<T>) -> LineCol {
    line_col(value.referenced)
}

/// Whether the text has nothing but empty lines and comments.
pub fn is_empty(text: &str) -> bool {
    text.lines().all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#'))
}

fn line_col(location: Location) -> LineCol {
    LineCol::from_parser(location.line(), location.column())
}

fn explain(error: &Error) -> YamlError {
    let error = error.without_snippet();
    let location = error.location().map_or(LineCol::START, line_col);
    let said =
        |kind, message: String, help: &str| YamlError { location, kind, message, help: help.to_owned() };
    let refused = |message: &str, help| said(YamlErrorKind::Refused, message.to_owned(), help);
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            let message = format!("there is no field `{}` here", field.escape_debug());
            said(YamlErrorKind::UnknownField(field.clone()), message, &choice(field, expected))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            let message = format!("`{}` is not one of the allowed words", variant.escape_debug());
            said(YamlErrorKind::Refused, message, &choice(variant, expected))
        }
        Error::SerdeMissingField { field, .. } => {
            let message = format!("`{field}` is missing");
            said(YamlErrorKind::MissingField(field), message, &format!("add `{field}:`"))
        }
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            let message = format!("`{}` is given twice", key.escape_debug());
            said(YamlErrorKind::DuplicateField(key.clone()), message, "keep one of them")
        }
        Error::Budget { breach: BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. }, .. } => {
            refused("anchors and aliases are not allowed", "write the value out where it is needed")
        }
        Error::UnknownAnchor { .. } => {
            refused("in YAML a `*` at the beginning of a value is an alias", "put the value in quotes")
        }
        Error::Budget { breach: BudgetBreach::MergeKeys { .. }, .. } | Error::MergeKeyNotAllowed { .. } => {
            refused("merge keys are not allowed", "write the fields out where they are needed")
        }
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. } | Error::MultipleDocuments { .. } => {
            let message = "a second document begins here".to_owned();
            said(YamlErrorKind::Documents, message, "remove the `---`, and keep everything in one document")
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => {
            refused("the values are nested too deeply", "use fewer levels")
        }
        Error::Budget { .. } => refused("the file has too many values", "use fewer values"),
        Error::Unexpected { expected: "sequence start", .. } => {
            refused("a list is expected here", "write `[one, two]`, or each on a line of its own after `- `")
        }
        Error::Unexpected { expected: "string scalar", .. } => refused(
            "one text is expected here",
            "write a single value, without `[ ]`, `{ }` or a list below it",
        ),
        Error::Unexpected { expected: "mapping start", .. } => {
            refused("a mapping is expected here", "write fields such as `name: value`")
        }
        other => {
            // The parser quotes the file, so its control characters must not reach a terminal.
            let message = UserMessageFormatter.format_message(other);
            let shown = message.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
            said(YamlErrorKind::Malformed, shown.collect(), "correct the YAML at this place")
        }
    }
}

fn choice(word: &str, expected: &[&'static str]) -> String {
    did_you_mean(word, expected.iter().copied())
        .unwrap_or_else(|| format!("use one of: {}", expected.join(", ")))
}
