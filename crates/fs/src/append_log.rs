//! An append-only log: a file of lines that only grows, locked by the one who works on what it is about. The transcript of
//! a session and the journal of a run are such files.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tgp_contract::{Code, ToolError, background};

use crate::lock::{LockKind, LockWait, take_lock};
use crate::owner::explain_permission;

/// A longer file could not be read again within the memory of a small machine.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// What one line may take; values have their own, much lower limits.
const MAX_LINE_BYTES: usize = 32 << 20;
/// A process that was just killed may take a moment to let go.
const LOCK_WAIT: LockWait = LockWait {
    patience: Duration::from_millis(300),
    first_pause: Duration::from_millis(10),
    longest_pause: Duration::from_millis(50),
};

/// The file, locked.
pub struct AppendLog {
    path: PathBuf,
    file: Mutex<File>,
    /// What it belongs to, such as `session`.
    what: &'static str,
}

/// The complete lines of a log, and what follows the last of them.
pub struct Rows {
    /// Without their ends.
    pub lines: Vec<String>,
    pub torn: Vec<u8>,
}

impl AppendLog {
    /// A new, empty one.
    ///
    /// # Errors
    /// When there is one already, or it cannot be made.
    pub fn create(path: &Path) -> Result<File, ToolError> {
        private_file().create_new(true).read(true).open(path).map_err(at(path))
    }

    /// Takes a file that was just made.
    ///
    /// # Errors
    /// `ECONFLICT` when another process works on it.
    pub fn lock(path: PathBuf, file: File, what: &'static str) -> Result<Self, ToolError> {
        if take_lock(&file, LockKind::Exclusive, LOCK_WAIT).map_err(at(&path))? {
            return Ok(Self { path, file: Mutex::new(file), what });
        }
        Err(ToolError::new(Code::Conflict, format!("another process works on this {what}"))
            .help("wait until it has ended, or stop it with Ctrl-C there"))
    }

    /// Reopens an existing log. The rest of a line that a crash interrupted is moved to its own file; the notice
    /// reports it.
    ///
    /// # Errors
    /// As [`AppendLog::lock`], and `EINTEGRITY` for a line that is not UTF-8.
    pub fn reopen(path: &Path, what: &'static str) -> Result<(Self, Vec<String>, Option<String>), ToolError> {
        let file = private_file().read(true).open(path).map_err(at(path))?;
        let growing = Self::lock(path.to_owned(), file, what)?;
        let locked = growing.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Rows { lines, torn } = read_rows(path, &locked)?;
        let mut notice = None;
        if !torn.is_empty() {
            let aside = path.with_extension(format!("torn-{}", lines.len()));
            let mut kept = private_file().create(true).open(&aside).map_err(at(&aside))?;
            kept.write_all(&torn).and_then(|()| kept.sync_all()).map_err(at(&aside))?;
            let whole = locked.metadata().map_err(at(path))?.len() - torn.len() as u64;
            locked.set_len(whole).and_then(|()| locked.sync_all()).map_err(at(path))?;
            notice = Some(format!(
                "the last line of {} was cut off by a crash; its {} bytes are kept in {}",
                path.file_name().unwrap_or_default().display(),
                torn.len(),
                aside.display()
            ));
        }
        drop(locked);
        Ok((growing, lines, notice))
    }

    /// Whether a process works on it now.
    #[must_use]
    pub fn is_held(path: &Path) -> bool {
        let Ok(file) = File::open(path) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Adds one line. When `sync` it survives the end of the power, else that of the process.
    ///
    /// # Errors
    /// `EBUDGET` when the file is full, and what the system says. The file then is as it was.
    pub fn append(&self, mut line: String, sync: bool) -> Result<(), ToolError> {
        line.push('\n');
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let length = file.metadata().map_err(at(&self.path))?.len();
        if line.len() > MAX_LINE_BYTES {
            let message =
                format!("a line of this {} has {} bytes, more than {MAX_LINE_BYTES}", self.what, line.len());
            return Err(ToolError::new(Code::Internal, message)
                .help("this is a fault of tgp; the audit has the call, and what was begun can be resumed"));
        }
        if length + line.len() as u64 > MAX_FILE_BYTES {
            return Err(full(&self.path, self.what));
        }
        // The file is in append mode: one call writes the whole line behind everything else.
        if let Err(error) = (&*file).write_all(line.as_bytes()) {
            // A disk that is full has taken a part of the line. The next line must not continue it. If it
            // cannot be cut either, the next reader sets the torn line aside.
            let _ = file.set_len(length);
            return Err(at(&self.path)(error));
        }
        if sync { background::in_place(|| file.sync_data()).map_err(at(&self.path)) } else { Ok(()) }
    }
}

/// The complete lines of a file that does not have to be locked.
///
/// # Errors
/// `EINTEGRITY` for a line that is not UTF-8, and what the system says.
pub fn read(path: &Path) -> Result<Rows, ToolError> {
    let file = File::open(path).map_err(at(path))?;
    read_rows(path, &file)
}

fn read_rows(path: &Path, file: &File) -> Result<Rows, ToolError> {
    let mut bytes = read_bytes(path, file)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let torn = bytes.split_off(whole);
    // The end of the last line would be the beginning of an empty one.
    bytes.pop();
    let rows = (!bytes.is_empty()).then(|| bytes.split(|byte| *byte == b'\n'));
    let line = |(number, row): (usize, &[u8])| {
        let text = std::str::from_utf8(row).map_err(|error| damaged(path, number, &error.to_string()))?;
        Ok(text.to_owned())
    };
    let lines = rows.into_iter().flatten().enumerate().map(line).collect::<Result<_, ToolError>>()?;
    Ok(Rows { lines, torn })
}

/// All bytes of such a file.
///
/// # Errors
/// `EBUDGET` for a file beyond the limit, and what the system says.
pub fn read_bytes(path: &Path, mut file: &File) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(at(path))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(full(path, "file"));
    }
    Ok(bytes)
}

/// A line that is not what it was.
#[must_use]
pub fn damaged(path: &Path, number: usize, reason: &str) -> ToolError {
    let line = number + 1;
    ToolError::new(Code::Integrity, format!("`{}` line {line} is damaged: {reason}", path.display()))
        .detail("line", line)
        .help("another program changed the file; the audit still has every call")
}

fn full(path: &Path, what: &str) -> ToolError {
    ToolError::new(Code::Budget, format!("`{}` has more than {MAX_FILE_BYTES} bytes", path.display()))
        .help(format!("begin another {what}; this one can still be read"))
}

/// They hold what a model has read, so they are for their owner alone.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600);
    options
}

/// A whole file that only its owner reads.
///
/// # Errors
/// What the system says.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Makes directories that only their owner reads.
#[must_use]
pub fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// The error of a file of the kernel's own state.
pub fn at(path: &Path) -> impl Fn(io::Error) -> ToolError {
    let path = path.to_owned();
    move |error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::PermissionDenied => Code::Permission,
            _ => Code::Internal,
        };
        let help = match code {
            Code::Permission => explain_permission(&path),
            _ => "check the permissions of the directory and the free space of the disk".to_owned(),
        };
        ToolError::new(code, format!("cannot use the kernel's file `{}`: {error}", path.display())).help(help)
    }
}
