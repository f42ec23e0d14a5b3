//! The folder of a session, and its transcript.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tgp_agent::{LineDurability, TranscriptJournal, TranscriptLine};
use tgp_contract::{Code, ToolError};

use crate::boot::{BootContext, BootError, BootOptions};
use crate::id_prefix;
use crate::state_directory::StateDirectory;
use tgp_fs::append_log::{self, AppendLog, at, damaged, private_directory, read_bytes};

const TRANSCRIPT: &str = "transcript.ndjson";
const HEAD: &str = "session.json";
/// How the folder of a session is called until it is complete.
const DRAFT: &str = ".new-";
/// Starting a session never takes longer.
const DRAFT_AGE: Duration = Duration::from_secs(3600);
/// What a transcript belongs to, for errors.
const WHAT: &str = "session";
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
    /// What has the audit as well.
    state: StateDirectory,
    directory: PathBuf,
}

impl Sessions {
    /// Finds the sessions of a project.
    ///
    /// # Errors
    /// When the configuration cannot be read, or the project was never initialised.
    pub async fn open(options: &BootOptions) -> Result<Self, BootError> {
        Ok(Self::below(BootContext::find(options).await?.access.records()))
    }

    pub(crate) fn below(state: &StateDirectory) -> Self {
        Self { state: state.clone(), directory: state.join("sessions") }
    }

    pub(super) fn state(&self) -> &StateDirectory {
        &self.state
    }

    pub(super) fn transcript(&self, id: &str) -> PathBuf {
        self.folder(id).join(TRANSCRIPT)
    }

    /// The folder of a session.
    pub(super) fn folder(&self, id: &str) -> PathBuf {
        self.directory.join(id)
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
        let file = AppendLog::create(&path)?;
        let wanted = head.id.clone();
        for number in 2..MAX_NAMES {
            write_head(&draft.join(HEAD), &head)?;
            let folder = self.directory.join(&head.id);
            match fs::rename(draft, &folder) {
                Ok(()) => {
                    return Ok((head, TranscriptFile(AppendLog::lock(folder.join(TRANSCRIPT), file, WHAT)?)));
                }
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
        id_prefix::find(ids, wanted, WHAT, "tgp sessions list")
    }

    /// When a session was last worked on.
    fn touched(&self, id: &str) -> Option<SystemTime> {
        let file = |name: &str| self.directory.join(id).join(name).metadata().ok()?.modified().ok();
        file(TRANSCRIPT).or_else(|| file(HEAD))
    }

    /// Whether there is a session of exactly this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        let is_name = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_name && self.directory.join(id).join(HEAD).is_file()
    }

    /// Whether a name has the form of a session's id, or of a run's: a date, a time, and more.
    pub(crate) fn is_id(name: &str) -> bool {
        let mut parts = name.trim().split('-');
        let mut digits = |count: usize| {
            parts
                .next()
                .is_some_and(|part| part.chars().count() == count && part.chars().all(char::is_numeric))
        };
        digits(8) && digits(6) && parts.next().is_some()
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
                .help("the session cannot be resumed; start another one")
        })
    }

    /// The lines of a session as far as they are whole. A last line that was cut off by a crash is left out.
    ///
    /// # Errors
    /// `EINTEGRITY` with the number of a line that cannot be read.
    pub fn lines(&self, id: &str) -> Result<Vec<TranscriptLine>, ToolError> {
        let path = self.transcript(id);
        parse_lines(&path, &append_log::read(&path)?.lines)
    }

    /// The bytes of the transcript, for a caller that keeps it elsewhere.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn bytes(&self, id: &str) -> Result<Vec<u8>, ToolError> {
        let path = self.transcript(id);
        let file = File::open(&path).map_err(at(&path))?;
        read_bytes(&path, &file)
    }

    /// Reopens a session. The rest of a line that a crash interrupted is moved to its own file.
    pub(super) fn reopen(
        &self,
        id: &str,
    ) -> Result<(TranscriptFile, Vec<TranscriptLine>, Option<String>), ToolError> {
        let path = self.transcript(id);
        let (file, rows, notice) = AppendLog::reopen(&path, WHAT)?;
        Ok((TranscriptFile(file), parse_lines(&path, &rows)?, notice))
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

/// The lines of a transcript, in their order.
fn parse_lines(path: &Path, rows: &[String]) -> Result<Vec<TranscriptLine>, ToolError> {
    let parse = |(number, row): (usize, &String)| match TranscriptLine::parse(row) {
        Ok(parsed) if parsed.sequence == number as u64 => Ok(parsed),
        Ok(_) => Err(damaged(path, number, "it is out of its order")),
        Err(error) => Err(damaged(path, number, &error.message)),
    };
    rows.iter().enumerate().map(parse).collect()
}

/// The transcript in the hands of the one who works on the session.
pub(super) struct TranscriptFile(AppendLog);

impl TranscriptJournal for TranscriptFile {
    fn append(&self, line: &TranscriptLine, safety: LineDurability) -> Result<(), ToolError> {
        self.0.append(line.encode(), safety == LineDurability::Synced)
    }
}
