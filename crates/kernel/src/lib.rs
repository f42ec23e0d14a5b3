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

mod audited_router;
mod boot;
mod clients;
pub mod config;
mod id_prefix;
mod kernel;
mod knowledge;
mod queries;
mod records;
mod scaffold;
mod sessions;
mod settings;
mod tokens;
pub mod trust;
pub mod valve;

pub use boot::{BootError, BootOptions, Environment, SecretsListener};
pub use kernel::{Kernel, OpenWork};
pub use tgp_builtins::results;
pub use tgp_contract as contract;

/// Sessions of an agent: requests, events, budgets and recorded transcripts.
pub mod agent {
    pub use crate::sessions::{
        Bounds, ModelChoice, ResumeRequest, SessionInfo, SessionReplay, SessionRequest, SessionState,
        Sessions, TranscriptIntegrity,
    };
    pub use tgp_agent::{
        AgentEvent, AuditRange, Budgets, Ending, Prices, Replayed, StopHandle, StopLevel, StopSignal,
        Summary, TestCount, TouchedFile, TranscriptLine, TranscriptLineKind,
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
    pub use crate::records::{open_records, restart_records};
    pub use tgp_audit::{
        AuditEntry, AuditFilter, AuditReader, ExportFormat, Redaction, Restarted, VERDICTS, VerifyReport,
    };
}

/// The chronicles of a project: verifying and migrating them.
pub mod chronicle {
    pub use tgp_chronicle::{ChronicleReport, Migration, MigrationReport};
}

/// Files as the kernel reads and shows them.
pub mod files {
    pub use tgp_fs::open_plain;
    pub use tgp_router::files::unified_diff;
}

/// Gates that an embedding program uses or replaces: approval, TDD state, policy.
pub mod gates {
    pub use tgp_policy::{
        Caveats, Grant, PolicyExplanation, RuleEffect, RuleFinding, attenuate as attenuate_token,
    };
    pub use tgp_router::gates::{ForeignRules, StateGate};
    pub use tgp_router::{DenyAll, RecentCalls};
    pub use tgp_tdd::{Scope, ScopeStatus};
}

/// The Guardian: invariants, reviews of plans and reconciliation.
pub mod guardian {
    pub use tgp_guardian::{
        Assertion, FindingSeverity, Guardian, PlanOutcome, PlanReport, Reconciled, Review, StepStatus,
    };
}

/// Projects: making one, its tool repository and its code graph.
pub mod project {
    pub use crate::clients::ClientClaim;
    pub use crate::knowledge::Knowledge;
    pub use crate::scaffold::{ScaffoldError, Scaffolded, initialise};
    pub use tgp_git::RepositoryStatus;
}

/// What isolates tools and commands on this machine.
pub mod sandbox {
    pub use tgp_jail::{LockReport, ProcessSupport, probe as probe_jail, process_support};
    pub use tgp_sandbox::{WORKER_ARGUMENT, release_free_memory};
    pub use tgp_tool_runtime::native_type_checker;
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
