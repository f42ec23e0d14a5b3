//! `tgp patch`.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::json;

use super::{done, result_of, show_write};
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

#[derive(Debug, Args)]
pub struct PatchArgs {
    /// A file of the tool repository.
    #[arg(add = ArgValueCandidates::new(candidates::tools))]
    path: String,
    /// The text to replace; it must occur exactly once.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    search: String,
    /// The text that takes its place.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    replace: String,
    /// Show the difference and change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(arguments: PatchArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let PatchArgs { path, search, replace, dry_run } = arguments;
    let values = json!({ "path": path, "search": search, "replace": replace });
    let data = session::call(&kernel, "patch_file", values, session::typed(dry_run)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
    } else {
        show_write(&format!("patched {path}"), &result_of(data)?, printer);
    }
    Ok(())
}
