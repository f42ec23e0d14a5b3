//! The record of what a person decides: confirmations, approvals, tokens, pins. A decision that loosens a rule is written
//! before it takes effect, in the audit of its project, or in the user's own chain outside of one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tgp_audit::{
    Anchor, Audit, AuditOptions, AuditReader, FileAnchor, RecordedDecision, Restarted, Restarter,
};
use tgp_contract::{
    Actor, CallContext, CallRecord, Code, Consent, Effect, GateDecision, GateVerdict, Recorder, ToolCall,
    ToolError, ToolResult, background,
};
use tgp_fs::{KERNEL_DIRECTORY, user_name};

use super::audit_options;
use crate::Kernel;
use crate::boot::{BootContext, BootError, BootOptions, Environment};
use crate::config::Config;
use crate::project_access::{ProjectAccess, check_own};
use crate::trust::{Confirmations, Trust};
use crate::{settings, user_state};

/// The files of the user's own chain, below the user's state directory.
const USER_AUDIT: &str = "audit.sqlite";
const USER_ANCHOR: &str = "audit-anchor";
/// The session of entries that no call made.
const SESSION: &str = "kernel";
/// Characters of the name that `sudo` reports.
const MAX_NAME_CHARS: usize = 64;

/// The operating system's user who runs this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemUser {
    /// The name in the system's list of users; `uid N` for a user that is not in it.
    pub name: String,
    pub uid: u32,
    /// The user who called `sudo`, as `sudo` reports it: information, and not the actor.
    pub sudo_user: Option<String>,
}

impl SystemUser {
    /// Returns the user of this process. The environment names `SUDO_USER` only: everything else in it can be chosen.
    #[must_use]
    pub fn of_process(environment: &Environment) -> Self {
        let uid = nix::unistd::geteuid().as_raw();
        let sudo_user = environment("SUDO_USER").filter(|name| !name.trim().is_empty());
        Self {
            name: user_name(uid),
            uid,
            sudo_user: sudo_user.map(|name| tgp_text::one_line(&name, MAX_NAME_CHARS)),
        }
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor::Person(self.name.clone())
    }

    /// Returns the fields of an entry that name the user.
    pub(crate) fn document(&self) -> Value {
        let mut document = json!({ "name": self.name, "uid": self.uid });
        if let (Some(sudo), Some(fields)) = (&self.sudo_user, document.as_object_mut()) {
            fields.insert("sudoUser".to_owned(), json!(sudo));
        }
        document
    }
}

/// A person's decision, as its entry names it. It holds no secret: a token is named by its id, a text by its hash.
#[derive(Clone, Debug)]
pub struct Decision {
    name: &'static str,
    content: Value,
}

impl Decision {
    /// A decision with the fields of its entry.
    #[must_use]
    pub fn new(name: &'static str, content: Value) -> Self {
        Self { name, content }
    }

    /// Returns the entry of the decision of a user.
    pub(crate) fn record(self, user: &SystemUser, result: ToolResult) -> CallRecord {
        let mut arguments = self.content;
        if let Some(fields) = arguments.as_object_mut() {
            fields.insert("user".to_owned(), user.document());
        }
        let call = ToolCall { id: self.name.to_owned(), tool: self.name.to_owned(), arguments };
        let context = CallContext {
            actor: user.actor(),
            session: SESSION.to_owned(),
            consent: Consent::Given,
            dry_run: false,
            depth: 0,
            token: None,
        };
        CallRecord {
            tool: Some(self.name.to_owned()),
            effect: Some(Effect::Write),
            verdicts: vec![GateVerdict::approval(GateDecision::Approved, "typed")],
            started_ms: tgp_text::now_ms(),
            ..CallRecord::ended(call, context, result)
        }
    }
}

/// One audit: its database, and the anchor of its head.
pub(crate) struct Chain {
    options: AuditOptions,
    anchor: Arc<dyn Anchor>,
}

impl Chain {
    /// The chain of a project that no kernel may have looked at yet.
    ///
    /// # Errors
    /// `ESECURITY` when its tool repository leads elsewhere.
    fn of_context(context: &BootContext) -> Result<Self, ToolError> {
        let state = context.access.state();
        state.check_repository()?;
        Ok(Self { options: audit_options(context), anchor: state.audit_anchor() })
    }

