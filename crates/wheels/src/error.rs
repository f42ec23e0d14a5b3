//! What can be wrong with a requirement, a manifest, a wheel or an environment.

use std::io;

use tgp_contract::FsError;

/// Why a text is not a requirement that is installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequirementError {
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
    #[error("it has the character `{}`, which no requirement has", .0.escape_default())]
    Character(char),
    #[error("an address or a path is not installed")]
    Address,
    #[error("invalid name `{0}`: expected letters, digits, `-`, `_` and `.`")]
    Name(String),
    #[error("invalid version: {0}")]
    Version(String),
    #[error("invalid marker: {0}")]
    Marker(String),
}

/// What cannot be used in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    #[error("it is not text: {0}")]
    NotText(String),
    /// In a line of a list of requirements.
    #[error("line {line}: {problem}")]
    Line { line: usize, problem: String },
    #[error("invalid TOML: {0}")]
    Syntax(String),
    /// In a field of `pyproject.toml`.
    #[error("`{field}`: {problem}")]
    Field { field: String, problem: String },
    /// It belongs to a manager whose lock file would not follow, or that reads another table.
    #[error("{0}")]
    Unsupported(String),
}

/// Why a wheel is refused.
#[derive(Debug, thiserror::Error)]
pub enum WheelError {
    #[error("invalid file name `{0}`: expected `NAME-VERSION-PYTHON-ABI-PLATFORM.whl`")]
    FileName(String),
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("invalid archive: {0}")]
    Archive(String),
    #[error("invalid entry `{}`: {problem}", path.escape_default())]
    Entry { path: String, problem: &'static str },
    #[error("{what} is more than {limit}")]
    Limit { what: &'static str, limit: u64 },
    #[error("invalid metadata: {0}")]
    Metadata(String),
    #[error("it depends on an address, `{0}`, and not on a package of an index")]
    Address(String),
    #[error("invalid RECORD: {0}")]
    Record(String),
    #[error("`{path}` {problem}")]
    Destination { path: String, problem: &'static str },
    #[error("invalid entry point `{0}`")]
    EntryPoint(String),
    #[error("it was stopped")]
    Stopped,
}

/// Why an environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    #[error("it is not an environment of Python: {0}")]
    NotAnEnvironment(String),
    #[error("{what} is more than {limit}")]
    Limit { what: &'static str, limit: u64 },
    #[error(transparent)]
    Files(#[from] FsError),
    #[error("it was stopped")]
    Stopped,
}

/// Why wheels cannot be installed together in an environment.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("`{file}`: {source}")]
    Wheel { file: String, source: WheelError },
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("`{path}` is brought by {first} and by {second}")]
    Conflict { path: String, first: String, second: String },
    #[error("{0} is there twice, with different files")]
    Twice(String),
    #[error("the path of the environment, `{0}`, has a character that scripts cannot name")]
    Location(String),
    #[error("the packages cannot be unpacked: {0}")]
    Io(#[from] io::Error),
    #[error("it was stopped")]
    Stopped,
}
