//! The MCP server's own tests: the size of its tools, and the configuration files of hosts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod hosts;
