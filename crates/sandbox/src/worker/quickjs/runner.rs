//! One run: start the tool, turn the crank until its promise settles, report.

use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Error, Function, Promise, Result, TypedArray, Value};
use serde_json::json;

use super::QuickJs;
use super::{call_names, modules};
use crate::protocol::{
    CallReply, Failure, FailureKind, LogLevel, RelatedErrors, ReplyValue, RunOutcome, RunRequest, ToWorker,
    WorkerStats, read_blocking,
};
use crate::worker::host::{Host, without_lone_surrogates};

pub(super) fn run(engine: &QuickJs, host: &Rc<Host>, mut request: RunRequest) -> RunOutcome {
    host.begin(&request);
    engine.sampler.begin(Duration::from_micros(request.cpu_us));
    engine.set_stack_bytes(usize::try_from(request.stack_bytes).unwrap_or(usize::MAX));
    modules::register(std::mem::take(&mut request.modules));
    let result = if modules::kind_of(&request.entry).is_none() {
        Err(failure(FailureKind::BadProgram, format!("the program has no module `{}`", request.entry)))
    } else {
        engine.context.with(|ctx| drive(&ctx, engine, host, &request))
    };
    // Whatever the tool made of a limit error, the mark the limit left decides.
    let result = match host.stop_reason() {
        Some((kind, message)) => {
            let (mut stack, stop) = engine.sampler.take();
            if stack.is_empty() && host.has_refused_call() {
                // It has the lowest number, so that the core takes it for the oldest one.
                stack = engine.context.with(|ctx| waiting_stack(&ctx, engine));
            }
            Err(Failure { stack, stop: Box::new(stop), ..failure(kind, message) })
        }
        None => result,
    };
    let stats = WorkerStats {
        cpu_us: u64::try_from(host.cpu_used().as_micros()).unwrap_or(u64::MAX),
        heap_peak_bytes: host.heap.peak() as u64,
    };
    RunOutcome { result, stats }
}

fn failure(kind: FailureKind, message: String) -> Failure {
    let (name, stack) = (String::new(), String::new());
    Failure { kind, name, message, stack, code: None, related: Box::default(), stop: Box::default() }
}

fn drive(
    ctx: &Ctx<'_>,
    engine: &QuickJs,
    host: &Rc<Host>,
    request: &RunRequest,
) -> std::result::Result<String, Failure> {
    let Ok(promise) = start(ctx, engine, request) else {
        return Err(thrown(ctx, engine, ctx.catch()));
    };
    loop {
        run_jobs(ctx, host)?;
        match promise.state() {
            PromiseState::Resolved => {
                let json = match promise.result::<String>() {
                    Some(Ok(json)) => within_cap(json, host)?,
                    _ => return Err(failure(FailureKind::Thrown, "the result is not valid text".to_owned())),
                };
                // What the tool has begun belongs to its run, awaited or not, and so does what follows from it. Only a
                // request that changes nothing and lost a race is dropped with the run.
                while host.has_calls_to_await() {
                    wait_for_something(ctx, engine, host)?;
                    run_jobs(ctx, host)?;
                }
                warn_of_timers(engine, host);
                return lost(ctx, engine).map_or(Ok(json), Err);
            }
            PromiseState::Rejected => {
                let error = match promise.result::<Value>() {
                    Some(Err(Error::Exception)) => ctx.catch(),
                    _ => Value::new_undefined(ctx.clone()),
                };
                return Err(thrown(ctx, engine, error));
            }
            PromiseState::Pending => {}
        }
        if !wait_for_something(ctx, engine, host)? {
            // The error that keeps it waiting says more than that it waits.
            if let Some(failure) = lost(ctx, engine) {
                return Err(failure);
            }
            let message = "the tool waits for a promise that nothing can settle".to_owned();
            return Err(failure(FailureKind::NeverSettles, message));
        }
    }
}

/// What a timer would have done is not done when the run ends before it.
fn warn_of_timers(engine: &QuickJs, host: &Host) {
    let text = match engine.timers.pending() {
        0 => return,
        1 => "1 timer was still pending when the run ended; await what it does, or clear it".to_owned(),
        more => {
            format!("{more} timers were still pending when the run ended; await what they do, or clear them")
        }
    };
    host.log(LogLevel::Warn, text);
}

fn run_jobs(ctx: &Ctx<'_>, host: &Host) -> std::result::Result<(), Failure> {
    host.next_job();
    while ctx.execute_pending_job() {
        host.next_job();
        if host.must_stop() {
            break;
        }
    }
    // The mark that the limit has left says which one it was.
    if host.must_stop() { Err(failure(FailureKind::CpuTime, String::new())) } else { Ok(()) }
}

/// The first failure that nobody awaited.
fn lost(ctx: &Ctx<'_>, engine: &QuickJs) -> Option<Failure> {
    let error = engine.rejections.first(ctx)?;
    let failure = thrown(ctx, engine, error);
    let message = format!("unhandled promise rejection: {}", failure.message);
    Some(Failure { message, ..failure })
}

fn start<'js>(ctx: &Ctx<'js>, engine: &QuickJs, request: &RunRequest) -> Result<Promise<'js>> {
    let environment: Option<serde_json::Map<String, serde_json::Value>> = (!request.call_default)
        .then(|| request.environment.iter().map(|(name, value)| (name.clone(), json!(value))).collect());
    let options = json!({
        "seed": request.seed,
        "seeded": request.seeded,
        "clock": request.frozen_clock_ms,
        "environment": environment,
    });
    let start = engine.prelude.start.clone().restore(ctx)?;
    start.call((
        request.entry.as_str(),
        request.arguments.as_str(),
        request.call_default,
        options.to_string(),
    ))
}

