//! One run from the kernel's side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::Code;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::bridge::{Bridge, answer, reply};
use super::pool::{UsedWorker, WarmWorker};
use super::process::WorkerProcess;
use super::run_error::{RunError, RunErrorKind, crash_error, explain, overrun_error};
use super::watch::{Overrun, Watch};
use super::{RunLimits, SandboxError};
use crate::protocol::{
    Attachment, FrameError, FromWorker, LOG_CUT_NOTE, LogLevel, ModuleCode, RunRequest, ToWorker, encode,
    read,
};

/// Bytes of answers a worker may leave unread before further answers become errors.
const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// How long a worker may take to report where it waits, when its time is up.
const STOP_GRACE: Duration = Duration::from_millis(100);

/// Everything a worker needs to run one tool.
#[derive(Clone, Debug)]
pub struct Program {
    pub entry: String,
    pub modules: Vec<Arc<ModuleCode>>,
}

/// What the run is given.
#[derive(Clone, Debug)]
pub struct RunInput {
    pub arguments: Value,
    /// True: call the default export with the arguments. False: the default export is the result.
    pub call_default: bool,
    /// `process.env`, for a configuration file only.
    pub environment: Vec<(String, String)>,
}

/// How the run is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolRunOptions {
    pub limits: RunLimits,
    /// Makes `Math.random` and `crypto` repeat.
    pub seed: Option<u64>,
    /// Stops the clock at this moment, in milliseconds since the epoch.
    pub frozen_clock_ms: Option<f64>,
}

/// A line that a tool wrote with `console`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    pub level: LogLevel,
    pub text: String,
}

/// What a run has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunStats {
    pub cpu_ms: f64,
    pub wall_ms: f64,
    pub heap_peak_bytes: u64,
    pub bridge_calls: u32,
}

/// What a run left behind, whether it succeeded or not.
#[derive(Clone, Debug)]
pub struct ToolRunReport {
    pub result: Result<Value, RunError>,
    pub logs: Vec<LogLine>,
    pub stats: RunStats,
}

/// Runs `program` on `worker`, which must fit it. The worker is used up whatever happens; the process comes back to be ended.
pub(super) async fn run(
    worker: WarmWorker,
    program: &Program,
    input: RunInput,
    options: ToolRunOptions,
    bridge: &dyn Bridge,
) -> Result<(ToolRunReport, UsedWorker), SandboxError> {
    let request = request(program, input, options, &worker);
    let WorkerProcess { mut child, connection, .. } = worker.process;
    let mut connection = UnixStream::from_std(connection).map_err(SandboxError::Start)?;
    let started = Instant::now();
    let mut watch = Watch::start(child.cpu_clock(), options.limits.cpu, options.limits.wall);
    let mut conversation = Conversation { logs: Vec::new(), log_bytes: 0, calls: 0, bridge, options };
    let ending = conversation.hold(&mut connection, &ToWorker::Run(Box::new(request)), &mut watch).await;
    let (result, stats) = match ending {
        Ending::Done(outcome) => {
            let stats = RunStats {
                cpu_ms: outcome.stats.cpu_us as f64 / 1000.0,
                heap_peak_bytes: outcome.stats.heap_peak_bytes,
                ..RunStats::default()
            };
            (outcome.result.map_err(|failure| explain(failure, &options.limits)), stats)
        }
        Ending::Overrun(overrun) => {
            let stats = RunStats { cpu_ms: watch.cpu_used().as_secs_f64() * 1000.0, ..RunStats::default() };
            child.kill();
            (Err(overrun_error(overrun, &options.limits)), stats)
        }
        Ending::Lost(error) => {
            let stats = RunStats { cpu_ms: watch.cpu_used().as_secs_f64() * 1000.0, ..RunStats::default() };
            // The worker closed its end first; its death follows at once.
            let status = child.await_end();
            (Err(crash_error(&error, status)), stats)
        }
    };
    let stats = RunStats {
        wall_ms: started.elapsed().saturating_sub(bridge.waited()).as_secs_f64() * 1000.0,
        bridge_calls: conversation.calls,
        ..stats
    };
    let result = result.and_then(|json| parse_result(&json, &options.limits));
    let pid = child.pid().as_raw();
    tracing::debug!(
        target: "worker",
        pid,
        tool = program.entry.as_str(),
        cpu_ms = stats.cpu_ms,
        wall_ms = stats.wall_ms,
        bridge_calls = stats.bridge_calls,
        failure = result.as_ref().err().map(|error| tracing::field::debug(error.kind)),
        "run ended"
    );
    if let Err(error) = &result
        && error.is_of_worker()
    {
        tracing::warn!(
            target: "worker",
            pid,
            tool = program.entry.as_str(),
            cause = ?error.kind,
            "worker failed: {}",
            error.message
        );
    }
    let used = UsedWorker { _child: child, _connection: Some(connection) };
    Ok((ToolRunReport { result, logs: conversation.logs, stats }, used))
}

