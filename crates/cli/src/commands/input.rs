//! Text and JSON that a command takes from an argument, a file or standard input.

use std::io::Read;
use std::path::Path;

use serde_json::Value;
use tgp::contract::{Code, ToolError};

use super::parse_json;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::session;

/// More than any tool has; a pipe that never ends must not fill the memory.
const MAX_INPUT_BYTES: u64 = 16 * 1024 * 1024;

/// JSON as an argument: the document itself, `@FILE`, or `-` for standard input. A JSON document begins with neither.
pub(super) async fn json_argument(what: &str, text: &str, global: &Global) -> Result<Value, Failure> {
    let help = "give the JSON itself, `@FILE` for a file, or `-` for standard input";
    let text = match text.strip_prefix('@') {
        Some("") => return Err(input_error(&format!("{what} names no file after `@`"), help)),
        Some(file) => from_file(global, Path::new(file), help).await?,
        None if text == "-" => from_standard_input(help).await?,
        None => text.to_owned(),
    };
    parse_json(what, &text)
}

/// The text of a file; its name is relative to the directory that the command was started in.
pub(super) async fn from_file(global: &Global, file: &Path, help: &'static str) -> Result<String, Failure> {
    let path = session::working_directory(global)?.join(file);
    let shown = file.display().to_string();
    off_thread(move || {
        let opened = std::fs::File::open(path)
            .map_err(|error| input_error(&format!("cannot open `{shown}`: {error}"), help))?;
        read_text(opened, help)
    })
    .await
}

pub(super) async fn from_standard_input(help: &'static str) -> Result<String, Failure> {
    off_thread(move || read_text(std::io::stdin().lock(), help)).await
}

/// Opening and reading may block, and a signal must still end the command meanwhile.
async fn off_thread(
    read: impl FnOnce() -> Result<String, Failure> + Send + 'static,
) -> Result<String, Failure> {
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| ToolError::new(Code::Internal, error.to_string()))?
}

fn read_text(input: impl Read, help: &str) -> Result<String, Failure> {
    let mut text = String::new();
    input
        .take(MAX_INPUT_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| input_error(&format!("the content cannot be read: {error}"), help))?;
    if text.len() as u64 > MAX_INPUT_BYTES {
        return Err(input_error(&format!("the content has more than {MAX_INPUT_BYTES} bytes"), help));
    }
    Ok(text)
}

fn input_error(message: &str, help: &str) -> Failure {
    ToolError::new(Code::Validation, message).help(help).into()
}
