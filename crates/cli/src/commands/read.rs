//! `tgp read`.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::json;

use super::done;
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

#[derive(Debug, Args)]
pub struct ReadArgs {
    /// A file of the tool repository, such as tools/math/fib.ts.
    #[arg(add = ArgValueCandidates::new(candidates::tools))]
    path: String,
}

pub async fn run(arguments: ReadArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let data =
        session::call(&kernel, "read_file", json!({ "path": arguments.path }), session::typed(false)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
    } else {
        printer.data(data.as_str().unwrap_or_default());
    }
    Ok(())
}
