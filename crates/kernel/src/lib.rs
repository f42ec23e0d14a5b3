//! The TGP kernel as a library: a program boots one on a project, calls tools, and shuts it down.
//!
//! Start with the [`prelude`]. Everything else is in the module of its subject: [`config`], [`gates`], [`audit`], [`agent`],
//! [`aql`], [`guardian`], [`valve`], [`trust`] and so on; [`contract`] holds the types that all of them share.
//!
//! ```standalone_crate
//! use tgp::prelude::*;
//!
//! # fn main() -> std::process::ExitCode {
//! // A kernel starts this program again as its sandbox worker.
//! if let Some(code) = worker_main() {
//!     return code;
//! }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example());
//! # std::process::ExitCode::SUCCESS
//! # }
//! # async fn example() {
//! let project = tempfile::tempdir().unwrap();
//! initialise(project.path()).unwrap();
//! # std::fs::remove_file(project.path().join("tgp.config.ts")).unwrap();
//! let kernel = Kernel::boot(BootOptions::new(project.path())).await.unwrap();
//! let answer = kernel.call("exec_sql", serde_json::json!({ "sql": "SELECT 6 * 7 AS answer" })).await;
//! match answer {
//!     ToolResult::Done(data) => assert_eq!(data["rows"][0]["answer"], 42),
//!     ToolResult::Failed(error) => panic!("{error}"),
//! }
//! kernel.shutdown().await;
//! # }
//! ```
//!
//! A gate of your own tightens what the kernel allows; it never loosens:
//!
//! ```
//! use async_trait::async_trait;
//! use tgp::prelude::*;
//!
//! /// Denies every statement that drops something.
//! struct NoDrops;
//!
//! #[async_trait]
//! impl Gate for NoDrops {
//!     fn stage(&self) -> Stage {
//!         Stage::Policy
//!     }
//!
//!     fn name(&self) -> &str {
//!         "no-drops"
//!     }
//!
//!     async fn judge(&self, request: GateRequest<'_>) -> Verdict {
//!         let text = request.call.arguments.to_string().to_lowercase();
//!         if request.call.tool == "exec_sql" && text.contains("drop") {
//!             let error = ToolError::new(Code::Policy, "this program drops no tables");
//!             return Verdict::Deny { rule: "drops".to_owned(), error };
//!         }
//!         Verdict::Allow { rule: "none".to_owned() }
//!     }
//! }
//!
//! let mut options = BootOptions::new("/srv/app");
//! options.gates.push(std::sync::Arc::new(NoDrops));
//! ```
#![forbid(unsafe_code)]

pub mod approvals;
mod audited_router;
mod boot;
mod clients;
pub mod config;
mod first_worker;
mod id_prefix;
mod kernel;
mod knowledge;
mod project_access;
mod project_place;
mod queries;
mod records;
mod scaffold;
mod sessions;
mod settings;
mod state_directory;
mod tokens;
mod tool_store;
pub mod trust;
pub mod upstream;
mod user_state;
pub mod valve;

pub use boot::{BootError, BootOptions, Environment, SecretsListener};
pub use first_worker::FirstWorker;
pub use kernel::{Kernel, OpenWork};
/// The results of the built-in tools, as every caller gets them.
pub mod results {
    pub use crate::sessions::{OtherEffect, UndoResult, UndoneFile, UnkeptFile};
    pub use tgp_builtins::results::*;
}
pub use tgp_contract as contract;
pub use tokens::BRIDGE_TOOLS;

/// Sessions of an agent: requests, events, budgets and recorded transcripts.
pub mod agent {
    pub use crate::sessions::{
        Bounds, KeySetup, ModelChoice, ModelSetup, ResumeRequest, SessionInfo, SessionReplay, SessionRequest,
        SessionState, Sessions, TestSetup, TranscriptIntegrity,
    };
    pub use tgp_agent::{
        AgentEvent, AuditRange, Budgets, Ending, Prices, Replayed, StopHandle, StopLevel, StopSignal,
        Summary, TestCount, TouchedFile, TranscriptLine, TranscriptLineKind, static_prompt,
    };
}

