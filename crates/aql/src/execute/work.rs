//! One attempt: the call or the agent's work, until it has ended or was rolled back.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use serde_json::{Value, json};
use tgp_contract::{
    Actor, AgentFailure, AgentTask, BudgetUsage, CallContext, CapabilityToken, Code, Effect, Execution,
    SharedBudget, ToolCall, ToolError, ToolResult, Usage,
};

use super::block::BlockCtx;
use super::bounds;
use super::composed::timed_out;
use super::effect::{AttemptError, AttemptErrorKind, AttemptResult};
use super::effect_marker::EffectMarker;
use super::journal_index::MISMATCH;
use super::path::StepInstance;
use super::request::{Request, json_type};
use super::run::{Run, was_cancelled};
use crate::types::spell;
use crate::{Mismatch, QueryType, Step};

/// How often an agent is asked to correct its answer in one attempt.
const MAX_CORRECTIONS: u32 = 2;
/// How long a call that is not wanted any more may take to say whether it has happened.
const PATIENCE: Duration = Duration::from_secs(30);

/// Completes when an attempt is not wanted any more.
type Stop<'a> = Shared<BoxFuture<'a, ()>>;

/// One attempt at a step.
pub(super) struct Attempt<'a> {
    pub(super) step: &'a Step,
    pub(super) here: &'a StepInstance,
    pub(super) request: &'a Request,
    /// The id of the call, or the session of the agent.
    pub(super) call: &'a str,
    pub(super) number: u32,
    pub(super) token: Option<CapabilityToken>,
    /// What it uses is counted here.
    pub(super) part: &'a SharedBudget,
}

