//! `tgp aql check` and `tgp aql fmt`.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use console::Style;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::aql::QueryProblems;
use tgp::contract::{Code, ToolError};

use super::problem_list;
use crate::arguments::Global;
use crate::commands::done;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::text::{count, visible};
use crate::{screen, session};

/// Bytes of a file of queries: people write it.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files of queries; - reads one from standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
}

#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Files of queries; - alone reads one and prints it formatted.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing; fail when something would change.
    #[arg(long)]
    check: bool,
}

/// The text of a file, or of standard input for `-`.
pub(super) fn read(kernel: &Kernel, file: &str) -> Result<String, ToolError> {
    if file == "-" { from_stdin() } else { kernel.query_source(file) }
}

fn from_stdin() -> Result<String, ToolError> {
    let mut text = String::new();
    std::io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text).map_err(|error| {
        ToolError::new(Code::Validation, format!("no query can be read from standard input: {error}"))
            .help("pipe UTF-8 text, or name a file")
    })?;
    Ok(text)
}

pub(super) async fn check(arguments: CheckArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let mut wrong = 0;
    let mut reports = Vec::new();
    let mut unreadable = None;
    for file in &arguments.files {
        let text = match read(&kernel, file) {
            Ok(text) => text,
            // The others are checked all the same.
            Err(error) => {
                reports.push(json!({ "file": file, "valid": false, "queries": [], "error": error }));
                if !printer.json() {
                    printer.failure(&error.clone().into());
                }
                unreadable = unreadable.or(Some(error.code));
                continue;
            }
        };
        match kernel.compile_queries(file, &text) {
            Ok(compiled) => {
                let names: Vec<&str> = compiled.queries.iter().map(|plan| plan.name.as_str()).collect();
                reports.push(json!({ "file": file, "valid": true, "queries": names, "problems": [] }));
                if !printer.json() {
                    let word = printer.paint_out(&Style::new().green(), "valid");
                    let queries = match names.as_slice() {
                        [] => "no query".to_owned(),
                        names => names.join(", "),
                    };
                    printer.line(&format!("{}: {word} ({queries})", visible(file)));
                }
            }
            Err(problems) => {
                wrong += problems.problems.len();
                let list = problem_list(&problems.to_error());
                reports.push(json!({ "file": file, "valid": false, "queries": [], "problems": list }));
                if !printer.json() {
                    show(file, &problems, printer);
                }
            }
        }
    }
    kernel.shutdown().await;
    if printer.json() {
        let valid = wrong == 0 && unreadable.is_none();
        printer.document(&done(json!({ "valid": valid, "files": reports })));
    }
    match unreadable {
        Some(code) => Err(Failure::Silent(code)),
        None if wrong == 0 => Ok(()),
        None => Err(Failure::Silent(Code::Compile)),
    }
}

fn show(file: &str, problems: &QueryProblems, printer: &Printer) {
    for problem in &problems.problems {
        printer.line(&screen::problem(problem, &problems.sources, printer.look_out()));
        printer.line("");
    }
    let word = printer.paint_out(&Style::new().red(), "not valid");
    printer.line(&format!("{}: {word} ({})", visible(file), count(problems.problems.len(), "error")));
}

/// Formatting needs no project: only the words of a query matter.
pub(super) fn format(arguments: &FmtArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let mut changed = Vec::new();
    for file in &arguments.files {
        let shown = file.display().to_string();
        let from_pipe = shown == "-";
        let path = global.directory.as_ref().map_or_else(|| file.clone(), |directory| directory.join(file));
        let text = if from_pipe { from_stdin()? } else { read_file(&path, &shown)? };
        let formatted =
            tgp::aql::format_queries(&shown, &text).map_err(|problems| super::refuse(&problems, printer))?;
        if from_pipe && !arguments.check {
            if printer.json() {
                printer.document(&done(json!({ "formatted": formatted })));
            } else {
                printer.data(&formatted);
            }
            return Ok(());
        }
        if formatted == text {
            continue;
        }
        if !arguments.check {
            write_file(&path, &shown, &formatted)?;
        }
        changed.push(shown);
    }
    if printer.json() {
        let names: Vec<Value> = changed.iter().map(|name| json!(name)).collect();
        printer.document(&done(json!({ "changed": names, "written": !arguments.check })));
    } else {
        let word = if arguments.check { "would change" } else { "formatted" };
        changed.iter().for_each(|name| printer.line(&format!("{word} {}", visible(name))));
    }
    let fails = arguments.check && !changed.is_empty();
    if fails { Err(Failure::Silent(Code::Compile)) } else { Ok(()) }
}

fn read_file(path: &Path, shown: &str) -> Result<String, ToolError> {
    let unreadable = |why: String| {
        ToolError::new(Code::NotFound, format!("`{shown}` cannot be read: {why}"))
            .help("name a file of queries, such as review.aql")
    };
    let found = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if !found.is_file() || found.len() > MAX_BYTES {
        return Err(unreadable(format!("it is not a file of at most {MAX_BYTES} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))
}

/// Under another name first, so that a file is never half written.
fn write_file(path: &Path, shown: &str, text: &str) -> Result<(), ToolError> {
    // Where the name is a link, the file it leads to is what is formatted.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let draft = path.with_extension(format!("aql-{}", std::process::id()));
    let permissions = std::fs::metadata(path).map(|metadata| metadata.permissions());
    std::fs::write(&draft, text)
        .and_then(|()| permissions.and_then(|permissions| std::fs::set_permissions(&draft, permissions)))
        .and_then(|()| std::fs::rename(&draft, path))
        .map_err(|error| {
            let _ = std::fs::remove_file(&draft);
            ToolError::new(Code::Permission, format!("`{shown}` cannot be written: {error}"))
                .help("check the permissions of the directory")
        })
}