/// The result as it is sent, measured where no tool code can reach: what it made of `length` does not count.
fn within_cap(json: String, host: &Host) -> std::result::Result<String, Failure> {
    let json = without_lone_surrogates(json);
    let cap = host.output_bytes.get();
    if json.len() as u64 > cap {
        let message = format!("the result has {} bytes, more than the output cap of {cap}", json.len());
        return Err(failure(FailureKind::Cap, message));
    }
    Ok(json)
}

/// Waits for a bridge reply or a due timer and hands it to the tool. False when there is nothing to wait for.
fn wait_for_something(
    ctx: &Ctx<'_>,
    engine: &QuickJs,
    host: &Rc<Host>,
) -> std::result::Result<bool, Failure> {
    if let Some(timer) = engine.timers.take_due() {
        fire(ctx, engine, host, timer)?;
        return Ok(true);
    }
    let wait = engine.timers.next_wait();
    if wait.is_none() && !host.has_open_calls() {
        return Ok(false);
    }
    take_reply(ctx, engine, host, wait);
    Ok(true)
}

/// Waits for a bridge reply and hands it to the tool.
fn take_reply(ctx: &Ctx<'_>, engine: &QuickJs, host: &Rc<Host>, wait: Option<Duration>) {
    if readable_within(host, wait) {
        let reply = read_blocking::<ToWorker>(&mut *host.connection.borrow_mut());
        match reply {
            Ok(ToWorker::Reply(reply)) => settle(ctx, engine, host, reply),
            Ok(ToWorker::Stop) => {
                engine.sampler.waits_at(waiting_stack(ctx, engine));
                host.end_wall_time();
            }
            // Anything else from the kernel at this point, or its end, means the run is over.
            _ => crate::worker::leave(),
        }
    }
}

/// Where the tool has made the oldest call that has no answer; empty when there is none.
fn waiting_stack(ctx: &Ctx<'_>, engine: &QuickJs) -> String {
    let stack = engine.prelude.waiting_stack.clone().restore(ctx);
    let stack = stack.and_then(|stack: Function| stack.call::<_, String>(()));
    stack.map(|stack| clipped(&stack)).unwrap_or_else(|_| {
        ctx.catch();
        String::new()
    })
}

fn readable_within(host: &Host, wait: Option<Duration>) -> bool {
    let connection = host.connection.borrow();
    let timeout = match wait {
        // Rounded up, so that a timer is due when the wait is over.
        Some(wait) => PollTimeout::try_from(wait + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX),
        None => PollTimeout::NONE,
    };
    let mut descriptors = [PollFd::new(connection.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut descriptors, timeout), Ok(ready) if ready > 0)
}

fn settle(ctx: &Ctx<'_>, engine: &QuickJs, host: &Host, reply: CallReply) {
    host.close_call(reply.call);
    let called = engine.prelude.settle.clone().restore(ctx).and_then(|settle: Function| match reply.result {
        Ok(ReplyValue::Json(json)) => settle.call::<_, ()>((reply.call, None::<String>, json)),
        // A copy, so that the engine owns the bytes and its cap counts them.
        Ok(ReplyValue::Bytes(bytes)) => TypedArray::<u8>::new_copy(ctx.clone(), bytes)
            .and_then(|bytes| settle.call::<_, ()>((reply.call, None::<String>, None::<String>, bytes))),
        Err((code, message)) => settle.call::<_, ()>((reply.call, Some(code.as_str()), message)),
    });
    if called.is_err() {
        ctx.catch();
    }
}

/// An exception in a timer's callback ends the run, as it ends a process elsewhere.
fn fire(ctx: &Ctx<'_>, engine: &QuickJs, host: &Host, timer: u64) -> std::result::Result<(), Failure> {
    let called = engine
        .prelude
        .fire_timer
        .clone()
        .restore(ctx)
        .and_then(|fire: Function| fire.call::<_, ()>((timer as f64,)));
    if called.is_err() {
        let error = ctx.catch();
        if !host.must_stop() {
            return Err(thrown(ctx, engine, error));
        }
    }
    Ok(())
}

/// The prelude clips what it reads off an error, but a tool can replace the function it does that with.
const MAX_ERROR_TEXT: usize = 32 * 1024;
const MAX_INNER_ERRORS: usize = 16;

fn clipped(text: &str) -> String {
    tgp_text::head(text, MAX_ERROR_TEXT).to_owned()
}

fn thrown<'js>(ctx: &Ctx<'js>, engine: &QuickJs, error: Value<'js>) -> Failure {
    let described = engine
        .prelude
        .describe
        .clone()
        .restore(ctx)
        .and_then(|describe: Function| describe.call::<_, String>((error,)))
        .ok()
        .and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    let Some(described) = described else {
        ctx.catch();
        return failure(FailureKind::Thrown, "the tool threw something that cannot be shown".to_owned());
    };
    let text =
        |key: &str| clipped(described.get(key).and_then(serde_json::Value::as_str).unwrap_or_default());
    let texts = |key: &str| {
        let listed = described.get(key).and_then(serde_json::Value::as_array);
        let lines = listed.into_iter().flatten().filter_map(serde_json::Value::as_str);
        lines.take(MAX_INNER_ERRORS).map(clipped).collect()
    };
    let code = Some(text("code")).filter(|code| !code.is_empty());
    let (name, stack) = (text("name"), text("stack"));
    let message = call_names::name_expression(&name, &text("message"), &stack);
    let related = Box::new(RelatedErrors { causes: texts("causes"), errors: texts("errors") });
    Failure { kind: FailureKind::Thrown, name, message, stack, code, related, stop: Box::default() }
}
