//! The jail from inside. A lock is for good, so every probe runs in a fresh copy of this test binary: the copy runs only
//! the test `probe_child`, which does what the environment asks and reports the result by its exit code.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "measurements and skipped probes are told")]
#![allow(unsafe_code, reason = "native probes make raw system calls")]

mod caller;
mod command;
mod compute;
mod escape;
mod harness;
mod layer;
mod listener;
mod memory;
mod probes;
mod process;
mod replay;
mod template;
mod tree;
mod workshop;

/// Does nothing in an ordinary run.
#[test]
fn probe_child() {
    if let Some(request) = harness::Request::from_environment() {
        request.run();
    }
}

/// A file that is not listed above would silently not be tested.
#[test]
fn no_test_file_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jail");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_data = path.extension().is_some_and(|extension| extension == "txt");
        assert!(
            is_data || name == "main" || listed.contains(&format!("mod {name};")),
            "`{name}.rs` is not a module"
        );
    }
}
