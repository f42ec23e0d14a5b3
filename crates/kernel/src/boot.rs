//! From a directory to a running kernel, and back.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tgp_contract::{
    Actor, Approver, CallContext, Code, Consent, Database, Gate, Recorder, SqlAccess, ToolCall,
    ToolDefinition, ToolError, ToolResult,
};
use tgp_git::Status as RepositoryStatus;
use tgp_sandbox::{
    AllowList, FetchClient, FetchLimits, Sandbox, SandboxError, SandboxOptions, WorkerCommand,
};
use tgp_tools::{
    BytecodeCache, EffectGate, Forge, ForgeError, ForgeOptions, Library, Opening, RecentCalls, RefuseAll,
    Router, RouterError, Workspace, WorkspaceError, kernel_tools,
};

use crate::config::{self, Config, ConfigError, ConfigSource, GitConfig};
use crate::memory;

/// Calls the in-memory recorder keeps when the embedding program brings none of its own.
const RECENT_CALLS: usize = 1_000;

/// How long a database may take to answer a person who asks whether it is there.
const DATABASE_PATIENCE: Duration = Duration::from_secs(5);

/// Looks an environment variable up by name.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How to boot. Start from [`BootOptions::new`] and change what you need.
pub struct BootOptions {
    /// The project directory.
    pub directory: PathBuf,
    /// A configuration file other than `tgp.config.{ts,js,json}` of the project.
    pub config_file: Option<PathBuf>,
    /// The program that serves as sandbox worker; the running binary itself when there is none.
    pub worker: Option<PathBuf>,
    /// Where bytecode is cached on this machine; in memory only when there is none.
    pub cache_directory: Option<PathBuf>,
    /// What a configuration file sees of the environment, by name.
    pub environment: Environment,
    /// Gates besides the kernel's own. The strictest verdict wins, so a gate can only tighten.
    pub gates: Vec<Arc<dyn Gate>>,
    pub approver: Arc<dyn Approver>,
    pub recorder: Arc<dyn Recorder>,
    /// A database of the embedding program, instead of the configured one.
    pub database: Option<Arc<dyn Database>>,
}

impl BootOptions {
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            config_file: None,
            worker: None,
            cache_directory: None,
            environment: Arc::new(|_| None),
            gates: Vec::new(),
            approver: Arc::new(RefuseAll),
            recorder: Arc::new(RecentCalls::new(RECENT_CALLS)),
            database: None,
        }
    }
}

impl std::fmt::Debug for BootOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BootOptions").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Why a kernel did not come up.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("there is no tool repository at `{0}`")]
    NotInitialised(PathBuf),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Router(#[from] RouterError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error("cannot use `{path}` as project: {source}")]
    Directory { path: PathBuf, source: std::io::Error },
}

impl From<SandboxError> for BootError {
    fn from(error: SandboxError) -> Self {
        Self::Forge(error.into())
    }
}

impl From<BootError> for ToolError {
    fn from(error: BootError) -> Self {
        match error {
            BootError::Config(error) => error.into(),
            BootError::NotInitialised(ref root) if root.ends_with(".tgp") => {
                ToolError::new(Code::Config, error.to_string()).help("run `tgp init` here")
            }
            BootError::NotInitialised(_) => ToolError::new(Code::Config, error.to_string())
                .help("make that directory, or correct `rootDir` in the configuration"),
            BootError::Workspace(_) => ToolError::new(Code::Config, error.to_string())
                .help("correct `rootDir` or `fs` in the configuration"),
            BootError::Directory { .. } => {
                ToolError::new(Code::Config, error.to_string()).help("name a directory that exists")
            }
            BootError::Forge(error) => error.into(),
            BootError::Router(_) => ToolError::new(Code::Internal, error.to_string()),
            BootError::Tool(error) => error,
        }
    }
}

