//! The files of the store: one for each run that waits, in a directory for each project.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tgp_audit::RecordedDecision;
use tgp_contract::{
    ApprovalDecision, ApprovalRequest, ApprovalStore, Code, JournalEntry, KeptAnswer, KeptRun,
    PendingApproval, RunIdentity, ToolError, canonical,
};
use tgp_fs::append_log::{at, private_directory};
use tgp_fs::{LockKind, LockWait, take_lock};

use super::record::{ApprovalState, KeptQuestion, LIFETIME_MS, RunRecord};
use crate::boot::Environment;
use crate::{id_prefix, user_state};

/// The directory of the store below the state directory of tgp.
const DIRECTORY: &str = "approvals";
/// Runs of one project that wait for an answer or have one, and the bytes of what is kept of them.
const MAX_RUNS: usize = 100;
/// Those of one session, so that others find room beside it.
const MAX_RUNS_OF_SESSION: usize = 50;
/// Characters of the hash of a session in the names of its files.
const SESSION_CHARS: usize = 16;
const MAX_STORE_BYTES: u64 = 64 << 20;
/// A draft that is older belongs to a process that was killed.
const DRAFT_LIFETIME: Duration = Duration::from_secs(600);
/// Projects whose questions are looked at.
const MAX_STORES: usize = 1000;
/// Entries of the directory that are looked at: runs, their leases and drafts.
const MAX_FILES: usize = 1000;
/// Bytes of a file that are read: the journal of a run, and what its questions show.
const MAX_RECORD_BYTES: u64 = 96 << 20;
/// Bytes of what the questions of a run show.
const MAX_QUESTION_BYTES: usize = 4 << 20;
/// How often a call may be made by one answer.
pub const MAX_TIMES: u32 = 20;
/// Both are held for the time of one change of a file.
const CHANGE_WAIT: LockWait = LockWait {
    patience: Duration::from_secs(5),
    first_pause: Duration::from_millis(1),
    longest_pause: Duration::from_millis(50),
};
/// Another attempt of the same run may take long.
const LEASE_WAIT: LockWait = LockWait {
    patience: Duration::from_millis(200),
    first_pause: Duration::from_millis(10),
    longest_pause: Duration::from_millis(50),
};

/// Who approves a question, and how often its run may make the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub by: String,
    pub times: u32,
}

/// The approvals of one project that wait for a person.
#[derive(Clone, Debug)]
pub struct Approvals {
    project: PathBuf,
    directory: PathBuf,
}

impl Approvals {
    /// The store of this user for the project with this canonical path. `None` without a home.
    ///
    /// # Errors
    /// `ESECURITY` when it would be inside the project.
    pub fn of_user(environment: &Environment, project: &Path) -> Result<Option<Self>, ToolError> {
        let Some(state) = user_state::directory(environment) else { return Ok(None) };
        let directory = state.join(DIRECTORY);
        user_state::check_outside(&directory, project, "approvals")?;
        let name = canonical::sha256_hex(project.as_os_str().as_bytes());
        Ok(Some(Self { project: project.to_owned(), directory: directory.join(name) }))
    }

    /// All questions that have not expired, the oldest first.
    ///
    /// # Errors
    /// When the store cannot be believed or read.
    pub fn list(&self) -> Result<Vec<KeptQuestion>, ToolError> {
        let mut questions: Vec<KeptQuestion> =
            self.records()?.into_iter().flat_map(|(_, record)| record.into_questions()).collect();
        questions.sort_by(|one, other| (one.asked_ms, &one.id).cmp(&(other.asked_ms, &other.id)));
        Ok(questions)
    }

    /// The question with this id, or the only one whose id begins so.
    ///
    /// # Errors
    /// `ENOTFOUND`, `EVALIDATION` when several begin so; when the store cannot be read.
    pub fn find(&self, id: &str) -> Result<KeptQuestion, ToolError> {
        let questions = self.list()?;
        let ids = questions.iter().map(|question| question.id.clone()).collect();
        let id = id_prefix::find(ids, id, "pending approval", "tgp approve")?;
        let found = questions.into_iter().find(|question| question.id == id);
        found.ok_or_else(|| ToolError::new(Code::NotFound, format!("the pending approval `{id}` has ended")))
    }

