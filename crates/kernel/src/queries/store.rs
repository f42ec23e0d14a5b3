//! The folder of a run, and its journal.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_aql::{JournalLine, QueryJournal, Source};
use tgp_contract::{Code, ToolError};

use crate::boot::{BootContext, BootError, BootOptions};
use crate::id_prefix;
use crate::sessions::ModelChoice;
use crate::state_directory::StateDirectory;
use tgp_fs::append_log::{AppendLog, at, damaged, private_directory, read, write_private};

const JOURNAL: &str = "journal.ndjson";
const HEAD: &str = "run.json";
/// The value of a run that has ended, or why it has not.
const END: &str = "end.json";
/// What a journal belongs to, for errors.
const WHAT: &str = "run";
/// Names that are tried for a run before its clock and its dice are not to be believed.
const MAX_NAMES: u32 = 1000;

/// What was asked for when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) query: String,
    pub(super) inputs: Map<String, Value>,
    pub(super) created_ms: u64,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) base_url: Option<String>,
    /// The file that was asked for, and all it imports, as they were.
    pub(super) sources: Vec<SavedSource>,
}

/// One file as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedSource {
    path: String,
    text: String,
}

impl Head {
    pub(super) fn sources(&self) -> Vec<Source> {
        let source = |kept: &SavedSource| Source { path: kept.path.clone(), text: kept.text.clone() };
        self.sources.iter().map(source).collect()
    }

    pub(super) fn keep(sources: &[Source]) -> Vec<SavedSource> {
        let kept = |source: &Source| SavedSource { path: source.path.clone(), text: source.text.clone() };
        sources.iter().map(kept).collect()
    }

    pub(super) fn choice(&self) -> ModelChoice {
        ModelChoice {
            provider: self.provider.clone(),
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            // Which key is sent where is said by a person each time, or by the configuration: not by a file of the project.
            key_variable: None,
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<ToolError>,
    /// Whether it was stopped before its end. Files of 0.1.0 do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stopped: Option<bool>,
}

/// The status of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// A process works on it.
    Running,
    /// It was killed: no process works on it, and it has not said how it ended.
    Killed,
    Done,
    /// The user stopped it.
    Stopped,
    /// It ended with this error; it can be resumed.
    Failed(ToolError),
}

/// One run of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    pub id: String,
    pub query: String,
    /// The file that was asked for.
    pub path: String,
    pub created_ms: u64,
    pub state: RunState,
}

/// The runs of a project. Reading them needs no running kernel.
#[derive(Clone, Debug)]
pub struct Runs {
    directory: PathBuf,
}

impl Runs {
    /// Finds the runs of a project.
    ///
    /// # Errors
    /// When the configuration cannot be read, or the project was never initialised.
    pub async fn open(options: &BootOptions) -> Result<Self, BootError> {
        Ok(Self::below(BootContext::find(options).await?.access.records()))
    }

    pub(crate) fn below(state: &StateDirectory) -> Self {
        Self { directory: state.join("aql") }
    }

