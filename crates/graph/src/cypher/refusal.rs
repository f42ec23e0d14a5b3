//! Why a query is refused: before it ran, or by a value that it met.

use open_cypher::Span;
use tgp_contract::{Code, Place, ToolError};

/// The name of the text in places.
const FILE: &str = "query";

/// What stands before a refusal in the message of a failed SQL function, so that it is told from SQLite's own.
const MARK: &str = "cypher\u{1}";

/// Whether a query was refused before it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Compile,
    Run,
}

/// A refusal. `kind` is the name that openCypher has for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub kind: &'static str,
    pub code: Code,
    pub message: String,
    pub help: Option<String>,
    pub span: Option<Span>,
}

/// What a stage of the compiler gives.
pub(crate) type Outcome<T> = Result<T, Box<Refusal>>;

/// The kinds that SQL functions refuse with; a message carries the index.
const RUNTIME: [&str; 8] = [
    "InvalidArgumentType",
    "InvalidArgumentValue",
    "NumberOutOfRange",
    "NegativeIntegerArgument",
    "MapElementAccessByNonString",
    "IntegerOverflow",
    "InvalidArgument",
    "LimitExceeded",
];

impl Refusal {
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

    /// The refusal as everyone outside sees it.
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

/// Line and column, both from 1, of a byte of the query.
fn place(source: &str, offset: usize) -> Place {
    let before = source.get(..offset).unwrap_or(source);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Place { file: FILE.to_owned(), line: narrow(line), column: narrow(column) }
}

/// A refusal by a value that an SQL function met.
pub(crate) fn met(kind: &'static str, message: impl AsRef<str>) -> rusqlite::Error {
    let index = RUNTIME.iter().position(|known| *known == kind).unwrap_or(0);
    rusqlite::Error::UserFunctionError(format!("{MARK}{index}{}", message.as_ref()).into())
}

/// Reads what [`met`] wrote, from the message that SQLite gives on.
pub(crate) fn read(message: &str) -> Option<Refusal> {
    let text = message.strip_prefix(MARK)?;
    let (index, message) = text.split_at_checked(1)?;
    let kind = RUNTIME.get(index.parse::<usize>().ok()?)?;
    let (code, help) = match *kind {
        "LimitExceeded" => {
            (Code::Budget, Some("ask for less: LIMIT, a shorter list, an upper length for paths".to_owned()))
        }
        _ => (Code::Validation, None),
    };
    Some(Refusal { kind, code, message: message.to_owned(), help, span: None })
}
