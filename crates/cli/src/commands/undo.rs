//! `tgp undo`: files that a session has changed, put back as they were.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::json;
use tgp::results::{UndoResult, UndoneFile};

use super::{done, result_of};
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, visible};

#[derive(Debug, Args)]
pub struct UndoArgs {
    /// The session's id, the beginning of it, or `last`.
    #[arg(value_name = "SESSION", add = ArgValueCandidates::new(candidates::sessions))]
    id: String,
    /// Files and directories of the project; all that the session changed when none is named.
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Show what would be undone and change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(arguments: UndoArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let values = json!({ "session": arguments.id, "paths": arguments.paths });
    let data = session::call(&kernel, "undo_session", values, session::typed(arguments.dry_run)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let result: UndoResult = result_of(data)?;
    show(&result, printer);
    Ok(())
}

fn show(result: &UndoResult, printer: &Printer) {
    for file in &result.changes {
        let path = visible(file.path.as_str());
        printer.line(&format!("{} {path}", words(file, result.dry_run)));
        if file.keeps_other_change {
            printer.note(&format!(
                "{path} was also changed by another program during the session; it is put back to what that program left"
            ));
        }
        if let Some(diff) = &file.diff {
            printer.data(diff);
        }
    }
    for file in &result.unkept {
        printer.warn(&format!("{} cannot be undone: {}", visible(file.path.as_str()), visible(&file.reason)));
    }
    if result.truncated {
        printer.warn("the session made more changes than are kept; the later ones are not undone");
    }
    let files = count(result.changes.len(), "file");
    let session = visible(&result.session);
    match (result.changes.is_empty(), result.dry_run) {
        (true, _) => printer.note(&format!("nothing to undo in session {session}")),
        (false, true) => printer.note(&format!("{files} of session {session} would be undone (dry run)")),
        (false, false) => printer.note(&format!("{files} of session {session} undone")),
    }
    for effect in &result.not_undone {
        let calls = count(usize::try_from(effect.calls).unwrap_or(usize::MAX), "call");
        let help =
            next_step(&effect.kind, &result.changes).map(|step| format!("; {step}")).unwrap_or_default();
        printer.warn(&format!("not undone: {} ({calls} of the session){help}", visible(&effect.kind)));
    }
}

/// How a person brings an effect in line with the files that were put back.
fn next_step(kind: &str, changes: &[UndoneFile]) -> Option<String> {
    if kind != "installed packages" {
        return None;
    }
    let mut calls: Vec<String> = changes.iter().filter_map(installation).collect();
    calls.sort();
    calls.dedup();
    if calls.is_empty() {
        calls.push(json!({}).to_string());
    }
    let lines: Vec<String> =
        calls.iter().map(|call| format!("`tgp call package_install '{call}' --yes`")).collect();
    // pip does not remove what no list names any more.
    let first = if calls.iter().any(|call| call.contains("pip")) { "remove `.venv`, and " } else { "" };
    Some(format!(
        "{first}run {} to install what the manifest names now (package_install without packages)",
        lines.join(" and ")
    ))
}

/// The arguments that install what a manifest lists; none for another file.
fn installation(file: &UndoneFile) -> Option<String> {
    let manager = match file.path.name()? {
        "package.json" | "package-lock.json" => None,
        "pyproject.toml" | "requirements.txt" | "requirements-dev.txt" => Some("pip"),
        "Cargo.toml" => Some("cargo"),
        _ => return None,
    };
    let mut arguments = serde_json::Map::new();
    if let Some(manager) = manager {
        arguments.insert("manager".to_owned(), json!(manager));
    }
    let directory = file.path.parent();
    // In a line for a shell: a name with a quote is left to the person.
    if directory.as_str().contains(['\'', '\\']) || visible(directory.as_str()) != directory.as_str() {
        return None;
    }
    if !directory.is_root() {
        arguments.insert("directory".to_owned(), json!(directory.as_str()));
    }
    Some(serde_json::Value::Object(arguments).to_string())
}

fn words(file: &UndoneFile, dry_run: bool) -> &'static str {
    match (file.change.as_str(), dry_run) {
        ("deleted", false) => "deleted ",
        ("deleted", true) => "delete  ",
        ("created", false) => "restored",
        ("created", true) => "restore ",
        (_, false) => "reverted",
        (_, true) => "revert  ",
    }
}
