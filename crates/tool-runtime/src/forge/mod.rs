//! From a tool's source to a program, and from a program to a result.

mod answered;
mod arguments;
mod bridge;
mod cache;
mod changes;
mod check;
mod describe;
mod failure;
mod frontend;
mod limits;
mod mounts;
mod places;
mod predicate;
mod prepared;
mod program;
mod run_commit;
mod sources;
mod sql_options;
mod sql_words;
mod testing;
mod types;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tgp_compiler::{CompiledModule, ForeignModules, GraphBuilder, GraphHost, Unit};
use tgp_contract::{Code, FileSystem, RelativePath, Root, ToolError};
use tgp_sandbox::{
    Bridge, CompileFailure, LogLine, Program, RunInput, RunLimits, RunStats, Sandbox, SandboxError,
    ToolRunOptions, ToolRunReport,
};

use answered::AnsweredErrors;
pub use cache::BytecodeCache;
pub use changes::RunChange;
use changes::{grow, judge, may_take_effect, pre_commit_check, with_past};
pub use frontend::ForgeFrontend;
use frontend::FrontendRequest;
pub use limits::GrantedLimits;
use places::RunPlaces;
use program::{CompiledTool, PrepareFailure, prepare};
use run_commit::RunCommit;
use sources::Sources;
pub use sources::as_targets;
pub use testing::tested_tool;
pub use testing::{TestFailure, TestReport, TestResult};
use tgp_router::Invocation;
use tgp_router::database::{SqlNotes, SqlRun};
use types::TypeChecker;
pub use types::native_type_checker;

/// Work that is kept on the heap while it goes on.
type OffStack<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the tool runtime depends on in addition to the files.
#[derive(Clone, Debug)]
pub struct ToolRuntimeOptions {
    /// The project directory, whose `node_modules` hold the packages.
    pub project: PathBuf,
    /// The agent's root on disk, for the native type checker; nothing where the tools are not on a disk.
    pub tool_root: Option<PathBuf>,
    pub allowed_imports: Vec<String>,
    /// What tools import as `mcp:SERVER` and `host:MODULE`.
    pub foreign: Option<Arc<dyn ForeignModules>>,
    /// What every run has.
    pub limits: RunLimits,
    /// What a call may ask for.
    pub ceiling: RunLimits,
    pub seed: Option<u64>,
    pub frozen_clock_ms: Option<f64>,
}

/// Why the forge cannot work at all.
#[derive(Debug, thiserror::Error)]
pub enum ToolRuntimeError {
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Compile(#[from] CompileFailure),
    #[error("the compile worker speaks another language")]
    Protocol,
}

impl From<ToolRuntimeError> for ToolError {
    fn from(error: ToolRuntimeError) -> Self {
        match error {
            ToolRuntimeError::Compile(
                CompileFailure::Crashed | CompileFailure::TooSlow | CompileFailure::Refused(_),
            ) => ToolError::new(Code::Compile, error.to_string())
                .help("flatten the expression or split the source into several tools"),
            ToolRuntimeError::Sandbox(failure)
            | ToolRuntimeError::Compile(CompileFailure::Sandbox(failure)) => no_worker(&failure),
            ToolRuntimeError::Protocol => ToolError::new(Code::Internal, error.to_string())
                .help("`tgp doctor` shows what this machine lacks"),
        }
    }
}

fn no_worker(failure: &SandboxError) -> ToolError {
    let error = ToolError::new(failure.code(), failure.to_string())
        .help("`tgp doctor` shows what this machine lacks");
    match failure {
        SandboxError::CannotLock { step, cause } => {
            error.detail("step", step.as_str()).detail("cause", cause.as_str())
        }
        SandboxError::Spawn(source) => error.detail("step", "start").detail("cause", source.to_string()),
        _ => error,
    }
}

/// Compiles, checks and runs tools.
#[derive(Debug)]
pub struct ToolRuntime {
    sandbox: Arc<Sandbox>,
    cache: Arc<BytecodeCache>,
    options: ToolRuntimeOptions,
    types: TypeChecker,
    programs: Mutex<BTreeMap<String, Arc<CompiledTool>>>,
    running: RunPlaces,
}

/// Programs kept ready; when there are more, one of them goes.
const MAX_PROGRAMS: usize = 256;

impl ToolRuntime {
    /// Starts no process: what a worker is needed for starts it, unless [`Sandbox::warm`] has.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, cache: Arc<BytecodeCache>, options: ToolRuntimeOptions) -> Self {
        let types = TypeChecker::new(&options.project, options.tool_root.as_deref());
        Self { sandbox, cache, options, types, programs: Mutex::default(), running: RunPlaces::new() }
    }