/// A running kernel.
pub struct Kernel {
    config: Config,
    project: PathBuf,
    root: PathBuf,
    router: Arc<Router>,
    forge: Arc<Forge>,
    library: Arc<Library>,
    opening: Opening,
    database: Arc<dyn Database>,
    database_name: String,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Kernel").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Kernel {
    /// Reads the configuration, starts the sandbox, opens the tool repository and brings it up to date.
    ///
    /// # Errors
    /// See [`BootError`].
    pub async fn boot(options: BootOptions) -> Result<Self, BootError> {
        let project = options
            .directory
            .canonicalize()
            .map_err(|source| BootError::Directory { path: options.directory.clone(), source })?;
        let worker = options.worker.as_ref().map_or_else(WorkerCommand::this_binary, |program| {
            WorkerCommand { program: program.clone(), arguments: Vec::new() }
        });
        let cache = Arc::new(BytecodeCache::new(options.cache_directory.clone(), &worker.program));
        let (config, sandbox) = configure(&options, &project, &worker, &cache).await?;
        let root: PathBuf = project.join(&config.root_dir).components().collect();
        if !root.is_dir() && !config.git.as_ref().is_some_and(GitConfig::has_remote) {
            return Err(BootError::NotInitialised(root));
        }
        let wanted = sandbox_options(&worker, &config);
        let sandbox = match sandbox {
            // Most configurations leave the sandbox as it is; its workers are warm already.
            Some(sandbox) if *sandbox.options() == wanted => sandbox,
            _ => Arc::new(Sandbox::new(wanted)?),
        };
        let forge = start_forge(sandbox, &cache, &project, &root, &config).await?;
        let forge = Arc::new(forge);
        let (library, opening) = Library::open(
            Arc::clone(&forge),
            memory::searcher(&config, &root)?,
            config.registry.on_duplicate.into(),
            |derived| {
                memory::git_options(config.git.as_ref(), &project, &root, &options.environment, derived)
            },
            &memory::state_directory(&root),
        )
        .await?;
        let library = Arc::new(library);
        let (database, database_name) = match options.database {
            Some(database) => {
                let name = format!("{} (of the embedding program)", database.dialect());
                (database, name)
            }
            None => memory::database(&config.db, &project, &root).await?,
        };
        let workspace = Workspace::open(
            &project,
            &root,
            &config.fs.allowed_dirs,
            config.fs.block_upward_traversal,
            &config::kept_files(options.config_file.as_deref()),
        )?
        .with_database(Arc::clone(&database));
        let allow_list = AllowList::parse(&config.allowed_fetch_urls).unwrap_or_default();
        let fetch = Arc::new(FetchClient::new(allow_list, FetchLimits::default()));
        let mut gates: Vec<Arc<dyn Gate>> = vec![Arc::new(EffectGate)];
        gates.extend(options.gates);
        let router = Router::new(
            kernel_tools(&forge, &fetch, &library)?,
            gates,
            options.approver,
            options.recorder,
            workspace,
        )?;
        Ok(Self {
            config,
            project,
            root,
            router: Arc::new(router),
            forge,
            library,
            opening,
            database,
            database_name,
        })
    }

    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The project directory.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The agent's root on disk.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What a person should know about the start, one sentence each: conflicts and repairs of the tool repository.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.opening.notices
    }

    /// Why the remote of the tools could not be reached; the local ones are used then.
    #[must_use]
    pub fn offline(&self) -> Option<&str> {
        self.opening.offline.as_deref()
    }

    /// Whether the database of `exec_sql` answers. A SQLite file that does not exist yet is made by this.
    ///
    /// # Errors
    /// `ESQL` with the reason.
    pub async fn check_database(&self) -> Result<(), ToolError> {
        let begun = tokio::time::timeout(DATABASE_PATIENCE, self.database.begin(SqlAccess::ReadWrite)).await;
        let late =
            || ToolError::new(Code::Sql, format!("no answer within {} s", DATABASE_PATIENCE.as_secs()));
        begun.map_err(|_| late())??.rollback().await;
        Ok(())
    }

    /// The database of `exec_sql`, without its password.
    #[must_use]
    pub fn database_name(&self) -> &str {
        &self.database_name
    }

    /// Where the tool repository stands.
    ///
    /// # Errors
    /// `EGIT`.
    pub async fn repository(&self) -> Result<RepositoryStatus, ToolError> {
        self.library.status().await
    }

    /// Every tool an agent can call.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.router.definitions()
    }

    /// Takes a call through the router.
    pub async fn call_with(&self, call: ToolCall, context: CallContext) -> ToolResult {
        self.router.call(call, context).await
    }

    /// The same for the common case: the embedding program itself asks, and has agreed by asking.
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let call = ToolCall { id: "embedded".to_owned(), tool: tool.to_owned(), arguments };
        let context = CallContext {
            actor: Actor::Agent("embedded".to_owned()),
            session: "embedded".to_owned(),
            consent: Consent::Given,
            dry_run: false,
            depth: 0,
            token: None,
        };
        self.call_with(call, context).await
    }

    /// How this kernel's workers are locked.
    ///
    /// # Errors
    /// When no worker can be had.
    pub async fn lock_report(&self) -> Result<tgp_jail::LockReport, ToolError> {
        Ok(self.forge.lock_report().await?)
    }

    /// Ends every worker and waits until they are gone.
    pub async fn shutdown(self) {
        // Ending workers waits for threads, which an asynchronous task must not do.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

/// The configuration, and the sandbox that had to be started to evaluate it, if one was.
async fn configure(
    options: &BootOptions,
    project: &Path,
    worker: &WorkerCommand,
    cache: &Arc<BytecodeCache>,
) -> Result<(Config, Option<Arc<Sandbox>>), BootError> {
    match config::find(project, options.config_file.as_deref())? {
        None => Ok((Config::default(), None)),
        Some(ConfigSource::Json { file, value }) => Ok((Config::from_value(&file, &value)?, None)),
        Some(ConfigSource::Script(unit)) => {
            let defaults = Config::default();
            let sandbox = Arc::new(Sandbox::new(sandbox_options(worker, &defaults))?);
            let forge = start_forge(Arc::clone(&sandbox), cache, project, project, &defaults).await?;
            let file = unit.id.clone();
            let value = forge
                .evaluate_config(unit, |name| (options.environment)(name))
                .await
                .map_err(|error| ConfigError::Evaluate { file: file.clone(), error: Box::new(error) })?;
            Ok((Config::from_value(&file, &value)?, Some(sandbox)))
        }
    }
}

fn sandbox_options(worker: &WorkerCommand, config: &Config) -> SandboxOptions {
    SandboxOptions { worker: worker.clone(), pool_size: config.sandbox.pool, limits: config.sandbox.limits }
}

async fn start_forge(
    sandbox: Arc<Sandbox>,
    cache: &Arc<BytecodeCache>,
    project: &Path,
    root: &Path,
    config: &Config,
) -> Result<Forge, BootError> {
    let options = ForgeOptions {
        project: project.to_owned(),
        tool_root: root.to_owned(),
        allowed_imports: config.allowed_imports.clone(),
        limits: config.sandbox.limits,
        seed: config.sandbox.seed,
        frozen_clock_ms: config.sandbox.clock_ms,
    };
    Ok(Forge::start(sandbox, Arc::clone(cache), options).await?)
}
