//! Warm workers ahead of demand.
//!
//! One thread starts workers and lives as long as the pool, because a worker dies with the thread that started it. The
//! first worker is a process of its own, so that a kernel that runs one tool has it soon; all others are forked from a
//! template. The thread keeps a bounded channel full: a worker that was used up is replaced when its run is over, or at
//! once when it was the last. A second thread ends used workers, so that no call waits for the operating system to end
//! a process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as blocking};
use std::thread::JoinHandle;

use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};

use super::SandboxError;
use super::process::{ChildProcess, Reach, WorkerCommand, WorkerProcess};
use super::template::{Template, warm_up};
use crate::protocol::ModuleCode;
use crate::worker::{RUN_WORKER, TEMPLATE};

/// After this many failed starts in a row the pool reports the failure instead of a worker.
const MAX_START_ATTEMPTS: u32 = 3;
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
    prelude: Vec<u8>,
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
    /// The first worker of all.
    First,
    /// As many workers as there is room for.
    Fill,
    /// A worker with a larger heap than those of the pool, for one run. Then as many others as there is room for.
    Larger { heap_bytes: u64, reply: oneshot::Sender<Result<WarmWorker, SandboxError>> },
}

#[derive(Debug)]
pub(super) struct Pool {
    ready: AsyncMutex<mpsc::Receiver<Result<WarmWorker, SandboxError>>>,
    used: Option<blocking::Sender<UsedWorker>>,
    wanted: Option<blocking::SyncSender<Wish>>,
    /// Whether a worker has been taken.
    is_used: AtomicBool,
    threads: Vec<JoinHandle<()>>,
    reach: Reach,
    pub(super) warm_set: Arc<WarmSet>,
}

impl Pool {
    pub(super) fn start(
        command: WorkerCommand,
        size: usize,
        heap_bytes: u64,
        prelude: Vec<u8>,
    ) -> Result<Self, SandboxError> {
        let warm_set = Arc::new(WarmSet { prelude, ..WarmSet::default() });
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
        let starter = thread("tgp-starter", move || starter.serve(wishes))?;
        // A worker that is dropped is killed and reaped.
        let ender = thread("tgp-ender", move || to_end.into_iter().for_each(drop))?;
        let pool = Self {
            ready: AsyncMutex::new(ready),
            used: Some(used),
            wanted: Some(wanted),
            is_used: AtomicBool::new(false),
            threads: vec![starter, ender],
            reach,
            warm_set,
        };
        pool.wish(Wish::First);
        Ok(pool)
    }

    /// Has the pool filled up in the background.
    fn refill(&self) {
        self.wish(Wish::Fill);
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
            // The first worker is on its way, and the others are started when the first run is over, not beside it:
            // starting a template takes a core, and the run wants it. Later a worker is replaced at once when it is the
            // last that is ready.
            if self.is_used.swap(true, Ordering::Relaxed) && ready.len() <= 1 {
                self.refill();
            }
            let mut worker = ready.recv().await.unwrap_or(Err(SandboxError::Closed))?;
            drop(ready);
            // Somebody may have killed it while it waited: the system short of memory, or a person.
            if worker.process.child.is_alive() {
                return Ok(worker);
            }
            let pid = worker.process.pid().as_raw();
            tracing::warn!(target: "worker", pid, "worker was killed while it waited for a run");
            self.refill();
        }
    }

    /// Takes a used worker to its end.
    pub(super) fn discard(&self, worker: UsedWorker) {
        if let Some(used) = &self.used {
            // When the ending thread is gone the worker comes back in the error and is dropped here instead.
            let _ = used.send(worker);
        }
        self.refill();
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
    fn serve(&mut self, wishes: blocking::Receiver<Wish>) {
        for wish in wishes {
            let goes_on = match wish {
                Wish::First => match self.alone(self.heap_bytes) {
                    Ok(worker) => self.sender.blocking_send(Ok(worker)).is_ok(),
                    Err(_) => self.fill(),
                },
                Wish::Fill => self.fill(),
                Wish::Larger { heap_bytes, reply } => {
                    // Whoever asked may have gone away; then the worker is dropped, and so ended.
                    let _ = reply.send(self.alone(heap_bytes));
                    self.fill()
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Fills the pool. False when the pool is closed.
    fn fill(&mut self) -> bool {
        let mut failures = 0;
        while self.sender.capacity() > 0 && !self.reach.is_closed() {
            let worker = self.fork();
            if let Err(error) = &worker {
                failures += 1;
                self.template = None;
                if !self.reach.is_closed() {
                    tracing::warn!(target: "worker", attempt = failures, "{error}");
                }
                if failures < MAX_START_ATTEMPTS {
                    continue;
                }
            }
            failures = 0;
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
        warm_up(&mut process, &self.warm_set.prelude, &modules, &self.reach)?;
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
        let template = Template::warm(process, &self.warm_set.prelude, modules, &self.reach);
        if template.is_err() && has_modules {
            // No module may keep workers from getting ready.
            self.warm_set.forget();
        }
        template
    }
}
