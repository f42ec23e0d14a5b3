//! A run from its beginning to its report.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tgp_contract::{Cancellation, Code, Effect, FileEffect, ToolDefinition, ToolError};
use tokio::sync::{Semaphore, mpsc};

use super::block::BlockCtx;
use super::bounds::{self, MAX_LIVE_ITEMS, MAX_PARALLEL, MAX_STEPS};
use super::frame::{Frame, Inputs};
use super::journal_index::{JournalIndex, UnfinishedStep};
use super::limiter::Limiter;
use super::meter::Meter;
use super::path::{Prefix, extent, locate};
use super::scope::{Failure, RunScope, Stopped};
use super::task_queue::TaskQueue;
use super::{EarlierOutcome, JournalLine, QueryPorts, RunEvent, RunOptions, RunReport, ValueSource};
use crate::check::is_select;
use crate::plan::MAX_NESTING;
use crate::{Budget, Kind, QueryPlan, Step};

/// Calls through the router where the budget says nothing.
const DEFAULT_CALLS: u64 = 1_000;
/// From start to end where the budget says nothing.
const DEFAULT_TIME: Duration = Duration::from_secs(3_600);
/// Steps at the same time where the budget says nothing.
const DEFAULT_PARALLEL: usize = 4;
/// Files that a report names.
const MAX_FILES: usize = 1_000;
/// How long a run that was stopped waits for a receiver that does not take its events.
const EVENT_PATIENCE: Duration = Duration::from_secs(5);

/// Everything that the steps of one run share.
pub(super) struct Run<'p> {
    pub(super) ports: &'p QueryPorts,
    pub(super) options: &'p RunOptions,
    pub(super) query: &'p str,
    pub(super) history: JournalIndex<'p>,
    pub(super) root: Arc<RunScope>,
    pub(super) definitions: BTreeMap<String, ToolDefinition>,
    /// Bounds the items of maps inside maps.
    pub(super) live_items: Semaphore,
    /// Who works on a cached value at this moment, by its key.
    pub(super) single_flights: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
    pub(super) tasks: TaskQueue<'p>,
    began_ms: u64,
    events: mpsc::Sender<RunEvent>,
    nobody_listens: AtomicBool,
    steps: AtomicU64,
    has_lines: AtomicBool,
    /// Why not even the first line could be kept.
    unwritable: OnceLock<ToolError>,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    ran: u64,
    cached: u64,
    kept: u64,
    files: Vec<FileEffect>,
}

/// Runs a plan to its end. Nothing of it continues when this returns, or when its future is dropped.
///
/// # Errors
/// When the run could not begin: `EVALIDATION` with the field for inputs that do not fit, `EINTEGRITY` for lines of the
/// past that are of another plan, and that of a journal which takes not one line. All else is in the report.
pub async fn run(
    plan: &QueryPlan,
    options: RunOptions,
    ports: &QueryPorts,
    events: mpsc::Sender<RunEvent>,
    cancelled: Cancellation<'_>,
) -> Result<RunReport, ToolError> {
    let began = ports.world.now_ms();
    let extent = extent(plan);
    if extent.nesting > MAX_NESTING {
        let message = format!(
            "`{}` has {} blocks inside each other; at most {MAX_NESTING} can run",
            plan.name, extent.nesting
        );
        return Err(ToolError::new(Code::Validation, message).help("put less into each other"));
    }
    let inputs = Inputs::new(plan, options.inputs.clone())?;
    let history = JournalIndex::read(plan, &options.history)?;
    for path in &options.again {
        if locate(plan, path).is_none() {
            let message = format!("`{}` has no step `{path}` that could be made again", plan.name);
            return Err(ToolError::new(Code::Validation, message)
                .detail("field", "again")
                .help("name it as the error does that stopped the run, such as `each[3].note`"));
        }
    }
    let definitions = ports.tools.definitions();
    let root = RunScope::root();
    let budget = Budget { calls: Some(plan.budget.calls.unwrap_or(DEFAULT_CALLS)), ..plan.budget };
    let meter = Meter::new(&plan.name, &budget, history.used(), &root, None);
    let parallel = plan.budget.parallel.unwrap_or(DEFAULT_PARALLEL).clamp(1, MAX_PARALLEL);
    let run = Arc::new(Run {
        ports,
        options: &options,
        query: &plan.name,
        history,
        root: Arc::clone(&root),
        definitions: definitions.into_iter().map(|one| (one.name.to_string(), one)).collect(),
        live_items: Semaphore::new(MAX_LIVE_ITEMS),
        single_flights: Mutex::default(),
        tasks: TaskQueue::default(),
        began_ms: began,
        events,
        nobody_listens: AtomicBool::new(false),
        steps: AtomicU64::new(0),
        has_lines: AtomicBool::new(false),
        unwritable: OnceLock::new(),
        tally: Mutex::default(),
    });
    let (id, query) = (options.id.clone(), plan.name.clone());
    let resumed = !options.history.is_empty();
    run.tell(RunEvent::Run { id, query, steps: extent.steps, resumed }).await;
    let level = BlockCtx {
        frame: Frame::of_query(&plan.body, inputs),
        prefix: Prefix::default(),
        scope: Arc::clone(&root),
        meter: Arc::clone(&meter),
        limiters: vec![Limiter::new(parallel)],
        parallel,
    };
    let outcome = run.watched(level, plan, cancelled).await;
    if let Some(error) = run.unwritable.get() {
        return Err(error.clone());
    }
    let used = meter.used();
    let (error, step, outputs) = match (outcome, root.failure()) {
        (_, Some(Failure { error, step, .. })) => (Some(error), step, Value::Null),
        (Err(Stopped), None) => (Some(was_cancelled()), None, Value::Null),
        (Ok(value), None) => (None, None, value),
    };
    if error.is_some() {
        // The lines of finished steps contain most of it, so a run does not fail for want of this one.
        let _ = ports.journal.append(&JournalLine::Worked { ms: run.worked_ms() });
    }
    let tally = std::mem::take(&mut *run.tally.lock().unwrap_or_else(PoisonError::into_inner));
    let report = RunReport {
        run: options.id.clone(),
        query: plan.name.clone(),
        outputs,
        error,
        step,
        ran: tally.ran,
        cached: tally.cached,
        kept: tally.kept,
        tokens: used.tokens,
        calls: used.calls,
        duration_ms: ports.world.now_ms().saturating_sub(began),
        files: tally.files,
    };
    run.tell(RunEvent::End { report: Box::new(report.clone()) }).await;
    Ok(report)
}