/// Queries: compiling, explaining and running AQL files.
pub mod aql {
    pub use crate::queries::{QueryRequest, ResumedQuery, RunInfo, RunState, Runs, choose_query};
    pub use tgp_aql::{
        CompiledQuery, Estimate, PlannedCall, PlannedStep, PredictedVerdict, QueryExplanation, QueryPlan,
        QueryProblem, QueryProblems, QueryType, RunEvent, RunReport, Source, ValueSource,
        format as format_queries,
    };
}

/// The tamper-evident record of calls: reading, verifying, exporting and restarting it.
pub mod audit {
    pub use crate::records::{
        Decision, RestartScope, SystemUser, open_records, open_user_records, record_decision,
        record_tightening, restart_records,
    };
    pub use tgp_audit::{
        AuditEntry, AuditFilter, AuditReader, ExportFormat, RecordedDecision, Redaction, Restarted, VERDICTS,
        VerifyReport,
    };
}

/// The chronicles of a project: verifying and migrating them.
pub mod chronicle {
    pub use crate::knowledge::{AuditComparison, AuditProblem, AuditProblemKind};
    pub use tgp_chronicle::{ChronicleReport, Migration, MigrationReport};
}

/// Files as the kernel reads and shows them.
pub mod files {
    pub use tgp_fs::{open_plain, real_place, search_variable, user_name};
    pub use tgp_router::files::unified_diff;
}

/// Gates that an embedding program uses or replaces: approval, TDD state, policy.
pub mod gates {
    pub use tgp_policy::{
        Caveats, Grant, PolicyExplanation, RuleEffect, RuleFinding, attenuate as attenuate_token,
    };
    pub use tgp_router::gates::{
        ForeignRules, RuleListing, RuleSource, StateGate, UnreadReason, UnreadRuleFile,
    };
    pub use tgp_router::{DenyAll, RecentCalls};
    pub use tgp_tdd::{Scope, ScopeStatus};
    pub use tgp_text::RulePurpose;
}

/// The Guardian: invariants, reviews of plans and reconciliation.
pub mod guardian {
    pub use tgp_guardian::{
        Assertion, FindingSeverity, Guardian, InvariantCheck, PlanOutcome, PlanReport, Reconciled, Review,
        StepStatus, UndecidedInvariant,
    };
}

/// Projects: making one, its tool repository and its code graph.
pub mod project {
    pub use crate::clients::ClientClaim;
    pub use crate::knowledge::Knowledge;
    pub use crate::project_place::{find_project, shared_project};
    pub use crate::scaffold::{ScaffoldError, Scaffolded, initialise};
    pub use tgp_fs::KERNEL_DIRECTORY;
    pub use tgp_git::RepositoryStatus;
}

/// What isolates tools and commands on this machine.
pub mod sandbox {
    pub use crate::settings::usable_cache;
    pub use tgp_jail::{LockReport, ProcessSupport, probe as probe_jail, process_support};
    pub use tgp_sandbox::{RunLimits, WORKER_ARGUMENT, release_free_memory};
    pub use tgp_tool_runtime::native_type_checker;
}

/// The libraries that decide how tools, stores and repositories behave, with their versions.
#[must_use]
pub fn engine_versions() -> [(&'static str, String); 3] {
    [
        ("quickjs", tgp_sandbox::engine_version()),
        ("sqlite", tgp_sql::sqlite_version().to_owned()),
        ("libgit2", tgp_git::library_version()),
    ]
}

/// What most embedding programs need: `use tgp::prelude::*;`.
pub mod prelude {
    pub use crate::audit::{AuditFilter, AuditReader, open_records};
    pub use crate::contract::{
        Actor, ApprovalAnswer, ApprovalRequest, Approver, CallContext, Code, Consent, Gate, GateRequest,
        Stage, ToolCall, ToolError, ToolResult, Verdict,
    };
    pub use crate::project::initialise;
    pub use crate::trust::Trust;
    pub use crate::{BootError, BootOptions, Kernel, worker_main};
}

/// Serves as a sandbox worker when the process was started as one; call it first thing in `main`.
#[must_use]
pub fn worker_main() -> Option<std::process::ExitCode> {
    tgp_sandbox::worker_main(&tgp_tool_runtime::ForgeFrontend)
}
