//! `tgp list`.

use clap::Args;
use serde_json::{Value, json};

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

#[derive(Debug, Args)]
pub struct ListArgs {
    /// A directory of the tool repository.
    #[arg(default_value = "tools")]
    directory: String,
}

pub async fn run(arguments: ListArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None).await?;
    let data =
        session::call(&kernel, "list_files", json!({ "dir": arguments.directory }), session::typed(false)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    for name in data.as_array().into_iter().flatten().filter_map(Value::as_str) {
        printer.line(name);
    }
    Ok(())
}
