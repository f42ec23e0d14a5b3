//! The real I/O: a model that streams, tools behind their gates, a journal, a clock, and a listener.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use serde_json::{Value, json};
use tgp_contract::{
    Actor, CallContext, CallRecord, CallVerdict, Cancellation, CapabilityToken, ChatOptions, Code, Consent,
    Execution, FileEffect, ModelProvider, REPEATABLE_DETAIL, StreamEvent, TddState, ToolCall, ToolCaller,
    ToolError, ToolResult,
};
use tokio::sync::mpsc;

use crate::bounds;
use crate::io::{AgentIo, CallOutcome, CallRequest, LoopError, TurnOutput};
use crate::session::Session;
use crate::transcript::PROMPT_VERSION;
use crate::turn::event_bytes;
use crate::{
    AgentEvent, AgentPorts, LineDurability, RecoveredOutcome, StopLevel, StopSignal, TranscriptLine,
    TurnEnding,
};

/// What one turn may hold: many times what any model writes at once.
const MAX_TURN_BYTES: usize = 4 << 20;
/// What an event counts at least, so that a turn of nothing but empty events ends too.
const MIN_EVENT_BYTES: usize = 16;
/// A turn that takes longer has hung, whatever its provider thinks.
const MAX_TURN_TIME: Duration = Duration::from_secs(60 * 60);

/// Turns in a row that broke off and are asked for again. An answer that breaks off more often is a matter for a person.
const MAX_DISCARDED_TURNS: u32 = 3;
/// The pause before the first repetition; it doubles with each one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// How long a call that is not wanted any more is waited for: what is writing a change ends in far less.
const CANCEL_PATIENCE: Duration = Duration::from_secs(30);

/// On whose behalf calls are made.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) session: String,
    pub(crate) actor: String,
    pub(crate) consent: Consent,
    pub(crate) token: Option<CapabilityToken>,
}

/// The real world.
pub(crate) struct LiveIo<'a> {
    ports: AgentPorts<'a>,
    caller: Caller,
    events: mpsc::Sender<AgentEvent>,
    stop: StopSignal,
    running: FuturesOrdered<BoxFuture<'a, CallOutcome>>,
}

impl<'a> LiveIo<'a> {
    pub(crate) fn new(
        ports: AgentPorts<'a>,
        caller: Caller,
        events: mpsc::Sender<AgentEvent>,
        stop: StopSignal,
    ) -> Self {
        Self { ports, caller, events, stop, running: FuturesOrdered::new() }
    }

    /// Discards a turn that broke off, where asking for it again may help. Its line is written after the pause, so that the
    /// pause counts as time of the session. A wish to stop ends the pause.
    async fn repeated(
        &mut self,
        session: &Session,
        ending: TurnEnding,
        patience: Option<Duration>,
    ) -> TurnEnding {
        let done = session.discarded_turns();
        let error = match ending {
            TurnEnding::Failed { error } if is_repeatable(&error) && done < MAX_DISCARDED_TURNS => error,
            other => return other,
        };
        let pause = FIRST_PAUSE.saturating_mul(1 << done.min(MAX_DISCARDED_TURNS));
        let message = format!(
            "{}; what it said of this answer is discarded, and attempt {} of {} begins in {} s",
            error.message,
            done + 2,
            MAX_DISCARDED_TURNS + 1,
            pause.as_secs()
        );
        self.tell(AgentEvent::Discarded { step: session.step(), message }).await;
        tokio::select! {
            biased;
            () = self.stop.reached(StopLevel::AfterCall) => {}
            () = tokio::time::sleep(patience.map_or(pause, |left| left.min(pause))) => {}
        }
        TurnEnding::Discarded { error }
    }
}

/// Whether the provider says that the turn may be asked for again. Its calls are made only when it is complete, so nothing of
/// it has had an effect.
fn is_repeatable(error: &ToolError) -> bool {
    error.code == Code::Provider && error.details.get(REPEATABLE_DETAIL) == Some(&Value::Bool(true))
}

