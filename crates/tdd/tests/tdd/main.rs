//! The state machine through its public face. One binary, one module for each concern.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod classify;
mod ordinary_work;
mod outside;
mod permissions;
mod processes;
mod property;
mod store;
mod support;
mod transitions;
mod words;

#[test]
fn every_file_of_this_folder_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tdd");
    let this = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").expect("only Rust files belong here");
        assert!(module == "main" || this.contains(&format!("\nmod {module};")), "{name} is not compiled");
    }
}
