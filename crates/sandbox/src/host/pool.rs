//! Warm workers ahead of demand.
//!
//! One thread starts workers and lives as long as the pool, because a worker dies with the thread that started it.
//! It keeps a bounded channel full: a worker that was used up is replaced when its run is over, or at once when it was
//! the last. A second thread ends used workers, so that nobody waits for the operating system to take a process apart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as blocking};
use std::thread::JoinHandle;

use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};

use super::SandboxError;
use super::process::{Reach, WorkerCommand, WorkerProcess};
use super::run::Program;
use crate::protocol::{FromWorker, ModuleCode, ToWorker, WarmUp, read_blocking, write_blocking};
use crate::worker::RUN_WORKER;

/// Library modules a worker gets ahead are capped, so that warming stays cheap.
const MAX_WARM_BYTES: usize = 8 * 1024 * 1024;
/// Bytecode grows several times when it is loaded.
const HEAP_SHARE: u64 = 16;
/// After this many failed starts in a row the pool reports the failure instead of a worker.
const MAX_START_ATTEMPTS: u32 = 3;
/// Wishes that may wait for the starter.
const MAX_WISHES: usize = 64;
/// A module that was part of this many failed warm-ups in a row is not learned again.
const MAX_STRIKES: u32 = 2;

/// A warm worker and the modules it has.
#[derive(Debug)]
pub(super) struct WarmWorker {
    pub(super) process: WorkerProcess,
    pub(super) modules: Modules,
}

impl WarmWorker {
    /// False when it was warmed with another version of a module: what it has evaluated cannot be taken back.
    pub(super) fn fits(&self, program: &Program) -> bool {
        program.modules.iter().all(|module| {
            self.modules.get(&module.id).is_none_or(|warm| Arc::ptr_eq(warm, module) || warm == module)
        })
    }
}

type Modules = Arc<BTreeMap<String, Arc<ModuleCode>>>;

/// What the next workers are warmed with.
#[derive(Debug, Default)]
pub(super) struct WarmSet {
    prelude: Vec<u8>,
    max_bytes: usize,
    learned: Mutex<Learned>,
}

#[derive(Debug, Default)]
struct Learned {
    modules: Modules,
    /// How many warm-ups in a row have failed that a module was part of.
    strikes: BTreeMap<String, (Arc<ModuleCode>, u32)>,
}

impl Learned {
    fn is_struck_out(&self, module: &Arc<ModuleCode>) -> bool {
        self.strikes.get(&module.id).is_some_and(|(known, count)| *count >= MAX_STRIKES && known == module)
    }
}

impl WarmSet {
    /// What is warm takes from the heap of every run, needed or not, so a small heap gets little.
    pub(super) fn new(prelude: Vec<u8>, heap_bytes: u64) -> Self {
        let share = usize::try_from(heap_bytes / HEAP_SHARE).unwrap_or(MAX_WARM_BYTES);
        Self { prelude, max_bytes: share.min(MAX_WARM_BYTES), learned: Mutex::default() }
    }

    /// Learns the library modules that a program has loaded well: the next program is likely to use them too.
    pub(super) fn learn(&self, libraries: impl Iterator<Item = Arc<ModuleCode>>) {
        let mut learned = self.lock();
        let fresh: Vec<_> = libraries.filter(|module| !learned.modules.contains_key(&module.id)).collect();
        // All or none, because they import each other.
        if fresh.is_empty() || fresh.iter().any(|module| learned.is_struck_out(module)) {
            return;
        }
        let size = |module: &Arc<ModuleCode>| module.bytecode.len();
        let bytes = learned.modules.values().map(size).sum::<usize>() + fresh.iter().map(size).sum::<usize>();
        if bytes <= self.max_bytes {
            let mut grown = BTreeMap::clone(&learned.modules);
            grown.extend(fresh.into_iter().map(|module| (module.id.clone(), module)));
            learned.modules = Arc::new(grown);
        }
    }

    /// Forgets every other version of these modules: the package has changed on disk.
    pub(super) fn forget_others(&self, libraries: impl Iterator<Item = Arc<ModuleCode>>) {
        let mut learned = self.lock();
        let other =
            |module: &Arc<ModuleCode>| learned.modules.get(&module.id).is_some_and(|known| known != module);
        let stale: Vec<_> = libraries.filter(other).collect();
        if !stale.is_empty() {
            let mut rest = BTreeMap::clone(&learned.modules);
            rest.retain(|id, _| !stale.iter().any(|module| module.id == *id));
            learned.modules = Arc::new(rest);
        }
    }

    /// A worker did not get ready with these modules: the next one starts without any.
    fn failed(&self, modules: &Modules) {
        let mut learned = self.lock();
        learned.modules = Modules::default();
        for module in modules.values() {
            let (known, count) =
                learned.strikes.entry(module.id.clone()).or_insert_with(|| (Arc::clone(module), 0));
            *count = if known == module { *count + 1 } else { 1 };
            *known = Arc::clone(module);
        }
    }

