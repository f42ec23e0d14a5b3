//! A kernel for one command.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use serde_json::Value;
use tgp::agent::Sessions;
use tgp::aql::Runs;
use tgp::audit::{AuditReader, Decision, RecordedDecision, SystemUser};
use tgp::contract::{Actor, Approver, CallContext, Code, Consent, TddMode, ToolCall, ToolError};
use tgp::gates::DenyAll;
use tgp::trust::{Confirmations, SensitiveField, Trust, TrustPrompt};
use tgp::{BootOptions, Environment, Kernel, OpenWork};

use crate::approval;
use crate::arguments::Global;
use crate::exit::{Failure, ShownError};
use crate::printer::Printer;
use crate::text::{shown_invariants, shown_sources, single_line, visible};

/// What the kernels of a command still have to do when it ends early. A command boots few of them.
#[derive(Clone, Debug, Default)]
pub struct BootedKernels(Arc<Mutex<Vec<OpenWork>>>);

impl BootedKernels {
    fn add(&self, work: OpenWork) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(work);
    }

    /// Waits until every call has ended and every transaction is closed, or the time is up.
    pub async fn finished(&self, patience: Duration) {
        let kernels = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let finished = async {
            for kernel in kernels {
                kernel.finished().await;
            }
        };
        let _ = tokio::time::timeout(patience, finished).await;
    }
}

/// Where bytecode is cached: `TGP_CACHE_DIR`, else the user's cache directory.
const CACHE_VARIABLE: &str = "TGP_CACHE_DIR";

/// The project that a command works on: the one that its directory is in, or that directory itself.
pub fn directory(global: &Global) -> Result<PathBuf, Failure> {
    let directory = working_directory(global)?;
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    Ok(tgp::project::find_project(&directory, home.as_deref()).unwrap_or(directory))
}

/// The directory that a command was started in, or that `-C` names.
pub fn working_directory(global: &Global) -> Result<PathBuf, Failure> {
    let directory = global.directory.clone().unwrap_or_else(|| PathBuf::from("."));
    if directory.is_dir() {
        return Ok(directory);
    }
    Err(ToolError::new(Code::Config, format!("`{}` is not a directory", directory.display()))
        .help("make it first, or name another with -C")
        .into())
}

pub fn cache_directory() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable(CACHE_VARIABLE)
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("tgp/bytecode")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/tgp/bytecode")))
}

/// The environment of this process.
pub fn environment() -> Environment {
    Arc::new(|name| std::env::var(name).ok())
}

pub fn boot_options(directory: PathBuf) -> BootOptions {
    let environment = environment();
    let prompt = Arc::new(TerminalPrompt) as Arc<dyn TrustPrompt>;
    BootOptions {
        cache_directory: cache_directory(),
        trust: Trust::Confirmed(Confirmations::of_user(&environment, Some(prompt))),
        environment,
        ..BootOptions::new(directory)
    }
}

/// The options of a command: its configuration file, and a log that learns the secrets in it.
fn project_options(global: &Global, directory: PathBuf) -> BootOptions {
    let log = global.log.clone();
    BootOptions {
        config_file: global.config.clone(),
        first_worker: global.first_worker,
        key_variables: global.key_variable.iter().cloned().collect(),
        secrets_listener: Some(Arc::new(move |redaction| log.learn_secrets(redaction))),
        ..boot_options(directory)
    }
}

/// Asks at the terminal for confirmations, and reports what was ignored without one.
struct TerminalPrompt;

/// Some commands read the configuration twice, and one warning is enough.
static HAS_WARNED: AtomicBool = AtomicBool::new(false);

