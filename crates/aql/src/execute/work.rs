//! One attempt: the call or the agent's work, until it has ended or was taken back.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use serde_json::Value;
use tgp_contract::{AgentTask, CallContext, CapabilityToken, Code, ToolCall, ToolError, ToolResult, Usage};

use super::block::Level;
use super::bounds;
use super::composed::timed_out;
use super::effect::{Came, Miss, MissKind};
use super::meter::Used;
use super::past::MISMATCH;
use super::path::Here;
use super::request::{Request, json_type};
use super::run::{Run, was_cancelled};
use crate::types::spell;
use crate::{Mismatch, Step, Type};

/// How often an agent is told in one attempt what is wrong with its answer.
const MAX_CORRECTIONS: u32 = 2;
/// How long a call that is not wanted any more may take to say whether it has happened.
const PATIENCE: Duration = Duration::from_secs(30);

/// Completes when an attempt is not wanted any more.
type Stop<'a> = Shared<BoxFuture<'a, ()>>;

impl<'p> Run<'p> {
    pub(super) async fn attempt(
        &self,
        level: &Level<'p>,
        step: &Step,
        here: &Here,
        request: &Request,
        call: &str,
        token: Option<CapabilityToken>,
    ) -> Came {
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
        let mut used = Used::default();
        let result = match request {
            Request::Call { tool, arguments, part } => {
                let call = ToolCall { id: call.to_owned(), tool: tool.clone(), arguments: arguments.clone() };
                self.call(step, call, *part, token, &stop).await
            }
            Request::Agent(task) => {
                let task = AgentTask { session: call.to_owned(), token, ..task.as_ref().clone() };
                self.agent(level, step, task, &stop, &mut used).await
            }
        };
        // What was taken back has either run out of its own time or was stopped with everything around it.
        let result = result.map_err(|miss| match (miss.kind, timeout) {
            (MissKind::Cancelled, Some(time)) if !level.scope.is_stopped() => {
                Miss { error: timed_out(&here.path, time), kind: MissKind::TimedOut }
            }
            _ => miss,
        });
        Came { result, used }
    }

    async fn call(
        &self,
        step: &Step,
        call: ToolCall,
        part: Option<&'static str>,
        token: Option<CapabilityToken>,
        stop: &Stop<'_>,
    ) -> Result<Value, Miss> {
        let context = CallContext {
            actor: self.options.actor.clone(),
            session: self.options.id.clone(),
            consent: self.options.consent,
            dry_run: false,
            depth: 0,
            token,
        };
        let name = call.tool.clone();
        let work = self.ports.tools.call(call, context, Box::pin(stop.clone()));
        let record = awaited(work, stop).await?;
        self.count_files(record.files);
        let data = match record.result {
            ToolResult::Done(data) => data,
            ToolResult::Failed(error) => return Err(Miss::of(error, stop)),
        };
        let value = match (part, data) {
            (None, data) => data,
            (Some(part), Value::Object(mut fields)) if fields.contains_key(part) => {
                fields.swap_remove(part).unwrap_or_default()
            }
            // A forged tool that returns nothing has no result.
            (Some("result"), Value::Object(_)) => Value::Null,
            (Some(part), _) => {
                let message = format!("`{name}` answered without `{part}`");
                return Err(Miss { error: ToolError::new(Code::Internal, message), kind: MissKind::Failed });
            }
        };
        bounds::check(&value).map_err(|error| Miss { error, kind: MissKind::Failed })?;
        match step.checked.as_ref().map(|ty| ty.check(&value)) {
            Some(Err(mismatch)) => Err(misfit(&mismatch)),
            _ => Ok(value),
        }
    }