    /// The chain of a project whose configuration is read, and does not take effect yet. `None` where it has no tools, and
    /// where `tgp audit` would not read the chain. `is_confirmed` says that this user has agreed to work in a project of another.
    pub(crate) fn of_project(
        (project, config): (&Path, &Config),
        secrets: &[String],
        is_confirmed: bool,
        environment: &Environment,
    ) -> Option<Self> {
        let root: PathBuf = project.join(&config.root_dir).components().collect();
        if !root.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            return None;
        }
        let access = ProjectAccess::decide(project, &root, is_confirmed, environment).ok()?;
        let state = access.state();
        let checked = settings::check_state(state.path()).and_then(|()| state.check_repository());
        if !access.is_recorded_here() || checked.is_err() {
            return None;
        }
        let mut options = AuditOptions::new(state.audit_file());
        options.secret_names.clone_from(&config.audit.redact_names);
        options.secret_values = secrets.to_vec();
        Some(Self { options, anchor: state.audit_anchor() })
    }

    /// The user's own chain, for decisions outside of a project.
    ///
    /// # Errors
    /// `ECONFIG` without a home and in that of another user, `ESECURITY` when it would be inside the project.
    pub(crate) fn of_user(environment: &Environment, directory: &Path) -> Result<Self, ToolError> {
        let state = user_state::directory(environment).ok_or_else(|| {
            ToolError::new(Code::Config, "there is no place to record decisions: HOME is not set")
                .help("set TGP_HOME to an absolute path outside of every project")
        })?;
        let is_project = directory.join(KERNEL_DIRECTORY).is_dir();
        if is_project {
            user_state::check_outside(&state, directory, "records of decisions")?;
        }
        check_own(&state)?;
        let anchor = FileAnchor::new(state.join(USER_ANCHOR));
        Ok(Self { options: AuditOptions::new(state.join(USER_AUDIT)), anchor: Arc::new(anchor) })
    }

    /// Finds the chain for decisions in a directory: the one that `tgp audit` reads there, or the user's own, also in a project
    /// that this user only reads. A configuration that cannot be read does not keep a person from deciding, so the project's
    /// usual place is used then.
    async fn find(options: &BootOptions) -> Result<Self, ToolError> {
        match BootContext::find(&silent(options)).await {
            // A tool repository that is still to come from its remote is not begun with a record.
            Ok(context) if context.root.is_dir() && context.access.is_recorded_here() => {
                return Self::of_context(&context).map_err(|error| unrecorded(&error));
            }
            Ok(_) | Err(BootError::NotInitialised(_)) => {}
            Err(_) => {
                let directory =
                    options.directory.canonicalize().unwrap_or_else(|_| options.directory.clone());
                let place = (directory.as_path(), &Config::default());
                if let Some(chain) = Self::of_project(place, &[], false, &options.environment) {
                    return Ok(chain);
                }
            }
        }
        Self::of_user(&options.environment, &options.directory)
    }

    /// Writes one entry, and returns once it is written and anchored.
    pub(crate) async fn record(
        self,
        user: &SystemUser,
        decision: Decision,
    ) -> Result<RecordedDecision, ToolError> {
        let opened = background::run(move || Audit::open(self.options, self.anchor)).await;
        let audit = opened.map_err(|error| unrecorded(&error))?;
        let recorded = audit.record_decision(decision.record(user, ToolResult::Done(Value::Null))).await;
        let closed = audit.close().await;
        let recorded = recorded.map_err(|error| unrecorded(&error))?;
        closed.map(|()| recorded).map_err(|error| unrecorded(&error))
    }
}