impl<'p> Run<'p> {
    /// The whole query, until it ends, its time is over or its caller is gone.
    async fn watched(
        self: &Arc<Self>,
        level: BlockCtx<'p>,
        plan: &QueryPlan,
        cancelled: Cancellation<'_>,
    ) -> Result<Value, Stopped> {
        let work = async {
            self.settle_open().await?;
            self.block(level).await
        };
        let time = plan.budget.time.unwrap_or(DEFAULT_TIME);
        let left = time.saturating_sub(Duration::from_millis(self.history.worked_ms()));
        let watch = async {
            tokio::select! {
                biased;
                () = cancelled => self.root.stop(),
                () = tokio::time::sleep(left) => {
                    let error = out_of_time(&plan.name, time);
                    self.root.fail_first(Failure { position: Vec::new(), step: None, error });
                }
            }
            std::future::pending::<()>().await;
        };
        let all = async {
            tokio::select! {
                biased;
                // A wish to stop that is there already comes before the first step.
                () = watch => Err(Stopped),
                outcome = work => outcome,
            }
        };
        self.tasks.with(all).await
    }

    /// Checks every step that has begun to take effect and has no end, before anything runs: one that may have
    /// happened is not made twice. An agent resumes its session, which knows its own calls.
    async fn settle_open(&self) -> Result<(), Stopped> {
        for open in self.history.open() {
            let is_harmless = matches!(open.step.kind, Kind::Agent(_)) || self.only_reads(open.step);
            if is_harmless || self.may_repeat(open.path) {
                continue;
            }
            let fate = tokio::select! {
                biased;
                () = self.root.stopped() => return Err(Stopped),
                fate = self.ports.world.fate(&self.options.id, open.call) => fate,
            };
            let error = match fate {
                Ok(EarlierOutcome::NotCarriedOut) => continue,
                Ok(EarlierOutcome::Unknown) => may_have_happened(&open, None),
                Ok(EarlierOutcome::CarriedOut { entry }) => may_have_happened(&open, Some(entry)),
                Err(error) => error,
            };
            let step = Some(open.path.to_owned());
            let error = finished(error, open.path, open.step);
            self.root.fail(Failure { position: open.position.clone(), step, error });
            return Err(Stopped);
        }
        Ok(())
    }

    /// Whether a step can only have read something.
    pub(super) fn only_reads(&self, step: &Step) -> bool {
        match &step.kind {
            Kind::Tool { tool, .. } => {
                self.definitions.get(tool).is_some_and(|definition| definition.effect == Effect::Read)
            }
            Kind::Graph { .. } => true,
            Kind::Sql { sql, .. } => is_select(sql),
            _ => false,
        }
    }

