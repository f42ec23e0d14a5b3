//! A session played again from its transcript: the same loop, in a world that is made of the lines.

use std::time::Duration;

use tgp_contract::{Code, Consent, TddState, ToolError};

use crate::engine::Engine;
use crate::io::{AgentIo, CallOutcome, CallRequest, LoopError, TurnOutput};
use crate::session::Session;
use crate::transcript::PROMPT_VERSION;
use crate::{AgentEvent, Ending, LineDurability, ResumeOptions, TranscriptLine, TranscriptLineKind};

/// What a replay has found.
#[derive(Clone, Debug, PartialEq)]
pub enum Replayed {
    /// Every line is the one that the loop writes when it gets the same input.
    Same { lines: u64 },
    /// The same, but for the hashes of what the model was asked: a run was recorded with older texts of the loop than the
    /// present ones, so they were not compared.
    SameWithOlderPrompt { lines: u64, recorded: u64, current: u64 },
    /// The first line, by its number, that the loop would have written otherwise.
    Differs { line: u64, expected: String, actual: String },
}

/// Plays a session again: what the model said, what calls came to, the time and the state of the work are taken from its
/// lines, and everything that the loop makes of them is compared byte for byte.
///
/// A transcript may end anywhere, for a session may be killed anywhere.
///
/// # Errors
/// `ENOTFOUND` when there are no lines, `EINTEGRITY` when the first of them begins no session.
pub async fn replay(recorded: &[TranscriptLine]) -> Result<Replayed, ToolError> {
    let Some(first) = recorded.first() else {
        return Err(ToolError::new(Code::NotFound, "the transcript is empty"));
    };
    let mut session = Session::open(first)?;
    let mut start = 0;
    for run in recorded.chunk_by(|_, next| !matches!(next.kind, TranscriptLineKind::Resumed { .. })) {
        match play(run, start, &session).await {
            Ok(()) => {}
            Err(LoopError::Differs { line, expected, actual }) => {
                return Ok(Replayed::Differs { line, expected, actual });
            }
            Err(LoopError::Failed(error)) => return Err(error),
            Err(LoopError::Ended) => {}
        }
        // The next run has read what this one has left, so it begins with the lines and not with the loop's memory.
        for line in run.iter().skip(usize::from(start == 0)) {
            session.apply(line)?;
        }
        start += run.len();
    }
    let lines = recorded.len() as u64;
    let oldest = recorded.iter().filter_map(TranscriptLine::prompt_version).min();
    Ok(match oldest.filter(|version| *version < PROMPT_VERSION) {
        Some(recorded) => Replayed::SameWithOlderPrompt { lines, recorded, current: PROMPT_VERSION },
        None => Replayed::Same { lines },
    })
}

/// Plays one run, from its first line to where it stopped or was killed.
async fn play(run: &[TranscriptLine], offset: usize, session: &Session) -> Result<(), LoopError> {
    let Some(first) = run.first() else { return Ok(()) };
    let prompt_version = first.prompt_version().unwrap_or(PROMPT_VERSION);
    let tape = ReplayIo { run, offset, played: 0, prompt_version };
    let engine = match &first.kind {
        TranscriptLineKind::Resumed { provider, model, budgets, limits, message, .. } => {
            let options = ResumeOptions {
                model: Some(model.clone()),
                budgets: *budgets,
                limits: *limits,
                message: message.clone(),
                consent: Consent::Ask,
                token: None,
            };
            Engine::go_on(tape, session.clone(), provider.clone(), options).await?
        }
        kind => Engine::begin(tape, kind.clone()).await?,
    };
    let (_, tape) = engine.drive().await?;
    match tape.next() {
        None => Ok(()),
        Some(_) => Err(tape.differs("nothing: the run has ended here")),
    }
}

/// A run as it was recorded.
struct ReplayIo<'a> {
    run: &'a [TranscriptLine],
    /// The number of the run's first line.
    offset: usize,
    /// How many lines of the run were compared.
    played: usize,
    /// The version of the loop's texts that the run was recorded with.
    prompt_version: u64,
}

impl<'a> ReplayIo<'a> {
    fn next(&self) -> Option<&'a TranscriptLine> {
        self.run.get(self.played)
    }

    /// The next line; where there is none the session was killed.
    fn line(&self) -> Result<&'a TranscriptLine, LoopError> {
        self.next().ok_or(LoopError::Ended)
    }

    fn differs(&self, actual: &str) -> LoopError {
        LoopError::Differs {
            line: (self.offset + self.played) as u64,
            expected: self.next().map_or_else(String::new, TranscriptLine::encode),
            actual: actual.to_owned(),
        }
    }
}

impl AgentIo for ReplayIo<'_> {
    fn now_ms(&mut self) -> Result<u64, LoopError> {
        Ok(self.line()?.at_ms)
    }

    fn state(&mut self) -> Result<TddState, LoopError> {
        match &self.line()?.kind {
            TranscriptLineKind::Session { state, .. }
            | TranscriptLineKind::Result { state, .. }
            | TranscriptLineKind::Resumed { state, .. } => Ok(*state),
            TranscriptLineKind::Turn { .. }
            | TranscriptLineKind::Call { .. }
            | TranscriptLineKind::Stop { .. } => {
                Err(self.differs("a line that says where test-driven work stands"))
            }
        }
    }

    fn prompt_version(&self) -> u64 {
        self.prompt_version
    }

    fn append(&mut self, line: &TranscriptLine, _safety: LineDurability) -> Result<(), LoopError> {
        let recorded = self.line()?;
        let actual = line.encode();
        let is_same = match self.prompt_version < PROMPT_VERSION {
            true => recorded.without_request().encode() == line.without_request().encode(),
            false => recorded.encode() == actual,
        };
        if !is_same {
            return Err(self.differs(&actual));
        }
        self.played += 1;
        Ok(())
    }

    fn stop_wished(&mut self) -> bool {
        matches!(self.next().map(|line| &line.kind), Some(TranscriptLineKind::Stop { summary }) if summary.ending == Ending::Interrupted)
    }

    async fn tell(&mut self, _event: AgentEvent) {}

    async fn turn(
        &mut self,
        session: &Session,
        _patience: Option<Duration>,
    ) -> Result<TurnOutput, LoopError> {
        match &self.line()?.kind {
            TranscriptLineKind::Turn { events, ending, .. } => {
                Ok(TurnOutput { events: events.clone(), ending: ending.clone() })
            }
            _ => Err(self.differs(&format!("a turn of the model, asked with {}", session.request_hash()))),
        }
    }

    fn make(&mut self, _orders: Vec<CallRequest>) {}

    async fn settle(&mut self) -> Result<CallOutcome, LoopError> {
        match &self.line()?.kind {
            TranscriptLineKind::Result {
                result,
                verdict,
                execution,
                recorded,
                duration_us,
                files,
                files_omitted,
                unapplied,
                ..
            } => Ok(CallOutcome {
                result: result.clone(),
                verdict: *verdict,
                execution: *execution,
                recorded: *recorded,
                duration_us: *duration_us,
                files: files.clone(),
                files_omitted: *files_omitted,
                unapplied: *unapplied,
            }),
            _ => Err(self.differs("the result of a call")),
        }
    }

    async fn recover(
        &mut self,
        _session: &str,
        _id: &str,
    ) -> Result<Result<CallOutcome, ToolError>, LoopError> {
        if let TranscriptLineKind::Stop { summary } = &self.line()?.kind
            && let Ending::NeedsUser { error } | Ending::Broken { error } = &summary.ending
        {
            return Ok(Err(error.clone()));
        }
        self.settle().await.map(Ok)
    }
}