/// The worker has made sure of the size, unless somebody has taken it over.
fn parse_result(json: &str, limits: &RunLimits) -> Result<Value, RunError> {
    if json.len() as u64 > limits.output_bytes {
        return Err(RunError::new(
            RunErrorKind::Crashed,
            "the worker's result is larger than its cap".to_owned(),
        ));
    }
    serde_json::from_str(json).map_err(|error| match error.to_string() {
        text if text.starts_with("recursion limit") => {
            RunError::new(RunErrorKind::Cap, "the result is nested too deeply".to_owned())
        }
        text => RunError::new(RunErrorKind::Crashed, format!("the worker's result is not JSON: {text}")),
    })
}

fn request(program: &Program, input: RunInput, options: ToolRunOptions, worker: &WarmWorker) -> RunRequest {
    let limits = options.limits;
    let modules = program
        .modules
        .iter()
        .filter(|module| !worker.modules.contains_key(&module.id))
        .map(|module| ModuleCode::clone(module))
        .collect();
    RunRequest {
        entry: program.entry.clone(),
        modules,
        arguments: input.arguments.to_string(),
        call_default: input.call_default,
        environment: input.environment,
        heap_bytes: limits.heap_bytes,
        cpu_us: u64::try_from(limits.cpu.as_micros()).unwrap_or(u64::MAX),
        wall_us: u64::try_from(limits.wall.as_micros()).unwrap_or(u64::MAX),
        stack_bytes: limits.stack_bytes,
        output_bytes: limits.output_bytes,
        log_lines: limits.log_lines,
        log_bytes: limits.log_bytes,
        bridge_calls: limits.bridge_calls,
        seed: seed_words(options.seed.unwrap_or_else(random_seed)),
        seeded: options.seed.is_some(),
        frozen_clock_ms: options.frozen_clock_ms,
    }
}

/// SplitMix64, which fills a generator's state well even from small seeds.
fn seed_words(seed: u64) -> [u32; 4] {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let (first, second) = (next(), next());
    [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32]
}

fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library keys its hasher from the operating system's randomness.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

enum Ending {
    Done(crate::protocol::RunOutcome),
    Overrun(Overrun),
    Lost(FrameError),
}

/// The exchange of frames during a run.
struct Conversation<'a> {
    logs: Vec<LogLine>,
    log_bytes: u64,
    calls: u32,
    bridge: &'a dyn Bridge,
    options: ToolRunOptions,
}

