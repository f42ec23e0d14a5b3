//! The tool repository through its public face, with real bare remotes and real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod anchor;
mod api;
mod conflicts;
mod crowd;
mod delivery;
mod edits;
mod full_disk;
mod history;
mod hostile;
mod hydration;
mod kills;
mod limits;
mod offline;
mod plan;
mod property;
mod repair;
mod requests;
mod secrecy;
mod servers;
mod support;

#[test]
fn every_file_of_this_folder_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/git");
    let this = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let module = name.strip_suffix(".rs").expect("only Rust files belong here");
        assert!(module == "main" || this.contains(&format!("\nmod {module};")), "{name} is not compiled");
    }
}
