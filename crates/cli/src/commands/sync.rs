//! `tgp sync`.

use clap::Args;
use serde_json::{Value, json};
use tgp::contract::Code;

use super::done;
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
    kernel.shutdown().await;
    let undelivered = data.get("why").and_then(Value::as_str).map(str::to_owned);
    if printer.json() {
        printer.document(&done(data));
    } else {
        say(&data, printer);
    }
    // Commits that wait for a remote are no success, though nothing is lost.
    undelivered.map_or(Ok(()), |_| Err(Failure::Silent(Code::Git)))
}

fn say(data: &Value, printer: &Printer) {
    let number = |name: &str| {
        usize::try_from(data.get(name).and_then(Value::as_u64).unwrap_or_default()).unwrap_or(usize::MAX)
    };
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    for warning in data.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        printer.warn(warning.as_str().unwrap_or_default());
    }
    for conflict in data.get("conflicts").and_then(Value::as_array).into_iter().flatten() {
        printer.warn(&format!(
            "{} was changed on both sides: the remote's version stands, ours is on the branch {}",
            text(conflict, "path"),
            text(conflict, "branch")
        ));
    }
    let mut done = Vec::new();
    let committed = data.get("committed").and_then(Value::as_array).map_or(0, Vec::len);
    if committed > 0 {
        done.push(format!("committed {}", count(committed, "file")));
    }
    let removed = data.get("removed").and_then(Value::as_array).map_or(0, Vec::len);
    if removed > 0 {
        done.push(format!("removed {}", count(removed, "file")));
    }
    for word in ["pulled", "pushed"] {
        if number(word) > 0 {
            done.push(format!("{word} {}", count(number(word), "commit")));
        }
    }
    match data.get("remote").and_then(Value::as_str) {
        None if done.is_empty() => {
            printer.line("nothing to do; there is no remote (git.url in tgp.config.ts)")
        }
        None => printer.line(&format!("{}; there is no remote (git.url in tgp.config.ts)", done.join(", "))),
        Some(_) if done.is_empty() && data.get("why").is_some() => {}
        Some(remote) if done.is_empty() => printer.line(&format!("{remote} has everything")),
        Some(remote) => printer.line(&format!("{} ({remote})", done.join(", "))),
    }
    if let Some(why) = data.get("why").and_then(Value::as_str) {
        printer.warn(&format!("not delivered: {why}; run `tgp sync` again later"));
    }
}
