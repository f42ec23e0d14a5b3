//! What there is of sessions, read from their folders.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;
use tgp_agent::{Ending, Replayed, Summary, TranscriptLine, TranscriptLineKind};
use tgp_audit::{AuditEntry, AuditFilter};
use tgp_contract::{Code, ToolError, Usage, canonical};

use super::Sessions;
use super::session_run::SEAL;
use tgp_fs::append_log::AppendLog;

/// The most of a transcript's end that is read to find its last line.
const MAX_TAIL_BYTES: u64 = 8 << 20;

/// The status of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionState {
    /// A process works on it.
    Running,
    /// It was killed: no process works on it, and it has not said how it ended.
    Killed,
    /// It said how it ended.
    Ended(Box<Summary>),
    /// Its files are not what they were; the reason.
    Damaged(String),
}

/// Whether a transcript is the one whose hash the audit has kept when the session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscriptIntegrity {
    /// It is. The lines after the seal, if there are any, came later.
    Same { lines_after: usize },
    /// It was changed afterwards.
    Broken,
    /// The session was killed before its end was recorded.
    Never,
}

/// What came of playing a session again.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionReplay {
    pub played: Replayed,
    pub sealed: TranscriptIntegrity,
}

/// One session of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    pub id: String,
    pub task: String,
    pub provider: String,
    pub model: String,
    pub created_ms: u64,
    pub state: SessionState,
}

impl SessionInfo {
    /// Whether the provider refused the very first request, for a wrong key or model: nothing was said, done or used.
    #[must_use]
    pub fn never_began(&self) -> bool {
        let SessionState::Ended(summary) = &self.state else { return false };
        let Ending::NeedsUser { error } = &summary.ending else { return false };
        let status = error.details.get("status").and_then(Value::as_u64);
        error.code == Code::Provider
            && status.is_some_and(|status| (400..500).contains(&status))
            && error.details.get("retryable") == Some(&Value::Bool(false))
            && (summary.steps, summary.calls, summary.usage) == (0, 0, Usage::default())
    }
}

impl Sessions {
    /// The newest `most` sessions, newest first, without those that [never began](SessionInfo::never_began).
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self, most: usize) -> Result<Vec<SessionInfo>, ToolError> {
        let damaged = |id: &str, error: ToolError| SessionInfo {
            id: id.to_owned(),
            task: String::new(),
            provider: String::new(),
            model: String::new(),
            created_ms: 0,
            state: SessionState::Damaged(error.message),
        };
        let ids = self.ids()?;
        let info = |id: &String| self.info(id).unwrap_or_else(|error| damaged(id, error));
        Ok(ids.iter().rev().map(info).filter(|info| !info.never_began()).take(most).collect())
    }

    /// One session.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn info(&self, id: &str) -> Result<SessionInfo, ToolError> {
        let head = self.head(id)?;
        let path = self.transcript(id);
        let state = if AppendLog::is_held(&path) {
            SessionState::Running
        } else {
            match last_line(&path).map(|line| line.kind) {
                Some(TranscriptLineKind::Stop { summary }) => SessionState::Ended(summary),
                _ => SessionState::Killed,
            }
        };
        Ok(SessionInfo {
            id: head.id,
            task: head.task,
            // Some servers take a key in their address; it is not part of a name.
            provider: head.provider.split('?').next().unwrap_or_default().to_owned(),
            model: head.model,
            created_ms: head.created_ms,
            state,
        })
    }

    /// Plays a session again from its transcript, without a model, a tool or a clock, and compares; and holds the
    /// transcript against the hash that the audit has of it.
    ///
    /// # Errors
    /// When it cannot be read, or is empty.
    pub async fn replay(&self, id: &str) -> Result<SessionReplay, ToolError> {
        let lines = self.lines(id)?;
        if lines.is_empty() {
            return Err(ToolError::new(Code::NotFound, format!("nothing of session `{id}` was recorded"))
                .help("it was killed before its first line; begin another"));
        }
        Ok(SessionReplay { played: tgp_agent::replay(&lines).await?, sealed: self.sealed(id)? })
    }

    fn sealed(&self, id: &str) -> Result<TranscriptIntegrity, ToolError> {
        let Some(reader) = self.state().audit_reader_if_any()? else {
            return Ok(TranscriptIntegrity::Never);
        };
        let filter = AuditFilter { tool: Some(SEAL.to_owned()), ..AuditFilter::default() };
        let of = |body: &Value, name: &str| body.pointer(&format!("/arguments/{name}")).cloned();
        let is_own = |body: &Value| of(body, "session").is_some_and(|session| session == id);
        let Some(AuditEntry { body: seal, .. }) = reader.newest(&filter, &is_own)? else {
            return Ok(TranscriptIntegrity::Never);
        };
        let length = of(&seal, "bytes").and_then(|bytes| bytes.as_u64()).unwrap_or_default();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = self.bytes(id)?;
        Ok(match bytes.split_at_checked(length) {
            Some((sealed, after)) if of(&seal, "sha256") == Some(canonical::sha256_hex(sealed).into()) => {
                TranscriptIntegrity::Same { lines_after: after.iter().filter(|byte| **byte == b'\n').count() }
            }
            _ => TranscriptIntegrity::Broken,
        })
    }
}

/// The last whole line, when it is not too far from the end.
fn last_line(path: &Path) -> Option<TranscriptLine> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let whole = tail.strip_suffix(b"\n")?;
    let start = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    TranscriptLine::parse(std::str::from_utf8(whole.get(start..)?).ok()?).ok()
}
