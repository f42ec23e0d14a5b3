//! `tgp log`.

use clap::Args;
use clap_complete::ArgValueCandidates;
use console::Style;
use serde_json::json;
use tgp::results::ToolLog;

use super::{done, result_of};
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

#[derive(Debug, Args)]
pub struct LogArgs {
    /// Only the versions of this file, such as tools/math/fib.ts.
    #[arg(add = ArgValueCandidates::new(candidates::tools))]
    path: Option<String>,
    /// How many versions to show.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
}

pub async fn run(arguments: LogArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let mut call = json!({ "limit": arguments.limit });
    if let (Some(path), Some(fields)) = (&arguments.path, call.as_object_mut()) {
        fields.insert("path".to_owned(), json!(path));
    }
    let data = session::call(&kernel, "log", call, session::typed(false)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let ToolLog { versions, complete } = result_of(data)?;
    for version in &versions {
        let commit: String = visible(&version.commit).chars().take(8).collect();
        let commit = printer.paint_out(&Style::new().yellow(), &commit);
        let waits = match version.pushed {
            Some(false) => printer.paint_out(&Style::new().dim(), "  (not pushed)"),
            Some(true) | None => String::new(),
        };
        let time = version.time.as_deref().unwrap_or_default();
        let (author, subject) = (visible(&version.author), visible(&version.subject));
        printer.line(&format!("{commit} {time} {author}: {subject}{waits}"));
    }
    if versions.is_empty() {
        printer.note("there are no versions yet");
    } else if !complete {
        printer.note("older versions are at the remote only: this is a shallow clone");
    }
    Ok(())
}
