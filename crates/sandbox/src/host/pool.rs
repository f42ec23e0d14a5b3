//! Warm workers ahead of demand.
//!
//! One thread starts workers and lives as long as the pool, because a worker dies with the thread that started it. It
//! forks them from a template. A kernel that runs one tool and ends needs no more than two (a configuration file in
//! TypeScript is a run, too), so at first there is one, and one more when it is taken. When a run is over and the kernel
//! still works, the thread keeps a bounded channel full, and a worker that was the last is replaced at once. A second
//! thread ends used workers, so that no call waits for the operating system to end a process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as blocking};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};

use super::SandboxError;
use super::process::{ChildProcess, Reach, WorkerCommand, WorkerProcess};
use super::template::{Template, warm_up};
use crate::protocol::ModuleCode;
use crate::worker::{RUN_WORKER, TEMPLATE};

/// After this many failed starts in a row the pool reports the failure instead of a worker.
const MAX_START_ATTEMPTS: u32 = 3;
/// How long the pool is not filled after a run: a kernel that runs one tool and ends needs no more workers, and ending
/// them would delay its end.
const GRACE: Duration = Duration::from_millis(10);
/// Runs that a short-lived kernel does: its configuration, and its tool.
const FEW_RUNS: u32 = 2;
/// Wishes that may wait for the starter.
const MAX_WISHES: usize = 64;

/// A warm worker and the modules it has.
#[derive(Debug)]
pub(super) struct WarmWorker {
    /// Its connection does not block.
    pub(super) process: WorkerProcess,
    pub(super) modules: Modules,
}

impl WarmWorker {
    /// Makes a process ready for a conversation with the asynchronous side.
    pub(super) fn new(process: WorkerProcess, modules: Modules) -> Result<Self, SandboxError> {
        process.connection.set_nonblocking(true).map_err(SandboxError::Start)?;
        Ok(Self { process, modules })
    }
}

/// A worker that was used. Its connection stays open until it is ended: a worker ends by itself when it is closed, and
/// that would take the processor from what the kernel does next.
#[derive(Debug)]
pub(super) struct UsedWorker {
    // Both are only dropped, the process first.
    pub(super) _child: ChildProcess,
    pub(super) _connection: Option<tokio::net::UnixStream>,
}

pub(super) type Modules = Arc<BTreeMap<String, Arc<ModuleCode>>>;

/// What the next workers are warmed with.
#[derive(Debug, Default)]
pub(super) struct WarmSet {
    learned: Mutex<Learned>,
}

#[derive(Debug, Default)]
struct Learned {
    modules: Modules,
    /// Set for good when a template did not get ready with what was learned.
    closed: bool,
}

impl WarmSet {
    /// Learns modules of the product that a program has loaded: the next program is likely to use them too.
    pub(super) fn learn(&self, modules: impl Iterator<Item = Arc<ModuleCode>>) {
        let mut learned = self.lock();
        let fresh: Vec<_> = modules.filter(|module| !learned.modules.contains_key(&module.id)).collect();
        if !fresh.is_empty() && !learned.closed {
            let mut grown = BTreeMap::clone(&learned.modules);
            grown.extend(fresh.into_iter().map(|module| (module.id.clone(), module)));
            learned.modules = Arc::new(grown);
        }
    }

    fn forget(&self) {
        *self.lock() = Learned { closed: true, ..Learned::default() };
    }

    fn lock(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Modules {
        Arc::clone(&self.lock().modules)
    }
}

/// What the starter is asked for.
enum Wish {
    /// One worker, where there is room for it.
    One,
    /// As many workers as there is room for, when the kernel still works after [`GRACE`].
    FillLater,
    /// A worker with a larger heap than those of the pool, for one run.
    Larger { heap_bytes: u64, reply: oneshot::Sender<Result<WarmWorker, SandboxError>> },
}

#[derive(Debug)]
pub(super) struct Pool {
    ready: AsyncMutex<mpsc::Receiver<Result<WarmWorker, SandboxError>>>,
    used: Option<blocking::Sender<UsedWorker>>,
    wanted: Option<blocking::SyncSender<Wish>>,
    threads: Vec<JoinHandle<()>>,
    reach: Reach,
    /// Runs that found no worker ready.
    waited: AtomicU32,
    pub(super) warm_set: Arc<WarmSet>,
}

impl Pool {
    pub(super) fn start(command: WorkerCommand, size: usize, heap_bytes: u64) -> Result<Self, SandboxError> {
        let warm_set = Arc::new(WarmSet::default());
        let reach = Reach::default();
        let (sender, ready) = mpsc::channel(size.max(1));
        let (used, to_end) = blocking::channel::<UsedWorker>();
        let (wanted, wishes) = blocking::sync_channel::<Wish>(MAX_WISHES);
        let mut starter = Starter {
            command,
            heap_bytes,
            warm_set: Arc::clone(&warm_set),
            reach: reach.clone(),
            template: None,
            sender,
        };
        let starter = thread("tgp-starter", move || starter.serve(&wishes))?;
        // A worker that is dropped is killed and reaped.
        let ender = thread("tgp-ender", move || to_end.into_iter().for_each(drop))?;
        let pool = Self {
            ready: AsyncMutex::new(ready),
            used: Some(used),
            wanted: Some(wanted),
            threads: vec![starter, ender],
            reach,
            waited: AtomicU32::new(0),
            warm_set,
        };
        pool.wish(Wish::One);
        Ok(pool)
    }

    fn wish(&self, wish: Wish) {
        if let Some(wanted) = &self.wanted {
            // Without room for it, enough other wishes wait that fill the pool as well.
            let _ = wanted.try_send(wish);
        }
    }

