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
    CallsInFlight, FoundFile, Invocation, Outcome, PointOfNoReturn, Preview, RecentCalls, RefuseAll, Router,
    RouterError, Tee, Tool,
};