impl AgentIo for LiveIo<'_> {
    fn now_ms(&mut self) -> Result<u64, LoopError> {
        Ok(self.ports.clock.now_ms())
    }

    fn state(&mut self) -> Result<TddState, LoopError> {
        Ok(self.ports.standing.state())
    }

    fn prompt_version(&self) -> u64 {
        PROMPT_VERSION
    }

    fn append(&mut self, line: &TranscriptLine, safety: LineDurability) -> Result<(), LoopError> {
        Ok(self.ports.journal.append(line, safety)?)
    }

    fn stop_wished(&mut self) -> bool {
        self.stop.level() > StopLevel::GoOn
    }

    /// Waits until there is room: a slow listener gets everything, later. A listener that is gone gets
    /// nothing.
    async fn tell(&mut self, event: AgentEvent) {
        let _ = self.events.send(event).await;
    }

    async fn turn(&mut self, session: &Session, patience: Option<Duration>) -> Result<TurnOutput, LoopError> {
        let mut ear = TurnReader { events: Vec::new(), bytes: 0 };
        let started = Instant::now();
        let ending = tokio::select! {
            biased;
            () = self.stop.reached(StopLevel::AfterCall) => TurnEnding::Interrupted,
            ending = ear.listen(self.ports.provider, session.request(), &self.events) => ending,
            () = tokio::time::sleep(patience.unwrap_or(MAX_TURN_TIME).min(MAX_TURN_TIME)) => {
                if patience.is_some_and(|patience| patience <= MAX_TURN_TIME) {
                    TurnEnding::OutOfTime
                } else {
                    let minutes = MAX_TURN_TIME.as_secs() / 60;
                    failed(format!("the model has not ended its turn in {minutes} minutes"))
                }
            }
        };
        let ending =
            self.repeated(session, ending, patience.map(|left| left.saturating_sub(started.elapsed()))).await;
        tracing::info!(
            target: "provider",
            model = %session.model,
            events = ear.events.len(),
            ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "turn {}",
            match &ending {
                TurnEnding::Failed { .. } => "failed",
                TurnEnding::Discarded { .. } => "discarded",
                _ => "ended",
            }
        );
        Ok(TurnOutput { events: ear.events, ending })
    }

    fn make(&mut self, orders: Vec<CallRequest>) {
        if self.stop.level() == StopLevel::Now {
            // Their waiters learn that they were cancelled, and nothing has begun.
            return;
        }
        for CallRequest { wanted, refused } in orders {
            if refused {
                let settled = refuse(&wanted.tool);
                self.running.push_back(Box::pin(async move { settled }));
                continue;
            }
            let call = ToolCall { id: wanted.id, tool: wanted.tool, arguments: wanted.arguments };
            let context = CallContext {
                actor: Actor::Agent(self.caller.actor.clone()),
                session: self.caller.session.clone(),
                consent: self.caller.consent,
                dry_run: false,
                depth: 0,
                token: self.caller.token.clone(),
            };
            let made = made(self.ports.tools, call, context, self.stop.clone());
            self.running.push_back(Box::pin(made));
        }
    }

    async fn settle(&mut self) -> Result<CallOutcome, LoopError> {
        if self.running.is_empty() {
            return Ok(cancelled(Execution::NotStarted));
        }
        let stop = &mut self.stop;
        let out_of_patience = async {
            stop.reached(StopLevel::Now).await;
            tokio::time::sleep(CANCEL_PATIENCE).await;
        };
        tokio::select! {
            // What has ended has ended, whatever is wished now.
            biased;
            Some(settled) = self.running.next() => Ok(settled),
            () = out_of_patience => {
                self.running.clear();
                Ok(abandoned())
            }
        }
    }

    async fn recover(
        &mut self,
        session: &str,
        id: &str,
    ) -> Result<Result<CallOutcome, ToolError>, LoopError> {
        Ok(self.ports.recovery.fate(session, id).await.map(recovered))
    }
}

/// Hears a turn.
struct TurnReader {
    events: Vec<StreamEvent>,
    bytes: usize,
}

impl TurnReader {
    /// Passes text on as it comes, and keeps everything. What is kept was passed on, and the other way round.
    async fn listen(
        &mut self,
        provider: &dyn ModelProvider,
        options: ChatOptions,
        watcher: &mpsc::Sender<AgentEvent>,
    ) -> TurnEnding {
        let mut stream = match provider.chat(options).await {
            Ok(stream) => stream,
            Err(error) => return TurnEnding::Failed { error: bounds::flatten_error(error) },
        };
        while let Some(event) = stream.next().await {
            self.bytes = self.bytes.saturating_add(event_bytes(&event).max(MIN_EVENT_BYTES));
            if self.bytes > MAX_TURN_BYTES {
                return failed(format!("the model has said more than {MAX_TURN_BYTES} bytes in one turn"));
            }
            match event {
                StreamEvent::Text { value } if value.is_empty() => {}
                StreamEvent::Text { value } => {
                    // The room comes first: a wish to stop while waiting for it must not lose what is kept already.
                    let room = watcher.reserve().await;
                    self.keep_text(&value);
                    if let Ok(room) = room {
                        room.send(AgentEvent::Text { value });
                    }
                }
                StreamEvent::Usage(usage) => {
                    self.events.retain(|event| !matches!(event, StreamEvent::Usage(_)));
                    self.events.push(StreamEvent::Usage(usage));
                }
                StreamEvent::Error { error } => {
                    return TurnEnding::Failed { error: bounds::flatten_error(error) };
                }
                StreamEvent::End { reason } => {
                    self.events.push(StreamEvent::End { reason });
                    return TurnEnding::Complete;
                }
                StreamEvent::ToolCall { tool_name, call_id, arguments } => {
                    let arguments = bounds::flatten(arguments);
                    self.events.push(StreamEvent::ToolCall { tool_name, call_id, arguments });
                }
                StreamEvent::Opaque { provider, value } => {
                    if bounds::is_too_deep(&value) {
                        return failed(
                            "the model's provider sent a block that is nested too deeply".to_owned(),
                        );
                    }
                    self.events.push(StreamEvent::Opaque { provider, value });
                }
                // Results are ours to give.
                StreamEvent::ToolResult { .. } => {}
            }
        }
        failed("the stream of the model stopped without its end".to_owned())
    }

