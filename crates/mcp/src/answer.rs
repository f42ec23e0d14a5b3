//! Answers of a bounded size: what fits is sent, the rest is kept for a while and read by a cursor or as a resource.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::Value;
use tgp_contract::{Code, ToolError, ToolResult};
use tgp_text::head;

use crate::runs::new_id;

/// Bytes of one answer: about 8,000 tokens of JSON, which has three bytes a token.
pub(crate) const MAX_ANSWER_BYTES: usize = 24 << 10;
/// Bytes of an answer; of a longer one the rest is lost, and a tool that returns so much should return less.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// Bytes of all answers that are kept for a connection; the oldest go first.
const MAX_STORE_BYTES: usize = 32 << 20;
/// Answers that are kept for a connection.
const MAX_STORED: usize = 64;
/// How long an answer is kept.
const LIFETIME: Duration = Duration::from_secs(600);

/// The beginning of the resource of a kept answer.
pub(crate) const ANSWER_RESOURCE: &str = "tgp://answer/";

/// A finished result as a host reads it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    text: Arc<str>,
    is_error: bool,
}

impl Answer {
    pub(crate) fn new(result: ToolResult) -> Self {
        match result {
            ToolResult::Done(Value::String(text)) => Self::done(&text),
            ToolResult::Done(data) => Self::done(&data.to_string()),
            ToolResult::Failed(error) => {
                let text = serde_json::to_string(&error.bounded()).unwrap_or_default();
                Self { text: head(&text, MAX_KEPT_BYTES).into(), is_error: true }
            }
        }
    }

    fn done(text: &str) -> Self {
        Self { text: head(text, MAX_KEPT_BYTES).into(), is_error: false }
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }
}

struct Stored {
    id: String,
    answer: Answer,
    since: Instant,
}

/// The answers of one connection that were too long to be sent at once.
#[derive(Default)]
pub(crate) struct AnswerStore(Mutex<VecDeque<Stored>>);

/// A place in a kept answer: `ID.OFFSET`.
struct Cursor {
    id: String,
    offset: usize,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let (id, offset) = text.split_once('.')?;
        Some(Self { id: id.to_owned(), offset: offset.parse().ok()? })
    }
}

impl AnswerStore {
    /// The answer, or its beginning with a cursor to the rest.
    pub(crate) fn send(&self, answer: &Answer) -> CallToolResult {
        if answer.text.len() <= MAX_ANSWER_BYTES {
            return result(answer, vec![ContentBlock::text(answer.text.as_ref())]);
        }
        let id = self.keep(answer.clone());
        page(answer, &id, 0)
    }

    /// The part of a kept answer that begins at a cursor.
    ///
    /// # Errors
    /// `EVALIDATION` for what is not a cursor, `ENOTFOUND` for an answer that is no longer kept.
    pub(crate) fn continued(&self, cursor: &str) -> Result<CallToolResult, ToolError> {
        let cursor = Cursor::parse(cursor).ok_or_else(|| {
            ToolError::new(Code::Validation, "invalid cursor")
                .help("pass the `cursor` of an earlier answer as it was")
        })?;
        let answer = self.find(&cursor.id)?;
        Ok(page(&answer, &cursor.id, cursor.offset))
    }

    /// The whole of a kept answer, up to what one resource may have.
    ///
    /// # Errors
    /// `ENOTFOUND` for an answer that is no longer kept.
    pub(crate) fn whole(&self, id: &str) -> Result<Arc<str>, ToolError> {
        self.find(id).map(|answer| answer.text)
    }

    fn keep(&self, answer: Answer) -> String {
        let id = new_id("a");
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forget_expired(&mut stored);
        stored.push_back(Stored { id: id.clone(), answer, since: Instant::now() });
        let bytes = |stored: &VecDeque<Stored>| stored.iter().map(|one| one.answer.text.len()).sum::<usize>();
        while stored.len() > 1 && (stored.len() > MAX_STORED || bytes(&stored) > MAX_STORE_BYTES) {
            stored.pop_front();
        }
        id
    }

    fn find(&self, id: &str) -> Result<Answer, ToolError> {
        let mut stored = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forget_expired(&mut stored);
        let found = stored.iter().find(|one| one.id == id).map(|one| one.answer.clone());
        found.ok_or_else(|| {
            ToolError::new(Code::NotFound, format!("the answer `{}` is no longer kept", head(id, 32)))
                .help("make the call again; the rest of a long answer is kept for ten minutes")
        })
    }
}

fn forget_expired(stored: &mut VecDeque<Stored>) {
    stored.retain(|one| one.since.elapsed() < LIFETIME);
}

/// One piece of an answer, and where the next one begins.
fn page(answer: &Answer, id: &str, offset: usize) -> CallToolResult {
    let total = answer.text.len();
    let start = answer.text.floor_char_boundary(offset.min(total));
    let piece = head(answer.text.get(start..).unwrap_or_default(), MAX_ANSWER_BYTES);
    let end = start + piece.len();
    let mut content = vec![ContentBlock::text(piece)];
    if end < total {
        content.push(ContentBlock::text(format!(
            "[bytes {start} to {end} of {total}; call `wait` with {{\"cursor\": \"{id}.{end}\"}} for the next part]"
        )));
        // An error carries text alone: some hosts show nothing of one that has anything else.
        if !answer.is_error {
            let link = Resource::new(format!("{ANSWER_RESOURCE}{id}"), format!("answer {id}"))
                .with_description("The whole answer, kept for ten minutes")
                .with_mime_type("application/json")
                .with_size(u64::try_from(total).unwrap_or(u64::MAX));
            content.push(ContentBlock::resource_link(link));
        }
    }
    result(answer, content)
}

fn result(answer: &Answer, content: Vec<ContentBlock>) -> CallToolResult {
    if answer.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}

/// An error as the result of a tool, for the model to read.
pub(crate) fn failed(error: ToolError) -> CallToolResult {
    let answer = Answer::new(ToolResult::Failed(error));
    let text = head(&answer.text, MAX_ANSWER_BYTES);
    CallToolResult::error(vec![ContentBlock::text(text)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tgp_contract::ToolResult;

    use super::{Answer, AnswerStore, MAX_ANSWER_BYTES, MAX_STORED};

    fn text_of(result: &rmcp::model::CallToolResult, at: usize) -> String {
        result
            .content
            .get(at)
            .and_then(|block| block.as_text())
            .map(|text| text.text.clone())
            .unwrap_or_default()
    }

    #[test]
    fn a_long_answer_is_read_in_parts() {
        let store = AnswerStore::default();
        let long = "ä".repeat(MAX_ANSWER_BYTES);
        let first = store.send(&Answer::new(ToolResult::Done(json!(long))));
        assert_eq!(first.content.len(), 3);
        let mut read = text_of(&first, 0);
        let mut note = text_of(&first, 1);
        while let Some(cursor) = note.split("\"cursor\": \"").nth(1).and_then(|rest| rest.split('"').next()) {
            let next = store.continued(cursor).unwrap();
            read.push_str(&text_of(&next, 0));
            note = text_of(&next, 1);
        }
        assert_eq!(read, long);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let store = AnswerStore::default();
        let long = json!("x".repeat(MAX_ANSWER_BYTES + 1));
        for _ in 0..MAX_STORED + 5 {
            store.send(&Answer::new(ToolResult::Done(long.clone())));
        }
        assert_eq!(store.0.lock().unwrap().len(), MAX_STORED);
        assert!(store.continued("nothing").is_err() && store.continued("a1.0").is_err());
    }
}
