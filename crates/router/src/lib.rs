//! The router that every call passes, its gates, and what a call sees of files and databases.
//!
//! [`Router`] takes a call through its stages: find, validate, gates, approval, execute, record. No tool has another
//! door. [`gates`] are what it asks before a call runs, [`Workspace`] says which files a call may see, and a [`Tool`] is
//! what it runs.
#![forbid(unsafe_code)]

pub mod database;
pub mod files;
pub mod gates;
mod router;

pub use files::Workspace;
pub use router::{
    ApprovedSnapshot, CallsInFlight, DenyAll, DynTool, FanoutRecorder, FileDiff, FileSnapshot, InnerCall,
    Invocation, LazySchema, OuterCall, PointOfNoReturn, Preview, RecentCalls, Router, RouterError, Tool,
    ToolOutcome, ToolSpec, typed,
};
