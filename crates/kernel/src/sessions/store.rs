//! The folder of a session, and its transcript.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use tgp_agent::{Journal, Line, Safety};
use tgp_contract::{Code, ToolError};

use crate::boot::{BootError, BootOptions, Ground};
use crate::settings::state_directory;

const TRANSCRIPT: &str = "transcript.ndjson";
const HEAD: &str = "session.json";
/// How the folder of a session is called until it is complete.
const DRAFT: &str = ".new-";
/// Nobody takes longer to begin a session.
const DRAFT_AGE: Duration = Duration::from_secs(3600);
/// A longer transcript could not be read again within the memory of a small machine.
const MAX_TRANSCRIPT_BYTES: u64 = 256 << 20;
/// What one line may take; results have bounds of their own far below it.
const MAX_LINE_BYTES: usize = 32 << 20;
/// How often, and with which pauses, the lock of a session is tried.
const LOCK_ATTEMPTS: u32 = 6;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// Names that are tried for a session before its clock and its dice are not to be believed.
const MAX_NAMES: u32 = 1000;

/// What was asked for when the session began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) task: String,
    /// As the user named it, such as `anthropic` or `script:FILE`.
    pub(crate) provider: String,
    pub(crate) base_url: Option<String>,
    pub(crate) model: String,
    pub(crate) created_ms: u64,
}

/// The sessions of a project. Reading them needs no running kernel.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// The agent's root, which has the audit as well.
    root: PathBuf,
    directory: PathBuf,
}

impl Sessions {
    /// Finds the sessions of a project.
    ///
    /// # Errors
    /// When the configuration cannot be read, or the project was never initialised.
    pub async fn open(options: &BootOptions) -> Result<Self, BootError> {
        Ok(Self::below(&Ground::find(options).await?.root))
    }

