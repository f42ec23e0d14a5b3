//! What the engine's native functions may touch: the connection, the counters and the limits of the run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::quickjs::HeapMeter;
use crate::protocol::{
    Attachment, FailureKind, FrameError, FromWorker, LOG_CUT_NOTE, LogLevel, RunRequest, encode,
};

/// Whether a run waits for a call that its tool did not await.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallKind {
    /// The run ends when it has an answer.
    Awaited,
    /// The same, for a request that changes nothing, sent in the job of this number.
    Lookup(u32),
    /// A request that changes nothing and lost a race: it is cancelled at the end of the run.
    Released,
}

impl CallKind {
    fn of(name: &str, arguments: &str, job: u32) -> Self {
        if name == "fetch" && is_lookup(arguments) { Self::Lookup(job) } else { Self::Awaited }
    }
}

/// The part of a request that says whether it changes something at the server.
#[derive(serde::Deserialize)]
struct RequestMethod {
    #[serde(default)]
    method: Option<String>,
}

fn is_lookup(arguments: &str) -> bool {
    let request = serde_json::from_str::<(RequestMethod,)>(arguments);
    request.is_ok_and(|(request,)| match request.method.as_deref() {
        None => true,
        Some(method) => method.eq_ignore_ascii_case("GET") || method.eq_ignore_ascii_case("HEAD"),
    })
}

/// The connection and the books of one worker. A worker is single-threaded, so cells suffice.
pub(super) struct Host {
    pub(super) connection: RefCell<UnixStream>,
    pub(super) heap: Rc<HeapMeter>,
    cpu_start: Cell<Duration>,
    cpu_limit: Cell<Duration>,
    cpu_exceeded: Cell<bool>,
    started: Cell<Option<Instant>>,
    wall_limit: Cell<Duration>,
    wall_exceeded: Cell<bool>,
    /// As it was when the engine asked last.
    last_cpu_used: Cell<Duration>,
    violation: RefCell<Option<String>>,
    log_lines_left: Cell<u64>,
    log_bytes_left: Cell<u64>,
    log_is_cut: Cell<bool>,
    calls_left: Cell<u64>,
    calls_allowed: Cell<u64>,
    /// A call was refused by a cap.
    call_refused: Cell<bool>,
    next_call: Cell<u32>,
    /// Counts the jobs of the engine, so that requests of one job are known.
    job: Cell<u32>,
    /// Calls without an answer yet.
    open_calls: RefCell<BTreeMap<u32, CallKind>>,
    pub(super) output_bytes: Cell<u64>,
}

/// CPU time this process has used. It has one thread, and that thread's clock is exact where the process's clock only
/// moves with the scheduler's tick once a CPU limit is set.
fn cpu_now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::MAX, Duration::from)
}

impl Host {
    pub(super) fn new(connection: UnixStream, heap: Rc<HeapMeter>) -> Rc<Self> {
        Rc::new(Self {
            connection: RefCell::new(connection),
            heap,
            cpu_start: Cell::new(Duration::ZERO),
            cpu_limit: Cell::new(Duration::MAX),
            cpu_exceeded: Cell::new(false),
            started: Cell::new(None),
            wall_limit: Cell::new(Duration::MAX),
            wall_exceeded: Cell::new(false),
            last_cpu_used: Cell::new(Duration::ZERO),
            violation: RefCell::new(None),
            log_lines_left: Cell::new(u64::MAX),
            log_bytes_left: Cell::new(u64::MAX),
            log_is_cut: Cell::new(false),
            calls_left: Cell::new(0),
            calls_allowed: Cell::new(0),
            call_refused: Cell::new(false),
            next_call: Cell::new(1),
            job: Cell::new(0),
            open_calls: RefCell::default(),
            output_bytes: Cell::new(0),
        })
    }

    /// Starts the clocks and sets the caps of the run.
    pub(super) fn begin(&self, request: &RunRequest) {
        self.heap.lower_limit(usize::try_from(request.heap_bytes).unwrap_or(usize::MAX));
        self.log_lines_left.set(request.log_lines);
        self.log_bytes_left.set(request.log_bytes);
        self.calls_left.set(request.bridge_calls);
        self.calls_allowed.set(request.bridge_calls);
        self.output_bytes.set(request.output_bytes);
        self.cpu_start.set(cpu_now());
        self.cpu_limit.set(Duration::from_micros(request.cpu_us));
        self.wall_limit.set(Duration::from_micros(request.wall_us));
        self.started.set(Some(Instant::now()));
    }

    /// Starts the clock of a warm-up. A worker that exceeds it is marked for good.
    pub(super) fn begin_warm_up(&self, cpu: Duration) {
        self.cpu_start.set(cpu_now());
        self.cpu_limit.set(cpu);
    }

    pub(super) fn cpu_used(&self) -> Duration {
        cpu_now().saturating_sub(self.cpu_start.get())
    }

    /// True when the run must stop now. The engine asks this while it runs code.
    pub(super) fn must_stop(&self) -> bool {
        let used = self.cpu_used();
        self.last_cpu_used.set(used);
        if used > self.cpu_limit.get() {
            self.cpu_exceeded.set(true);
        }
        // After a call only the kernel knows how much of the time was a person's.
        let is_late = |started: Instant| started.elapsed() > self.wall_limit.get();
        if self.next_call.get() == 1 && self.started.get().is_some_and(is_late) {
            self.wall_exceeded.set(true);
        }
        self.cpu_exceeded.get()
            || self.wall_exceeded.get()
            || self.heap.exceeded()
            || self.violation.borrow().is_some()
    }