    /// Names this build of the compiler: another one may read the same source differently.
    pub fn build(&self) -> String {
        self.cache.key(&[]).chars().take(16).collect()
    }

    /// Bytecode of code that is JavaScript already.
    async fn emit(&self, request: &FrontendRequest) -> Result<Vec<u8>, ToolRuntimeError> {
        let text = serde_json::to_vec(request).map_err(|_| ToolRuntimeError::Protocol)?;
        self.sandbox.compile(text).await?.bytecode.ok_or(ToolRuntimeError::Protocol)
    }

    /// The program of a tool, from memory when nothing of it has changed.
    async fn program(
        &self,
        tools: &Arc<dyn FileSystem>,
        entry: &RelativePath,
        sources: &mut Sources<'_>,
    ) -> Result<Arc<CompiledTool>, PrepareFailure> {
        let builder = || GraphBuilder::new(self.graph_host(tools), entry).map_err(|error| error.0);
        self.prepared(tools, entry.to_string(), builder, sources).await
    }

    /// The program of a tool whose sources the gates have judged.
    async fn judged_program(
        &self,
        invocation: Invocation<'_>,
        entry: &RelativePath,
    ) -> Result<Arc<CompiledTool>, ToolError> {
        let tools = &invocation.workspace.tools;
        let prepared = match self.program(tools, entry, &mut Sources::Judged(invocation)).await {
            Ok(prepared) => prepared,
            Err(PrepareFailure { error, .. }) if matches!(error.code, Code::Policy | Code::Conflict) => {
                return Err(error);
            }
            // What is said of a tool that is not there suggests others: only those that the caller may see.
            Err(_) => {
                let visible = invocation.visible_tools().await;
                match self.program(&visible, entry, &mut Sources::Judged(invocation)).await {
                    Ok(prepared) => prepared,
                    Err(failure) => return Err(self.judged_failure(invocation, failure).await),
                }
            }
        };
        self.check_packages(invocation, prepared.package_files()).await?;
        Ok(prepared)
    }

    fn keep_program(&self, key: String, prepared: &Arc<CompiledTool>) {
        let mut programs = self.programs();
        if programs.len() >= MAX_PROGRAMS {
            programs.pop_first();
        }
        programs.insert(key, Arc::clone(prepared));
    }