    pub(crate) fn below(root: &Path) -> Self {
        Self { root: root.to_owned(), directory: state_directory(root).join("sessions") }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn transcript(&self, id: &str) -> PathBuf {
        self.directory.join(id).join(TRANSCRIPT)
    }

    /// Makes the folder of a new session; a name that is taken gets a number.
    pub(super) fn create(&self, head: Head) -> Result<(Head, TranscriptFile), ToolError> {
        private_directory().recursive(true).create(&self.directory).map_err(at(&self.directory))?;
        self.forget_drafts();
        // A session is there with all its files or not at all, whenever its process is killed.
        let draft = self.directory.join(format!("{DRAFT}{}-{}", head.id, std::process::id()));
        private_directory().create(&draft).map_err(at(&draft))?;
        // Once it has its name there is nothing left under the old one.
        self.fill(&draft, head).inspect_err(|_| drop(fs::remove_dir_all(&draft)))
    }

    /// Puts the files into a draft and gives it its name.
    fn fill(&self, draft: &Path, mut head: Head) -> Result<(Head, TranscriptFile), ToolError> {
        let path = draft.join(TRANSCRIPT);
        let file = private_file().create_new(true).read(true).open(&path).map_err(at(&path))?;
        let wanted = head.id.clone();
        for number in 2..MAX_NAMES {
            write_head(&draft.join(HEAD), &head)?;
            let folder = self.directory.join(&head.id);
            match fs::rename(draft, &folder) {
                Ok(()) => return Ok((head, TranscriptFile::lock(folder.join(TRANSCRIPT), file)?)),
                Err(error) if is_taken(&error) => head.id = format!("{wanted}-{number}"),
                Err(error) => return Err(at(&folder)(error)),
            }
        }
        Err(ToolError::new(Code::Conflict, format!("there are {MAX_NAMES} sessions called `{wanted}`"))
            .help("remove `seed` or `clock` from the script"))
    }

    /// Removes what killed processes have left of sessions that never began.
    fn forget_drafts(&self) {
        let is_old = |path: &Path| {
            let touched = path.metadata().and_then(|metadata| metadata.modified());
            touched.is_ok_and(|touched| touched.elapsed().is_ok_and(|age| age > DRAFT_AGE))
        };
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(DRAFT) && is_old(&entry.path()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// The session of this id, of the only id that begins so, or `last` for the one that was worked on last.
    ///
    /// # Errors
    /// `ENOTFOUND`, or `EVALIDATION` when several begin so.
    pub fn find(&self, wanted: &str) -> Result<String, ToolError> {
        let ids = self.ids()?;
        if wanted == "last" {
            return ids.into_iter().max_by_key(|id| self.touched(id)).ok_or_else(|| {
                ToolError::new(Code::NotFound, "there is no session yet")
                    .help("`tgp run \"<task>\"` begins one")
            });
        }
        if ids.iter().any(|id| id == wanted) {
            return Ok(wanted.to_owned());
        }
        let mut alike = ids.into_iter().filter(|id| !wanted.is_empty() && id.starts_with(wanted));
        match (alike.next(), alike.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => {
                Err(ToolError::new(Code::Validation, format!("several sessions begin with `{wanted}`"))
                    .help("give more of the id; `tgp sessions list` shows them"))
            }
            (None, _) => Err(ToolError::new(Code::NotFound, format!("there is no session `{wanted}`"))
                .help("`tgp sessions list` shows them")),
        }
    }

    /// When a session was last worked on.
    fn touched(&self, id: &str) -> Option<SystemTime> {
        let file = |name: &str| self.directory.join(id).join(name).metadata().ok()?.modified().ok();
        file(TRANSCRIPT).or_else(|| file(HEAD))
    }

    /// Every session, oldest first: ids begin with the time.
    pub(super) fn ids(&self) -> Result<Vec<String>, ToolError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&self.directory)(error)),
        };
        let mut ids: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        ids.retain(|id| !id.starts_with(DRAFT));
        ids.sort();
        Ok(ids)
    }

    pub(super) fn head(&self, id: &str) -> Result<Head, ToolError> {
        let path = self.directory.join(id).join(HEAD);
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        serde_json::from_str(&text).map_err(|error| {
            ToolError::new(Code::Integrity, format!("`{}` is damaged: {error}", path.display()))
                .help("the session cannot be gone on with; begin another")
        })
    }

    /// The lines of a session as far as they are whole. A last line that was cut off by a crash is left out.
    ///
    /// # Errors
    /// `EINTEGRITY` with the number of a line that cannot be read.
    pub fn lines(&self, id: &str) -> Result<Vec<Line>, ToolError> {
        let path = self.transcript(id);
        let file = File::open(&path).map_err(at(&path))?;
        Ok(read_lines(&path, &file)?.0)
    }

    /// The bytes of the transcript, for whoever keeps it elsewhere.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bytes(&self, id: &str) -> Result<Vec<u8>, ToolError> {
        let path = self.transcript(id);
        let file = File::open(&path).map_err(at(&path))?;
        read_bytes(&path, &file)
    }

    /// Takes a session up again. What a crash has left of a last line is set aside in a file of its own.
    pub(super) fn reopen(&self, id: &str) -> Result<(TranscriptFile, Vec<Line>, Option<String>), ToolError> {
        let path = self.transcript(id);
        let file = private_file().read(true).open(&path).map_err(at(&path))?;
        let transcript = TranscriptFile::lock(path.clone(), file)?;
        let locked = transcript.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, torn) = read_lines(&path, &locked)?;
        let mut notice = None;
        if !torn.is_empty() {
            let aside = path.with_extension(format!("torn-{}", lines.len()));
            let mut kept = private_file().create(true).open(&aside).map_err(at(&aside))?;
            kept.write_all(&torn).and_then(|()| kept.sync_all()).map_err(at(&aside))?;
            let whole = locked.metadata().map_err(at(&path))?.len() - torn.len() as u64;
            locked.set_len(whole).and_then(|()| locked.sync_all()).map_err(at(&path))?;
            notice = Some(format!(
                "the last line of the transcript was cut off by a crash; its {} bytes are kept in {}",
                torn.len(),
                aside.display()
            ));
        }
        drop(locked);
        Ok((transcript, lines, notice))
    }
}

fn write_head(path: &Path, head: &Head) -> Result<(), ToolError> {
    let text = serde_json::to_string_pretty(head).unwrap_or_default();
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(path).map_err(at(path))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(at(path))
}

/// Whether a folder of that name is there already.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
}

