//! The kernel through its public face, on real worker processes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "skipped tests and measurements are told")]

mod approval;
mod attacks;
mod bridge;
mod chronicle_layout;
mod clients;
mod command_approvals;
mod commands;
mod concurrency;
mod config;
mod declared_types;
mod deep_paths;
mod escapes;
mod fetch_bridge;
mod file_bytes;
mod floating_calls;
mod gates;
mod generated_files;
mod inner_calls;
mod knowledge;
mod large_projects;
mod lifecycle;
mod limits;
mod memory;
mod ordinary_work;
mod outcomes;
mod package_list;
mod packages;
mod pending;
mod platform;
mod processes;
mod prompt_budget;
mod review;
mod router;
mod rule_names;
mod runs_later;
mod sent_requests;
mod server;
mod sessions;
mod settings;
mod shapes;
mod sql;
mod sql_rows;
mod statements;
mod std_library;
mod support;
mod tdd;
mod test_runs;
mod throws;
mod tool_library;
mod tool_tests;
mod transactions;
mod trust;
mod trust_environment;
mod values;
mod visibility;
mod worker_lock;

/// A file that is not listed above would silently not be tested.
#[test]
fn no_test_file_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(name == "main" || listed.contains(&format!("mod {name};")), "`{name}.rs` is not a module");
    }
}
