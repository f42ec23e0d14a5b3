//! The loop of a valve: scan, report, act, wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tgp_contract::{Code, RelativePath, ToolError};
use tokio::time::Instant;

use crate::ValveEvent;
use crate::action_runner::{Joined, Runner};
use crate::engine::{Core, ScanRequest, ScanResult, Stop, blocking};
use crate::failure::Failure;
use crate::fs_event_queue::{Batch, FsEventQueue};
use crate::mutex::locked;
use crate::outlet::EventSink;
use crate::pending_deletions::PendingDeletions;
use crate::publish::Publisher;
use crate::reconcile::Deletions;
use crate::tree::Scope;
use crate::watches::Watches;

/// How often the tree is scanned when it cannot be watched.
const FALLBACK_EVERY: Duration = Duration::from_secs(5);
/// When a chronicle or the journal cannot take something, it is tried again: soon, then less and less often.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// While actions are carried out, changes wait a little, so that their events can say who has caused them.
const GRACE: Duration = Duration::from_secs(2);

/// Why the tree is scanned when nothing has happened.
const PERIODIC: &str = "the time for it has come";

/// What wakes the loop.
enum Wake {
    Stopped,
    Hints,
    Ended(Box<Joined>),
    Time,
}

/// One run, as a watch or as a single pass.
pub(crate) struct Run<'a> {
    core: Arc<Core>,
    outlet: EventSink,
    stop: Stop<'a>,
    runner: Runner,
    deliverer: Publisher,
    /// Ends a scan that is under way, also when the run itself is dropped.
    halt: Halt,
}

struct Halt(Arc<AtomicBool>);

impl Drop for Halt {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(core: Arc<Core>, outlet: EventSink, stop: Stop<'a>) -> Self {
        Self {
            core,
            outlet,
            stop,
            runner: Runner::new(),
            deliverer: Publisher::default(),
            halt: Halt(Arc::new(AtomicBool::new(false))),
        }
    }

    /// One pass over the whole tree, with all that follows from it.
    pub(crate) async fn once(mut self) -> Result<EventSink, Failure> {
        self.begin().await?;
        let (_, looked) = self.look(Scope::Whole, Deletions::Certain, None).await?;
        if let EventSink::Report(report) = &mut self.outlet {
            report.files = looked.files;
            report.baseline = looked.is_baseline;
            report.changes = looked.changes;
        }
        self.started(&looked).await;
        loop {
            let delivery = self.deliverer.run(&self.core, &mut self.outlet).await?;
            if let EventSink::Report(report) = &mut self.outlet {
                report.pending = delivery.waiting;
            }
            if self.stop.is_wanted() {
                break;
            }
            self.runner.start(&self.core, &mut self.outlet).await?;
            if self.runner.is_idle() {
                break;
            }
            let ended = tokio::select! {
                () = self.stop.wanted() => break,
                ended = self.runner.ended() => ended,
            };
            self.runner.finish(&self.core, &mut self.outlet, ended).await?;
        }
        self.runner.end(&self.core, &mut self.outlet).await?;
        self.deliverer.run(&self.core, &mut self.outlet).await?;
        // What was done until then is recorded; that it is not all must not pass for success.
        if self.stop.is_wanted() { Err(Failure::Stopped) } else { Ok(self.outlet) }
    }

    /// Reports a lost journal, and settles the actions that an earlier process left running.
    async fn begin(&mut self) -> Result<(), Failure> {
        let loss = locked(&self.core.loss).take();
        if let Some(what) = loss {
            let message = format!(
                "the valve's journal is lost: {what}. What has changed since its last entry cannot be told"
            );
            let error = ToolError::new(Code::Integrity, message)
                .help("a new journal begins with the files as they are now; look at the disk that it was on");
            self.outlet.send(ValveEvent::Problem { error }).await;
        }
        Runner::recover(&self.core, &mut self.outlet).await
    }

    async fn started(&mut self, looked: &ScanResult) {
        let event = ValveEvent::Started {
            files: looked.files,
            baseline: looked.is_baseline,
            backfilled: looked.changes,
            personas: self.core.personas().len() as u64,
        };
        self.outlet.send(event).await;
    }

