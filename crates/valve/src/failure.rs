//! Why a valve cannot continue.

use std::io;
use std::path::PathBuf;

use tgp_contract::{Code, RelativePath, ToolError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the project `{}` cannot be looked at: {source}", path.display())]
    Project { path: PathBuf, source: io::Error },
    #[error("the project has more than {0} files that are not ignored")]
    TooManyFiles(usize),
    #[error("the valve's journal failed: {0}")]
    Journal(#[from] rusqlite::Error),
    #[error("the valve's journal `{}` cannot be opened: {source}", path.display())]
    JournalFile { path: PathBuf, source: io::Error },
    #[error("the valve's journal has version {found}, and this build knows {known}")]
    Version { found: i64, known: i64 },
    #[error("the valve's journal holds what it cannot hold: {0}")]
    Nonsense(String),
    #[error("another valve works on this project: {0}")]
    Busy(String),
    #[error("there is no file of personas `{0}`")]
    NoPersonas(RelativePath),
    #[error("the file of personas `{path}` cannot be read: {source}")]
    Personas { path: RelativePath, source: io::Error },
    #[error("the file of personas `{0}` is larger than any that is meant")]
    LargePersonas(RelativePath),
    #[error("{waiting} events wait for a chronicle; nothing is looked for until they are taken")]
    Full { waiting: u64 },
    #[error("an event cannot be written: {0}")]
    Event(String),
    #[error("a thread of the valve ended: {0}")]
    Thread(String),
    #[error("the valve was stopped")]
    Stopped,
}

impl Failure {
    /// Whether the journal's file itself is no longer to be trusted.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Journal(error) => matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
            ),
            Self::Nonsense(_) => true,
            _ => false,
        }
    }
}

impl From<Failure> for ToolError {
    fn from(failure: Failure) -> Self {
        let (code, help) = match &failure {
            Failure::Project { .. } => (Code::NotFound, "look whether the project's folder is still there"),
            Failure::TooManyFiles(_) => (Code::Budget, "name folders of data and output in `.gitignore`"),
            Failure::Journal(_) | Failure::Nonsense(_) if failure.is_damage() => (
                Code::Integrity,
                "start the valve again: it sets a damaged journal aside and begins a new one",
            ),
            Failure::Journal(_) | Failure::JournalFile { .. } | Failure::Nonsense(_) => (
                Code::Internal,
                "check the permissions of the journal's folder and the free space of the disk",
            ),
            Failure::Version { .. } => (Code::Config, "use the newest `tgp` on this project"),
            Failure::Busy(_) => (Code::Conflict, "stop the other one, or ask it with `tgp valve status`"),
            Failure::NoPersonas(_) => {
                (Code::Config, "write one, such as `personas: [{name: guardian, filters: [\"src/**\"]}]`")
            }
            Failure::Personas { .. } => (Code::Config, "make it a readable file of UTF-8 text"),
            Failure::LargePersonas(_) => (Code::Config, "keep fewer personas and shorter prompts"),
            Failure::Full { .. } => (Code::Budget, "see `tgp valve status` for what the chronicle says"),
            Failure::Event(_) | Failure::Thread(_) => (Code::Internal, "report this with the file's name"),
            Failure::Stopped => (Code::Runtime, "start it again when it is wanted"),
        };
        let error = ToolError::new(code, failure.to_string()).help(help);
        // So that the caller who asked for it knows that it was not a fault.
        if matches!(failure, Failure::Stopped) { error.of_cancellation() } else { error }
    }
}
