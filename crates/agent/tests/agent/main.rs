//! The loop through its public API, in worlds of scripted models, tools, clocks and crashes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod budgets;
mod context;
mod crashes;
mod errors;
mod hashes;
mod lines;
mod prompt;
mod property;
mod relay;
mod rendering;
mod repeats;
mod stops;
mod support;
mod tampering;
mod turns;

#[test]
fn every_file_of_this_folder_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent");
    let this = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_dir() {
            continue;
        }
        let name = file.file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").expect("only Rust files belong here");
        assert!(module == "main" || this.contains(&format!("\nmod {module};")), "{name} is not compiled");
    }
}