    /// One look, on a thread that may block. The watches go there and come back.
    async fn look(
        &mut self,
        scope: Scope,
        deletions: Deletions,
        watches: Option<Watches>,
    ) -> Result<(Option<Watches>, ScanResult), Failure> {
        let (suspects, halt) = (self.runner.suspects(), Arc::clone(&self.halt.0));
        let work = blocking(&self.core, move |core| {
            let mut watches = watches;
            let mut enter = |directory: &RelativePath| {
                if let Some(watches) = &mut watches {
                    watches.enter(directory);
                }
            };
            let look = ScanRequest { scope, deletions, enter: &mut enter, suspects: &suspects, stop: &halt };
            let looked = core.look(look)?;
            Ok((watches, looked))
        });
        tokio::pin!(work);
        let (watches, mut looked) = tokio::select! {
            done = &mut work => done?,
            () = self.stop.wanted() => {
                self.halt.0.store(true, Ordering::Relaxed);
                work.await?
            }
        };
        for error in std::mem::take(&mut looked.problems) {
            self.outlet.send(ValveEvent::Problem { error }).await;
        }
        Ok((watches, looked))
    }

    /// Watches until it is cancelled.
    pub(crate) async fn watch(
        mut self,
        hints: &Arc<FsEventQueue>,
        every: Option<Duration>,
    ) -> Result<(), Failure> {
        self.begin().await?;
        let watched = self.until_stopped(hints, every).await;
        let ended = self.runner.end(&self.core, &mut self.outlet).await;
        self.deliverer.run(&self.core, &mut self.outlet).await?;
        match watched {
            Err(Failure::Stopped) | Ok(()) => ended,
            Err(failure) => Err(failure),
        }
    }

    async fn until_stopped(
        &mut self,
        hints: &Arc<FsEventQueue>,
        every: Option<Duration>,
    ) -> Result<(), Failure> {
        let mut watching = Watching {
            hints: Arc::clone(hints),
            watches: None,
            every,
            is_started: false,
            holds: PendingDeletions::default(),
        };
        let mut batch = Batch { whole: Some("start".to_owned()), ..Batch::default() };
        let mut retry = FIRST_RETRY;
        while !self.stop.is_wanted() {
            let looked = self.attend(&mut watching, batch).await;
            let mut failed = self.has_failed(looked).await?;
            // Also after a scan that failed: perhaps because too many events wait.
            let told = self.tell().await;
            let is_waiting = matches!(told, Ok(waiting) if waiting > 0);
            failed |= self.has_failed(told.map(drop)).await?;
            let retry_at = (failed || is_waiting).then(|| Instant::now() + retry);
            retry = if retry_at.is_some() { (retry * 2).min(LONGEST_RETRY) } else { FIRST_RETRY };
            batch = self.next(&watching, retry_at).await?;
            if failed {
                batch.whole.get_or_insert_with(|| "the last look has failed".to_owned());
            }
        }
        Ok(())
    }

    /// Publishes events, and begins the actions that follow from them. Returns how many events must wait.
    async fn tell(&mut self) -> Result<u64, Failure> {
        let delivery = self.deliverer.run(&self.core, &mut self.outlet).await?;
        self.runner.start(&self.core, &mut self.outlet).await?;
        Ok(delivery.waiting)
    }

