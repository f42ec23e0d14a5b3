//! A model that plays a file: deterministic, without a network, through the same trait as every other provider.

mod format;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use tgp_contract::{
    Block, ChatOptions, Code, EventStream, ModelInfo, ModelProvider, Role, SourceLocation, StreamEvent,
    ToolError,
};

use crate::limits::MAX_SCRIPT_BYTES;
use format::{File, Turn};

const NAME: &str = "script";
/// What is shown of a text that a turn expected something else of.
const SHOWN_CHARACTERS: usize = 200;

/// A scripted model. It plays turn number [`ChatOptions::turn`], so that a resumed session continues at the right
/// place.
#[derive(Clone, Debug)]
pub struct Script {
    source: String,
    turns: Arc<[Turn]>,
    clock_ms: Option<u64>,
    seed: Option<u64>,
}

impl Script {
    /// # Errors
    /// `ENOTFOUND` when there is no such file, `ECONFIG` when it is not a script.
    pub fn read(path: &Path) -> Result<Self, ToolError> {
        let shown = path.display().to_string();
        let unreadable = |why: &str| {
            ToolError::new(Code::Config, format!("the script `{shown}` cannot be read: {why}"))
                .help("name a JSON file of turns, such as `script:turns.json`")
        };
        let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                ToolError::new(Code::NotFound, format!("there is no script `{shown}`"))
                    .help("name a JSON file of turns, such as `script:turns.json`")
            }
            _ => unreadable(&error.to_string()),
        })?;
        // A pipe without a writer would be waited for without end.
        if !metadata.is_file() {
            return Err(unreadable("it is not a file"));
        }
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_SCRIPT_BYTES + 1).read_to_string(&mut text))
            .map_err(|error| unreadable(&error.to_string()))?;
        Self::parse(&shown, &text)
    }

    /// Reads a script from its text; `name` is what errors call it.
    ///
    /// # Errors
    /// `ECONFIG` with the place and what was expected there.
    pub fn parse(name: &str, text: &str) -> Result<Self, ToolError> {
        if text.len() as u64 > MAX_SCRIPT_BYTES {
            return Err(ToolError::new(
                Code::Config,
                format!("the script `{name}` is larger than {MAX_SCRIPT_BYTES} bytes"),
            )
            .help("split the session into several scripts"));
        }
        let file: File = serde_json::from_str(text).map_err(|error| {
            let place = SourceLocation {
                file: name.to_owned(),
                line: u32::try_from(error.line()).unwrap_or(u32::MAX),
                column: column(text, error.line(), error.column()),
            };
            ToolError::new(Code::Config, format!("the script `{name}` is wrong at {place}: {}", without_place(&error)))
                .help("a script is a list of turns, and a turn a list of events such as `{\"type\":\"text\",\"value\":\"Hello\"}`")
                .place(&place)
        })?;
        Ok(Self {
            source: name.to_owned(),
            turns: file.turns.into(),
            clock_ms: file.clock_ms,
            seed: file.seed,
        })
    }

    /// The time at which the script wants to play, in milliseconds since the epoch.
    #[must_use]
    pub fn clock_ms(&self) -> Option<u64> {
        self.clock_ms
    }

    /// What the script wants randomness to be made of.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// How many turns it has.
    #[must_use]
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    fn turn(&self, number: u64) -> Result<&Turn, ToolError> {
        usize::try_from(number).ok().and_then(|number| self.turns.get(number)).ok_or_else(|| {
            let count = self.turns.len();
            ToolError::new(Code::Provider, format!("the script has no turn {number}: `{}` ends after {count}", self.source))
                .help("add a turn that only says something, so that the session ends, or give the session fewer steps")
                .detail("retryable", false)
        })
    }

    fn check(&self, number: u64, turn: &Turn, options: &ChatOptions) -> Result<(), ToolError> {
        let Some(expected) = &turn.last_result_contains else { return Ok(()) };
        let heard = last_heard(options);
        if heard.iter().any(|text| text.contains(expected.as_str())) {
            return Ok(());
        }
        let shown: Vec<String> =
            heard.iter().map(|text| text.chars().take(SHOWN_CHARACTERS).collect()).collect();
        Err(ToolError::new(
            Code::Provider,
            format!(
                "turn {number} of the script `{}` was not told what it expects: `{expected}`",
                self.source
            ),
        )
        .help("compare it with `heard`: either the session went another way, or the script is wrong")
        .detail("heard", shown)
        .detail("retryable", false))
    }
}

/// The results and words that the model got last.
fn last_heard(options: &ChatOptions) -> Vec<&str> {
    let messages = options.messages.iter().rev();
    let last = messages
        .skip_while(|message| message.role != Role::User)
        .take_while(|message| message.role == Role::User);
    let mut heard: Vec<&str> = last
        .flat_map(|message| message.blocks.iter().rev())
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::ToolResult { content, .. } => Some(content.as_str()),
            Block::ToolCall { .. } | Block::Opaque { .. } => None,
        })
        .collect();
    heard.reverse();
    heard
}

/// The parser counts bytes; a place counts characters, from 1.
fn column(text: &str, line: usize, column: usize) -> u32 {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let before = line.as_bytes().get(..column.min(line.len())).unwrap_or_default();
    u32::try_from(String::from_utf8_lossy(before).chars().count()).unwrap_or(u32::MAX).max(1)
}

/// The message alone: the place is reported in one form only.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let end = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&end).unwrap_or(&text).to_owned()
}

#[async_trait]
impl ModelProvider for Script {
    fn name(&self) -> &str {
        NAME
    }

    async fn chat(&self, options: ChatOptions) -> Result<EventStream, ToolError> {
        let turn = self.turn(options.turn)?;
        self.check(options.turn, turn, &options)?;
        let events = turn.play(options.turn);
        // As with every provider, a turn that begins with an error counts as not received.
        if let Some(StreamEvent::Error { error }) = events.first() {
            return Err(error.clone());
        }
        let pause = turn.delay_ms.map(Duration::from_millis);
        let events = events.into_iter().enumerate();
        Ok(Box::pin(stream::unfold(events, move |mut events| async move {
            let (number, event) = events.next()?;
            if let Some(pause) = pause.filter(|_| number > 0) {
                tokio::time::sleep(pause).await;
            }
            Some((event, events))
        })))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        Ok(vec![ModelInfo { name: NAME.to_owned() }])
    }
}
