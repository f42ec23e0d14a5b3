//! What there is of sessions, read from their folders.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use tgp_agent::{Line, LineKind, Replayed, Summary};
use tgp_contract::{Code, ToolError};

use super::Sessions;
use super::store::TranscriptFile;

/// The most of a transcript's end that is read to find its last line.
const MAX_TAIL_BYTES: u64 = 8 << 20;

/// How a session stands.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionState {
    /// A process works on it.
    Running,
    /// It was killed: no process works on it, and it has not said how it ended.
    Killed,
    /// It said how it ended.
    Ended(Box<Summary>),
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

impl Sessions {
    /// The newest `most` sessions, newest first.
    ///
    /// # Errors
    /// When the directory cannot be read; a session that is damaged is left out.
    pub fn list(&self, most: usize) -> Result<Vec<SessionInfo>, ToolError> {
        let ids = self.ids()?;
        Ok(ids.iter().rev().take(most).filter_map(|id| self.info(id).ok()).collect())
    }

    /// One session.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn info(&self, id: &str) -> Result<SessionInfo, ToolError> {
        let head = self.head(id)?;
        let path = self.transcript(id);
        let state = if TranscriptFile::is_held(&path) {
            SessionState::Running
        } else {
            match last_line(&path).map(|line| line.kind) {
                Some(LineKind::Stop { summary }) => SessionState::Ended(summary),
                _ => SessionState::Killed,
            }
        };
        Ok(SessionInfo {
            id: head.id,
            task: head.task,
            provider: head.provider,
            model: head.model,
            created_ms: head.created_ms,
            state,
        })
    }

    /// Plays a session again from its transcript, without a model, a tool or a clock, and compares.
    ///
    /// # Errors
    /// When it cannot be read, or is empty.
    pub async fn replay(&self, id: &str) -> Result<Replayed, ToolError> {
        let lines = self.lines(id)?;
        if lines.is_empty() {
            return Err(ToolError::new(Code::NotFound, format!("nothing of session `{id}` was recorded"))
                .help("it was killed before its first line; begin another"));
        }
        tgp_agent::replay(&lines).await
    }
}

/// The last whole line, when it is not too far from the end.
fn last_line(path: &Path) -> Option<Line> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let whole = tail.strip_suffix(b"\n")?;
    let start = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Line::parse(std::str::from_utf8(whole.get(start..)?).ok()?).ok()
}
