//! `tgp init`.

use std::path::Path;

use clap::Args;
use serde_json::json;
use tgp::contract::ToolError;
use tgp::trust::TrustStore;

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

/// Where a newcomer goes from here.
const NEXT: &str = "
next: give an agent a task (with ANTHROPIC_API_KEY or OPENAI_API_KEY set;
`tgp models` lists the models for --model)
  tgp \"make a tool that turns CSV into JSON\"
or write a tool yourself, check it, run it
  tgp write tools/double.ts --content 'export default (args: { n: number }): number => args.n * 2;'
  tgp check
  tgp exec tools/double.ts --args '{\"n\": 21}'
or let the MCP host that you use (Claude Code, Cursor, ...) work with the tools
  tgp mcp install";

#[derive(Debug, Args)]
pub struct InitArgs {}

/// Confirms the repository that a person makes a project of. The decision is the first entry of the project's audit.
async fn confirm_own_repository(store: &TrustStore, project: &Path) -> Result<(), ToolError> {
    let Some(decision) = store.own_repository_decision(project)? else { return Ok(()) };
    let options = session::boot_options(project.to_owned());
    let decision = tgp::audit::record_decision(&options, decision).await?;
    store.confirm_own_repository(project, decision)
}

pub async fn run(_arguments: &InitArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let directory = session::working_directory(global)?;
    let around = session::directory(global)?;
    let shared = tgp::project::shared_project(&directory);
    let mut made = tgp::project::initialise(&directory).map_err(ToolError::from)?;
    // A person makes a project of it, and with it of its work trees.
    if let Some(store) = TrustStore::of_user(&session::environment()) {
        let project = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        if let Err(error) = confirm_own_repository(&store, &project).await {
            made.warnings.push(format!("the repository is not confirmed: {}", error.message));
        }
    }
    if let Some(shared) = shared {
        let shared = visible(&shared.to_string_lossy());
        made.warnings.push(format!(
            "this work tree has used the tools, rules and records of {shared}; from now on it has its own. To use those again, rename `{}` here",
            tgp::project::KERNEL_DIRECTORY
        ));
    }
    if printer.json() {
        printer.document(&done(json!({
            "created": made.created,
            "updated": made.updated,
            "kept": made.kept,
            "warnings": made.warnings,
        })));
        return Ok(());
    }
    for warning in &made.warnings {
        printer.warn(warning);
    }
    if directory.canonicalize().is_ok_and(|directory| directory != around && around.is_absolute()) {
        let around = visible(&around.to_string_lossy());
        printer
            .warn(&format!("this folder is inside the project {around}; from now on it is one of its own"));
    }
    for name in &made.created {
        printer.line(&format!("created  {name}"));
    }
    for name in &made.updated {
        printer.line(&format!("updated  {name}"));
    }
    if made.created.is_empty() && made.updated.is_empty() {
        printer.line("nothing to do: this folder is a TGP project already");
    } else {
        printer.lines(NEXT);
    }
    Ok(())
}
