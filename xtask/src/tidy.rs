//! The rules of the workspace that no compiler checks.

mod allow_list;
mod dependencies;
mod phrases;
mod types;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::sources::{parsed, rust_files};

/// Each crate's folder and layer. A crate imports only from layers below its own.
const LAYERS: [(&str, u32); 32] = [
    ("contract", 0),
    ("fs", 0),
    ("text", 0),
    ("net", 0),
    ("intl", 0),
    ("compiler", 1),
    ("jail", 1),
    ("sandbox", 1),
    ("fetch", 1),
    ("git", 1),
    ("registry", 1),
    ("sql", 1),
    ("policy", 1),
    ("tdd", 1),
    ("audit", 1),
    ("llm", 1),
    ("chronicle", 1),
    ("graph", 1),
    ("graph-bolt", 1),
    ("wheels", 1),
    ("router", 2),
    ("tool-runtime", 2),
    ("builtins", 2),
    ("upstream", 2),
    ("agent", 3),
    ("guardian", 3),
    ("aql", 3),
    ("valve", 3),
    ("kernel", 4),
    ("ipc", 5),
    ("mcp", 5),
    ("cli", 5),
];

/// The imports within a layer: the base builds on the contract, the sandbox locks its workers with the jail, a graph
/// server copies the embedded graph, built-in tools run tools, call upstream servers and all of them pass the router, and the command line
/// serves the other front ends.
const ALLOWED_IMPORTS: [(&str, &str); 12] = [
    ("fs", "contract"),
    ("text", "contract"),
    ("net", "contract"),
    ("net", "text"),
    ("sandbox", "jail"),
    ("graph-bolt", "graph"),
    ("tool-runtime", "router"),
    ("builtins", "router"),
    ("builtins", "tool-runtime"),
    ("builtins", "upstream"),
    ("cli", "ipc"),
    ("cli", "mcp"),
];

/// Crates that speak to the operating system, to the engine's C library, or to one kind of processor.
const UNSAFE_CRATES: [&str; 3] = ["jail", "sandbox", "registry"];

/// Crates beside the layers that keep the rules about sources too.
const BESIDE: [&str; 3] = ["hostile", "fuzz", "soak"];

/// A file longer than this has two meanings and is split.
const MAX_LINES: usize = 600;

/// What runs before the first gate is armed, with its comments.
const BOOT_FOLDER: &str = "crates/kernel/src/boot";
const MAX_BOOT_LINES: usize = 500;

pub fn check(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    layers(root, &mut problems)?;
    architecture_page(root, &mut problems)?;
    sources(root, &mut problems)?;
    boot_path(root, &mut problems)?;
    let files = parsed(root)?;
    phrases::check(root, &files, &mut problems)?;
    types::check(root, &files, &mut problems)?;
    dependencies::check(root, &mut problems)?;
    if problems.is_empty() {
        println!("xtask: tidy");
        return Ok(());
    }
    bail!("these rules of the workspace are broken:\n  {}", problems.join("\n  "))
}

/// What acts before the first gate is armed is read by the person who decides whether to trust the rest.
fn boot_path(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let mut lines = 0;
    for entry in fs::read_dir(root.join(BOOT_FOLDER)).context("there is no boot path")? {
        lines += fs::read_to_string(entry?.path())?.lines().count();
    }
    println!("xtask: the boot path has {lines} lines");
    if lines >= MAX_BOOT_LINES {
        problems.push(format!("{BOOT_FOLDER} has {lines} lines; it must stay below {MAX_BOOT_LINES}"));
    }
    Ok(())
}

fn layers(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let layers: BTreeMap<&str, u32> = LAYERS.into();
    let metadata = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata cannot be run")?;
    let metadata: Value = serde_json::from_slice(&metadata.stdout).context("cargo metadata is not JSON")?;
    for package in list(&metadata, "packages") {
        let Some(folder) = crate_folder(root, text(package, "manifest_path")) else { continue };
        let Some(layer) = layers.get(folder.as_str()) else {
            problems.push(format!("crates/{folder} has no layer; add it to LAYERS in xtask/src/tidy.rs"));
            continue;
        };
        for dependency in list(package, "dependencies") {
            let manifest = format!("{}/Cargo.toml", text(dependency, "path"));
            let Some(target) = crate_folder(root, &manifest) else { continue };
            let below = layers.get(target.as_str()).is_some_and(|other| other < layer);
            if !below && !ALLOWED_IMPORTS.contains(&(folder.as_str(), target.as_str())) {
                problems
                    .push(format!("crates/{folder} must not import crates/{target}: its layer is not below"));
            }
        }
    }
    Ok(())
}

pub(crate) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `fs` for `…/crates/fs/Cargo.toml`; nothing for a manifest elsewhere.
fn crate_folder(root: &Path, manifest: &str) -> Option<String> {
    let relative = Path::new(manifest).strip_prefix(root.join("crates")).ok()?;
    Some(relative.parent()?.to_str()?.to_owned())
}

/// Every crate is on the page, and the page names no crate that is not there.
fn architecture_page(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md cannot be read")?;
    let mut folders = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !page.contains(&format!("`crates/{name}`")) {
            problems.push(format!("crates/{name} is not on ARCHITECTURE.md"));
        }
        folders.push(name);
    }
    for folder in BESIDE {
        if !page.contains(&format!("`{folder}/`")) {
            problems.push(format!("{folder}/ is not on ARCHITECTURE.md"));
        }
    }
    for piece in page.split("`crates/").skip(1) {
        let name = piece.split(['`', '/']).next().unwrap_or_default();
        if !folders.iter().any(|folder| folder == name) {
            problems.push(format!("ARCHITECTURE.md names crates/{name}, which is not there"));
        }
    }
    Ok(())
}

fn sources(root: &Path, problems: &mut Vec<String>) -> Result<()> {
    let layers = LAYERS.iter().map(|(folder, _)| (*folder, root.join("crates").join(folder)));
    let beside = BESIDE.iter().map(|folder| (*folder, root.join(folder)));
    for (folder, path) in layers.chain(beside) {
        let source = path.join("src");
        for path in rust_files(&source)? {
            let text = fs::read_to_string(&path)?;
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if !text.starts_with("//!") {
                problems.push(format!("{shown} does not begin with a `//!` that says what it is for"));
            }
            let lines = text.lines().count();
            if lines > MAX_LINES && !shown.ends_with("_tests.rs") {
                problems.push(format!("{shown} has {lines} lines; split it by meaning"));
            }
            let is_root = path.parent() == Some(&source) && shown.ends_with("lib.rs");
            if is_root && !UNSAFE_CRATES.contains(&folder) && !text.contains("#![forbid(unsafe_code)]") {
                problems.push(format!("{shown} does not forbid unsafe code"));
            }
        }
    }
    Ok(())
}