    /// Whether the user allowed a step to be repeated, whatever its result was.
    pub(super) fn may_repeat(&self, path: &str) -> bool {
        self.options.again.iter().any(|again| again == path)
    }

    /// How long the run has worked, before it was resumed included.
    pub(super) fn worked_ms(&self) -> u64 {
        let now = self.ports.world.now_ms().saturating_sub(self.began_ms);
        self.history.worked_ms().saturating_add(now)
    }

    /// Sends an event. A receiver that is gone misses nothing that matters; a stopped run does not wait forever for
    /// a receiver that does not take it.
    pub(super) async fn tell(&self, event: RunEvent) {
        if self.nobody_listens.load(Ordering::Relaxed) {
            return;
        }
        let impatience = async {
            self.root.stopped().await;
            tokio::time::sleep(EVENT_PATIENCE).await;
        };
        let was_taken = tokio::select! {
            biased;
            sent = self.events.send(event) => sent.is_ok(),
            () = impatience => false,
        };
        if !was_taken {
            self.nobody_listens.store(true, Ordering::Relaxed);
        }
    }

    /// Keeps a line. When that is not possible the run ends, since it could not be resumed.
    pub(super) fn keep(&self, line: &JournalLine, step: &str) -> Result<(), Stopped> {
        let kept = self.ports.journal.append(line);
        if kept.is_ok() {
            self.has_lines.store(true, Ordering::Relaxed);
        }
        kept.map_err(|error| {
            // A call is made after its line only, so nothing has happened without one.
            if !self.has_lines.load(Ordering::Relaxed) {
                let _ = self.unwritable.set(error.clone().detail("step", step));
            }
            self.unkept(error, step)
        })
    }

    /// Ends the run because a line of this step could not be kept.
    pub(super) fn unkept(&self, error: ToolError, step: &str) -> Stopped {
        let error = error.detail("step", step);
        self.root.fail(Failure { position: Vec::new(), step: Some(step.to_owned()), error });
        Stopped
    }

    /// One more step, of any kind.
    pub(super) fn count_step(&self) -> Result<(), ToolError> {
        if self.steps.fetch_add(1, Ordering::Relaxed) < MAX_STEPS {
            return Ok(());
        }
        Err(ToolError::new(Code::Budget, format!("the run has taken {MAX_STEPS} steps; it may take no more"))
            .detail("budget", "steps")
            .detail("limit", MAX_STEPS)
            .help("let it work on fewer items, or divide it into several runs"))
    }

    pub(super) fn count_value(&self, how: ValueSource) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match how {
            ValueSource::Ran => tally.ran += 1,
            ValueSource::Cached => tally.cached += 1,
            ValueSource::Kept => tally.kept += 1,
        }
    }

    pub(super) fn count_files(&self, files: Vec<FileEffect>) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_FILES.saturating_sub(tally.files.len());
        tally.files.extend(files.into_iter().take(room));
    }
}

/// An error as the report has it: whose it is, and its position in the query.
pub(super) fn finished(error: ToolError, path: &str, step: &Step) -> ToolError {
    let error = bounds::fit_error(error).detail("step", path);
    match error.place_of() {
        None => error.place(&step.place),
        Some(place) if place == step.place => error,
        // A place in a tool's source or in the query's own expression says more; that of the step is added to it.
        Some(_) => {
            let place = serde_json::to_value(&step.place).unwrap_or_default();
            error.detail("stepPlace", place)
        }
    }
}

pub(super) fn was_cancelled() -> ToolError {
    ToolError::new(Code::Runtime, "the run was cancelled before it ended")
        .of_cancellation()
        .help("go on with it by `--resume`; steps that are done are not repeated")
}

pub(super) fn out_of_time(query: &str, time: Duration) -> ToolError {
    let message = format!("the budget of `{query}` is used up: its time of {time:?} is over");
    ToolError::new(Code::Budget, message)
        .detail("budget", "time")
        .detail("limit", u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
        .help("begin a new run with a larger `budget(time: …)`, or let it do less")
}

fn may_have_happened(open: &UnfinishedStep<'_>, entry: Option<u64>) -> ToolError {
    let path = open.path;
    let message = match entry {
        Some(entry) => format!(
            "step `{path}` was carried out before the run was interrupted (entry {entry} of the audit), and its value is not kept"
        ),
        None => format!(
            "step `{path}` began to take effect before the run was interrupted, and its outcome is unknown"
        ),
    };
    let error = ToolError::new(Code::Integrity, message).detail("call", open.call).help(format!(
        "look at what it has changed, and allow it to be made once more with `--again {path}`"
    ));
    match entry {
        Some(entry) => error.detail("entry", entry),
        None => error,
    }
}
