//! What can go wrong with the chain, its database and its disk, and how that becomes the one error shape.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tgp_contract::{Code, ToolError};
use tgp_fs::explain_permission;

const NEXT_STEP: &str = "`tgp audit verify` reads the whole chain; `tgp audit restart --reason TEXT` sets the broken \
                         database aside and begins a new chain";

/// SQLite's word for a statement that it does not understand.
const SQLITE_ERROR: i32 = 1;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// An entry is not what was written.
    #[error("the audit is broken at entry {sequence}: {what}")]
    Broken { sequence: u64, what: String },
    /// The database as a whole is not the one that was written.
    #[error("the audit is broken: {0}")]
    Foreign(String),
    #[error("{doing} the audit database `{}`: {source}", .path.display())]
    Database { doing: &'static str, path: PathBuf, source: rusqlite::Error },
    #[error("{doing} `{}` of the audit: {source}", .path.display())]
    Disk { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the audit could not keep {0} records of cancelled calls: too many of them waited to be written")]
    Lost(u64),
    #[error("the audit has been closed")]
    Closed,
    #[error("the audit writes too slowly: no room for another record within {0} seconds")]
    NoRoom(u64),
    #[error("the audit's writer ended before its work did")]
    Thread,
    #[error("internal error: the thread that writes the audit panicked; its message is on standard error")]
    Panicked,
    #[error("the export cannot be written: {0}")]
    Output(io::Error),
    /// An error that has its shape already, such as the anchor's.
    #[error("{0}")]
    Told(ToolError),
}

impl Failure {
    pub(crate) fn broken(sequence: u64, what: impl Into<String>) -> Self {
        Self::Broken { sequence, what: what.into() }
    }

    /// Whether no second try can help: the chain is not what it was.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Broken { .. } | Self::Foreign(_) => true,
            Self::Database { source, .. } => is_corrupt(source),
            _ => false,
        }
    }
}

/// Whether SQLite says that the file is damaged, or holds what this crate never wrote.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    match error {
        // Our statements are fixed, so one that is wrong meets tables that are not ours.
        rusqlite::Error::SqliteFailure(error, _) => {
            matches!(error.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::TooBig)
                || error.extended_code & 0xff == SQLITE_ERROR
        }
        rusqlite::Error::SqlInputError { .. } => true,
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::InvalidColumnType(..) => true,
        _ => false,
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::Broken { sequence, what } => ToolError::new(Code::Integrity, message)
                .detail("sequence", sequence)
                .detail("problem", what)
                .help(NEXT_STEP),
            Failure::Foreign(what) => {
                ToolError::new(Code::Integrity, message).detail("problem", what).help(NEXT_STEP)
            }
            Failure::Database { source, .. } if is_corrupt(&source) => {
                ToolError::new(Code::Integrity, message).detail("problem", source.to_string()).help(NEXT_STEP)
            }
            Failure::Database { path, source, .. } => match source.sqlite_error_code() {
                Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                    ToolError::new(Code::Permission, message).help(explain_permission(&path))
                }
                _ => ToolError::new(Code::Internal, message).help(next_step(&source)),
            },
            Failure::Disk { path, source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                ToolError::new(Code::Permission, message).help(explain_permission(&path))
            }
            Failure::Disk { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                ToolError::new(Code::Internal, message)
                    .help("the disk is full; free some space and try again")
            }
            Failure::Disk { .. } => ToolError::new(Code::Internal, message)
                .help("see that the folder of the audit can be written"),
            Failure::Lost(_) => ToolError::new(Code::Internal, message)
                .help("the calls did happen; send fewer calls at once, or find out what slows the disk"),
            Failure::Closed => ToolError::new(Code::Internal, message).help("start the kernel again"),
            Failure::NoRoom(_) => ToolError::new(Code::Internal, message)
                .help("find out what slows the disk, or which process holds the database"),
            Failure::Thread | Failure::Panicked => {
                ToolError::new(Code::Internal, message).help("start the kernel again")
            }
            Failure::Output(source) => ToolError::new(Code::Internal, message)
                .detail("brokenPipe", source.kind() == io::ErrorKind::BrokenPipe)
                .help("see that there is room where it goes"),
            Failure::Told(error) => error,
        }
    }
}

fn next_step(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process holds the audit database; let it finish, or end it, and try again"
        }
        Some(ErrorCode::DiskFull) => "the disk is full; free some space and try again",
        _ => "see that the disk of the audit database works, and try again",
    }
}

/// Says what was being done to which file.
pub(crate) trait ErrorContext<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Failure>;
}

impl<T> ErrorContext<T> for Result<T, rusqlite::Error> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Failure> {
        self.map_err(|source| Failure::Database { doing, path: path.to_owned(), source })
    }
}

impl<T> ErrorContext<T> for Result<T, io::Error> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, Failure> {
        self.map_err(|source| Failure::Disk { doing, path: path.to_owned(), source })
    }
}
