//! `tgp write`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tgp::contract::{Code, ToolError};

use super::{done, input, result_of, show_write};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::count;

/// Where the content comes from.
const HELP: &str = "give UTF-8 text with --content, --file or standard input";

#[derive(Debug, Args)]
pub struct WriteArgs {
    /// A file of the tool repository, such as tools/math/fib.ts.
    path: String,
    /// The content; else --file or standard input gives it.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, conflicts_with = "file")]
    content: Option<String>,
    /// A file on disk that holds the content.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show the difference and change nothing.
    #[arg(long)]
    dry_run: bool,
}

pub async fn run(arguments: WriteArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let content = match (arguments.content, &arguments.file) {
        (Some(content), _) => content,
        (None, Some(file)) => input::from_file(global, file, HELP).await?,
        (None, None) => {
            if std::io::stdin().is_terminal() {
                printer.note("type the content and end it with Ctrl-D on a line of its own");
            }
            let text = input::from_standard_input(HELP).await?;
            if text.is_empty() {
                // A forgotten --content in a script must not empty a tool.
                return Err(ToolError::new(
                    Code::Validation,
                    "standard input is empty, so nothing was written",
                )
                .help(
                    "give the content on standard input or with --file; `--content ''` writes an empty file",
                )
                .into());
            }
            text
        }
    };
    let kernel = session::boot(global, None, printer).await?;
    let values = json!({ "path": arguments.path, "content": content });
    let data = session::call(&kernel, "write_file", values, session::typed(arguments.dry_run)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
    } else {
        let done = format!("wrote {} ({})", arguments.path, count(content.len(), "byte"));
        show_write(&done, &result_of(data)?, printer);
    }
    Ok(())
}
