//! What can go wrong with a chronicle, and how that becomes the one error shape.

use std::io;

use tgp_contract::{Code, FsError, RelativePath, SourceLocation, ToolError};
use tgp_fs::SECOND_NAME;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("`{path}` is outside the scope of the chronicle: `chronicle.scope` is {scope}")]
    OutOfScope { path: RelativePath, scope: String },
    #[error("the name of the chronicle `{0}` is too long for a file")]
    NoRoom(RelativePath),
    #[error("`{0}` is a link or a special file, or stands behind one")]
    Link(RelativePath),
    #[error("`{0}` has a second name, which may be outside the project")]
    SecondName(RelativePath),
    #[error("`{0}` is a directory")]
    Directory(RelativePath),
    #[error("`{0}` is a file where a directory is needed")]
    NotDirectory(RelativePath),
    #[error("there is no chronicle `{0}`")]
    NotFound(RelativePath),
    #[error("another process has held the chronicle `{path}` for {seconds} seconds")]
    Busy { path: RelativePath, seconds: u64 },
    #[error("the chronicle `{0}` was replaced again and again while it was opened")]
    Restless(RelativePath),
    #[error("the event cannot be kept: {0}")]
    Event(String),
    #[error("the chronicle `{path}` is broken in line {line}: {what}")]
    Broken { path: RelativePath, line: u64, what: String },
    #[error("`{path}` does not end as a chronicle does: {what}")]
    Foreign { path: RelativePath, what: &'static str },
    #[error("{0}")]
    Request(String),
    #[error("`chronicle.scope` is wrong: {0}")]
    Scope(String),
    #[error("{doing} `{path}`: {source}")]
    Disk { doing: &'static str, path: RelativePath, source: io::Error },
    #[error("the work on the chronicle was cut off: {0}")]
    Thread(String),
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let (code, help) = code_and_help(&failure);
        let error = ToolError::new(code, failure.to_string()).help(help);
        match failure {
            Failure::Broken { path, line, what } => {
                // A place counts in 32 bits; beyond that the message still has the line.
                let line = u32::try_from(line).unwrap_or(u32::MAX);
                error.detail("problem", what).place(&SourceLocation {
                    file: path.to_string(),
                    line,
                    column: 1,
                })
            }
            _ => error,
        }
    }
}

fn code_and_help(failure: &Failure) -> (Code, &'static str) {
    match failure {
        Failure::OutOfScope { .. } => (
            Code::Permission,
            "name a chronicle such as `.sage/project.sage` or `src/a.ts.sage`, or add a glob to `chronicle.scope` in the configuration",
        ),
        Failure::NoRoom(_) => {
            (Code::Permission, "tell it in `.sage/project.sage`, or give the file a shorter name")
        }
        Failure::Link(_) => {
            (Code::Security, "put a plain file or directory in its place; no link is followed")
        }
        Failure::SecondName(_) => (Code::Security, "replace it by a copy of its own"),
        Failure::Directory(_) | Failure::NotDirectory(_) => (Code::Validation, "name another file"),
        Failure::NotFound(_) => (Code::NotFound, "`tgp chronicle verify --json` lists those there are"),
        Failure::Busy { .. } => (Code::Conflict, "wait for that process, or end it, and try again"),
        Failure::Restless(_) => (Code::Conflict, "find out which program replaces it, and try again"),
        Failure::Event(_) => (
            Code::Validation,
            "give `type`, `timestamp` (RFC 3339), `actor` with `agent` and `id`, and no `eventId` unless it is the event's own",
        ),
        Failure::Broken { .. } => (
            Code::Integrity,
            "`tgp chronicle verify` lists every broken line; take the file back from git as it was written",
        ),
        Failure::Foreign { .. } => (
            Code::Integrity,
            "look at its last line: either the file is not a chronicle and needs another name, or it was edited by hand",
        ),
        Failure::Request(_) => (Code::Validation, "ask for less, or read the chronicle in a stream"),
        Failure::Scope(_) => (Code::Config, "write globs such as `src/**/*.sage`, relative to the project"),
        Failure::Disk { source, .. } => disk(source),
        Failure::Thread(_) => (Code::Internal, "try again; the same event is never kept twice"),
    }
}

fn disk(source: &io::Error) -> (Code, &'static str) {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (Code::Internal, "the disk is full; free some space and try again")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            (Code::Permission, "see that this user can read and write the project")
        }
        io::ErrorKind::NotFound => (Code::NotFound, "see that the project is where it was"),
        _ => (Code::Internal, "see that the disk of the project works, and try again"),
    }
}

/// Says what was being done to which file.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str, path: &RelativePath) -> Result<T, Failure>;
}

impl<T> Doing<T> for Result<T, io::Error> {
    fn doing(self, doing: &'static str, path: &RelativePath) -> Result<T, Failure> {
        self.map_err(|source| Failure::Disk { doing, path: path.clone(), source })
    }
}

impl From<FsError> for Failure {
    fn from(error: FsError) -> Self {
        let named = |path: &str| RelativePath::new(path).unwrap_or_default();
        match error {
            FsError::NotFound(path) => Self::Restless(path),
            FsError::NotDirectory(path) => Self::NotDirectory(path),
            FsError::IsDirectory(path) => Self::Directory(path),
            FsError::Security { path, reason } if reason == SECOND_NAME => Self::SecondName(named(&path)),
            FsError::Security { path, .. } => Self::Link(named(&path)),
            FsError::Io { path, source } => Self::Disk { doing: "cannot use", path, source },
            error => Self::Request(error.to_string()),
        }
    }
}