impl Conversation<'_> {
    async fn hold(&mut self, connection: &mut UnixStream, request: &ToWorker, watch: &mut Watch) -> Ending {
        let frame = match encode(request) {
            Ok(frame) => frame,
            Err(error) => return Ending::Lost(error),
        };
        let (reader, mut writer) = connection.split();
        // Most frames are small, and a system call more for the length of each is felt.
        let mut reader = BufReader::new(reader);
        let (incoming, mut inbox) = mpsc::channel(16);
        // Reading a frame must not be cut short, so it happens in a future of its own.
        let reading = async move {
            loop {
                let message = read::<FromWorker>(&mut reader).await;
                let last = message.is_err() || matches!(message, Ok(FromWorker::Done(_)));
                if incoming.send(message).await.is_err() || last {
                    return;
                }
            }
        };
        // So does writing: a worker that does not read its answers must not keep the kernel from reading its calls.
        let (outbox, mut outgoing) = mpsc::unbounded_channel::<Vec<u8>>();
        let waiting = AtomicUsize::new(0);
        let writing = async {
            while let Some(frame) = outgoing.recv().await {
                let sent = writer.write_all(&frame).await;
                waiting.fetch_sub(frame.len(), Ordering::Relaxed);
                // A worker that is gone is noticed by reading, after everything it had said before.
                if sent.is_err() {
                    return;
                }
            }
        };
        let post = |frame: Vec<u8>| {
            waiting.fetch_add(frame.len(), Ordering::Relaxed);
            // The receiver lives as long as this conversation.
            let _ = outbox.send(frame);
        };
        tokio::pin!(reading, writing);
        let (mut reading_ended, mut writing_ended) = (false, false);
        let mut open = FuturesUnordered::new();
        let mut handles = BTreeMap::<u32, (AbortHandle, usize)>::new();
        post(frame);
        let mut stop_by: Option<Instant> = None;
        loop {
            // Looked at in every turn: a tool that keeps the kernel busy with calls must not outrun its limits.
            let waited = self.bridge.waited();
            let look = match (watch.overrun(waited), stop_by) {
                // A worker that does not run code can say for what it waits.
                (Some(Overrun::WallTime), None) => {
                    post(stop_frame());
                    let end = Instant::now() + STOP_GRACE;
                    stop_by = Some(end);
                    end
                }
                (Some(Overrun::WallTime), Some(end)) if Instant::now() < end => end,
                (Some(overrun), _) => return Ending::Overrun(overrun),
                (None, _) => watch.next_look(waited),
            };
            let look = tokio::time::Instant::from_std(look);
            tokio::select! {
                biased;
                message = inbox.recv() => match message {
                    // What comes after the deadline is too late, whatever it is.
                    Some(Ok(FromWorker::Done(outcome))) if stop_by.is_some() && !outcome.is_stopped() => {
                        return Ending::Overrun(Overrun::WallTime);
                    }
                    Some(Ok(FromWorker::Done(outcome))) => return Ending::Done(outcome),
                    Some(Ok(FromWorker::Log { .. } | FromWorker::Call { .. })) if stop_by.is_some() => {}
                    Some(Ok(FromWorker::Log { level, text })) => {
                        // The worker keeps these caps itself, unless somebody has taken it over.
                        self.log_bytes = self.log_bytes.saturating_add(text.len() as u64);
                        let RunLimits { log_lines, log_bytes, .. } = self.options.limits;
                        let note = LOG_CUT_NOTE.len() as u64;
                        if self.logs.len() as u64 > log_lines || self.log_bytes > log_bytes + note {
                            return Ending::Lost(FrameError::Closed);
                        }
                        self.logs.push(LogLine { level, text });
                    }
                    Some(Ok(FromWorker::Call { call, name, arguments, bytes })) => {
                        let size = arguments.len() + bytes.as_ref().map_or(0, |Attachment(bytes)| bytes.len());
                        self.calls = self.calls.saturating_add(1);
                        let RunLimits { bridge_calls, output_bytes, .. } = self.options.limits;
                        if u64::from(self.calls) > bridge_calls || size as u64 > output_bytes {
                            return Ending::Lost(FrameError::Closed);
                        }
                        let held: usize = handles.values().map(|(_, size)| size).sum();
                        if held + size > MAX_WAITING_BYTES {
                            let text = "too many calls with large arguments are open; await some first";
                            post(reply(call, Err((Code::Runtime, text.to_owned()))));
                            continue;
                        }
                        let bridge = self.bridge;
                        let (handle, registration) = AbortHandle::new_pair();
                        handles.insert(call, (handle, size));
                        let work = async move { (call, answer(bridge, &name, &arguments, bytes).await) };
                        open.push(Abortable::new(work, registration));
                    }
                    Some(Ok(FromWorker::Cancel { call })) => {
                        if let Some((handle, _)) = handles.remove(&call) {
                            handle.abort();
                        }
                    }
                    Some(Ok(FromWorker::Locked(_) | FromWorker::Warm | FromWorker::StartFailed(_))) | None => return Ending::Lost(FrameError::Closed),
                    Some(Err(error)) => return Ending::Lost(error),
                },
                () = &mut reading, if !reading_ended => { reading_ended = true; }
                () = &mut writing, if !writing_ended => { writing_ended = true; }
                Some(answered) = open.next(), if !open.is_empty() => {
                    // A call that the tool has cancelled gets no answer.
                    let Ok((call, result)) = answered else { continue };
                    handles.remove(&call);
                    let result = if waiting.load(Ordering::Relaxed) > MAX_WAITING_BYTES {
                        Err((Code::Runtime, "too many answers wait to be read; await some calls first".to_owned()))
                    } else {
                        result
                    };
                    post(reply(call, result));
                }
                () = tokio::time::sleep_until(look) => {}
            }
        }
    }
}

/// The frame that asks a worker to end.
fn stop_frame() -> Vec<u8> {
    encode(&ToWorker::Stop).unwrap_or_default()
}