    fn keep_text(&mut self, value: &str) {
        match self.events.last_mut() {
            Some(StreamEvent::Text { value: before }) => before.push_str(value),
            _ => self.events.push(StreamEvent::Text { value: value.to_owned() }),
        }
    }
}

fn failed(message: String) -> TurnEnding {
    TurnEnding::Failed { error: ToolError::new(Code::Provider, message) }
}

/// Makes a call. One that is not wanted any more ends soon, unless it takes effect already.
async fn made(tools: &dyn ToolCaller, call: ToolCall, context: CallContext, stop: StopSignal) -> CallOutcome {
    let (mut listener, watched) = (stop.clone(), stop);
    let unwanted: Cancellation<'_> = Box::pin(async move { listener.reached(StopLevel::Now).await });
    settled(tools.call(call, context, unwanted).await, watched.level())
}

fn settled(record: CallRecord, level: StopLevel) -> CallOutcome {
    if level == StopLevel::Now && record.cancelled && record.execution != Execution::Unknown {
        return cancelled(record.execution);
    }
    let verdict = record.verdict();
    let (files, files_omitted) = bounds::fit_files(record.files);
    CallOutcome {
        result: bounds::fit_result(record.result),
        verdict,
        execution: Some(record.execution),
        recorded: None,
        duration_us: record.duration_us,
        files,
        files_omitted,
        unapplied: false,
    }
}

/// Arguments that were not JSON never reach a tool that would take a text.
fn refuse(tool: &str) -> CallOutcome {
    let message = format!("the arguments of `{tool}` are a text and no JSON object; nothing ran");
    unmade(
        CallVerdict::Invalid,
        Execution::NotStarted,
        ToolError::new(Code::Validation, message).help("write the arguments as one JSON object"),
    )
}

fn cancelled(execution: Execution) -> CallOutcome {
    let error = ToolError::new(
        Code::Runtime,
        "the call was cancelled before it ended, because the user stopped the session",
    )
    .help("look at what it would have changed before you make it again");
    unmade(CallVerdict::Cancelled, execution, error)
}

/// A call that has not ended though it is no longer waited for.
fn abandoned() -> CallOutcome {
    let seconds = CANCEL_PATIENCE.as_secs();
    let message = format!(
        "the call was cancelled, because the user stopped the session, and had not ended after {seconds} seconds: what it has done is not known"
    );
    let error = ToolError::new(Code::Runtime, message)
        .help("look at what it would have changed, and make it again only if it has not happened")
        .of_unknown_outcome();
    unmade(CallVerdict::Cancelled, Execution::Unknown, error)
}

fn unmade(verdict: CallVerdict, execution: Execution, error: ToolError) -> CallOutcome {
    CallOutcome {
        result: ToolResult::Failed(error),
        verdict,
        execution: Some(execution),
        recorded: None,
        duration_us: 0,
        files: Vec::new(),
        files_omitted: 0,
        unapplied: false,
    }
}

/// What the records say of a call whose process was killed.
fn recovered(fate: RecoveredOutcome) -> CallOutcome {
    let RecoveredOutcome::Recorded { outcome } = fate else {
        let error = ToolError::new(
            Code::Runtime,
            "the session was killed while this call ran, and it left no record: what it has done is not known",
        )
        .help("look at what it would have changed, and make it again only if it has not happened")
        .of_unknown_outcome();
        return unmade(CallVerdict::Recovered, Execution::Unknown, error);
    };
    // The entry of the audit may be there as a whole, or its outcome alone.
    let inner = outcome.get("outcome").unwrap_or(&outcome);
    let word = |name: &str| inner.get(name).and_then(Value::as_str);
    let files = inner.get("files").cloned().unwrap_or_default();
    let files: Vec<FileEffect> = serde_json::from_value(files).unwrap_or_default();
    let duration_us = inner.get("durationUs").and_then(Value::as_u64).unwrap_or(0);
    let result = if inner.get("ok").and_then(Value::as_bool) == Some(true) {
        let why =
            "the session was killed after this call had ended; its answer is lost, and this is its record";
        ToolResult::Done(json!({ "recovered": why, "record": bounds::flatten(outcome.clone()) }))
    } else {
        let code = word("errorCode").and_then(|name| Code::ALL.iter().find(|code| code.as_str() == name));
        let message = word("message").unwrap_or("its record does not say why it failed");
        ToolResult::Failed(
            ToolError::new(code.copied().unwrap_or(Code::Runtime), message.to_owned())
                .detail("recovered", bounds::flatten(outcome.clone())),
        )
    };
    let (files, files_omitted) = bounds::fit_files(files);
    let typed = |name: &str| outcome.get(name).cloned();
    CallOutcome {
        result,
        verdict: CallVerdict::Recovered,
        execution: typed("execution").and_then(|word| serde_json::from_value(word).ok()),
        recorded: typed("verdict").and_then(|word| serde_json::from_value(word).ok()),
        duration_us,
        files,
        files_omitted,
        unapplied: false,
    }
}
