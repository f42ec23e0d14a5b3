//! The router that every call passes, and the built-in tools.
//!
//! [`Router`] takes a call through its stages: find, validate, gates, approval, execute, record. No tool has another
//! door. [`Forge`] turns a tool's source into a program and runs it in the sandbox; [`Workspace`] says which files a
//! call may see.
#![forbid(unsafe_code)]

mod builtin;
mod database;
mod files;
mod forge;
mod gates;
mod knowledge;
mod memory;
mod process;
mod project;
mod router;

pub use builtin::kernel_tools;
pub use files::{Guarded, Workspace, WorkspaceError, unified_diff};
pub use forge::{
    BytecodeCache, Forge, ForgeError, ForgeFrontend, ForgeOptions, TestFailure, TestReport, TestResult,
    native_type_checker,
};
pub use gates::{
    ForeignRules, ListedRule, PastCalls, PastRange, PolicyGate, RuleFiles, RuleListing, RuleTrust, StateGate,
    TddView, TokenGate, Tokens,
};
pub use knowledge::{chronicle_path, knowledge_tools, refuse_hidden};
pub use memory::{Library, OnDuplicate, Opening, STATE_DIRECTORY};
pub use process::{ProcessCaps, ProcessOptions, process_tools};
pub use project::{project_tools, testing};
pub use router::{
    CallsInFlight, DynTool, FoundFile, Invocation, Outcome, PointOfNoReturn, Preview, RecentCalls, RefuseAll,
    Router, RouterError, Tee, Tool, ToolInfo, typed,
};

/// The results of the built-in tools, as every caller gets them.
pub mod results {
    pub use crate::builtin::{
        DryRunChange, ExecToolResult, SearchResult, SimilarTool, SqlResult, SyncResult, TestFile, TestNotRun,
        TestToolResult, ToolHit, ToolLog, ToolVersion, ToolWrite, ToolWritePreview, ToolWriteResult,
    };
    pub use crate::database::{SqlNote, SqlNotes};
    pub use crate::forge::{TestFailure, TestReport, TestResult};
    pub use crate::knowledge::{ChronicleAppendResult, ChroniclePage, GraphIngestResult, GraphQueryResult};
    pub use crate::process::{
        CommandChange, CommandEnd, CommandOutput, CommandResult, StreamBytes, TestRunResult,
    };
    pub use crate::project::{
        CutLine, ExistsResult, FileChangeResult, FileList, FilePage, GlobResult, GrepMatch, GrepResult,
        ListedFile, SkippedFiles,
    };
    pub use tgp_registry::Verdict as SearchVerdict;
    pub use tgp_sandbox::{LogLevel, LogLine, RunStats};
}
