//! `tgp serve`: the tools for other programs on this machine, over a Unix socket, or for the one that starts it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use clap::Args;
use serde_json::{Map, Value, json};
use tgp::contract::{Consent, ToolError};
use tgp::{BootOptions, Kernel};
use tgp_ipc::rpc::protocol::{HostLogLevel, HostParams, LogParams};
use tgp_ipc::rpc::{HostBoot, HostParts, serve_stdio};
use tgp_ipc::{ServeOptions, Server};

use super::done;
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::{session, standard_streams};

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where the socket is made.
    #[arg(long, value_name = "PATH", required_unless_present = "stdio")]
    socket: Option<PathBuf>,
    /// Serve the program that starts this one.
    #[arg(long, conflicts_with_all = ["socket", "yes", "connections"])]
    stdio: bool,
    /// Agree to effects, but not on files that run later.
    #[arg(long)]
    yes: bool,
    /// Clients at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,
}

pub async fn run(arguments: ServeArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    match &arguments.socket {
        Some(path) if !arguments.stdio => socket(path, &arguments, global, printer).await,
        _ => stdio(global, printer).await,
    }
}

async fn socket(
    path: &PathBuf,
    arguments: &ServeArgs,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let kernel =
        Arc::new(session::boot(global, Some(Arc::new(TerminalApprover { has_yes: true })), printer).await?);
    let options = ServeOptions {
        consent: if arguments.yes { Consent::Everything } else { Consent::Ask },
        connections: usize::from(arguments.connections),
        ..ServeOptions::default()
    };
    let server = Server::bind(path, options)?;
    if printer.json() {
        printer.document(&done(json!({ "socket": path })));
    } else {
        printer.note(&format!(
            "listening at {}; `tgp token mint` makes a token for a client, Ctrl-C ends",
            path.display()
        ));
    }
    Ok(server.serve(kernel).await?)
}

async fn stdio(global: &Global, printer: &Printer) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        printer.note("waiting for a program that speaks docs/protocol.md on standard input; Ctrl-C ends");
    }
    let (input, output) = standard_streams::take()?;
    let kernel = serve_stdio(Arc::new(ProjectBoot(global.clone())), input, output).await?;
    if let Some(kernel) = kernel {
        session::end(kernel).await;
    }
    Ok(())
}

/// Boots the kernel of the project that a host names; by default the one of the command line.
struct ProjectBoot(Global);

#[async_trait]
impl HostBoot for ProjectBoot {
    async fn boot(&self, params: &HostParams, parts: HostParts) -> Result<Kernel, ToolError> {
        let mut global = self.0.clone();
        if let Some(directory) = &params.directory {
            global.directory = Some(directory.into());
        }
        if let Some(file) = &params.config_file {
            global.config = Some(file.into());
        }
        let HostParts { approver, database, tools, files, log } = parts;
        if let Some(log) = log {
            let level = log.level.as_str();
            global.log =
                global.log.start_for_program(level, Box::new(move |fields| log.write(&log_line(fields))))?;
        }
        let adapt =
            |options| BootOptions { approver, database, host_tools: tools, host_files: files, ..options };
        session::boot_for_host(&global, adapt).await
    }
}

/// A line of the log as the host takes it: the fields of the event follow its message.
fn log_line(fields: &Map<String, Value>) -> LogParams {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let level = match text("level").as_str() {
        "ERROR" => HostLogLevel::Error,
        "WARN" => HostLogLevel::Warn,
        "INFO" => HostLogLevel::Info,
        _ => HostLogLevel::Debug,
    };
    let mut message = text("message");
    for (name, value) in fields {
        if !["level", "target", "message", "timestamp", "spans"].contains(&name.as_str()) {
            message.push_str(&format!(" {name}={value}"));
        }
    }
    LogParams { level, target: text("target"), message }
}
