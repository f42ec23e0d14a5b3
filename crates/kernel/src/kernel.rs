//! A running kernel: what an embedding program holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_audit::{Audit, VerifyReport};
use tgp_contract::{
    Actor, CallContext, CapabilityToken, Code, Consent, Database, DeclaredTypes, FileSystem, GateRequest,
    RelativePath, SqlAccess, TddState, ToolCall, ToolDefinition, ToolError, ToolResult,
};
use tgp_fs::DiskFs;
use tgp_git::RepositoryStatus;
use tgp_policy::{Caveats, Grant, PolicyExplanation};
use tgp_router::gates::{PolicyGate, StateGate, TokenAuthority};
use tgp_router::{CallsInFlight, Router};
use tgp_tdd::Scope;
use tgp_tool_runtime::{StartupNotices, ToolLibrary, ToolRuntime};
use tgp_upstream::{HostModules, Upstreams};

use crate::approvals::Approvals;
use crate::boot::Environment;
use crate::config::Config;
use crate::knowledge::Knowledge;
use crate::project_access::ProjectAccess;
use crate::records::Decision;
use crate::state_directory::StateDirectory;
use crate::trust::Trust;

/// How long a shutdown waits for effects that are being made; what is not done by then is recorded as unknown.
const COMMIT_PATIENCE: Duration = Duration::from_secs(30);
/// How long a database may take to answer a person who asks whether it is there.
const DATABASE_PATIENCE: Duration = Duration::from_secs(5);

/// A running kernel.
pub struct Kernel {
    parts: Arc<KernelInner>,
}

/// The calls and transactions of a kernel, for a program that ends it without [`Kernel::shutdown`]. It keeps no worker
/// alive.
pub struct OpenWork {
    calls: CallsInFlight,
    database: Arc<dyn Database>,
}

impl std::fmt::Debug for OpenWork {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OpenWork").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl OpenWork {
    /// Completes when every call has left its record and every transaction has ended.
    pub async fn finished(&self) {
        self.calls.finished().await;
        self.database.finished().await;
    }
}

/// What boot has put together.
pub(crate) struct KernelInner {
    pub(crate) config: Config,
    pub(crate) project: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) access: ProjectAccess,
    pub(crate) router: Arc<Router>,
    pub(crate) forge: Arc<ToolRuntime>,
    pub(crate) library: Arc<ToolLibrary>,
    pub(crate) opening: StartupNotices,
    pub(crate) database: Arc<dyn Database>,
    pub(crate) database_name: String,
    pub(crate) audit: Arc<Audit>,
    pub(crate) state: Arc<StateGate>,
    pub(crate) policy: Arc<PolicyGate>,
    pub(crate) tokens: Arc<TokenAuthority>,
    pub(crate) environment: Environment,
    pub(crate) trust: Trust,
    pub(crate) knowledge: Knowledge,
    pub(crate) upstream: Arc<Upstreams>,
    pub(crate) host_modules: Option<Arc<HostModules>>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Kernel").field("root", &self.parts.root).finish_non_exhaustive()
    }
}

impl Kernel {
    pub(crate) fn new(parts: KernelInner) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// Another hold on the same kernel, for work that outlives a borrow. Workers end when the last one is gone.
    pub(crate) fn share(&self) -> Self {
        Self { parts: Arc::clone(&self.parts) }
    }

    #[must_use]
    pub fn config(&self) -> &Config {
        &self.parts.config
    }

    /// The project directory.
    #[must_use]
    pub fn project(&self) -> &Path {
        &self.parts.project
    }