/// Reads the whole lines, and what comes after the last of them.
fn read_lines(path: &Path, file: &File) -> Result<(Vec<Line>, Vec<u8>), ToolError> {
    let mut bytes = read_bytes(path, file)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let torn = bytes.split_off(whole);
    // The end of the last line would be the beginning of an empty one.
    bytes.pop();
    let mut lines = Vec::new();
    let rows = (!bytes.is_empty()).then(|| bytes.split(|byte| *byte == b'\n'));
    for (number, line) in rows.into_iter().flatten().enumerate() {
        let text = std::str::from_utf8(line).map_err(|error| error.to_string());
        let parsed = text.and_then(|text| Line::parse(text).map_err(|error| error.message));
        match parsed {
            Ok(parsed) if parsed.sequence == number as u64 => lines.push(parsed),
            Ok(_) => return Err(damaged(path, number, "it is out of its order")),
            Err(reason) => return Err(damaged(path, number, &reason)),
        }
    }
    Ok((lines, torn))
}

fn read_bytes(path: &Path, mut file: &File) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))
        .and_then(|_| file.take(MAX_TRANSCRIPT_BYTES + 1).read_to_end(&mut bytes))
        .map_err(at(path))?;
    if bytes.len() as u64 > MAX_TRANSCRIPT_BYTES {
        return Err(full(path));
    }
    Ok(bytes)
}

fn damaged(path: &Path, number: usize, reason: &str) -> ToolError {
    let line = number + 1;
    ToolError::new(Code::Integrity, format!("`{}` line {line} is damaged: {reason}", path.display()))
        .detail("line", line)
        .help("the transcript was changed by somebody; the audit still has every call of the session")
}

fn full(path: &Path) -> ToolError {
    ToolError::new(Code::Budget, format!("`{}` has more than {MAX_TRANSCRIPT_BYTES} bytes", path.display()))
        .help("begin another session; this one can still be exported")
}

/// The transcript in the hands of the one who works on the session.
pub(super) struct TranscriptFile {
    path: PathBuf,
    file: Mutex<Flock<File>>,
}

impl TranscriptFile {
    fn lock(path: PathBuf, mut file: File) -> Result<Self, ToolError> {
        for attempt in 1.. {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(locked) => return Ok(Self { path, file: Mutex::new(locked) }),
                // A process that was just killed may take a moment to let go.
                Err((again, nix::Error::EWOULDBLOCK)) if attempt < LOCK_ATTEMPTS => {
                    file = again;
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err((_, nix::Error::EWOULDBLOCK)) => break,
                Err((_, error)) => return Err(at(&path)(error.into())),
            }
        }
        Err(ToolError::new(Code::Conflict, "another process works on this session")
            .help("wait until it has ended, or stop it with Ctrl-C there"))
    }

    /// Whether somebody works on it now.
    pub(super) fn is_held(path: &Path) -> bool {
        let Ok(file) = File::open(path) else { return false };
        matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, nix::Error::EWOULDBLOCK)))
    }
}

impl Journal for TranscriptFile {
    fn append(&self, line: &Line, safety: Safety) -> Result<(), ToolError> {
        let mut text = line.encode();
        text.push('\n');
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let length = file.metadata().map_err(at(&self.path))?.len();
        if text.len() > MAX_LINE_BYTES {
            return Err(ToolError::new(
                Code::Internal,
                format!("a line of the transcript has {} bytes, more than {MAX_LINE_BYTES}", text.len()),
            )
            .help("this is a fault of tgp; the audit has the call, and the session can be resumed"));
        }
        if length + text.len() as u64 > MAX_TRANSCRIPT_BYTES {
            return Err(full(&self.path));
        }
        // The file is in append mode: one call writes the whole line behind everything else.
        (&**file).write_all(text.as_bytes()).map_err(at(&self.path))?;
        match safety {
            Safety::Written => Ok(()),
            Safety::Synced => file.sync_data().map_err(at(&self.path)),
        }
    }
}

/// Transcripts hold what the model has read, so they are for their owner alone.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600);
    options
}

fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> ToolError {
    let path = path.to_owned();
    move |error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            io::ErrorKind::PermissionDenied => Code::Permission,
            _ => Code::Internal,
        };
        ToolError::new(code, format!("the session's file `{}`: {error}", path.display()))
            .help("check the permissions of the directory and the free space of the disk")
    }
}
