//! The newest hash, kept outside of the database, so that a database that lost its end or was replaced is found out.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use tgp_contract::{Code, ToolError};

use crate::failure::{ErrorContext, Failure};

/// What a written head begins with; the number is the version of the format.
const MARK: &str = "tgp-audit-head-1";
/// A head is one line of about 130 bytes.
const MAX_HEAD_BYTES: u64 = 1 << 10;

/// The newest entry of a chain: its number and its hash. A chain without entries is at 0 with a hash of zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub chain: String,
    pub sequence: u64,
    pub hash: String,
}

/// Why a text is no [`Head`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the anchor of the audit cannot be read")]
pub struct HeadError;

impl fmt::Display for Head {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{MARK} {} {} {}", self.chain, self.sequence, self.hash)
    }
}

impl FromStr for Head {
    type Err = HeadError;

    fn from_str(text: &str) -> Result<Self, HeadError> {
        let words: Vec<&str> = text.trim_end_matches('\n').split(' ').collect();
        let [MARK, chain, sequence, hash] = words.as_slice() else { return Err(HeadError) };
        let is_hex = |word: &str, length: usize| {
            word.len() == length && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let number: u64 = sequence.parse().map_err(|_| HeadError)?;
        if !is_hex(chain, 32) || !is_hex(hash, 64) || number.to_string() != *sequence {
            return Err(HeadError);
        }
        Ok(Self { chain: (*chain).to_owned(), sequence: number, hash: (*hash).to_owned() })
    }
}

impl From<HeadError> for ToolError {
    fn from(error: HeadError) -> Self {
        ToolError::new(Code::Integrity, error.to_string()).help(
            "`tgp audit verify` says what it holds; `tgp audit restart --reason TEXT` begins a new chain and anchor",
        )
    }
}

/// Keeps a copy of the head at another place. Called by the audit's own thread, one call at a time over all processes
/// that share the database.
pub trait Anchor: Send + Sync {
    /// The head that was stored last; `None` when none ever was.
    ///
    /// # Errors
    /// When there is one that cannot be read. That is not the same as none.
    fn load(&self) -> Result<Option<Head>, ToolError>;

    /// Replaces the stored head, once `settle` has made its entry outlive a power failure: an anchor that knows more than
    /// the database would look like a truncated database. A crash must leave the old one or the new one.
    ///
    /// # Errors
    /// When it cannot be stored, and those of `settle`; the old one stays then.
    fn store(&self, head: &Head, settle: Settle<'_>) -> Result<(), ToolError>;

    /// Removes what is stored, also what cannot be read: a person begins a new chain.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn clear(&self) -> Result<(), ToolError>;
}

/// Waits for the disk.
pub type Settle<'a> = &'a mut dyn FnMut() -> Result<(), ToolError>;

/// An anchor in a file, for tool roots that are not a git repository.
#[derive(Debug)]
pub struct FileAnchor {
    path: PathBuf,
}

static ISSUED: AtomicU64 = AtomicU64::new(0);

impl FileAnchor {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    fn replace(&self, head: &Head) -> Result<(), Failure> {
        const DOING: &str = "cannot write the anchor";
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::create_dir_all(folder).doing(DOING, folder)?;
        let number = ISSUED.fetch_add(1, Ordering::Relaxed);
        let fresh = folder.join(format!(".tgp-tmp-{}-{number}-anchor", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)
            .and_then(|mut file| {
                file.write_all(format!("{head}\n").as_bytes())?;
                // Renamed before its bytes are safe, the file could be empty after a power failure.
                file.sync_data()
            })
            .and_then(|()| fs::rename(&fresh, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        written.doing(DOING, &self.path)
    }
}

impl Anchor for FileAnchor {
    fn load(&self) -> Result<Option<Head>, ToolError> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.doing("cannot read the anchor", &self.path)?,
        };
        let mut text = Vec::new();
        file.take(MAX_HEAD_BYTES).read_to_end(&mut text).doing("cannot read the anchor", &self.path)?;
        let text = String::from_utf8(text).map_err(|_| HeadError)?;
        Ok(Some(text.parse::<Head>()?))
    }

    fn store(&self, head: &Head, settle: Settle<'_>) -> Result<(), ToolError> {
        settle()?;
        Ok(self.replace(head)?)
    }

    fn clear(&self) -> Result<(), ToolError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => Ok(removed.doing("cannot remove the anchor", &self.path)?),
        }
    }
}
