//! The Guardian and the Delegator through their public API, in worlds of scripted graphs, chronicles and tools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod changes;
mod cypher;
mod delegator;
mod gate;
mod halts;
mod inquiry;
mod invariants;
mod review;
mod templates;
mod undecided;
mod world;

#[test]
fn every_file_of_this_folder_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guardian");
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
