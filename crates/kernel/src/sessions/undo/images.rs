//! The files of sessions as they were: a log of changes, and the contents by their hashes.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tgp_contract::{CallContext, Code, RelativePath, Root, ToolError, canonical};
use tgp_fs::append_log::{at, private_directory, read, write_private};
use tgp_router::files::{BeforeImage, BeforeImageToken, BeforeImages, BeforeState};
use tgp_router::gates::TokenAuthority;

use crate::sessions::Sessions;

/// The folder of a session that has them, and the log in it.
const FOLDER: &str = "undo";

/// The folder for the files of a project. Work trees share their sessions, and each has files of its own.
pub(super) fn folder_of(state: &Path, project: &Path) -> String {
    if state.starts_with(project) {
        return FOLDER.to_owned();
    }
    let name = canonical::sha256_hex(project.as_os_str().as_encoded_bytes());
    format!("{FOLDER}-{}", name.get(..16).unwrap_or(&name))
}
const LOG: &str = "changes.ndjson";
/// Bytes of a file that is kept.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Bytes of all files that are kept for a session.
const MAX_SESSION_BYTES: u64 = 64 << 20;
/// Changes that are noted for a session.
const MAX_CHANGES: u64 = 20_000;
/// Sessions whose counts are in memory; those of others are read again.
const MAX_SESSIONS: usize = 64;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum ImageLine {
    /// A file is about to change.
    Change(LoggedChange),
    /// The changes of a batch were made, or none of them.
    Ended { batch: String, made: bool },
    /// A person has undone the changes of these files until here.
    Undone { paths: Vec<RelativePath> },
    /// More changes than are noted follow.
    Full,
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoggedChange {
    pub(super) batch: String,
    pub(super) root: Root,
    pub(super) path: RelativePath,
    pub(super) before: LoggedBefore,
    /// SHA-256 of what it became; none when it was removed.
    pub(super) after: Option<String>,
}

/// What was at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum LoggedBefore {
    Absent {
        missing_parents: usize,
    },
    File {
        sha256: String,
        mode: u32,
    },
    /// Its content was not kept, for this reason.
    Unkept {
        reason: UnkeptReason,
        sha256: Option<String>,
    },
}

/// Why a content was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum UnkeptReason {
    /// The file is too large.
    FileSize,
    /// The session has changed too much.
    SessionSize,
    /// It could not be read or stored.
    Unreadable,
    /// It is outside of the project.
    Outside,
}

impl UnkeptReason {
    pub(super) fn words(self) -> String {
        match self {
            Self::FileSize => format!("the file had more than {MAX_FILE_BYTES} bytes"),
            Self::SessionSize => {
                format!(
                    "the session changed more than is kept: {MAX_SESSION_BYTES} bytes or {MAX_CHANGES} changes"
                )
            }
            Self::Unreadable => "its content could not be stored".to_owned(),
            Self::Outside => "it is outside of the project".to_owned(),
        }
    }
}

/// Counts of a session.
#[derive(Default)]
struct SessionCounts {
    bytes: u64,
    changes: u64,
    /// What each file became by the last change of the session that was made. Its content need not be kept.
    last: BTreeMap<RelativePath, Option<String>>,
    /// Changes whose end is not known yet.
    open: BTreeMap<String, Vec<(RelativePath, Option<String>)>>,
}

/// Keeps files of the sessions of one kernel.
pub(crate) struct SessionImages {
    sessions: Sessions,
    tokens: Arc<TokenAuthority>,
    counts: Mutex<BTreeMap<String, SessionCounts>>,
    batches: AtomicU64,
    folder: String,
}

impl SessionImages {
    pub(crate) fn new(sessions: Sessions, project: &Path, tokens: Arc<TokenAuthority>) -> Self {
        let folder = folder_of(sessions.state().path(), project);
        Self { sessions, tokens, counts: Mutex::default(), batches: AtomicU64::new(1), folder }
    }

    fn store(&self, session: &str, batch: &str, images: Vec<BeforeImage>) -> Result<(), ToolError> {
        let folder = self.sessions.folder(session).join(&self.folder);
        private_directory().recursive(true).create(&folder).map_err(at(&folder))?;
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SESSIONS && !all.contains_key(session) {
            all.clear();
        }
        let counts = all.entry(session.to_owned()).or_insert_with(|| counted(&folder));
        let mut lines = Vec::with_capacity(images.len());
        let mut open = Vec::with_capacity(images.len());
        for BeforeImage { root, path, before, after } in images {
            counts.changes += 1;
            if counts.changes > MAX_CHANGES {
                // Said once, so that the log has a bound.
                lines.extend((counts.changes == MAX_CHANGES + 1).then_some(ImageLine::Full));
                continue;
            }
            let before = kept(&folder, root, &path, before, counts);
            open.push((path.clone(), after.clone()));
            lines.push(ImageLine::Change(LoggedChange {
                batch: batch.to_owned(),
                root,
                path,
                before,
                after,
            }));
        }
        if !open.is_empty() {
            counts.open.insert(batch.to_owned(), open);
        }
        if lines.is_empty() { Ok(()) } else { append(&folder, &lines) }
    }

    fn close(&self, session: &str, batch: &str, made: bool) -> Result<(), ToolError> {
        let folder = self.sessions.folder(session).join(&self.folder);
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(counts) = all.get_mut(session) else { return Ok(()) };
        let Some(open) = counts.open.remove(batch) else { return Ok(()) };
        if made {
            counts.last.extend(open);
        }
        append(&folder, &[ImageLine::Ended { batch: batch.to_owned(), made }])
    }
}