impl<'p> Run<'p> {
    /// # Errors
    /// When the journal did not take the line before the effect. Then nothing has happened.
    pub(super) async fn attempt(
        &self,
        level: &BlockCtx<'p>,
        one: Attempt<'_>,
    ) -> Result<AttemptResult, ToolError> {
        let Attempt { step, here, request, call, number, token, part } = one;
        let timeout = step.options.timeout;
        let stop: Stop<'_> = async move {
            match timeout {
                None => level.scope.stopped().await,
                Some(time) => tokio::select! {
                    biased;
                    () = level.scope.stopped() => {}
                    () = tokio::time::sleep(time) => {}
                },
            }
        }
        .boxed()
        .shared();
        let (result, has_effect) = match request {
            Request::Call { tool, arguments, part } => {
                let call = ToolCall { id: call.to_owned(), tool: tool.clone(), arguments: arguments.clone() };
                let marker = EffectMarker::new(&self.ports.journal, &here.path, number);
                let (result, has_changed) = self.call(step, call, *part, token, &stop, &marker).await;
                let is_effecting = marker.close()?;
                // Of a call that was given up before it took effect it is known that nothing has happened.
                let result = match result {
                    Err(AttemptError { kind: AttemptErrorKind::Unknown, .. }) if !is_effecting => {
                        Err(AttemptError { error: was_cancelled(), kind: AttemptErrorKind::Cancelled })
                    }
                    result => result,
                };
                (result, has_changed || (is_effecting && !self.only_reads(step)))
            }
            Request::Agent(task) => {
                let (session, allowance) = (call.to_owned(), Some(part.clone()));
                let task = AgentTask { session, token, allowance, ..task.as_ref().clone() };
                let can_change = self.can_change(&task.tools);
                let mut has_files = false;
                let result = self.agent(step, task, &stop, part, &mut has_files).await;
                (result, has_files || (can_change && part.spent().calls > 0))
            }
        };
        // What was rolled back has either run out of its own time or was stopped with everything around it.
        let result = result.map_err(|miss| match (miss.kind, timeout) {
            (AttemptErrorKind::Cancelled, Some(time)) if !level.scope.is_stopped() => {
                AttemptError { error: timed_out(&here.path, time), kind: AttemptErrorKind::TimedOut }
            }
            _ => miss,
        });
        Ok(AttemptResult { result, has_effect })
    }

    /// Whether one of these tools does more than to read.
    fn can_change(&self, tools: &[String]) -> bool {
        let only_reads = |tool: &String| {
            self.definitions.get(tool).is_some_and(|definition| definition.effect == Effect::Read)
        };
        !tools.iter().all(only_reads)
    }

    /// Who makes the calls of a step: the actor the run works for, and which step it is.
    pub(super) fn actor_of(&self, step: &Step) -> Actor {
        match &self.options.actor {
            Actor::Agent(name) => Actor::Agent(format!("{name}:{}.{}", self.query, step.name)),
            other => other.clone(),
        }
    }

    /// One call. Answers also whether it says that it has changed something.
    async fn call(
        &self,
        step: &Step,
        call: ToolCall,
        part: Option<&'static str>,
        token: Option<CapabilityToken>,
        stop: &Stop<'_>,
        marker: &EffectMarker,
    ) -> (Result<Value, AttemptError>, bool) {
        let context = CallContext {
            actor: self.actor_of(step),
            session: self.options.id.clone(),
            consent: self.options.consent,
            dry_run: false,
            depth: 0,
            token,
        };
        let name = call.tool.clone();
        let witness = marker.witness();
        let work = self.ports.tools.call_witnessed(call, context, Box::pin(stop.clone()), witness);
        let record = match awaited(work, stop).await {
            Ok(record) => record,
            Err(miss) => return (Err(miss), false),
        };
        let has_changed = !record.files.is_empty() || record.rows_changed.is_some_and(|rows| rows > 0);
        self.count_files(record.files);
        let result = match record.result {
            ToolResult::Done(data) => value_of(data, part, &name, step),
            ToolResult::Failed(error) => {
                let is_unknown = match record.execution {
                    Execution::Unknown => true,
                    // It took effect, though it is not recorded: making it again would repeat the effect.
                    Execution::Done => record.effect != Some(Effect::Read) && !record.context.dry_run,
                    Execution::NotStarted | Execution::RolledBack => false,
                };
                Err(AttemptError::of(error, is_unknown, record.cancelled, stop))
            }
        };
        if matches!(result, Err(AttemptError { kind: AttemptErrorKind::Unknown, .. })) {
            // A resumed run must ask the records, even where the hook was not called. A failure to write the line is
            // reported when the marker is closed.
            let _ = marker.give();
        }
        (result, has_changed)
    }

    /// An agent's work, and its corrections.
    async fn agent(
        &self,
        step: &Step,
        mut task: AgentTask,
        stop: &Stop<'_>,
        part: &SharedBudget,
        has_files: &mut bool,
    ) -> Result<Value, AttemptError> {
        let mut corrections = 0;
        loop {
            part.begin_turn().map_err(|error| AttemptError { error, kind: AttemptErrorKind::Failed })?;
            task.max_tokens = part.tokens_left();
            let before = part.spent();
            let work = self.ports.agents.work(task.clone(), Box::pin(stop.clone()));
            let done = match awaited(work, stop).await? {
                Ok(done) => done,
                Err(AgentFailure { error, usage, calls, files }) => {
                    settle(part, before, usage, calls);
                    *has_files |= !files.is_empty();
                    if error.code == Code::Budget {
                        // A bound of the agent's own may be what was left of the query's.
                        let _ = part.begin_turn();
                    }
                    return Err(AttemptError::of_agent(*error, stop));
                }
            };
            settle(part, before, done.usage, done.calls);
            *has_files |= !done.files.is_empty();
            self.count_files(done.files);
            let mismatch = match answer(done.answer, json_type(step)) {
                Ok(value) => {
                    return match bounds::check(&value) {
                        Ok(_) => Ok(value),
                        Err(error) => Err(AttemptError { error, kind: AttemptErrorKind::Unusable }),
                    };
                }
                Err(mismatch) => mismatch,
            };
            if corrections == MAX_CORRECTIONS {
                return Err(misfit(&mismatch));
            }
            corrections += 1;
            task.correction = Some(format!(
                "Your answer does not fit: {mismatch}. Answer again with one JSON value that fits the schema, and with nothing else."
            ));
        }
    }
}

/// Waits for a call, and for one that is not wanted any more only so long.
async fn awaited<T>(work: impl Future<Output = T>, stop: &Stop<'_>) -> Result<T, AttemptError> {
    let give_up = async {
        stop.clone().await;
        tokio::time::sleep(PATIENCE).await;
    };
    tokio::select! {
        biased;
        outcome = work => Ok(outcome),
        () = give_up => {
            let seconds = PATIENCE.as_secs();
            let message = format!("the call was cancelled, and had not ended {seconds} seconds later: what it has done is not known");
            let error = ToolError::new(Code::Runtime, message)
                .of_unknown_outcome()
                .help("look at what it would have changed before it is made again");
            Err(AttemptError { error, kind: AttemptErrorKind::Unknown })
        }
    }
}

