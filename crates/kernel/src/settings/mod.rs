//! From the configuration to what the organs take: functions on values, which open and start nothing by themselves.

mod commands;
mod credentials;
mod memory;

pub(crate) use commands::{process_options, readable_paths};
pub(crate) use memory::{database, git_options, searcher, state_directory};
