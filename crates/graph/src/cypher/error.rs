//! Why a query is refused: before it ran, or by a value that it met.

use open_cypher::Span;
use tgp_contract::{Code, SourceLocation, ToolError};
use tgp_text::LineCol;

/// The name of the text in places.
const FILE: &str = "query";

/// The prefix of a refusal in the message of a failed SQL function; it distinguishes it from SQLite's own.
const MARK: &str = "cypher\u{1}";

/// The separator between the parts of such a message.
const END: char = '\u{2}';

/// How many places are named when a value may have been met at any of them. More would not be read.
const MOST_PLACES: usize = 5;

/// Whether a query was refused before it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Compile,
    Run,
}

/// A refusal. `kind` is the name that openCypher has for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CypherError {
    pub kind: &'static str,
    pub code: Code,
    pub message: String,
    pub help: Option<String>,
    pub span: Option<Span>,
}

/// What a stage of the compiler gives.
pub type CypherResult<T> = Result<T, Box<CypherError>>;

/// The kinds that SQL functions refuse with; a message carries the index.
const RUNTIME: [&str; 9] = [
    "InvalidArgumentType",
    "InvalidArgumentValue",
    "NumberOutOfRange",
    "NegativeIntegerArgument",
    "MapElementAccessByNonString",
    "IntegerOverflow",
    "InvalidArgument",
    "LimitExceeded",
    "Unsupported",
];

impl CypherError {
    pub fn new(kind: &'static str, span: Span, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { kind, code: Code::Validation, message: message.into(), help: None, span: Some(span) })
    }

    /// Something that Cypher has and this compiler has not.
    pub fn unsupported(span: Span, what: &str) -> Box<Self> {
        Self::new("Unsupported", span, format!("{what} is not supported"))
            .help("docs/cypher.md lists what is")
    }

    /// A cap was met before anything ran.
    pub fn too_much(message: impl Into<String>, help: &str) -> Box<Self> {
        Box::new(Self {
            kind: "LimitExceeded",
            code: Code::Budget,
            message: message.into(),
            help: Some(help.to_owned()),
            span: None,
        })
    }

    #[must_use]
    pub fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Self> {
        self.help = Some(help.into());
        self
    }

    /// The refusal as callers see it.
    pub fn into_error(self, source: &str, phase: Phase) -> ToolError {
        let mut error = ToolError::new(self.code, self.message).detail("kind", self.kind).detail(
            "phase",
            match phase {
                Phase::Compile => "compile",
                Phase::Run => "run",
            },
        );
        if let Some(help) = self.help {
            error = error.help(help);
        }
        if let Some(span) = self.span {
            error = error.place(&place(source, span.start));
        }
        error
    }
}

/// A place as it is said in a text.
pub(crate) fn spot(source: &str, offset: usize) -> String {
    LineCol::of(source, offset).to_string()
}

/// Line and column, both from 1, of a byte of the query.
pub(crate) fn place(source: &str, offset: usize) -> SourceLocation {
    LineCol::of(source, offset).in_file(FILE)
}

/// A refusal by a value that an SQL function met.
pub(crate) fn met(kind: &'static str, message: impl AsRef<str>) -> rusqlite::Error {
    let index = RUNTIME.iter().position(|known| *known == kind).unwrap_or(0);
    rusqlite::Error::UserFunctionError(format!("{MARK}{index}{END}{}", message.as_ref()).into())
}

/// Says in a refusal which SQL function met the value, for the place in the query.
pub(crate) fn met_by(function: &str, error: rusqlite::Error) -> rusqlite::Error {
    let rusqlite::Error::UserFunctionError(inner) = &error else { return error };
    let text = inner.to_string();
    let parts = text.strip_prefix(MARK).and_then(|text| text.split_once(END));
    match parts {
        Some((index, message)) if index.len() == 1 => {
            rusqlite::Error::UserFunctionError(format!("{MARK}{index}{function}{END}{message}").into())
        }
        _ => error,
    }
}

/// Reads what [`met`] wrote, from the message that SQLite gives on.
///
/// `sites` are the places in the query where each SQL function is used. Where there is one, the refusal has it; where
/// there are several, the help names them.
pub(crate) fn read(message: &str, source: &str, sites: &[(String, Span)]) -> Option<CypherError> {
    let text = message.strip_prefix(MARK)?;
    let (head, message) = text.split_once(END)?;
    let (index, function) = head.split_at_checked(1)?;
    let kind = RUNTIME.get(index.parse::<usize>().ok()?)?;
    let places: Vec<Span> =
        sites.iter().filter(|(known, _)| known == function).map(|(_, span)| *span).collect();
    let (code, help) = match (*kind, places.as_slice()) {
        ("LimitExceeded", _) => {
            (Code::Budget, Some("ask for less: LIMIT, a shorter list, an upper length for paths".to_owned()))
        }
        (_, [_, _, ..]) => {
            let spots: Vec<String> =
                places.iter().take(MOST_PLACES).map(|span| spot(source, span.start)).collect();
            let more = if places.len() > MOST_PLACES { " and others" } else { "" };
            (Code::Validation, Some(format!("look at {}{more}: it is one of them", spots.join(", "))))
        }
        _ => (Code::Validation, None),
    };
    let span = match places.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    Some(CypherError { kind, code, message: message.to_owned(), help, span })
}