/// The content, stored where there is room for it.
fn kept(
    folder: &Path,
    root: Root,
    path: &RelativePath,
    before: BeforeState,
    counts: &mut SessionCounts,
) -> LoggedBefore {
    let unkept = |reason, sha256| LoggedBefore::Unkept { reason, sha256 };
    if root != Root::Project {
        return unkept(UnkeptReason::Outside, None);
    }
    let (content, mode) = match before {
        BeforeState::Absent { missing_parents } => return LoggedBefore::Absent { missing_parents },
        BeforeState::TooLarge { .. } => return unkept(UnkeptReason::FileSize, None),
        BeforeState::Unreadable => return unkept(UnkeptReason::Unreadable, None),
        BeforeState::File { content, mode } => (content, mode),
    };
    let sha256 = canonical::sha256_hex(&content);
    let file = folder.join(&sha256);
    // What the session itself has written last need not be kept: it is undone with the change before.
    let is_own = counts.last.get(path).is_some_and(|last| last.as_ref() == Some(&sha256));
    if is_own || file.is_file() {
        return LoggedBefore::File { sha256, mode };
    }
    let bytes = counts.bytes.saturating_add(content.len() as u64);
    if bytes > MAX_SESSION_BYTES {
        return unkept(UnkeptReason::SessionSize, Some(sha256));
    }
    let new = folder.join(format!(".new-{sha256}"));
    if write_private(&new, &content).and_then(|()| fs::rename(&new, &file)).is_err() {
        return unkept(UnkeptReason::Unreadable, Some(sha256));
    }
    counts.bytes = bytes;
    LoggedBefore::File { sha256, mode }
}

/// What is stored already, after a session was resumed by another process.
fn counted(folder: &Path) -> SessionCounts {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter(|entry| entry.file_name() != LOG).filter_map(|entry| entry.metadata().ok());
    let bytes = sizes.map(|found| found.len()).sum();
    let changes = read(&folder.join(LOG)).map_or(0, |rows| rows.lines.len() as u64);
    SessionCounts { bytes, changes, ..SessionCounts::default() }
}

/// Adds lines to the log, all with one write.
fn append(folder: &Path, lines: &[ImageLine]) -> Result<(), ToolError> {
    let path = folder.join(LOG);
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(line).map_err(|error| {
            ToolError::new(Code::Internal, format!("a change has no JSON form: {error}"))
        })?);
        text.push('\n');
    }
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o600).open(&path).map_err(at(&path))?;
    file.write_all(text.as_bytes()).map_err(at(&path))
}

impl BeforeImages for SessionImages {
    /// The caller's word for its session is not enough: the call has to carry the token that this kernel has made for the loop
    /// of that very session.
    fn keeps(&self, context: &CallContext) -> bool {
        let grant = context.token.as_ref().and_then(|token| self.tokens.verify(token).ok());
        grant.is_some_and(|grant| grant.speaks_for(&context.session)) && self.sessions.has(&context.session)
    }

    fn max_file_bytes(&self) -> u64 {
        MAX_FILE_BYTES
    }

    fn begin(&self, session: &str, images: Vec<BeforeImage>) -> BeforeImageToken {
        let number = self.batches.fetch_add(1, Ordering::Relaxed);
        let batch = format!("{}-{}-{number}", std::process::id(), tgp_text::now_ms());
        if let Err(error) = self.store(session, &batch, images) {
            tracing::warn!(target: "kernel", session, "a change cannot be undone later: {error}");
        }
        BeforeImageToken(batch)
    }

    fn end(&self, session: &str, BeforeImageToken(batch): BeforeImageToken, were_made: bool) {
        if let Err(error) = self.close(session, &batch, were_made) {
            tracing::warn!(target: "kernel", session, "the end of a change was not noted: {error}");
        }
    }
}

/// The log of one session.
pub(super) struct ImageLog {
    folder: PathBuf,
}

impl ImageLog {
    /// `project` is the one whose files are undone.
    pub(super) fn of(sessions: &Sessions, session: &str, project: &Path) -> Self {
        Self { folder: sessions.folder(session).join(folder_of(sessions.state().path(), project)) }
    }

    /// Its lines, as far as they are whole; none where the session has changed nothing.
    pub(super) fn lines(&self) -> Result<Vec<ImageLine>, ToolError> {
        let path = self.folder.join(LOG);
        let rows = match read(&path) {
            Ok(rows) => rows.lines,
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let parse = |(number, row): (usize, &String)| {
            serde_json::from_str(row)
                .map_err(|error| tgp_fs::append_log::damaged(&path, number, &error.to_string()))
        };
        rows.iter().enumerate().map(parse).collect()
    }

    /// A content that was kept, when it is still what it was.
    pub(super) fn content(&self, sha256: &str) -> Result<Vec<u8>, ToolError> {
        let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = self.folder.join(if is_hash { sha256 } else { "none" });
        let bytes = tgp_fs::read_plain(&path, MAX_FILE_BYTES);
        bytes.filter(|bytes| canonical::sha256_hex(bytes) == sha256).ok_or_else(|| {
            let message = format!("the stored content `{}` is missing or damaged", path.display());
            ToolError::new(Code::Integrity, message).help(
                "name the files to undo and leave out the one that this belongs to; nothing was changed",
            )
        })
    }

    /// Notes that changes were undone.
    pub(super) fn undone(&self, paths: Vec<RelativePath>) -> Result<(), ToolError> {
        append(&self.folder, &[ImageLine::Undone { paths }])
    }
}
