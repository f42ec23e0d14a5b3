//! The kernel an embedding program uses: configuration, boot, calls, shutdown.
//!
//! ```no_run
//! # async fn example() -> Result<(), tgp::BootError> {
//! let kernel = tgp::Kernel::boot(tgp::BootOptions::new("/srv/app")).await?;
//! let result = kernel.call("exec_tool", serde_json::json!({ "path": "tools/math/fib.ts", "args": { "n": 10 } })).await;
//! kernel.shutdown().await;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod beginnings;
mod boot;
mod clients;
mod config;
mod door;
mod kernel;
mod knowledge;
mod queries;
mod records;
mod scaffold;
mod sessions;
mod settings;
mod tokens;
mod trust;
mod valve;

pub use boot::{BootError, BootOptions, Environment, SecretsListener};
pub use clients::ClientClaim;
pub use config::{
    AuditConfig, AuditDurability, ChronicleConfig, ChronicleDurability, Config, ConfigError, ConfigProblem,
    DatabaseConfig, EmbeddingsConfig, FsConfig, GitAuth, GitConfig, GitProvider, GraphConfig, GuardianConfig,
    JailConfig, LlmConfig, LlmPatience, OnDuplicate, PolicyConfig, RegistryConfig, SandboxConfig, TddConfig,
    WriteStrategy,
};
pub use kernel::{Kernel, OpenWork};
pub use knowledge::Knowledge;
pub use queries::{QueryRequest, ResumedQuery, RunInfo, RunState, Runs, choose_query};
pub use records::{open_records, restart_records};
pub use scaffold::{ScaffoldError, Scaffolded, initialise};
pub use sessions::{
    Bounds, ModelChoice, Replay, ResumeRequest, Sealed, SessionInfo, SessionRequest, SessionState, Sessions,
};
pub use tgp_agent::{
    AgentEvent, AuditRange, Budgets, Ending, Line, LineKind, Prices, Replayed, StopHandle, StopLevel,
    StopSignal, Summary, TestCount, TouchedFile,
};
pub use tgp_aql::{
    Compiled, Estimate, Explanation as QueryExplanation, Plan, PlannedCall, PlannedStep, PredictedVerdict,
    Problem, Problems, RunEvent, RunReport, Source, Type as QueryType, ValueSource, format as format_queries,
};
pub use tgp_audit::{AuditReader, Entry, Filter, Format, Redaction, Report, Restarted, VERDICTS};
pub use tgp_builtins::results;
pub use tgp_chronicle::{Migration, MigrationReport, Report as ChronicleReport};
pub use tgp_contract as contract;
pub use tgp_fs::open_plain;
pub use tgp_git::Status as RepositoryStatus;
pub use tgp_guardian::{
    Assertion, Gravity, Guardian, PlanOutcome, PlanReport, Reconciled, Review, StepStatus,
};
pub use tgp_jail::{LockReport, ProcessSupport, probe as probe_jail, process_support};
pub use tgp_policy::{Caveats, Explanation, Finding, Grant, RuleEffect, attenuate as attenuate_token};
pub use tgp_router::files::unified_diff;
pub use tgp_router::gates::{ForeignRules, StateGate};
pub use tgp_router::{DenyAll, RecentCalls};
pub use tgp_sandbox::{WORKER_ARGUMENT, release_free_memory};
pub use tgp_tdd::{Scope, ScopeStatus};
pub use tgp_tool_runtime::native_type_checker;
pub use tgp_valve::{
    Look, Persona, PersonaStatus, Personas, ScanReport, Status as ValveStatus, Valve, ValveEvent,
};
pub use trust::{
    Confirmations, ConfirmedFields, ConfirmedRules, SensitiveField, Trust, TrustPrompt, TrustRequest,
    TrustStore, fields_hash, rules_hash, trust_request,
};
pub use valve::ValveRequest;

/// Serves as a sandbox worker when the process was started as one; call it first thing in `main`.
#[must_use]
pub fn worker_main() -> Option<std::process::ExitCode> {
    tgp_sandbox::worker_main(&tgp_tool_runtime::ForgeFrontend)
}
