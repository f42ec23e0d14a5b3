//! The valve through its public face, with real files, real chronicles and real processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod actions;
mod cooldown;
mod hostile;
mod ignored;
mod large;
mod layout;
mod memory;
mod model;
mod personas;
mod scans;
mod support;
mod t6;
mod torture;
mod watching;

#[test]
fn every_file_of_this_folder_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/valve");
    let this = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap();
        let name = file.file_name().into_string().unwrap();
        if file.file_type().unwrap().is_dir() {
            assert_eq!(name, "golden");
            continue;
        }
        let module = name.strip_suffix(".rs").expect("only Rust files belong here");
        assert!(module == "main" || this.contains(&format!("\nmod {module};")), "{name} is not compiled");
    }
}
