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

pub use builtin::{STANDARD_LIBRARY, UPSTREAM_SCHEME, is_test_file, test_file, tested_files};
pub use check::{CheckOptions, check, tool_errors};
pub use describe::describe;
pub use graph::{GraphBuilder, GraphHost, ModuleGraph, ModuleGraphError, UpstreamModules};
pub use source::{CompileError, MAX_SOURCE_BYTES, SourceRole, Unit};
pub use transpile::{
    CompiledModule, LiteralValue, LoopTable, ModuleFormat, ModuleRequest, RequestKind, SourceMap, ToolShape,
    compile,
};
