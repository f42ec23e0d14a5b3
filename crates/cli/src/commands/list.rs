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
    #[arg(default_value = "tools", value_name = "DIR")]
    path: String,
}

pub async fn run(arguments: ListArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let data =
        session::call(&kernel, "list_files", json!({ "dir": arguments.path }), session::typed(false)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let names: Vec<&str> = data.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        printer.note(&format!("there are no files in {} yet", arguments.path));
    }
    for name in names {
        printer.data(&format!("{name}\n"));
    }
    Ok(())
}
