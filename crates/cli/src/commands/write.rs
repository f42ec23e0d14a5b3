//! `tgp write`.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tgp::contract::{Code, ToolError};

use super::{done, result_of, show_write};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::count;

/// More than any tool has; a pipe that never ends must not fill the memory.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

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
        (None, Some(file)) => {
            let path = session::directory(global)?.join(file);
            let shown = file.display().to_string();
            off_thread(move || {
                let opened = std::fs::File::open(path)
                    .map_err(|error| input_error(&format!("cannot open `{shown}`: {error}")))?;
                read_text(opened)
            })
            .await?
        }
        (None, None) => {
            if std::io::stdin().is_terminal() {
                printer.note("type the content and end it with Ctrl-D on a line of its own");
            }
            let text = off_thread(|| read_text(std::io::stdin().lock())).await?;
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

/// Opening and reading may block, and a signal must still end the command meanwhile.
async fn off_thread(
    read: impl FnOnce() -> Result<String, Failure> + Send + 'static,
) -> Result<String, Failure> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| ToolError::new(Code::Internal, error.to_string()))?
}

fn read_text(input: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    input
        .take(MAX_INPUT_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| input_error(&format!("the content cannot be read: {error}")))?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(input_error(&format!("the content has more than {MAX_INPUT_BYTES} bytes")));
    }
    Ok(text)
}

fn input_error(message: &str) -> Failure {
    ToolError::new(Code::Validation, message)
        .help("give UTF-8 text with --content, --file or standard input")
        .into()
}
