//! The tools of agents: compiled, run in the sandbox, kept in git and found again.
//!
//! [`Forge`] turns a tool's source into a program and runs it, with every call it makes through the router. [`Library`]
//! is the repository of the tools.
#![forbid(unsafe_code)]

pub mod forge;
pub mod memory;

pub use forge::{
    BytecodeCache, Forge, ForgeError, ForgeFrontend, ForgeOptions, TestFailure, TestReport, TestResult,
    native_type_checker,
};
pub use memory::{Library, OnDuplicate, Opening, STATE_DIRECTORY};