    /// An agent's work, and its corrections.
    async fn agent(
        &self,
        level: &Level<'p>,
        step: &Step,
        mut task: AgentTask,
        stop: &Stop<'_>,
        used: &mut Used,
    ) -> Result<Value, Miss> {
        let mut corrections = 0;
        loop {
            // What this attempt has used is counted when it ends, and must not be given out twice.
            task.max_tokens = match level.meter.tokens_left() {
                Ok(left) => left.map(|left| left.saturating_sub(used.tokens)),
                Err(exhausted) => return Err(Miss { error: exhausted.error, kind: MissKind::Failed }),
            };
            if task.max_tokens == Some(0) {
                let error = ToolError::new(
                    Code::Budget,
                    "no tokens are left of the budget to correct the answer with",
                )
                .detail("budget", "tokens")
                .help("give the query a larger `budget(tokens: …)`");
                return Err(Miss { error, kind: MissKind::Failed });
            }
            let work = self.ports.agents.work(task.clone(), Box::pin(stop.clone()));
            let done = match awaited(work, stop).await? {
                Ok(done) => done,
                Err(error) => {
                    let (usage, calls) = used_by(&error);
                    used.add(usage, calls);
                    return Err(Miss::of_agent(error, stop));
                }
            };
            used.add(done.usage, done.calls);
            self.count_files(done.files);
            let mismatch = match answer(done.answer, json_type(step)) {
                Ok(value) => {
                    return match bounds::check(&value) {
                        Ok(_) => Ok(value),
                        Err(error) => Err(Miss { error, kind: MissKind::Failed }),
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
async fn awaited<T>(work: impl Future<Output = T>, stop: &Stop<'_>) -> Result<T, Miss> {
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
                .detail("outcome", "unknown")
                .help("look at what it would have changed before it is made again");
            Err(Miss { error, kind: MissKind::Unknown })
        }
    }
}

impl Miss {
    /// A call may say of itself that it was cancelled, so that counts only when it was.
    fn of(error: ToolError, stop: &Stop<'_>) -> Self {
        let says = |name: &str, value: Value| error.details.get(name) == Some(&value);
        let kind = if says("outcome", Value::from("unknown")) {
            MissKind::Unknown
        } else if stop.peek().is_some() && says("cancelled", Value::Bool(true)) {
            return Self { error: was_cancelled(), kind: MissKind::Cancelled };
        } else {
            MissKind::Failed
        };
        Self { error, kind }
    }

    /// Whatever an agent says after it was told to stop, it stopped because of that.
    fn of_agent(error: ToolError, stop: &Stop<'_>) -> Self {
        match stop.peek() {
            Some(()) => Self { error: was_cancelled(), kind: MissKind::Cancelled },
            None => Self { error, kind: MissKind::Failed },
        }
    }
}

impl Used {
    fn add(&mut self, usage: Usage, calls: u64) {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
        self.calls = self.calls.saturating_add(calls);
    }
}

fn used_by(error: &ToolError) -> (Usage, u64) {
    let usage = error.details.get("usage").cloned().and_then(|usage| serde_json::from_value(usage).ok());
    let calls = error.details.get("calls").and_then(Value::as_u64);
    (usage.unwrap_or_default(), calls.unwrap_or(0))
}

/// The value in an agent's last words.
fn answer(text: String, ty: Option<&Type>) -> Result<Value, Mismatch> {
    let Some(ty) = ty else { return Ok(Value::String(text)) };
    let said = unfenced(text.trim());
    match serde_json::from_str::<Value>(said) {
        Ok(value) => match ty.check(&value) {
            Err(_) if takes_words(ty) && ty.check(&Value::from(said)).is_ok() => Ok(Value::from(said)),
            checked => checked.map(|()| value),
        },
        // One of several texts is understood without its quotes as well.
        Err(_) if takes_words(ty) && ty.check(&Value::from(said)).is_ok() => Ok(Value::from(said)),
        Err(error) => {
            Err(Mismatch { path: String::new(), expected: spell(ty), found: format!("no JSON ({error})") })
        }
    }
}

fn takes_words(ty: &Type) -> bool {
    match ty {
        Type::String | Type::Choice(_) | Type::Null => true,
        Type::OneOf(types) => types.iter().all(takes_words),
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

fn misfit(mismatch: &Mismatch) -> Miss {
    let error = ToolError::new(Code::Validation, format!("the value does not fit its type: {mismatch}"))
        .detail(
            MISMATCH,
            serde_json::json!({ "path": mismatch.path, "expected": mismatch.expected, "found": mismatch.found }),
        )
        .help("change what the step is asked for, or its type after `as`");
    Miss { error, kind: MissKind::Misfit }
}