    /// The CPU time that the run had used when the engine asked last.
    pub(super) fn last_cpu_used(&self) -> Duration {
        self.last_cpu_used.get()
    }

    /// Why the run must stop. Memory comes first: a heap at its cap also burns time in the collector.
    pub(super) fn stop_reason(&self) -> Option<(FailureKind, String)> {
        if self.heap.exceeded() {
            return Some((FailureKind::Memory, String::new()));
        }
        if let Some(text) = self.violation.borrow().clone() {
            return Some((FailureKind::Cap, text));
        }
        if self.cpu_exceeded.get() {
            return Some((FailureKind::CpuTime, String::new()));
        }
        self.wall_exceeded.get().then(|| (FailureKind::WallTime, String::new()))
    }

    /// The kernel says that the time by the clock is up.
    pub(super) fn end_wall_time(&self) {
        self.wall_exceeded.set(true);
    }

    /// Marks the run as over its cap; the engine stops at its next check, whatever the tool catches.
    pub(super) fn violate(&self, text: String) {
        self.violation.borrow_mut().get_or_insert(text);
    }

    pub(super) fn send(&self, message: &FromWorker) -> Result<(), FrameError> {
        let frame = encode(message)?;
        self.connection.borrow_mut().write_all(&frame)?;
        Ok(())
    }

    pub(super) fn log(&self, level: LogLevel, text: String) {
        let lines = self.log_lines_left.get();
        let bytes = self.log_bytes_left.get();
        let size = text.len() as u64;
        if self.log_is_cut.get() {
            return;
        }
        if lines == 0 || size > bytes {
            // A tool that says too much has done nothing wrong; its last line says that there was more.
            self.log_is_cut.set(true);
            let text = LOG_CUT_NOTE.to_owned();
            self.send_or_die(&FromWorker::Log { level: LogLevel::Warn, text });
            return;
        }
        self.log_lines_left.set(lines - 1);
        self.log_bytes_left.set(bytes - size);
        self.send_or_die(&FromWorker::Log { level, text });
    }

    /// Sends one bridge call and gives its number, or 0 when the cap is reached.
    pub(super) fn call(&self, name: String, arguments: String, bytes: Option<Vec<u8>>) -> u32 {
        let arguments = without_lone_surrogates(arguments);
        let size = arguments.len() as u64 + bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
        let left = self.calls_left.get();
        self.call_refused.set(left == 0 || size > self.output_bytes.get());
        if left == 0 {
            let most = self.calls_allowed.get();
            self.violate(format!(
                "the tool made more than {most} `tgp.*` calls, which is the limit of sandbox.bridgeCalls"
            ));
            return 0;
        }
        if size > self.output_bytes.get() {
            let cap = self.output_bytes.get();
            self.violate(format!(
                "the arguments of `tgp.{name}` have {size} bytes, more than the {cap} of sandbox.outputBytes"
            ));
            return 0;
        }
        self.calls_left.set(left - 1);
        let call = self.next_call.get();
        self.next_call.set(call.saturating_add(1));
        self.open_calls.borrow_mut().insert(call, CallKind::of(&name, &arguments, self.job.get()));
        self.send_or_die(&FromWorker::Call { call, name, arguments, bytes: bytes.map(Attachment) });
        call
    }

    /// Whether the last call was one too many, or too large.
    pub(super) fn has_refused_call(&self) -> bool {
        self.call_refused.get()
    }

    pub(super) fn has_open_calls(&self) -> bool {
        !self.open_calls.borrow().is_empty()
    }

    /// Whether a call is open that belongs to the run even when the tool did not await it.
    pub(super) fn has_calls_to_await(&self) -> bool {
        self.open_calls.borrow().values().any(|kind| *kind != CallKind::Released)
    }

    /// The number of the job that the engine runs now.
    pub(super) fn job(&self) -> u32 {
        self.job.get()
    }

    pub(super) fn next_job(&self) {
        self.job.set(self.job.get().wrapping_add(1));
    }

    /// A race is decided: the requests without effect that its job has sent are no longer waited for.
    pub(super) fn release_lookups(&self, job: u32) {
        for kind in self.open_calls.borrow_mut().values_mut() {
            if *kind == CallKind::Lookup(job) {
                *kind = CallKind::Released;
            }
        }
    }

    /// A call is answered or cancelled, whichever comes first.
    pub(super) fn close_call(&self, call: u32) {
        self.open_calls.borrow_mut().remove(&call);
    }

    /// Without a kernel on the other side there is nothing left to do.
    pub(super) fn send_or_die(&self, message: &FromWorker) {
        if self.send(message).is_err() {
            super::leave();
        }
    }
}

/// JavaScript text may hold half a surrogate pair, which JSON writes as an escape and no UTF-8 text can hold. As
/// everywhere on the web it becomes U+FFFD. The engine writes whole pairs as they are, so any such escape is lone.
pub(super) fn without_lone_surrogates(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some((before, escape)) = rest.find('\\').map(|at| rest.split_at(at)) {
        repaired.push_str(before);
        let lone = escape.get(..4).is_some_and(|start| {
            start
                .strip_prefix("\\ud")
                .is_some_and(|digit| digit.starts_with(|digit: char| matches!(digit, '8'..='9' | 'a'..='f')))
        });
        let (kept, length) = if lone { ("\\ufffd", 6) } else { (escape.get(..2).unwrap_or(escape), 2) };
        repaired.push_str(kept);
        rest = escape.get(length..).unwrap_or_default();
    }
    repaired.push_str(rest);
    repaired
}