    /// The newest `most` runs, newest first. Folders that are not runs are left out.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self, most: usize) -> Result<Vec<RunInfo>, ToolError> {
        let ids = self.ids()?;
        Ok(ids.iter().rev().filter_map(|id| self.info(id).ok()).take(most).collect())
    }

    fn info(&self, id: &str) -> Result<RunInfo, ToolError> {
        let head = self.head(id)?;
        let state = match self.ended(id) {
            _ if AppendLog::is_held(&self.journal(id)) => RunState::Running,
            None => RunState::Killed,
            Some(End { error: None, .. }) => RunState::Done,
            Some(end) if end.was_stopped() => RunState::Stopped,
            Some(End { error: Some(error), .. }) => RunState::Failed(error),
        };
        let path = head.sources.first().map(|kept| kept.path.clone()).unwrap_or_default();
        Ok(RunInfo { id: head.id, query: head.query, path, created_ms: head.created_ms, state })
    }

    fn ended(&self, id: &str) -> Option<End> {
        let bytes = fs::read(self.directory.join(id).join(END)).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Removes a run that never began.
    pub(super) fn forget(&self, id: &str) -> Result<(), ToolError> {
        let folder = self.directory.join(id);
        fs::remove_dir_all(&folder).map_err(at(&folder))
    }

    /// The run of this id, of the only id that begins so, or `last` for the newest.
    ///
    /// # Errors
    /// `ENOTFOUND`, or `EVALIDATION` when several begin so.
    pub fn find(&self, wanted: &str) -> Result<String, ToolError> {
        let ids = self.ids()?;
        if wanted == "last" {
            return ids.into_iter().next_back().ok_or_else(|| {
                ToolError::new(Code::NotFound, "there is no run yet").help("`tgp aql run FILE` begins one")
            });
        }
        id_prefix::find(ids, wanted, WHAT, "tgp aql runs")
    }

    /// Every run, oldest first.
    fn ids(&self) -> Result<Vec<String>, ToolError> {
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&self.directory)(error)),
        };
        // Ids contain the second only; what was asked for is written once, when a run begins.
        let began = |entry: fs::DirEntry| {
            let id = entry.file_name().into_string().ok()?;
            Some((entry.path().join(HEAD).metadata().ok()?.modified().ok()?, id))
        };
        let mut ids: Vec<_> = entries.flatten().filter_map(began).collect();
        ids.sort();
        Ok(ids.into_iter().map(|(_, id)| id).collect())
    }

    fn journal(&self, id: &str) -> PathBuf {
        self.directory.join(id).join(JOURNAL)
    }

    /// Makes the folder of a new run; a name that is taken gets a number. What was asked for is written last, so a
    /// folder without it never began.
    pub(super) fn create(&self, mut head: Head) -> Result<(Head, RunJournal), ToolError> {
        private_directory().recursive(true).create(&self.directory).map_err(at(&self.directory))?;
        let wanted = head.id.clone();
        for number in 2..MAX_NAMES {
            let folder = self.directory.join(&head.id);
            match private_directory().create(&folder) {
                Ok(()) => {
                    let path = folder.join(JOURNAL);
                    let file = AppendLog::create(&path)?;
                    let journal = RunJournal(AppendLog::lock(path, file, WHAT)?);
                    write(&folder.join(HEAD), &head)?;
                    return Ok((head, journal));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    head.id = format!("{wanted}-{number}");
                }
                Err(error) => return Err(at(&folder)(error)),
            }
        }
        Err(ToolError::new(Code::Conflict, format!("there are {MAX_NAMES} runs called `{wanted}`"))
            .help("look at the clock of this machine"))
    }

    pub(super) fn head(&self, id: &str) -> Result<Head, ToolError> {
        let path = self.directory.join(id).join(HEAD);
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        serde_json::from_str(&text).map_err(|error| {
            ToolError::new(Code::Integrity, format!("`{}` is damaged: {error}", path.display()))
                .help("the run cannot be resumed; start another one")
        })
    }

    /// Takes a run up again. What a crash has left of a last line is set aside.
    pub(super) fn reopen(&self, id: &str) -> Result<(RunJournal, Vec<JournalLine>, Option<End>), ToolError> {
        let path = self.journal(id);
        let (file, rows, _) = AppendLog::reopen(&path, WHAT)?;
        // How it ended before says nothing about how it ends now.
        let before = self.ended(id);
        match fs::remove_file(self.directory.join(id).join(END)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&path)(error)),
            _ => {}
        }
        Ok((RunJournal(file), parse(&path, &rows)?, before))
    }

    /// The lines of a run's journal.
    ///
    /// # Errors
    /// `EINTEGRITY` with the number of a line that cannot be read.
    pub fn lines(&self, id: &str) -> Result<Vec<JournalLine>, ToolError> {
        let path = self.journal(id);
        parse(&path, &read(&path)?.lines)
    }

    /// Says how a run ended.
    pub(super) fn end(&self, id: &str, end: &End) -> Result<(), ToolError> {
        write(&self.directory.join(id).join(END), end)
    }
}

impl End {
    /// Whether the run was stopped, and did not fail by itself.
    fn was_stopped(&self) -> bool {
        // Files of 0.1.0 have it in the details of the error.
        let says =
            || self.error.as_ref().is_some_and(|error| error.details.get("cancelled") == Some(&true.into()));
        self.stopped.unwrap_or_else(says)
    }
}

fn parse(path: &Path, rows: &[String]) -> Result<Vec<JournalLine>, ToolError> {
    let parse = |(number, row): (usize, &String)| {
        serde_json::from_str(row).map_err(|error| damaged(path, number, &error.to_string()))
    };
    rows.iter().enumerate().map(parse).collect()
}

/// Under another name first, so that no reader sees half a file.
fn write(path: &Path, value: &impl Serialize) -> Result<(), ToolError> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    write_private(&draft, text.as_bytes()).and_then(|()| fs::rename(&draft, path)).map_err(at(path))
}

/// The journal in the hands of the one who works on the run.
pub(super) struct RunJournal(AppendLog);

impl QueryJournal for RunJournal {
    fn append(&self, line: &JournalLine) -> Result<(), ToolError> {
        let text = serde_json::to_string(line).unwrap_or_default();
        self.0.append(text, false)
    }
}
