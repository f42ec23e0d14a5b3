//! The MCP server: what a host of agents sees of a kernel.
//!
//! A host gets a small set of tools that never changes: hosts limit the number of tools, ignore changes of the list, and
//! lose their prompt cache when it changes. A forged tool is run by its name through `run`. Every tool, resource and
//! prompt is an adapter that makes router calls with the connection's own capability token, so the gates, the record and
//! the limits are those of every other caller.
#![forbid(unsafe_code)]

mod answer;
mod approval;
mod arguments;
mod client;
mod handler;
mod http;
pub mod install;
mod options;
mod prompts;
mod resources;
mod runs;
mod stdio;
mod tools;
mod transport;

pub use approval::{ApprovalStatus, HostApprover};
pub use http::{HttpOptions, HttpServer};
pub use options::{Mode, ServerOptions};
pub use stdio::serve_stdio;