    fn programs(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<CompiledTool>>> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn graph_host(&self, tools: &Arc<dyn FileSystem>) -> GraphHost {
        GraphHost {
            tools: Arc::clone(tools),
            project: self.options.project.clone(),
            allowed_imports: self.options.allowed_imports.clone(),
            foreign: self.options.foreign.clone(),
        }
    }

    /// The sources below the tool root that a tool consists of, by their hashes. They are compiled, and nothing runs. The
    /// arguments are compared after an approval: what a tool declares is not for everybody who asks.
    ///
    /// # Errors
    /// When the tool is not there or does not compile.
    pub async fn sources(
        &self,
        invocation: Invocation<'_>,
        path: &RelativePath,
    ) -> Result<Vec<(RelativePath, String)>, ToolError> {
        let prepared = self.judged_program(invocation, path).await?;
        Ok(prepared.sources().to_vec())
    }

    /// A run in a worker, off the stack like the whole of it.
    fn run_in_sandbox<'a>(
        &'a self,
        program: &'a Program,
        input: RunInput,
        options: ToolRunOptions,
        bridge: &'a dyn Bridge,
    ) -> OffStack<'a, Result<ToolRunReport, ToolRuntimeError>> {
        Box::pin(async move { Ok(self.sandbox.run(program, input, options, bridge).await?) })
    }

    /// Runs a tool as one transaction: its writes are committed when it returns, and none of them otherwise.
    ///
    /// # Errors
    /// The tool's failure, with its place in the TypeScript and its logs.
    pub fn execute<'a>(
        &'a self,
        invocation: Invocation<'a>,
        path: &'a RelativePath,
        arguments: Value,
        limits: RunLimits,
    ) -> OffStack<'a, Result<ToolRun, ToolError>> {
        // Tools call tools: what a run holds must not be on the stack of all runs inside it. It is made here, where its
        // place on the stack is given back at once.
        Box::pin(self.run_to_commit(invocation, path, arguments, limits))
    }

    async fn run_to_commit(
        &self,
        invocation: Invocation<'_>,
        path: &RelativePath,
        arguments: Value,
        limits: RunLimits,
    ) -> Result<ToolRun, ToolError> {
        let prepared = self.judged_program(invocation, path).await?;
        let mut warnings = self.check_call(invocation, path, &prepared, &arguments).await?;
        warnings.extend(prepared.checker_errors(path));
        if let Some(agreement) = invocation.agreement() {
            // What was compiled is what runs, so nothing can change between this check and the run.
            for (path, hash) in prepared.sources() {
                agreement.check_hash(Root::Tools, path, Some(hash))?;
            }
        }
        let inner = invocation.workspace.overlaid;
        // An inner run must not wait for a place that its outer run holds.
        let _place = if inner { None } else { Some(self.running.take(&invocation.context.session).await) };
        let (workspace, overlay) = invocation.filtered_workspace().await.overlay();
        let base = (!inner).then(|| Arc::clone(&workspace.base));
        let point = (!inner).then(|| invocation.point_of_no_return());
        let end = RunCommit { overlay, sql: workspace.sql.run().cloned(), base, point };
        if let Some(sql) = end.sql.as_ref().filter(|_| !prepared.may_write_rows) {
            sql.expect_reads();
        }
        let run = workspace.clone();
        let bridge = bridge::ToolBridge::new(
            path.clone(),
            workspace,
            invocation,
            limits,
            self.options.foreign.clone(),
        );
        let input = RunInput { arguments, call_default: true, environment: Vec::new() };
        let options = ToolRunOptions { limits, ..self.run_options() };
        let report = self.run_in_sandbox(&prepared.program, input, options, &bridge).await;
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                end.undo().await;
                return Err(error.into());
            }
        };
        let logs: Vec<LogLine> = report
            .logs
            .into_iter()
            .map(|line| LogLine { text: failure::map_log(&line.text, &prepared.graph), ..line })
            .collect();
        let stats = report.stats;
        match report.result {
            Ok(result) => {
                if prepared.proves_itself() {
                    self.sandbox.learn(prepared.standard_library());
                }
                // An inner run that was not awaited may be about to end; what it leaves is judged as well.
                end.settle().await;
                // What an inner run writes goes into the outer one's overlay, and is the outer one's to report.
                let mut changes = match inner {
                    true => Vec::new(),
                    false => with_past(end.overlay.changes(), invocation.workspace).await?,
                };
                let agreed = match judge(invocation, &changes).await {
                    Ok(agreed) => {
                        may_take_effect(invocation, &run, prepared.sources()).await.map(|()| agreed)
                    }
                    Err(refused) => Err(refused),
                };
                let agreement = match agreed {
                    Ok(agreement) => agreement,
                    Err(refused) => {
                        end.undo().await;
                        return Err(refused.detail("logs", json!(logs)));
                    }
                };
                if agreement.is_some() {
                    // The approval may have taken a while.
                    changes = with_past(end.overlay.changes(), invocation.workspace).await?;
                }
                let statements = end.sql.as_ref().map(SqlRun::notes).unwrap_or_default();
                if inner || !invocation.context.dry_run {
                    let growth = match grow(invocation, &changes) {
                        Ok(growth) => growth,
                        Err(refused) => {
                            end.undo().await;
                            return Err(refused.detail("logs", json!(logs)));
                        }
                    };
                    let check = agreement.map(|agreement| pre_commit_check(agreement, invocation, &changes));
                    end.commit(check).await?;
                    growth.keep();
                } else {
                    end.undo().await;
                }
                Ok(ToolRun { result, logs, stats, changes, statements, warnings })
            }
            Err(error) => {
                end.undo().await;
                let error = failure::explain(&error, &prepared.graph, &bridge.answered)
                    .detail("logs", json!(logs))
                    .detail("stats", json!(stats));
                Err(if warnings.is_empty() { error } else { error.detail("warnings", json!(warnings)) })
            }
        }
    }

    fn run_options(&self) -> ToolRunOptions {
        ToolRunOptions {
            limits: self.options.limits,
            seed: self.options.seed,
            frozen_clock_ms: self.options.frozen_clock_ms,
        }
    }

    /// The value of a configuration file that was compiled before and consists of literals: nothing has to run for it.
    #[must_use]
    pub fn known_config(
        cache: &BytecodeCache,
        unit: &Unit,
        environment: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Option<ConfigValue> {
        let module = cache.module(&program::module_key(cache, unit))?;
        let CompiledModule { literal, environment: variables, .. } = &module.compiled;
        let value = literal.as_ref()?.resolve(environment)?;
        Some(ConfigValue { value, variables: variables.clone() })
    }

    /// The value of any configuration file. It is compiled and, unless it consists of literals, run in a worker. It sees the
    /// environment variables it names and nothing else.
    ///
    /// # Errors
    /// When it does not compile or throws.
    pub async fn evaluate_config(
        &self,
        unit: Unit,
        environment: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<ConfigValue, ToolError> {
        let nothing: Arc<dyn FileSystem> = Arc::new(tgp_fs::MemoryFs::new());
        let entry = unit.id.clone();
        let builder = GraphBuilder::for_unit(self.graph_host(&nothing), unit).map_err(|error| error.0)?;
        let prepared = prepare(self, builder, &mut Sources::Own).await?;
        let variables = prepared.environment(&entry);
        if let Some(value) = prepared.literal().and_then(|literal| literal.resolve(environment)) {
            return Ok(ConfigValue { value, variables });
        }
        let given = |name: &String| environment(name).map(|value| (name.clone(), value));
        let input = RunInput {
            arguments: Value::Null,
            call_default: false,
            environment: variables.iter().filter_map(given).collect(),
        };
        let bridge = bridge::NoBridge("a configuration is read");
        let options = ToolRunOptions::default();
        let report = self.run_in_sandbox(&prepared.program, input, options, &bridge).await?;
        let value = report
            .result
            .map_err(|error| failure::explain(&error, &prepared.graph, &AnsweredErrors::default()))?;
        Ok(ConfigValue { value, variables })
    }

    /// How the workers are locked.
    ///
    /// # Errors
    /// When no worker can be had.
    pub async fn lock_report(&self) -> Result<tgp_jail::LockReport, ToolRuntimeError> {
        Ok(self.sandbox.lock_report().await?)
    }
}

/// What a configuration file is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigValue {
    pub value: Value,
    /// The variables of the environment that it names.
    pub variables: Vec<String>,
}

/// A successful run.
pub struct ToolRun {
    pub result: Value,
    pub logs: Vec<LogLine>,
    pub stats: RunStats,
    pub changes: Vec<RunChange>,
    /// What its SQL did.
    pub statements: SqlNotes,
    /// What the caller should know about its arguments.
    pub warnings: Vec<String>,
}
