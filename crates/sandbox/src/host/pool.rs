//! Warm workers ahead of demand.
//!
//! One thread starts workers and lives as long as the pool, because a worker dies with the thread that started it.
//! It keeps a bounded channel full; taking a worker out makes room for the next. A second thread ends used workers,
//! so that nobody waits for the operating system to take a process apart.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc as blocking};
use std::thread::JoinHandle;

use tokio::sync::{Mutex as AsyncMutex, mpsc};

use super::SandboxError;
use super::process::{WorkerCommand, WorkerProcess};
use crate::protocol::{FromWorker, ModuleCode, ToWorker, WarmUp, read_blocking, write_blocking};
use crate::worker::RUN_WORKER;

/// Library modules a worker gets ahead are capped, so that warming stays cheap.
const MAX_WARM_BYTES: usize = 8 * 1024 * 1024;
/// After this many failed starts in a row the pool reports the failure instead of a worker.
const MAX_START_ATTEMPTS: u32 = 3;

/// A warm worker and the modules it has.
#[derive(Debug)]
pub(super) struct WarmWorker {
    pub(super) process: WorkerProcess,
    pub(super) modules: Arc<BTreeMap<String, Arc<ModuleCode>>>,
}

/// What the next workers are warmed with.
#[derive(Debug, Default)]
pub(super) struct WarmSet {
    prelude: Vec<u8>,
    modules: Mutex<Arc<BTreeMap<String, Arc<ModuleCode>>>>,
}

impl WarmSet {
    pub(super) fn new(prelude: Vec<u8>) -> Self {
        Self { prelude, modules: Mutex::default() }
    }

    /// Learns the library modules a program used: the next program is likely to use them too.
    pub(super) fn learn(&self, libraries: impl Iterator<Item = Arc<ModuleCode>>) {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh: Vec<_> = libraries.filter(|module| !modules.contains_key(&module.id)).collect();
        if fresh.is_empty() {
            return;
        }
        let mut grown = BTreeMap::clone(&modules);
        let mut bytes: usize = grown.values().map(|module| module.bytecode.len()).sum();
        for module in fresh {
            bytes += module.bytecode.len();
            if bytes > MAX_WARM_BYTES {
                return;
            }
            grown.insert(module.id.clone(), module);
        }
        *modules = Arc::new(grown);
    }

    fn current(&self) -> Arc<BTreeMap<String, Arc<ModuleCode>>> {
        Arc::clone(&self.modules.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
pub(super) struct Pool {
    ready: AsyncMutex<mpsc::Receiver<Result<WarmWorker, SandboxError>>>,
    used: Option<blocking::Sender<WorkerProcess>>,
    threads: Vec<JoinHandle<()>>,
    closing: Arc<AtomicBool>,
    pub(super) warm_set: Arc<WarmSet>,
}

impl Pool {
    pub(super) fn start(
        command: WorkerCommand,
        size: usize,
        heap_bytes: u64,
        prelude: Vec<u8>,
    ) -> Result<Self, SandboxError> {
        let warm_set = Arc::new(WarmSet::new(prelude));
        let closing = Arc::new(AtomicBool::new(false));
        // The thread holds one finished worker in its hands while the channel is full.
        let (sender, ready) = mpsc::channel(size.saturating_sub(1).max(1));
        let (used, to_end) = blocking::channel::<WorkerProcess>();
        let starter = {
            let (warm_set, closing) = (Arc::clone(&warm_set), Arc::clone(&closing));
            thread("tgp-starter", move || {
                let mut failures = 0;
                while !closing.load(Ordering::Acquire) {
                    let worker = start_warm(&command, heap_bytes, &warm_set);
                    failures = if worker.is_ok() { 0 } else { failures + 1 };
                    if failures > 0 && failures < MAX_START_ATTEMPTS {
                        continue;
                    }
                    if sender.blocking_send(worker).is_err() {
                        break;
                    }
                }
            })?
        };
        // A worker that is dropped is killed and reaped.
        let ender = thread("tgp-ender", move || to_end.into_iter().for_each(drop))?;
        Ok(Self {
            ready: AsyncMutex::new(ready),
            used: Some(used),
            threads: vec![starter, ender],
            closing,
            warm_set,
        })
    }

    pub(super) async fn take(&self) -> Result<WarmWorker, SandboxError> {
        loop {
            let mut worker = self.ready.lock().await.recv().await.unwrap_or(Err(SandboxError::Closed))?;
            // Somebody may have killed it while it waited: the system short of memory, or a person.
            if worker.process.is_alive() {
                return Ok(worker);
            }
        }
    }

    /// Takes a used worker to its end.
    pub(super) fn discard(&self, process: WorkerProcess) {
        if let Some(used) = &self.used {
            // When the ending thread is gone the worker comes back in the error and is dropped here instead.
            let _ = used.send(process);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.used = None;
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
) -> Result<WarmWorker, SandboxError> {
    let mut process = WorkerProcess::start(command, RUN_WORKER, heap_bytes)?;
    let modules = warm_set.current();
    let warm_up = WarmUp {
        prelude: warm_set.prelude.clone(),
        modules: modules.values().map(|module| ModuleCode::clone(module)).collect(),
    };
    let not_ready = |error: crate::protocol::FrameError| SandboxError::NotReady(error.to_string());
    write_blocking(&mut process.connection, &ToWorker::WarmUp(warm_up)).map_err(not_ready)?;
    match read_blocking(&mut process.connection).map_err(not_ready)? {
        FromWorker::Warm => Ok(WarmWorker { process, modules }),
        _ => Err(SandboxError::NotReady("it answered its warm-up with something else".to_owned())),
    }
}