#[async_trait]
impl TrustPrompt for TerminalPrompt {
    async fn confirm(&self, unconfirmed: &[SensitiveField]) -> bool {
        if HAS_WARNED.load(Ordering::Relaxed) || !approval::can_ask() {
            return false;
        }
        if let Err(error) = unconfirmed.iter().try_for_each(SensitiveField::check_supported) {
            let help = error.help_of().unwrap_or_default();
            Printer::new(false).warn(&format!("{}; {help}", error.message));
            return false;
        }
        let text = format!(
            "This project's configuration has fields that take effect only when you confirm them:\n{}",
            shown_fields(unconfirmed)
        );
        approval::confirm(&text, "Confirm them?").await
    }

    fn ignored(&self, warning: &str) {
        if !HAS_WARNED.swap(true, Ordering::Relaxed) {
            Printer::new(false).warn(&visible(warning));
        }
    }
}

/// Fields as a person reads them before confirming them.
pub fn shown_fields(fields: &[SensitiveField]) -> String {
    let line = |field: &SensitiveField| {
        format!("  {}  {}\n      {}\n", field.name, single_line(&field.value.to_string()), field.allows)
    };
    fields.iter().map(line).collect()
}

/// Boots the kernel of the command's directory, and says what it had to say meanwhile.
pub async fn boot(
    global: &Global,
    approver: Option<Arc<dyn Approver>>,
    printer: &Printer,
) -> Result<Kernel, Failure> {
    let kernel = boot_to_sync(global, approver, printer).await?;
    warn_when_offline(&kernel, printer);
    Ok(kernel)
}

fn warn_when_offline(kernel: &Kernel, printer: &Printer) {
    if let Some(why) = kernel.offline() {
        printer
            .warn(&format!("the tools were not updated from the remote, so the local ones are used: {why}"));
    }
}

/// The same for a command that will try the remote by itself, and say what came of it.
pub async fn boot_to_sync(
    global: &Global,
    approver: Option<Arc<dyn Approver>>,
    printer: &Printer,
) -> Result<Kernel, Failure> {
    let approver = approver.unwrap_or_else(|| Arc::new(DenyAll));
    boot_with(global, printer, |options| BootOptions { approver, ..options }).await
}

async fn boot_with(
    global: &Global,
    printer: &Printer,
    adapt: impl FnOnce(BootOptions) -> BootOptions,
) -> Result<Kernel, Failure> {
    let directory = directory(global)?;
    let options = adapt(project_options(global, directory.clone()));
    let booted = Kernel::boot(options).await.map_err(|error| {
        let error = ToolError::from(error);
        // A configuration that does not compile is shown at its own line.
        let source = error.place_of().and_then(|place| {
            let file = global.config.clone().unwrap_or_else(|| PathBuf::from(place.file));
            std::fs::read_to_string(directory.join(file)).ok()
        });
        Failure::Error(Box::new(ShownError { error, source }))
    });
    if let Ok(kernel) = &booted {
        global.kernels.add(kernel.open_work());
        kernel.notices().iter().for_each(|notice| printer.warn(notice));
    }
    booted
}

/// Boots the kernel that an agent works with.
pub async fn boot_for_session(
    global: &Global,
    approver: Arc<dyn Approver>,
    mode: Option<TddMode>,
    printer: &Printer,
) -> Result<Kernel, Failure> {
    let kernel =
        boot_with(global, printer, |options| BootOptions { approver, tdd_mode: mode, ..options }).await?;
    warn_when_offline(&kernel, printer);
    if !printer.json() {
        printer.note(&rules_line(&kernel).await);
    }
    Ok(kernel)
}

/// Returns what holds the agent of a session: where its rules and invariants come from.
async fn rules_line(kernel: &Kernel) -> String {
    let rules = kernel.policy().listing().await.map(|listing| shown_sources(&listing));
    let invariants = kernel.knowledge().guardian().invariants();
    let file = kernel.knowledge().invariants_file();
    let invariants = invariants.map(|found| shown_invariants(found.len(), file));
    let shown = |found: Result<String, ToolError>| found.unwrap_or_else(|error| error.message);
    format!("{}; {}", shown(rules), shown(invariants))
}

