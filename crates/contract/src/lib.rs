//! The shared vocabulary: types, codes, traits and canonical JSON.
//!
//! This is the lowest layer. It does no input or output; it only defines what a call, a result, an error, a file
//! system, a gate and a record are, so that the crates above need not import each other. `background` is where all of them
//! run blocking work.
#![forbid(unsafe_code)]

mod approval;
pub mod background;
mod budget;
mod call;
pub mod canonical;
mod chronicle;
mod chronicle_files;
mod chronicle_line;
mod client;
mod codes;
mod declared;
mod error;
mod files;
mod finding;
mod gate;
mod graph;
mod host_files;
mod host_tools;
mod json_size;
mod limits;
mod metadata;
mod model;
mod model_schema;
mod outcome;
mod path;
mod plan;
mod record;
mod sql;
mod stream;
mod target;
mod tdd;
mod token;
mod tool;
mod visibility;
mod work;

pub use approval::{
    ApprovalAnswer, ApprovalDecision, ApprovalRequest, ApprovalStore, Approver, JournalEntry, KeptAnswer,
    KeptRun, PendingApproval, RunIdentity,
};
pub use budget::{BudgetExceeded, BudgetLimits, BudgetUsage, SharedBudget};
pub use call::{Actor, CallContext, Consent, ToolCall, ToolResult};
pub use chronicle::{AppendResult, Chronicle, ChronicleEvent, ChronicleRevision, EventActor};
pub use chronicle_files::{
    CHRONICLE_DIRECTORY, CHRONICLE_SUFFIX, ChronicleLayout, PROJECT_CHRONICLE, PathProbe, chronicle_of,
    chronicled, ends_as_chronicle, has_chronicle_name, is_chronicle_content, is_chronicle_tree_directory,
    is_in_chronicle_tree, is_torn_name,
};
pub use chronicle_line::{EventFormError, LineError, MAX_CHRONICLE_LINE_BYTES, decode_line};
pub use client::{ClientEntry, ClientId, client_actor, client_session, counted_session, has_no_token};
pub use codes::Code;
pub use declared::{DeclaredField, DeclaredObject, DeclaredType, DeclaredTypes};
pub use error::{SourceLocation, ToolError};
pub use files::{Change, CommitVote, Entry, EntryKind, FileSystem, FsError};
pub use finding::{CheckReport, Finding, Severity, TypeCheck};
pub use gate::{FileFilter, Gate, GateRequest, Stage, Verdict};
pub use graph::{
    Graph, GraphQuery, GraphRows, IngestSummary, LeftOutFile, LeftOutFiles, LeftOutReason, SnapshotInfo,
    UnreadHistory,
};
pub use host_files::{HostFiles, MAX_KEPT_BYTES, MAX_KEPT_FILES};
pub use host_tools::{HostFunction, HostTools};
pub use json_size::{JsonLimits, JsonSize, JsonTooLarge, measure};
pub use limits::LimitRequest;
pub use metadata::ToolMetadata;
pub use model::{Block, ChatOptions, EventStream, Message, ModelInfo, ModelProvider, ModelTool, Role};
pub use outcome::{ApprovalOrigin, ApprovalReason, CallVerdict, Execution, GateDecision, RUNS_LATER};
pub use path::{PathError, RelativePath};
pub use plan::{Decision, Plan, PlanStep};
pub use record::{BeforeEffectHook, CallRecord, Cancellation, FileEffect, GateVerdict, Recorder, ToolCaller};
pub use sql::{
    Database, SqlAccess, SqlClass, SqlParams, SqlRows, SqlStatement, SqlTransaction, UNKNOWN_KIND,
};
pub use stream::{REPEATABLE_DETAIL, StopReason, StreamEvent, Usage};
pub use target::{Access, Root, Target};
pub use tdd::{TddMode, TddState};
pub use token::CapabilityToken;
pub use tool::{Effect, ExecutionPath, ToolDefinition, ToolName, ToolNameError};
pub use visibility::Visibility;
pub use work::{AgentFailure, AgentResult, AgentRunner, AgentTask};
