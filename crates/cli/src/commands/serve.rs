//! `tgp serve`: the tools for other programs on this machine, over a Unix socket.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tgp::contract::Consent;
use tgp_ipc::{ServeOptions, Server};

use super::done;
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where the socket is made.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Agree to effects, but not on files that run later.
    #[arg(long)]
    yes: bool,
    /// Clients at a time.
    #[arg(long, value_name = "NUMBER", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,
}

pub async fn run(arguments: ServeArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel =
        Arc::new(session::boot_to_run(global, Arc::new(TerminalApprover { has_yes: true }), printer).await?);
    let options = ServeOptions {
        consent: if arguments.yes { Consent::Everything } else { Consent::Ask },
        connections: usize::from(arguments.connections),
        ..ServeOptions::default()
    };
    let server = Server::bind(&arguments.socket, options)?;
    if printer.json() {
        printer.document(&done(json!({ "socket": arguments.socket })));
    } else {
        printer.note(&format!(
            "listening at {}; `tgp token mint` makes a token for a client, Ctrl-C ends",
            arguments.socket.display()
        ));
    }
    Ok(server.serve(kernel).await?)
}