/// Boots the kernel of a program that drives this process. What a person should know is told to that program.
pub async fn boot_for_host(
    global: &Global,
    adapt: impl FnOnce(BootOptions) -> BootOptions,
) -> Result<Kernel, ToolError> {
    let directory = match directory(global) {
        Ok(directory) => directory,
        Err(Failure::Error(shown)) => return Err(shown.error),
        Err(_) => return Err(ToolError::new(Code::Config, "the directory cannot be used")),
    };
    let kernel = Kernel::boot(adapt(project_options(global, directory))).await?;
    global.kernels.add(kernel.open_work());
    Ok(kernel)
}

/// Ends the workers, unless a call that takes effect still holds the kernel: then the process waits for its record.
pub async fn end(kernel: Arc<Kernel>) {
    if let Ok(kernel) = Arc::try_unwrap(kernel) {
        kernel.shutdown().await;
    }
}

/// The sessions of the command's directory, without booting on it.
pub async fn sessions(global: &Global) -> Result<Sessions, Failure> {
    Ok(Sessions::open(&records_options(global)?).await.map_err(ToolError::from)?)
}

/// The runs of queries of the command's directory, without booting on it.
pub async fn runs(global: &Global) -> Result<Runs, Failure> {
    Ok(Runs::open(&records_options(global)?).await.map_err(ToolError::from)?)
}

/// The audit of the command's directory, without booting on it.
pub async fn records(global: &Global) -> Result<AuditReader, Failure> {
    Ok(tgp::audit::open_records(&records_options(global)?).await.map_err(ToolError::from)?)
}

/// The user's own chain: decisions outside of projects.
pub fn user_records() -> Result<AuditReader, Failure> {
    Ok(tgp::audit::open_user_records(&environment())?)
}

/// Records what a person decides, before it takes effect.
pub async fn record_decision(global: &Global, decision: Decision) -> Result<RecordedDecision, Failure> {
    Ok(tgp::audit::record_decision(&records_options(global)?, decision).await?)
}

/// Records what a person takes back. It holds in any case, so a record that fails is a warning.
pub async fn record_tightening(
    global: &Global,
    decision: Decision,
    printer: &Printer,
) -> Result<(), Failure> {
    if let Some(warning) = tgp::audit::record_tightening(&records_options(global)?, decision).await {
        printer.warn(&visible(&warning));
    }
    Ok(())
}

/// What a command needs that reads a project without booting on it.
pub fn records_options(global: &Global) -> Result<BootOptions, Failure> {
    Ok(project_options(global, directory(global)?))
}

/// The operating system's user who runs this process. The environment has no say: it can be chosen.
pub fn user_name() -> String {
    SystemUser::of_process(&environment()).name
}

/// A command that a person types counts as approved by typing it.
pub fn typed(dry_run: bool) -> CallContext {
    CallContext {
        actor: Actor::Person(user_name()),
        session: "cli".to_owned(),
        consent: Consent::Given,
        dry_run,
        depth: 0,
        token: None,
    }
}

/// Calls a kernel tool for a command; an error is shown at the source it points into.
pub async fn call(
    kernel: &Kernel,
    tool: &str,
    arguments: Value,
    context: CallContext,
) -> Result<Value, Failure> {
    let call = ToolCall { id: "cli".to_owned(), tool: tool.to_owned(), arguments };
    let result = kernel.call_with(call, context).await.into_result();
    result.map_err(|error| {
        let source = error.place_of().and_then(|place| source_of(kernel, &place.file));
        Failure::Error(Box::new(ShownError { error, source }))
    })
}

/// The text of a file of the tool repository, for a screen.
pub fn source_of(kernel: &Kernel, file: &str) -> Option<String> {
    let path = tgp::contract::RelativePath::new(file).ok()?;
    std::fs::read_to_string(kernel.root().join(path.as_str())).ok()
}
