//! The three databases through their public face. One binary, one module for each concern; every scenario runs on all
//! databases that are there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod addresses;
mod classes;
mod cursors;
mod definitions;
mod differential;
mod dropped;
mod errors;
mod kinds;
mod limits;
mod parameters;
mod processes;
mod readings;
mod refused;
mod support;
mod transactions;
mod types;

#[test]
fn every_file_of_this_folder_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql");
    let this = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").expect("only Rust files belong here");
        assert!(module == "main" || this.contains(&format!("\nmod {module};")), "{name} is not compiled");
    }
}
