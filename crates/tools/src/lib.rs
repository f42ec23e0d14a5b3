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
mod memory;
mod router;

pub use builtin::kernel_tools;
pub use files::{Guarded, Workspace, WorkspaceError};
pub use forge::{BytecodeCache, Forge, ForgeError, ForgeFrontend, ForgeOptions, native_type_checker};
pub use memory::{Library, OnDuplicate, Opening, STATE_DIRECTORY};
pub use router::{EffectGate, Invocation, Outcome, RecentCalls, RefuseAll, Router, RouterError, Tool};