    /// The stores of this user's other projects in which questions wait or were denied, with those questions.
    ///
    /// # Errors
    /// When the directory of the stores cannot be read.
    pub fn elsewhere(&self) -> Result<Vec<(Self, Vec<KeptQuestion>)>, ToolError> {
        let Some(stores) = self.directory.parent() else { return Ok(Vec::new()) };
        let entries = match std::fs::read_dir(stores) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(stores)(error)),
        };
        let mut found = Vec::new();
        for directory in entries.flatten().take(MAX_STORES).map(|entry| entry.path()) {
            if directory == self.directory {
                continue;
            }
            let records = Self { project: PathBuf::new(), directory }.records().unwrap_or_default();
            let Some(project) = records.first().map(|(_, record)| PathBuf::from(&record.project)) else {
                continue;
            };
            let questions = records.into_iter().flat_map(|(_, record)| record.questions);
            let open: Vec<KeptQuestion> =
                questions.filter(|question| question.state() != ApprovalState::Approved).collect();
            let named = stores.join(canonical::sha256_hex(project.as_os_str().as_bytes()));
            if !open.is_empty() {
                found.push((Self { project, directory: named }, open));
            }
        }
        found.sort_by(|(one, _), (other, _)| one.project.cmp(&other.project));
        Ok(found)
    }

    /// The canonical path of the project.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Approves a question whose content has this hash. The decision is in the audit before.
    ///
    /// # Errors
    /// `ENOTFOUND` when it has expired or its run has ended; `ECONFLICT` when it was approved meanwhile;
    /// when the store cannot be written.
    pub fn grant(
        &self,
        id: &str,
        hash: &str,
        grant: Grant,
        decision: RecordedDecision,
    ) -> Result<(), ToolError> {
        decision.take_effect();
        let Grant { by, times } = grant;
        self.answer(id, hash, ApprovalDecision::Granted { by, times, spent: 0 })
    }

    /// Denies a question whose content has this hash.
    ///
    /// # Errors
    /// `ENOTFOUND` when it has expired or its run has ended; `ECONFLICT` when it was approved meanwhile;
    /// when the store cannot be written.
    pub fn deny(&self, id: &str, hash: &str, by: String, reason: String) -> Result<(), ToolError> {
        self.answer(id, hash, ApprovalDecision::Denied { by, reason })
    }

    fn answer(&self, id: &str, hash: &str, decision: ApprovalDecision) -> Result<(), ToolError> {
        let _turn = self.turn()?;
        for (path, mut record) in self.records()? {
            let asked =
                record.questions.iter_mut().find(|question| question.id == id && question.hash() == hash);
            let Some(question) = asked else { continue };
            // What was denied can be agreed to later; what was agreed to may be happening already.
            if question.state() == ApprovalState::Approved {
                return Err(ToolError::new(Code::Conflict, format!("`{id}` was approved already"))
                    .help("`tgp approve --clear` takes it back, as long as the call was not made again"));
            }
            question.answer = Some(decision);
            return user_state::write(&path, &record);
        }
        Err(ToolError::new(
            Code::NotFound,
            format!("`{id}` waits no more: it has expired, or its run has ended"),
        )
        .help("make the call again, and approve what it asks for then"))
    }

    fn path(&self, run: &RunIdentity) -> PathBuf {
        self.directory.join(format!("{}{}.json", session_prefix(run), run.key()))
    }

    /// One process changes files at a time.
    fn turn(&self) -> Result<File, ToolError> {
        self.locked("lock", CHANGE_WAIT)?.ok_or_else(|| {
            ToolError::new(Code::Conflict, "another process keeps the store of pending approvals locked")
                .help("repeat it")
        })
    }

    fn locked(&self, name: &str, wait: LockWait) -> Result<Option<File>, ToolError> {
        let path = self.directory.join(name);
        private_directory().recursive(true).create(&self.directory).map_err(at(&self.directory))?;
        let flags = nix::libc::O_NOFOLLOW;
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags)
            .open(&path)
            .map_err(at(&path))?;
        Ok(take_lock(&file, LockKind::Exclusive, wait).map_err(at(&path))?.then_some(file))
    }

    /// One run without the questions that have expired.
    fn record(&self, path: &Path) -> Result<Option<RunRecord>, ToolError> {
        let refused = |why: &str| {
            let message = format!("the approvals in `{}` are not used: {why}", path.display());
            ToolError::new(Code::Security, message)
                .help("rename the file, and make the call again: it then waits for a new answer")
        };
        let record: Option<RunRecord> = user_state::read(path, MAX_RECORD_BYTES, refused)?;
        let now = tgp_text::now_ms();
        Ok(record.and_then(|mut record| {
            record.questions.retain(|question| question.expires_ms > now);
            (!record.questions.is_empty()).then_some(record)
        }))
    }

    fn records(&self) -> Result<Vec<(PathBuf, RunRecord)>, ToolError> {
        let entries = match std::fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(at(&self.directory)(error)),
        };
        let mut records = Vec::new();
        for entry in entries.flatten().take(MAX_FILES) {
            let path = entry.path();
            if path.extension().is_none_or(|ending| ending != "json") {
                continue;
            }
            match self.record(&path) {
                Ok(record) => records.extend(record.map(|record| (path, record))),
                // The run that it is about is refused; the others are not its business.
                Err(error) => tracing::warn!(target: "approvals", "{}", error.message),
            }
        }
        Ok(records)
    }

    /// Removes what is older than any question may be, without reading it. What is left.
    fn sweep(&self, run: &RunIdentity) -> Result<Usage, ToolError> {
        let entries = std::fs::read_dir(&self.directory).map_err(at(&self.directory))?;
        let own = session_prefix(run);
        let mut usage = Usage::default();
        for entry in entries.flatten().take(MAX_FILES) {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else { continue };
            let age = metadata.modified().ok().and_then(|time| time.elapsed().ok()).unwrap_or_default();
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            let is_left = match ending {
                "json" => age < Duration::from_millis(LIFETIME_MS),
                // The lease of an attempt belongs to a file of the same name.
                "lease" => path.with_extension("json").exists(),
                "draft" => age < DRAFT_LIFETIME,
                _ => true,
            };
            if !is_left {
                remove(&path)?;
            } else if ending == "json" {
                usage.runs += 1;
                usage.bytes += metadata.len();
                let name = entry.file_name();
                if name.as_bytes().starts_with(own.as_bytes()) {
                    usage.of_session += 1;
                    usage.bytes_of_session += metadata.len();
                }
            }
        }
        Ok(usage)
    }

    /// Forgets all questions and answers, and what their runs have done. How many runs there were.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn clear(&self, decision: RecordedDecision) -> Result<usize, ToolError> {
        decision.take_effect();
        if !self.directory.exists() {
            return Ok(0);
        }
        let _turn = self.turn()?;
        let entries = std::fs::read_dir(&self.directory).map_err(at(&self.directory))?;
        let is_run = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
        let runs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_run).collect();
        runs.iter().try_for_each(|path| remove(path))?;
        Ok(runs.len())
    }

    /// Removes runs of connections that have ended: no answer would be of use to them.
    fn remove_lost(&self) -> Result<(), ToolError> {
        for (path, record) in self.records()? {
            if record.questions.iter().all(KeptQuestion::has_lost_its_caller) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn change(
        &self,
        run: &RunIdentity,
        change: impl FnOnce(&mut RunRecord),
    ) -> Result<Option<RunRecord>, ToolError> {
        let path = self.path(run);
        let Some(mut record) = self.record(&path)? else { return Ok(None) };
        change(&mut record);
        user_state::write(&path, &record)?;
        Ok(Some(record))
    }
}

/// How much a store keeps.
#[derive(Default)]
struct Usage {
    runs: usize,
    bytes: u64,
    of_session: usize,
    bytes_of_session: u64,
}

impl Usage {
    /// # Errors
    /// `EAPPROVAL` when no further run finds room.
    fn check(&self) -> Result<(), ToolError> {
        let full = match self {
            Self { runs, bytes, .. } if *runs >= MAX_RUNS || *bytes >= MAX_STORE_BYTES => format!(
                "{runs} calls ({} MB) wait for an approval already; {MAX_RUNS} and {} MB are the most",
                bytes >> 20,
                MAX_STORE_BYTES >> 20
            ),
            Self { of_session, bytes_of_session, .. }
                if *of_session >= MAX_RUNS_OF_SESSION || *bytes_of_session >= MAX_STORE_BYTES / 2 =>
            {
                format!("{of_session} calls of this session wait for an approval already, which are the most")
            }
            Self { .. } => return Ok(()),
        };
        Err(ToolError::new(Code::Approval, full)
            .help("nothing was changed; let a person answer them first: `tgp approve` shows them"))
    }
}

/// How the names of the files of a session begin.
fn session_prefix(run: &RunIdentity) -> String {
    let hash = canonical::sha256_hex(run.session.as_bytes());
    format!("{}-", hash.chars().take(SESSION_CHARS).collect::<String>())
}

fn remove(path: &Path) -> Result<(), ToolError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

impl ApprovalStore for Approvals {
    fn open(&self, run: &RunIdentity) -> Result<Option<KeptRun>, ToolError> {
        let path = self.path(run);
        if !path.exists() {
            return Ok(None);
        }
        let name = format!("{}{}.lease", session_prefix(run), run.key());
        let Some(lease) = self.locked(&name, LEASE_WAIT)? else {
            let message = format!("the same call of `{}` is under way and waits for approvals", run.tool);
            return Err(ToolError::new(Code::Conflict, message).help("repeat it when that call has ended"));
        };
        let Some(record) = self.record(&path)? else { return Ok(None) };
        let answers = record.questions.into_iter().filter_map(|question| {
            let hash = question.hash().to_owned();
            question.answer.map(|decision| KeptAnswer { id: question.id, hash, decision })
        });
        let is_whole = !record.overflown;
        let (journal, lease) = (record.journal, Box::new(lease));
        Ok(Some(KeptRun { answers: answers.collect(), journal, is_whole, lease }))
    }

    fn keep(
        &self,
        run: &RunIdentity,
        question: &ApprovalRequest<'_>,
        journal: &[JournalEntry],
    ) -> Result<PendingApproval, ToolError> {
        let _turn = self.turn()?;
        let usage = self.sweep(run)?;
        let path = self.path(run);
        let asked = KeptQuestion::new(run, question, tgp_text::now_ms());
        let known = self.record(&path)?;
        if known.is_none() && usage.check().is_err() {
            self.remove_lost()?;
            self.sweep(run)?.check()?;
        }
        let mut record = known.unwrap_or_else(|| RunRecord {
            project: self.project.display().to_string(),
            run: run.clone(),
            questions: Vec::new(),
            journal: Vec::new(),
            overflown: false,
        });
        let is_it = |question: &KeptQuestion| question.id == asked.id;
        let waits = |question: &&KeptQuestion| question.state() == ApprovalState::Pending;
        let waits_already = record.questions.iter().find(|question| is_it(question)).filter(waits).cloned();
        record.journal = journal.to_vec();
        // A grant that is used up is asked for again.
        record.questions.retain(|question| question.id != asked.id);
        let asked = waits_already.unwrap_or(asked);
        let pending = asked.pending();
        record.questions.push(asked);
        if serde_json::to_vec(&record.questions).map_or(usize::MAX, |text| text.len()) > MAX_QUESTION_BYTES {
            let message =
                format!("what it asks has more than {} MB and cannot be kept", MAX_QUESTION_BYTES >> 20);
            return Err(ToolError::new(Code::Approval, message)
                .help("nothing was changed; do it in smaller parts, or where a person can be asked"));
        }
        user_state::write(&path, &record)?;
        Ok(pending)
    }

    fn keep_journal(
        &self,
        run: &RunIdentity,
        journal: &[JournalEntry],
        is_whole: bool,
    ) -> Result<(), ToolError> {
        let _turn = self.turn()?;
        let change = |record: &mut RunRecord| {
            record.journal = journal.to_vec();
            record.overflown = !is_whole;
        };
        self.change(run, change).map(drop)
    }

    fn spend(&self, run: &RunIdentity, hash: &str) -> Result<(), ToolError> {
        let _turn = self.turn()?;
        let changed = self.change(run, |record| {
            for question in &mut record.questions {
                if question.hash() == hash
                    && let Some(ApprovalDecision::Granted { spent, .. }) = &mut question.answer
                {
                    *spent += 1;
                }
            }
        })?;
        match changed {
            Some(_) => Ok(()),
            None => Err(ToolError::new(Code::Approval, "the approval has expired")
                .help("nothing was changed; make the call again")),
        }
    }

    fn lift(&self, run: &RunIdentity, hash: &str) -> Result<(), ToolError> {
        let _turn = self.turn()?;
        let is_lifted =
            |question: &KeptQuestion| question.hash() == hash && question.state() == ApprovalState::Denied;
        self.change(run, |record| record.questions.retain(|question| !is_lifted(question))).map(drop)
    }

    fn finish(&self, run: &RunIdentity) -> Result<(), ToolError> {
        let _turn = self.turn()?;
        let path = self.path(run);
        // What was denied stays denied, so that the same question is not put again and again.
        if let Some(mut record) = self.record(&path)? {
            record.questions.retain(|question| question.state() == ApprovalState::Denied);
            record.journal.clear();
            record.overflown = false;
            if !record.questions.is_empty() {
                return user_state::write(&path, &record);
            }
        }
        remove(&path)?;
        remove(&path.with_extension("lease"))
    }
}
