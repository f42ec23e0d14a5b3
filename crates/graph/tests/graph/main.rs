//! The code graph through its public face, on real repositories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout
)]

mod bombs;
mod content;
mod current;
mod depth;
mod detours;
mod draft;
mod fuzz;
mod gherkin;
mod go_imports;
mod hidden;
mod hidden_files;
mod history;
mod hostile;
mod ingest;
mod kills;
mod languages;
mod oracle;
mod own;
mod page;
mod paths;
mod positions;
mod property;
mod python_imports;
mod queries;
mod rust_paths;
mod steps;
mod subqueries;
mod support;
mod tck;
mod tck_values;
mod typescript;
mod typescript_forms;
mod unresolved;
mod uses;
mod visible;
mod vocabulary;