    /// Whether something has failed that may go well the next time: the disk has room again, the chronicle takes events.
    async fn has_failed(&mut self, outcome: Result<(), Failure>) -> Result<bool, Failure> {
        match outcome {
            Ok(()) => Ok(false),
            Err(failure @ (Failure::Full { .. } | Failure::Journal(_))) if !failure.is_damage() => {
                self.outlet.send(ValveEvent::Problem { error: failure.into() }).await;
                Ok(true)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Looks where a batch of hints says.
    async fn attend(&mut self, watching: &mut Watching, mut batch: Batch) -> Result<(), Failure> {
        if batch.personas || batch.whole.is_some() {
            self.reload().await;
        }
        if batch.whole.is_none() {
            if let Some(watches) = &mut watching.watches {
                for path in &batch.moved {
                    watches.forget(path);
                }
                watches.enter_own(&self.core.personas_file);
            }
            let certain = watching.holds.join(&mut batch, Instant::now());
            if batch.paths.is_empty() {
                let suspects = self.runner.suspects();
                return blocking(&self.core, move |core| core.release(&suspects)).await;
            }
            let scope = Scope::Paths(std::mem::take(&mut batch.paths));
            let deletions = Deletions::Only(certain);
            let (watches, looked) = self.look(scope, deletions, watching.watches.take()).await?;
            watching.watches = watches;
            if !looked.wants_whole {
                watching.holds.keep(looked.doubtful, &batch, Instant::now());
                return self.fall_back(watching).await;
            }
        }
        let reason = batch.whole.unwrap_or_else(|| "the ignore rules were changed".to_owned());
        self.whole(watching, reason).await
    }

    /// Scans everything, with new watches: the old ones may have missed what they should watch.
    async fn whole(&mut self, watching: &mut Watching, reason: String) -> Result<(), Failure> {
        watching.watches = None;
        if watching.every.is_none() {
            let root = self.core.tree.root().to_owned();
            match Watches::new(root, &watching.hints, &self.core.personas_file, self.core.tree.layout()) {
                Ok(watches) => watching.watches = Some(watches),
                Err(error) => self.poll(watching, &error.to_string()).await,
            }
        }
        let (watches, looked) = self.look(Scope::Whole, Deletions::Certain, watching.watches.take()).await?;
        watching.watches = watches;
        watching.holds.clear();
        if !watching.is_started {
            watching.is_started = true;
            self.started(&looked).await;
        } else if reason != PERIODIC || looked.changes > 0 {
            let (files, changes) = (looked.files, looked.changes);
            self.outlet.send(ValveEvent::Rescanned { reason, files, changes }).await;
        }
        self.fall_back(watching).await
    }

    /// Switches to periodic scans when the system can watch no more.
    async fn fall_back(&mut self, watching: &mut Watching) -> Result<(), Failure> {
        if let Some(why) = watching.watches.as_mut().and_then(|watches| watches.failed.take()) {
            watching.watches = None;
            self.poll(watching, &why).await;
        }
        Ok(())
    }

    async fn poll(&mut self, watching: &mut Watching, why: &str) {
        watching.every = Some(FALLBACK_EVERY);
        let message = format!(
            "the directories cannot all be watched ({why}); the whole tree is looked at every {} seconds",
            FALLBACK_EVERY.as_secs()
        );
        let error = ToolError::new(Code::Budget, message).help(
            "raise `fs.inotify.max_user_watches`, or ignore folders without source files, and start again",
        );
        self.outlet.send(ValveEvent::Problem { error }).await;
    }

    async fn reload(&mut self) {
        let reloaded = blocking(&self.core, |core| Ok(core.reload())).await;
        match reloaded.ok().flatten() {
            None => {}
            Some(Ok(personas)) => self.outlet.send(ValveEvent::Reloaded { personas }).await,
            Some(Err(error)) => self.outlet.send(ValveEvent::Problem { error }).await,
        }
    }

    /// Waits for something to do.
    async fn next(&mut self, watching: &Watching, retry_at: Option<Instant>) -> Result<Batch, Failure> {
        let poll_at = watching.every.map(|every| Instant::now() + every);
        loop {
            let times = [retry_at, poll_at, watching.holds.next(), next_due(&self.core).await?];
            let wake_at = times.into_iter().flatten().min();
            match self.wake(&watching.hints, wake_at).await {
                Wake::Stopped => return Ok(Batch::default()),
                Wake::Ended(ended) => {
                    self.runner.finish(&self.core, &mut self.outlet, *ended).await?;
                    if self.tell().await? > 0 {
                        return Ok(Batch::default());
                    }
                }
                Wake::Hints => {
                    self.settle(&watching.hints).await?;
                    return Ok(watching.hints.take());
                }
                Wake::Time => {
                    let whole = poll_at.is_some_and(|at| at <= Instant::now()).then(|| PERIODIC.to_owned());
                    return Ok(Batch { whole, ..Batch::default() });
                }
            }
        }
    }

    async fn wake(&mut self, hints: &FsEventQueue, wake_at: Option<Instant>) -> Wake {
        let time = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.stop.wanted() => Wake::Stopped,
            ended = self.runner.ended() => Wake::Ended(Box::new(ended)),
            () = hints.any() => Wake::Hints,
            () = time => Wake::Time,
        }
    }

    /// Waits until the changes are over, and a little for the actions that may have caused them.
    async fn settle(&mut self, hints: &FsEventQueue) -> Result<(), Failure> {
        let limit = Instant::now() + GRACE;
        loop {
            tokio::select! {
                () = self.stop.wanted() => return Ok(()),
                () = hints.settled() => {}
            }
            if self.runner.is_idle() || Instant::now() >= limit {
                return Ok(());
            }
            tokio::select! {
                () = self.stop.wanted() => return Ok(()),
                ended = self.runner.ended() => {
                    self.runner.finish(&self.core, &mut self.outlet, ended).await?;
                }
                () = tokio::time::sleep_until(limit) => {}
            }
        }
    }
}

/// When the next cooldown ends.
async fn next_due(core: &Arc<Core>) -> Result<Option<Instant>, Failure> {
    let due = blocking(core, |core| {
        let now_ms = core.now_ms();
        core.transact(|ledger| ledger.next_due(now_ms))
    });
    Ok(due.await?.map(|milliseconds| Instant::now() + Duration::from_millis(milliseconds)))
}

/// How a run learns that it should look.
struct Watching {
    hints: Arc<FsEventQueue>,
    watches: Option<Watches>,
    /// Without watches: how often.
    every: Option<Duration>,
    is_started: bool,
    /// Deletions that are not reported yet.
    holds: PendingDeletions,
}
