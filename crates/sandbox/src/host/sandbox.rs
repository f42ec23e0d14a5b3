//! The sandbox as the kernel holds it.

use std::io;
use std::sync::Arc;

use tgp_contract::Code;
use tgp_jail::LockReport;
use tokio::sync::OnceCell;

use super::RunLimits;
use super::bridge::Bridge;
use super::compile::{CompileFailure, CompiledSource, Compiler};
use super::pool::{Pool, UsedWorker};
use super::process::WorkerCommand;
use super::run::{self, Program, RunInput, ToolRunOptions, ToolRunReport};
use crate::protocol::ModuleCode;

/// Why there is no worker to be had.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("cannot start a worker: {0}")]
    Start(#[source] io::Error),
    #[error("a worker did not get ready: {0}")]
    NotReady(String),
    #[error("a worker did not get ready: it ended before it was locked{how}")]
    EndedEarly {
        /// By which signal or with which status, after a comma; empty when it is unknown.
        how: String,
    },
    /// The system does not start the program.
    #[error("tools cannot be compiled or run on this machine, because a worker cannot be started: {0}")]
    Spawn(#[source] io::Error),
    /// A step of the lock exists here, and the system refused it.
    #[error("tools cannot be compiled or run on this machine, because a worker cannot {step}: {cause}")]
    CannotLock {
        /// What the worker tried, as a verb phrase. Both texts are short and free of control characters.
        step: String,
        /// What the system reported.
        cause: String,
    },
    #[error("cannot prepare the engine: {0}")]
    Prelude(String),
    /// What an agent wrote does not run in a process that the system cannot hold.
    #[error("forged tools do not run on this machine, because their process cannot be locked: {}", missing.join(" "))]
    Unlockable {
        /// What is missing, one plain sentence each.
        missing: Vec<String>,
    },
    #[error("the sandbox is shut down")]
    Closed,
}

impl SandboxError {
    /// The stable code of this failure.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Spawn(_) | Self::CannotLock { .. } | Self::Unlockable { .. } => Code::Capability,
            Self::Start(_)
            | Self::NotReady(_)
            | Self::EndedEarly { .. }
            | Self::Prelude(_)
            | Self::Closed => Code::Internal,
        }
    }
}

/// How a sandbox starts its workers, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxOptions {
    pub worker: WorkerCommand,
    /// Warm workers kept ready.
    pub pool_size: usize,
    /// The most that a run on a warm worker may have.
    pub limits: RunLimits,
    /// The most that any run may have. One with a larger heap than warm workers have gets a worker of its own.
    pub ceiling: RunLimits,
}

/// Warm workers, a compile worker, and the rules for using them.
#[derive(Debug)]
pub struct Sandbox {
    options: SandboxOptions,
    compiler: Arc<Compiler>,
    pool: OnceCell<Pool>,
}

impl Sandbox {
    /// Starts no process yet: the compile worker starts with the first source, the pool with the first run.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(options: SandboxOptions) -> Result<Self, SandboxError> {
        let compiler = Arc::new(Compiler::start(options.worker.clone())?);
        Ok(Self { options, compiler, pool: OnceCell::new() })
    }

    #[must_use]
    pub fn options(&self) -> &SandboxOptions {
        &self.options
    }

    /// Starts filling the pool ahead of the first run, which otherwise starts it.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub async fn warm(&self) -> Result<(), SandboxError> {
        self.pool().await.map(|_| ())
    }

    /// Starts the compile worker ahead of the first source, which otherwise starts it.
    pub fn warm_compiler(&self) {
        self.compiler.warm();
    }

    async fn pool(&self) -> Result<&Pool, SandboxError> {
        let SandboxOptions { worker, pool_size, limits, .. } = &self.options;
        self.pool
            .get_or_try_init(|| async { Pool::start(worker.clone(), *pool_size, limits.heap_bytes) })
            .await
    }

    /// Asks the front end in the compile worker.
    ///
    /// # Errors
    /// When the source crashes it, takes too long, or the engine refuses what came out.
    pub async fn compile(&self, request: Vec<u8>) -> Result<CompiledSource, CompileFailure> {
        self.compiler.compile(request).await
    }

    /// Runs one program on a worker of its own.
    ///
    /// # Errors
    /// When no worker can be had. What the tool does wrong is in the report.
    pub async fn run(
        &self,
        program: &Program,
        input: RunInput,
        options: ToolRunOptions,
        bridge: &dyn Bridge,
    ) -> Result<ToolRunReport, SandboxError> {
        let ran = self.run_on_worker(program, input, options, bridge).await;
        if let Err(error) = &ran {
            tracing::warn!(target: "worker", tool = program.entry.as_str(), "no worker: {error}");
        }
        ran
    }

    async fn run_on_worker(
        &self,
        program: &Program,
        input: RunInput,
        options: ToolRunOptions,
        bridge: &dyn Bridge,
    ) -> Result<ToolRunReport, SandboxError> {
        let pool = self.pool().await?;
        let options = ToolRunOptions { limits: options.limits.within(&self.options.ceiling), ..options };
        let heap_bytes = options.limits.heap_bytes;
        let worker = match heap_bytes > self.options.limits.heap_bytes {
            // A worker locks its address space when it starts, so a warm one can never have more.
            true => pool.start_larger(heap_bytes).await?,
            false => pool.take().await?,
        };
        let (report, used) = run::run(worker, program, input, options, bridge).await?;
        pool.discard(used);
        Ok(report)
    }

    /// Lets the next workers have these modules ahead of their run. They must be part of the product: what comes from a
    /// tool or a package is never evaluated outside the run that uses it.
    pub fn learn(&self, modules: impl Iterator<Item = Arc<ModuleCode>>) {
        if let Some(pool) = self.pool.get() {
            pool.warm_set.learn(modules);
        }
    }

    /// How the workers of this sandbox are locked. Takes one worker to find out.
    ///
    /// # Errors
    /// When no worker can be had.
    pub async fn lock_report(&self) -> Result<LockReport, SandboxError> {
        let pool = self.pool().await?;
        let worker = pool.take().await?;
        let report = worker.process.lock;
        pool.discard(UsedWorker { _child: worker.process.child, _connection: None });
        Ok(report)
    }
}
