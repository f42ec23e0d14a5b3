//! From the configuration to the options of the other crates: functions on values, which open and start nothing by themselves.

mod commands;
mod credentials;
mod default_database;
mod memory;
mod package_index;
mod policy;
mod refused_database;
mod runtime;
mod secret_command;
mod secret_values;
mod upstream;

pub(crate) use commands::{process_options, readable_paths, readable_place};
pub use memory::usable_cache;
pub(crate) use memory::{OpenedDatabase, check_state, database, git_options, searcher};
pub(crate) use policy::{notice_of, policy_settings, rule_file_check, tools_in_project};
pub(crate) use runtime::runtime_options;
pub(crate) use secret_values::fetch_client;
pub(crate) use upstream::{OtherPrograms, upstreams};