    /// A worker with a larger heap than those of the pool. It is not warm: such runs are rare, and each was approved.
    pub(super) async fn start_larger(&self, heap_bytes: u64) -> Result<WarmWorker, SandboxError> {
        let (reply, started) = oneshot::channel();
        let wanted = self.wanted.as_ref().ok_or(SandboxError::Closed)?;
        wanted.try_send(Wish::Larger { heap_bytes, reply }).map_err(|_| {
            SandboxError::NotReady(format!("more than {MAX_WISHES} runs with larger heaps wait for one"))
        })?;
        started.await.unwrap_or(Err(SandboxError::Closed))
    }

    pub(super) async fn take(&self) -> Result<WarmWorker, SandboxError> {
        loop {
            let mut ready = self.ready.lock().await;
            // A worker is replaced at once when it is the last that is ready.
            if ready.len() <= 1 {
                self.wish(Wish::One);
            }
            // A kernel that runs one tool after the other should not wait for each worker: it gets one in reserve.
            if ready.is_empty() && self.waited.fetch_add(1, Ordering::Relaxed) >= FEW_RUNS {
                self.wish(Wish::One);
            }
            let mut worker = ready.recv().await.unwrap_or(Err(SandboxError::Closed))?;
            drop(ready);
            // Somebody may have killed it while it waited: the system short of memory, or a person.
            if worker.process.child.is_alive() {
                return Ok(worker);
            }
            let pid = worker.process.pid().as_raw();
            tracing::warn!(target: "worker", pid, "worker was killed while it waited for a run");
            self.wish(Wish::One);
        }
    }

    /// Takes a used worker to its end.
    pub(super) fn discard(&self, worker: UsedWorker) {
        if let Some(used) = &self.used {
            // When the ending thread is gone the worker comes back in the error and is dropped here instead.
            let _ = used.send(worker);
        }
        self.wish(Wish::FillLater);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A starter that waits for a worker to get ready stops waiting.
        self.reach.close();
        self.used = None;
        self.wanted = None;
        // Closing the channel frees a starter that waits for room; the workers in it are dropped and so ended.
        let ready = self.ready.get_mut();
        ready.close();
        while ready.try_recv().is_ok() {}
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        while self.ready.get_mut().try_recv().is_ok() {}
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, SandboxError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(SandboxError::Start)
}

/// What starts workers, on a thread of its own.
struct Starter {
    command: WorkerCommand,
    heap_bytes: u64,
    warm_set: Arc<WarmSet>,
    reach: Reach,
    template: Option<Template>,
    sender: mpsc::Sender<Result<WarmWorker, SandboxError>>,
}

impl Starter {
    fn serve(&mut self, wishes: &blocking::Receiver<Wish>) {
        // When a run was over, while the pool was not filled since.
        let mut to_fill: Option<Instant> = None;
        loop {
            let wish = match to_fill {
                Some(since) => wishes.recv_timeout(GRACE.saturating_sub(since.elapsed())),
                None => wishes.recv().map_err(|_| blocking::RecvTimeoutError::Disconnected),
            };
            let goes_on = match wish {
                Ok(Wish::One) => self.fill(1),
                Ok(Wish::FillLater) => {
                    to_fill.get_or_insert_with(Instant::now);
                    true
                }
                Ok(Wish::Larger { heap_bytes, reply }) => {
                    // Whoever asked may have gone away; then the worker is dropped, and so ended.
                    let _ = reply.send(self.alone(heap_bytes));
                    true
                }
                Err(blocking::RecvTimeoutError::Timeout) => {
                    to_fill = None;
                    self.fill(usize::MAX)
                }
                Err(blocking::RecvTimeoutError::Disconnected) => false,
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Starts workers, as many as there is room for and at most `most`. False when the pool is closed.
    fn fill(&mut self, most: usize) -> bool {
        let mut failures = 0;
        let mut started = 0;
        while started < most && self.sender.capacity() > 0 && !self.reach.is_closed() {
            let worker = self.fork();
            if let Err(error) = &worker {
                failures += 1;
                self.template = None;
                if !self.reach.is_closed() {
                    tracing::warn!(target: "worker", attempt = failures, "{error}");
                }
                let is_final =
                    matches!(error, SandboxError::Unlockable { .. } | SandboxError::CannotLock { .. });
                if failures < MAX_START_ATTEMPTS && !is_final {
                    continue;
                }
            }
            failures = 0;
            started += 1;
            if self.sender.blocking_send(worker).is_err() {
                return false;
            }
        }
        true
    }

    /// A worker that is a process of its own, without modules.
    fn alone(&self, heap_bytes: u64) -> Result<WarmWorker, SandboxError> {
        let mut process = WorkerProcess::start(&self.command, RUN_WORKER, heap_bytes, &self.reach)?;
        let modules = Modules::default();
        warm_up(&mut process, &modules, &self.reach)?;
        WarmWorker::new(process, modules)
    }

    /// A worker from a template that has what is learned.
    fn fork(&mut self) -> Result<WarmWorker, SandboxError> {
        let modules = self.warm_set.current();
        if self.template.as_ref().is_none_or(|template| !Arc::ptr_eq(&template.modules, &modules)) {
            self.template = Some(self.new_template(modules)?);
        }
        match &mut self.template {
            Some(template) => template.fork(&self.reach),
            None => Err(SandboxError::Closed),
        }
    }

    fn new_template(&self, modules: Modules) -> Result<Template, SandboxError> {
        let process = WorkerProcess::start(&self.command, TEMPLATE, self.heap_bytes, &self.reach)?;
        let has_modules = !modules.is_empty();
        let template = Template::warm(process, modules, &self.reach);
        if template.is_err() && has_modules {
            // No module may keep workers from getting ready.
            self.warm_set.forget();
        }
        template
    }
}