    /// A worker got ready with these modules.
    fn succeeded(&self, modules: &Modules) {
        let mut learned = self.lock();
        if !learned.strikes.is_empty() {
            learned.strikes.retain(|id, _| !modules.contains_key(id));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Modules {
        Arc::clone(&self.lock().modules)
    }
}

/// What the starter is asked for. After each of them it fills the pool.
enum Wish {
    Fill,
    /// A worker with a larger heap than those of the pool, for one run.
    Larger {
        heap_bytes: u64,
        reply: oneshot::Sender<Result<WarmWorker, SandboxError>>,
    },
}

#[derive(Debug)]
pub(super) struct Pool {
    ready: AsyncMutex<mpsc::Receiver<Result<WarmWorker, SandboxError>>>,
    used: Option<blocking::Sender<WorkerProcess>>,
    wanted: Option<blocking::SyncSender<Wish>>,
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
        let warm_set = Arc::new(WarmSet::new(prelude, heap_bytes));
        let reach = Reach::default();
        let (sender, ready) = mpsc::channel(size.max(1));
        let (used, to_end) = blocking::channel::<WorkerProcess>();
        let (wanted, wishes) = blocking::sync_channel::<Wish>(MAX_WISHES);
        let starter = {
            let (warm_set, reach) = (Arc::clone(&warm_set), reach.clone());
            thread("tgp-starter", move || {
                let mut failures = 0;
                for wish in wishes {
                    if let Wish::Larger { heap_bytes, reply } = wish {
                        // Whoever asked may have gone away; then the worker is dropped, and so ended.
                        let _ = reply.send(start_with(
                            &command,
                            heap_bytes,
                            &warm_set,
                            Modules::default(),
                            &reach,
                        ));
                    }
                    while sender.capacity() > 0 && !reach.is_closed() {
                        let worker = start_warm(&command, heap_bytes, &warm_set, &reach);
                        failures = if worker.is_ok() { 0 } else { failures + 1 };
                        if let Err(error) = &worker
                            && !reach.is_closed()
                        {
                            tracing::warn!(target: "worker", attempt = failures, "{error}");
                        }
                        if failures > 0 && failures < MAX_START_ATTEMPTS {
                            continue;
                        }
                        if sender.blocking_send(worker).is_err() {
                            return;
                        }
                    }
                }
            })?
        };
        // A worker that is dropped is killed and reaped.
        let ender = thread("tgp-ender", move || to_end.into_iter().for_each(drop))?;
        let pool = Self {
            ready: AsyncMutex::new(ready),
            used: Some(used),
            wanted: Some(wanted),
            threads: vec![starter, ender],
            reach,
            warm_set,
        };
        pool.refill();
        Ok(pool)
    }

    /// Has the pool filled up in the background.
    fn refill(&self) {
        if let Some(wanted) = &self.wanted {
            // A wish that waits already is enough.
            let _ = wanted.try_send(Wish::Fill);
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
            // While another worker is ready the next one is started after this run, not beside it: starting a process
            // takes a core, and the run wants it.
            if ready.len() <= 1 {
                self.refill();
            }
            let mut worker = ready.recv().await.unwrap_or(Err(SandboxError::Closed))?;
            drop(ready);
            // Somebody may have killed it while it waited: the system short of memory, or a person.
            if worker.process.is_alive() {
                return Ok(worker);
            }
            let pid = worker.process.pid().as_raw();
            tracing::warn!(target: "worker", pid, "worker was killed while it waited for a run");
            self.refill();
        }
    }

    /// Takes a used worker to its end.
    pub(super) fn discard(&self, process: WorkerProcess) {
        if let Some(used) = &self.used {
            // When the ending thread is gone the worker comes back in the error and is dropped here instead.
            let _ = used.send(process);
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

fn start_warm(
    command: &WorkerCommand,
    heap_bytes: u64,
    warm_set: &WarmSet,
    reach: &Reach,
) -> Result<WarmWorker, SandboxError> {
    let modules = warm_set.current();
    match start_with(command, heap_bytes, warm_set, Arc::clone(&modules), reach) {
        Ok(worker) => {
            warm_set.succeeded(&modules);
            Ok(worker)
        }
        Err(error) if !modules.is_empty() && !reach.is_closed() => {
            // It may be a package's fault, and no package may keep workers from getting ready.
            tracing::warn!(target: "worker", packages = modules.len(), "{error}; the next starts without packages");
            warm_set.failed(&modules);
            start_with(command, heap_bytes, warm_set, Modules::default(), reach)
        }
        Err(error) => Err(error),
    }
}

/// A worker that has these modules. One that does not get ready is dropped, and so ended.
fn start_with(
    command: &WorkerCommand,
    heap_bytes: u64,
    warm_set: &WarmSet,
    modules: Modules,
    reach: &Reach,
) -> Result<WarmWorker, SandboxError> {
    let mut process = WorkerProcess::start(command, RUN_WORKER, heap_bytes, reach)?;
    warm_up(&mut process, warm_set, &modules, reach)?;
    Ok(WarmWorker { process, modules })
}

fn warm_up(
    process: &mut WorkerProcess,
    warm_set: &WarmSet,
    modules: &Modules,
    reach: &Reach,
) -> Result<(), SandboxError> {
    let warm_up = WarmUp {
        prelude: warm_set.prelude.clone(),
        modules: modules.values().map(|module| ModuleCode::clone(module)).collect(),
    };
    let not_ready = |error: crate::protocol::FrameError| SandboxError::NotReady(error.to_string());
    let _held = reach.hold(process.pid());
    write_blocking(&mut process.connection, &ToWorker::WarmUp(warm_up)).map_err(not_ready)?;
    match read_blocking(&mut process.connection).map_err(not_ready)? {
        FromWorker::Warm => Ok(()),
        _ => Err(SandboxError::NotReady("it answered its warm-up with something else".to_owned())),
    }
}
