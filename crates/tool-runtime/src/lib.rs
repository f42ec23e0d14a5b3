//! The tools of agents: compiled, run in the sandbox, kept in git and found again.
//!
//! [`ToolRuntime`] turns a tool's source into a program and runs it, with every call it makes through the router. [`ToolLibrary`]
//! is the repository of the tools.
#![forbid(unsafe_code)]

pub mod forge;
pub mod memory;

pub use forge::{
    BytecodeCache, ConfigValue, ForgeFrontend, TestFailure, TestReport, TestResult, ToolRuntime,
    ToolRuntimeError, ToolRuntimeOptions, native_type_checker,
};
pub use memory::{DuplicatePolicy, StartupNotices, ToolLibrary};
