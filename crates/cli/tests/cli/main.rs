//! The command line from end to end: the built program, in its own folders, with a clean environment.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "skipped tests are told")]

mod agent;
mod agent_languages;
mod agent_sessions;
mod agent_terminal;
mod approve;
mod aql;
mod bootstrap;
mod change_sets;
mod concurrency;
mod conversation;
mod crowd;
mod demo;
mod entry_points;
mod gates;
mod golden;
mod hostile_text;
mod ignored;
mod json;
mod knowledge;
mod logging;
mod machine;
mod mcp;
mod mcp_clients;
mod mcp_hosts;
mod memory;
mod pipes;
mod processes;
mod project;
mod proxy;
mod pty;
mod recording;
mod relay;
mod scenario_file;
mod scenarios;
mod schemas;
mod secrets;
mod serve;
mod serve_stdio;
mod signals;
mod stored_state;
mod terminal;
mod trust;
mod upstream;
mod valve;