    /// The agent's root on disk.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.parts.root
    }

    /// Where this kernel keeps what is not source: `.state` of the tool repository, or a directory of the user for a project
    /// that this user does not own or cannot write.
    #[must_use]
    pub fn state_path(&self) -> &Path {
        self.parts.access.state().path()
    }

    pub(crate) fn state_directory(&self) -> &StateDirectory {
        self.parts.access.state()
    }

    /// What a person should know about the start, one sentence each: conflicts and repairs of the tool repository.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.parts.opening.notices
    }

    /// Why the remote of the tools could not be reached; the local ones are used then.
    #[must_use]
    pub fn offline(&self) -> Option<&str> {
        self.parts.opening.offline.as_deref()
    }

    /// Whether the database of `exec_sql` answers. A SQLite file that does not exist yet is made by this.
    ///
    /// # Errors
    /// `ESQL` with the reason.
    pub async fn check_database(&self) -> Result<(), ToolError> {
        let begun =
            tokio::time::timeout(DATABASE_PATIENCE, self.parts.database.begin(SqlAccess::ReadWrite)).await;
        let late =
            || ToolError::new(Code::Sql, format!("no answer within {} s", DATABASE_PATIENCE.as_secs()));
        begun.map_err(|_| late())??.rollback().await;
        Ok(())
    }

    /// What a forged tool declares of its arguments, when it is there and compiles.
    pub(crate) async fn declared_types(&self, path: &RelativePath) -> Option<DeclaredTypes> {
        let tools: Arc<dyn FileSystem> = Arc::new(DiskFs::open(&self.parts.root).ok()?);
        self.parts.forge.declared_types(&tools, path).await
    }

    /// The database of `exec_sql`, without its password.
    #[must_use]
    pub fn database_name(&self) -> &str {
        &self.parts.database_name
    }

    /// The state of the tool repository.
    ///
    /// # Errors
    /// `EGIT`.
    pub async fn repository(&self) -> Result<RepositoryStatus, ToolError> {
        self.parts.library.status().await
    }

    /// The JSON Schema of a tool's results; none where there is no such tool, or its results can be anything.
    #[must_use]
    pub fn output_schema(&self, tool: &str) -> Option<serde_json::Value> {
        self.parts.router.output_schema(tool)
    }

    /// Every tool an agent can call.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.parts.router.definitions()
    }

    /// Takes a call through the router.
    pub async fn call_with(&self, call: ToolCall, context: CallContext) -> ToolResult {
        self.parts.router.call(call, context).await
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

    /// The chronicle, the code graph and the Guardian.
    #[must_use]
    pub fn knowledge(&self) -> &Knowledge {
        &self.parts.knowledge
    }

    /// What this kernel believes without asking.
    pub(crate) fn trust(&self) -> &Trust {
        &self.parts.trust
    }

    /// The approvals of this project that wait for a person. `None` without a home of the user.
    ///
    /// # Errors
    /// `ESECURITY` when they would be kept inside the project.
    pub fn approvals(&self) -> Result<Option<Approvals>, ToolError> {
        Approvals::of_user(&self.parts.environment, &self.parts.project)
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.parts.environment
    }

    /// What tools can import from upstream servers.
    #[must_use]
    pub fn upstream_modules(&self) -> Vec<String> {
        let names = self.parts.upstream.store().names().unwrap_or_default();
        names.into_iter().map(|name| format!("{}{name}", tgp_upstream::SPECIFIER)).collect()
    }

    /// What tools can import from the embedding program.
    #[must_use]
    pub fn host_modules(&self) -> Vec<String> {
        self.parts.host_modules.iter().flat_map(|modules| modules.specifiers()).collect()
    }

    /// What a session calls, and the source of its work state.
    pub(crate) fn session_parts(&self) -> (Arc<Router>, Arc<StateGate>, Arc<Audit>) {
        (Arc::clone(&self.parts.router), Arc::clone(&self.parts.state), Arc::clone(&self.parts.audit))
    }

    /// What an inquiry reads.
    pub(crate) fn inquiry_parts(&self) -> (&Arc<ToolLibrary>, &Arc<Audit>) {
        (&self.parts.library, &self.parts.audit)
    }

    /// The state of test-driven work.
    #[must_use]
    pub fn state(&self) -> &StateGate {
        &self.parts.state
    }

    /// The rules in force.
    #[must_use]
    pub fn policy(&self) -> &PolicyGate {
        &self.parts.policy
    }

    /// Why a call would be judged as it would be, rule by rule. Nothing runs.
    ///
    /// # Errors
    /// When there is no such tool, its arguments do not fit, or the rules cannot be used.
    pub async fn explain(
        &self,
        call: &ToolCall,
        context: &CallContext,
    ) -> Result<PolicyExplanation, ToolError> {
        let (call, definition, targets) = self.parts.router.examine(call, context).await?;
        let request = GateRequest {
            serial: 0,
            call: &call,
            definition: &definition,
            context,
            targets: &targets,
            proposed: None,
        };
        self.parts.policy.explain(request).await
    }

    /// Makes a capability token of this kernel. What it may do is recorded before anyone has the token; the token is not.
    ///
    /// # Errors
    /// `EVALIDATION` for caveats that mean nothing; when the record cannot be written.
    pub async fn mint_token(&self, caveats: &Caveats) -> Result<CapabilityToken, ToolError> {
        let token = self.parts.tokens.mint(caveats)?;
        let id = self.parts.tokens.verify(&token)?.id().to_owned();
        let minted = Decision::new("token_mint", json!({ "id": id, "caveats": caveats }));
        self.record_decision(minted).await?.take_effect();
        Ok(token)
    }

    /// Ends a token with everything that was derived from it, or from the token that it was derived from itself. The warning says
    /// where the audit does not know of it.
    ///
    /// # Errors
    /// `EPOLICY` when the token is none of this kernel or has ended; `EINTERNAL` when it cannot be kept.
    pub async fn revoke_token(&self, token: &CapabilityToken) -> Result<Option<String>, ToolError> {
        let grant = self.parts.tokens.revoke(token)?;
        let revoked = Decision::new("token_revoke", json!({ "family": grant.family_id() }));
        Ok(self.record_tightening(revoked).await)
    }

    /// Sets the state of a piece of work on a person's command. Only `halted` is set where it cannot be recorded: it
    /// tightens. The warning says so.
    ///
    /// # Errors
    /// `ESTATE` when the state cannot be set so; in a project of another user; when the record cannot be written.
    pub async fn set_state(&self, scope: &Scope, state: TddState) -> Result<Option<String>, ToolError> {
        const ACT: &str = "state_set";
        self.parts.access.check_effects()?;
        let content = json!({ "scope": scope, "state": state });
        let gate = &self.parts.state;
        if state == TddState::Halted {
            gate.tdd().set(scope, state, gate.disk())?;
            return Ok(self.record_tightening(Decision::new(ACT, content)).await);
        }
        self.record_decision(Decision::new(ACT, content.clone())).await?.take_effect();
        let set = gate.tdd().set(scope, state, gate.disk());
        if let Err(error) = &set {
            self.record_act(ACT, content, ToolResult::Failed(error.clone())).await?;
        }
        set.map(|()| None)
    }

    /// How much of the audit was verified when the kernel started: the newest entry then, and how many entries up to it.
    #[must_use]
    pub fn verified_at_start(&self) -> (u64, u64) {
        (self.parts.audit.opened_at().sequence, self.parts.audit.verified())
    }

    /// Verifies the whole audit, from its first entry.
    ///
    /// # Errors
    /// `EINTEGRITY` with the first broken entry.
    pub async fn verify_audit(&self) -> Result<VerifyReport, ToolError> {
        self.parts.audit.verify_whole().await
    }

    pub(crate) fn audit(&self) -> &Audit {
        &self.parts.audit
    }

    /// Whether a token is one of this kernel. What it allows is checked with every call.
    ///
    /// # Errors
    /// `EPOLICY`.
    pub fn check_token(&self, token: &CapabilityToken) -> Result<Grant, ToolError> {
        self.parts.tokens.verify(token)
    }

    /// Waits until everything that was recorded is written and anchored.
    ///
    /// # Errors
    /// When it cannot be.
    pub async fn flush(&self) -> Result<(), ToolError> {
        self.parts.audit.flush().await.map(|_| ())
    }

    /// How this kernel's workers are locked.
    ///
    /// # Errors
    /// When no worker can be had.
    pub async fn lock_report(&self) -> Result<tgp_jail::LockReport, ToolError> {
        Ok(self.parts.forge.lock_report().await?)
    }

    /// What is left to wait for after this kernel's callers were dropped.
    #[must_use]
    pub fn open_work(&self) -> OpenWork {
        let calls = self.parts.router.calls_in_flight();
        OpenWork { calls, database: Arc::clone(&self.parts.database) }
    }

    /// Waits for calls that are past their point of no return, ends every worker and waits until they are gone.
    pub async fn shutdown(self) {
        tracing::debug!(target: "kernel", "ends");
        self.parts.router.wait_for_detached(COMMIT_PATIENCE).await;
        // Ending workers waits for threads, which an asynchronous task must not do.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}