impl AttemptError {
    fn of(error: ToolError, is_unknown: bool, cancelled: bool, stop: &Stop<'_>) -> Self {
        let kind = if is_unknown {
            AttemptErrorKind::Unknown
        } else if stop.peek().is_some() && (cancelled || error.is_of_cancellation()) {
            return Self { error: was_cancelled(), kind: AttemptErrorKind::Cancelled };
        } else {
            AttemptErrorKind::Failed
        };
        Self { error, kind }
    }

    /// Whatever an agent says after it was told to stop, it stopped because of that.
    fn of_agent(error: ToolError, stop: &Stop<'_>) -> Self {
        match stop.peek() {
            Some(()) => Self { error: was_cancelled(), kind: AttemptErrorKind::Cancelled },
            None => Self { error, kind: AttemptErrorKind::Failed },
        }
    }
}

/// The value of a step in the answer of its call.
fn value_of(data: Value, part: Option<&str>, tool: &str, step: &Step) -> Result<Value, AttemptError> {
    let value = match (part, data) {
        (None, data) => data,
        (Some(part), Value::Object(mut fields)) if fields.contains_key(part) => {
            fields.swap_remove(part).unwrap_or_default()
        }
        // A forged tool that returns nothing has no result.
        (Some("result"), Value::Object(_)) => Value::Null,
        (Some(part), _) => {
            let message = format!("`{tool}` answered without `{part}`");
            return Err(AttemptError {
                error: ToolError::new(Code::Internal, message),
                kind: AttemptErrorKind::Unusable,
            });
        }
    };
    bounds::check(&value).map_err(|error| AttemptError { error, kind: AttemptErrorKind::Unusable })?;
    match &step.checked {
        Some(ty) => ty.admit(value).map_err(|mismatch| misfit(&mismatch)),
        None => Ok(value),
    }
}

/// Counts what an agent says it has used and did not take from its allowance.
fn settle(part: &SharedBudget, before: BudgetUsage, usage: Usage, calls: u64) {
    let now = part.spent();
    let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
    part.add(BudgetUsage {
        tokens: tokens.saturating_sub(now.tokens.saturating_sub(before.tokens)),
        calls: calls.saturating_sub(now.calls.saturating_sub(before.calls)),
    });
}

/// The value in an agent's last words.
fn answer(text: String, ty: Option<&QueryType>) -> Result<Value, Mismatch> {
    let Some(ty) = ty else { return Ok(Value::String(text)) };
    let said = unfenced(text.trim());
    match serde_json::from_str::<Value>(said) {
        Ok(value) => match ty.admit(value) {
            Err(_) if takes_words(ty) && ty.check(&Value::from(said)).is_ok() => Ok(Value::from(said)),
            admitted => admitted,
        },
        // One of several texts is understood without its quotes as well.
        Err(_) if takes_words(ty) && ty.check(&Value::from(said)).is_ok() => Ok(Value::from(said)),
        Err(error) => {
            Err(Mismatch { path: String::new(), expected: spell(ty), found: format!("no JSON ({error})") })
        }
    }
}

fn takes_words(ty: &QueryType) -> bool {
    match ty {
        QueryType::String | QueryType::Choice(_) | QueryType::Null => true,
        QueryType::OneOf(types) => types.iter().all(takes_words),
        _ => false,
    }
}

/// The inside of a code fence, when all of the text is one.
fn unfenced(text: &str) -> &str {
    let inside = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inside.and_then(|inside| inside.split_once('\n')) {
        Some((language, body)) if !language.contains('`') => body.trim(),
        _ => text,
    }
}

fn misfit(mismatch: &Mismatch) -> AttemptError {
    let error = ToolError::new(Code::Validation, format!("the value does not fit its type: {mismatch}"))
        .detail(
            MISMATCH,
            json!({ "path": mismatch.path, "expected": mismatch.expected, "found": mismatch.found }),
        )
        .help("change what the step is asked for, or its type after `as`");
    AttemptError { error, kind: AttemptErrorKind::Misfit }
}