/// Returns the options without a question at the terminal: a decision is recorded before anything is asked again.
fn silent(options: &BootOptions) -> BootOptions {
    let trust = match &options.trust {
        Trust::Confirmed(known) => Trust::Confirmed(Confirmations { prompt: None, ..known.clone() }),
        other => other.clone(),
    };
    BootOptions {
        config_file: options.config_file.clone(),
        worker: options.worker.clone(),
        first_worker: options.first_worker,
        cache_directory: options.cache_directory.clone(),
        environment: Arc::clone(&options.environment),
        key_variables: options.key_variables.clone(),
        trust,
        ..BootOptions::new(options.directory.clone())
    }
}

/// The error of a decision that could not be recorded, and so was not made.
fn unrecorded(error: &ToolError) -> ToolError {
    let message = format!("the decision was not recorded, so it does not hold: {}", error.message);
    let help = error.help_of().unwrap_or("`tgp audit verify` says more about the audit");
    ToolError::new(error.code, message).help(help)
}

/// Records a decision before it takes effect: in the audit of the project of `options`, or in the user's own chain.
///
/// # Errors
/// When the entry could not be written. Then the decision must not take effect.
pub async fn record_decision(
    options: &BootOptions,
    decision: Decision,
) -> Result<RecordedDecision, ToolError> {
    let user = SystemUser::of_process(&options.environment);
    Chain::find(options).await?.record(&user, decision).await
}

/// Records a decision that tightens. It holds in any case, so what is returned is a warning.
pub async fn record_tightening(options: &BootOptions, decision: Decision) -> Option<String> {
    let error = match record_decision(options, decision).await {
        Ok(recorded) => {
            recorded.take_effect();
            return None;
        }
        Err(error) => error,
    };
    Some(format!("this holds, but it is not in the audit: {}", error.message))
}

/// Opens the user's own chain to read and verify it.
///
/// # Errors
/// Without a home, or when nothing was recorded yet.
pub fn open_user_records(environment: &Environment) -> Result<AuditReader, ToolError> {
    let chain = Chain::of_user(environment, Path::new("/"))?;
    AuditReader::open(chain.options.path, chain.anchor)
}

/// Which audit a restart is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartScope {
    Project,
    /// The user's own chain.
    User,
}

/// Sets an audit aside and begins a new chain that says who did it and why.
///
/// # Errors
/// In a project that this user only reads; when the old one cannot be moved or the new one not be made.
pub async fn restart_records(
    options: &BootOptions,
    scope: RestartScope,
    reason: &str,
) -> Result<Restarted, BootError> {
    let chain = match scope {
        RestartScope::Project => {
            let context = BootContext::find(options).await?;
            context.access.check_kernel_files()?;
            Chain::of_context(&context)?
        }
        RestartScope::User => Chain::of_user(&options.environment, Path::new("/"))?,
    };
    let user = SystemUser::of_process(&options.environment);
    let restarter = Restarter { actor: user.actor(), user: user.document(), reason };
    Ok(tgp_audit::restart(&chain.options, &chain.anchor, &restarter, tgp_text::now_ms())?)
}

impl Kernel {
    /// Records a person's decision in this kernel's audit, before it takes effect.
    ///
    /// # Errors
    /// When the entry could not be written. Then the decision must not take effect.
    pub async fn record_decision(&self, decision: Decision) -> Result<RecordedDecision, ToolError> {
        let user = SystemUser::of_process(self.environment());
        let record = decision.record(&user, ToolResult::Done(Value::Null));
        self.audit().record_decision(record).await.map_err(|error| unrecorded(&error))
    }

    /// Records a decision that tightens. It holds in any case, so what is returned is a warning.
    pub async fn record_tightening(&self, decision: Decision) -> Option<String> {
        match self.record_decision(decision).await {
            Ok(recorded) => {
                recorded.take_effect();
                None
            }
            Err(error) => {
                tracing::warn!(target: "audit", "a decision is not in the audit: {}", error.message);
                Some(format!("this holds, but it is not in the audit: {}", error.message))
            }
        }
    }

    /// Records what the user of this process has the kernel do, with its end.
    pub(crate) async fn record_act(
        &self,
        act: &'static str,
        arguments: Value,
        result: ToolResult,
    ) -> Result<(), ToolError> {
        let user = SystemUser::of_process(self.environment());
        self.audit().record(Decision::new(act, arguments).record(&user, result)).await
    }
}
