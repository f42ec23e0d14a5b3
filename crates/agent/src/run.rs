//! Starting a new session and resuming an old one.

use tgp_contract::{Code, TddState, ToolError};
use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::io::LoopError;
use crate::live::{Caller, LiveIo};
use crate::session::Session;
use crate::transcript::{PROMPT_VERSION, VERSION};
use crate::{
    AgentEvent, AgentLimits, AgentOptions, AgentPorts, Budgets, ResumeOptions, StopSignal, Summary,
    TranscriptLine, TranscriptLineKind,
};

/// A task is a message, no document.
const MAX_TASK_BYTES: usize = 1 << 20;
/// With less a model cannot even read the prompt.
const MIN_CONTEXT_TOKENS: u64 = 1024;

/// Works on a task until the model is done, a bound is reached or a stop is requested.
///
/// Events come in order and are waited for: `events` should be read until this returns. The last event, `End`, is left to
/// the caller, who may have something to add to the summary. A listener is optional: when the other end is gone, the
/// session continues without it.
///
/// # Errors
/// When the options cannot be right, and when the transcript cannot be kept. Everything else is an [`crate::Ending`].
pub async fn run(
    options: AgentOptions,
    ports: AgentPorts<'_>,
    events: mpsc::Sender<AgentEvent>,
    stop: StopSignal,
) -> Result<Summary, ToolError> {
    check_text("task", &options.task)?;
    let limits = check_bounds(&options.budgets, options.limits)?;
    let caller = Caller {
        session: options.session.clone(),
        actor: options.actor.clone(),
        consent: options.consent,
        token: options.token,
    };
    let first = TranscriptLineKind::Session {
        version: VERSION,
        prompt_version: PROMPT_VERSION,
        id: options.session,
        actor: options.actor,
        task: options.task,
        provider: ports.provider.name().to_owned(),
        model: options.model,
        system: options.system,
        tools: ports.tools.definitions(),
        mode: options.mode,
        state: TddState::Idle,
        budgets: options.budgets,
        limits,
    };
    let live = LiveIo::new(ports, caller, events, stop);
    let engine = Engine::begin(live, first).await.map_err(failure)?;
    engine.drive().await.map(|(summary, _)| summary).map_err(failure)
}

/// Resumes a session: after a kill at any point, after a stop, or with something more to do.
///
/// Calls that were not begun are made; reads that were begun are made again; what may have changed something is looked up
/// and never made a second time.
///
/// # Errors
/// `EINTEGRITY` when the lines are not a transcript, `EVALIDATION` when the session is done and no message was given,
/// and as [`run`].
pub async fn resume(
    past: Vec<TranscriptLine>,
    mut options: ResumeOptions,
    ports: AgentPorts<'_>,
    events: mpsc::Sender<AgentEvent>,
    stop: StopSignal,
) -> Result<Summary, ToolError> {
    let session = read(&past)?;
    drop(past);
    if let Some(message) = &options.message {
        check_text("message", message)?;
    }
    options.limits = check_bounds(&options.budgets, options.limits)?;
    if session.stopped && options.message.is_none() && session.has_ended() {
        let id = &session.head.id;
        return Err(ToolError::new(
            Code::Validation,
            format!("session `{id}` has ended; it continues only with a new message"),
        )
        .help(format!("say what is to be done next: `tgp run --resume {id} \"…\"`")));
    }
    let caller = Caller {
        session: session.head.id.clone(),
        actor: session.head.actor.clone(),
        consent: options.consent,
        token: options.token.clone(),
    };
    let provider = ports.provider.name().to_owned();
    let live = LiveIo::new(ports, caller, events, stop);
    let engine = Engine::go_on(live, session, provider, options).await.map_err(failure)?;
    engine.drive().await.map(|(summary, _)| summary).map_err(failure)
}

/// The state of a session after its lines.
fn read(past: &[TranscriptLine]) -> Result<Session, ToolError> {
    let Some((first, rest)) = past.split_first() else {
        return Err(ToolError::new(Code::NotFound, "the transcript is empty").help("begin another session"));
    };
    let mut session = Session::open(first)?;
    for line in rest {
        session.apply(line)?;
    }
    Ok(session)
}

fn failure(halt: LoopError) -> ToolError {
    match halt {
        LoopError::Failed(error) => error,
        LoopError::Ended | LoopError::Differs { .. } => {
            ToolError::new(Code::Internal, "a real session was compared with a recording")
        }
    }
}

fn check_text(field: &str, text: &str) -> Result<(), ToolError> {
    let fault = if text.trim().is_empty() {
        format!("the {field} is empty")
    } else if text.len() > MAX_TASK_BYTES {
        format!("the {field} has {} bytes, more than the {MAX_TASK_BYTES} allowed", text.len())
    } else {
        return Ok(());
    };
    let help = "say in a few sentences what is to be done; long texts belong into files of the project";
    Err(ToolError::new(Code::Validation, fault).detail("field", field).help(help))
}

/// The limits as a line can hold them, when they and the budgets can be right.
fn check_bounds(budgets: &Budgets, limits: AgentLimits) -> Result<AgentLimits, ToolError> {
    if limits.context_tokens < MIN_CONTEXT_TOKENS {
        let message = format!("a context of {} tokens is too small", limits.context_tokens);
        return Err(ToolError::new(Code::Config, message).help(format!(
            "set llm.contextTokens to what the model can read, at least {MIN_CONTEXT_TOKENS}"
        )));
    }
    let is_amount = |amount: f64| amount.is_finite() && amount >= 0.0;
    let prices_fit = limits.prices.is_none_or(|prices| prices.amounts().all(is_amount));
    if !prices_fit || !budgets.max_cost.is_none_or(is_amount) {
        return Err(ToolError::new(Code::Config, "a price or a bound on the cost is not an amount of money")
            .help("prices are for a million tokens, such as { input: 3, output: 15 }"));
    }
    Ok(AgentLimits { temperature: limits.temperature.filter(|degree| degree.is_finite()), ..limits })
}
