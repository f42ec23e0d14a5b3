//! `tgp mcp`: the tools for MCP hosts, and the entry in their configuration files.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, FromArgMatches, Subcommand, ValueEnum};
use serde_json::json;
use tgp::contract::{Code, Consent, ToolError};
use tgp_mcp::{HostApprover, HttpOptions, HttpServer, Mode, ServerOptions, serve_stdio};

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::{session, standard_streams};

/// Where the token for HTTP clients is, in the kernel's state.
const TOKEN_FILE: &str = "mcp/token";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    #[command(flatten)]
    serve: ServeMcpArgs,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Enter the server in the configuration of a host.
    Install(super::mcp_install::InstallArgs),
    /// Remove the server from the configuration of a host.
    Uninstall(super::mcp_install::InstallArgs),
}

#[derive(Debug, Args)]
struct ServeMcpArgs {
    /// Which tools a host sees.
    #[arg(long, value_enum, default_value_t = ModeArg::Code)]
    mode: ModeArg,
    /// The tools of the mode direct: math/fib, exec_sql.
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    only: Vec<String>,
    /// Offer the tools for the project's own files.
    #[arg(long)]
    files: bool,
    /// Offer commands and the project's tests.
    #[arg(long)]
    shell: bool,
    /// Agree to what is asked by default, not to rules.
    #[arg(long)]
    yes: bool,
    /// Let forms of the host answer what is asked by default.
    #[arg(long)]
    forms: bool,
    /// Answer a longer run with a handle after so long.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=300))]
    patience: u64,
    /// Serve over HTTP on this port of 127.0.0.1 and ::1.
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,
    /// Where HTTP clients find their token.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    /// Run programs, forge and find tools.
    Code,
    /// Search and invoke, for hosts with a code mode.
    Search,
    /// The tools of --only, each as a tool of the host.
    Direct,
}

impl ServeMcpArgs {
    fn options(&self) -> Result<ServerOptions, ToolError> {
        let mode = match self.mode {
            ModeArg::Code => Mode::Code,
            ModeArg::Search => Mode::Search,
            ModeArg::Direct => Mode::Direct(self.only.clone()),
        };
        if self.mode != ModeArg::Direct && !self.only.is_empty() {
            return Err(ToolError::new(Code::Validation, "`--only` is for the mode `direct`")
                .help("add `--mode direct`"));
        }
        // Rules that ask are for a person to answer: the agent's host has no part in that.
        let consent = if self.yes { Consent::Outer } else { Consent::Ask };
        let (files, shell, forms) = (self.files, self.shell, self.forms);
        Ok(ServerOptions { mode, files, shell, consent, forms, patience: Duration::from_secs(self.patience) })
    }
}

pub async fn run(arguments: McpArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    match arguments.command {
        Some(McpCommand::Install(arguments)) => {
            check_installable(&arguments.server_words(), global, printer).await?;
            super::mcp_install::install(&arguments, global, printer).await
        }
        Some(McpCommand::Uninstall(arguments)) => {
            super::mcp_install::uninstall(&arguments, global, printer).await
        }
        None => serve(&arguments.serve, global, printer).await,
    }
}

/// Refuses to enter a server that could not start: outside a project, or with options that it does not take.
async fn check_installable(words: &[String], global: &Global, printer: &Printer) -> Result<(), Failure> {
    let command = ServeMcpArgs::augment_args(clap::Command::new("tgp mcp").no_binary_name(true));
    let parsed =
        command.try_get_matches_from(words).and_then(|matches| ServeMcpArgs::from_arg_matches(&matches));
    let arguments = parsed.map_err(|error| {
        // The first paragraph says what is wrong; the rest is usage.
        let text = error.to_string();
        let words: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
        let why = words.join(" ").trim_start_matches("error: ").to_owned();
        ToolError::new(Code::Validation, format!("the options after `--` are not those of `tgp mcp`: {why}"))
            .help("`tgp mcp --help` lists them")
    })?;
    if arguments.http.is_some() {
        return Err(ToolError::new(
            Code::Validation,
            "a host starts the server on its standard streams, without `--http`",
        )
        .help("leave `--http` out; docs/mcp.md shows how a host connects to a server over HTTP")
        .into());
    }
    let options = arguments.options()?;
    let kernel = session::boot(global, None, printer).await?;
    let checked = options.check(&kernel);
    kernel.shutdown().await;
    Ok(checked?)
}

async fn serve(arguments: &ServeMcpArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let options = arguments.options()?;
    if let Some(port) = arguments.http {
        let kernel = Arc::new(session::boot(global, Some(Arc::new(HostApprover)), printer).await?);
        let token_file = arguments.token_file.clone().unwrap_or_else(|| kernel.state_path().join(TOKEN_FILE));
        let http = HttpOptions { port, token_file };
        let server = HttpServer::bind(kernel, options, &http).await?;
        let (url, token_file) = (server.url(), http.token_file.display());
        if printer.json() {
            printer.document(&done(json!({ "url": url, "tokenFile": http.token_file })));
        } else {
            printer.note(&format!("listening at {url}; the token is in {token_file}, Ctrl-C ends"));
        }
        server.serve().await;
        return Ok(());
    }
    if io::stdin().is_terminal() {
        printer.note(
            "waiting for an MCP host on standard input; `tgp mcp install` enters it in one, Ctrl-C ends",
        );
    }
    let (input, output) = standard_streams::take()?;
    let kernel = Arc::new(session::boot(global, Some(Arc::new(HostApprover)), printer).await?);
    let served = serve_stdio(Arc::clone(&kernel), options, input, output).await;
    session::end(kernel).await;
    Ok(served?)
}
