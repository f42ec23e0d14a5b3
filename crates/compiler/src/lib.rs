//! TypeScript to JavaScript, diagnostics, standards, the module graph and the metadata of tools.
//!
//! Plain synchronous code without input or output: sources come in as text, everything else goes out as values.
//! Hostile source can exhaust a parser's stack, so the kernel calls [`compile`], [`check`] and [`describe`] inside a
//! locked worker process; the size and nesting caps in [`Unit`] keep the ordinary case far away from that.
#![forbid(unsafe_code)]

mod builtin;
mod check;
mod describe;
mod graph;
mod names;
mod parse;
mod places;
mod source;
mod transpile;

pub use builtin::{
    HOST_SCHEME, STANDARD_LIBRARY, UPSTREAM_SCHEME, is_foreign, is_test_file, test_file, tested_files,
};
pub use check::{CheckOptions, check, tool_errors};
pub use describe::describe;
pub use graph::{ForeignModules, GraphBuilder, GraphHost, ModuleGraph, ModuleGraphError};
pub use source::{CompileError, MAX_SOURCE_BYTES, SourceRole, Unit};
pub use transpile::{
    CompiledModule, LiteralValue, LoopTable, ModuleFormat, ModuleRequest, RequestKind, SourceMap, ToolShape,
    compile,
};
