//! `tgp sync`.

use clap::Args;
use serde_json::json;
use tgp::contract::{Code, ToolError};
use tgp::results::SyncResult;

use super::{done, result_of};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::count;

#[derive(Debug, Args)]
pub struct SyncArgs {}

pub async fn run(_arguments: &SyncArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot_to_sync(global, None, printer).await?;
    let data = session::call(&kernel, "sync", json!({}), session::typed(false)).await?;
    let is_ignored = kernel.config().ignored.contains(&"git");
    kernel.shutdown().await;
    let synced: SyncResult = result_of(data.clone())?;
    // Commits that wait for a remote are a failure, though nothing is lost.
    match &synced.why {
        Some(why) if printer.json() => {
            let error = ToolError::new(Code::Git, format!("not delivered: {why}"))
                .help("the commits are kept: correct the remote, then run `tgp sync` again");
            return Err(error.detail("synced", data).into());
        }
        _ if printer.json() => printer.document(&done(data)),
        _ => show(&synced, is_ignored, printer),
    }
    synced.why.map_or(Ok(()), |_| Err(Failure::Silent(Code::Git)))
}

fn show(synced: &SyncResult, is_ignored: bool, printer: &Printer) {
    let no_remote = if is_ignored {
        "the remote is ignored until `tgp trust` has confirmed it"
    } else {
        "there is no remote (git.url in tgp.config.ts)"
    };
    synced.warnings.iter().for_each(|warning| printer.warn(warning));
    for conflict in &synced.conflicts {
        printer.warn(&format!(
            "{} was changed on both sides: the remote's version is used, ours is on the branch {}",
            conflict.path, conflict.branch
        ));
    }
    let amounts = [
        ("committed", synced.committed.len(), "file"),
        ("removed", synced.removed.len(), "file"),
        ("pulled", synced.pulled, "commit"),
        ("pushed", synced.pushed, "commit"),
    ];
    let done: Vec<String> = amounts
        .into_iter()
        .filter(|(_, amount, _)| *amount > 0)
        .map(|(verb, amount, what)| format!("{verb} {}", count(amount, what)))
        .collect();
    match synced.remote.as_deref() {
        None if done.is_empty() => printer.line(&format!("nothing to do; {no_remote}")),
        None => printer.line(&format!("{}; {no_remote}", done.join(", "))),
        Some(_) if done.is_empty() && synced.why.is_some() => {}
        Some(remote) if done.is_empty() => printer.line(&format!("{remote} has everything")),
        Some(remote) => printer.line(&format!("{} ({remote})", done.join(", "))),
    }
    if let Some(why) = &synced.why {
        printer.warn(&format!("not delivered: {why}"));
    }
}
