//! `tgp token`: make, narrow and read capability tokens.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tgp::contract::{CapabilityToken, Code, ToolError};
use tgp::gates::{Caveats, attenuate_token};
use tgp_text::now_ms;

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

#[derive(Debug, Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token of this project's kernel.
    Mint(CaveatArgs),
    /// Make a narrower token from another one.
    Attenuate {
        /// The token to start from.
        token: String,
        #[command(flatten)]
        narrowing: CaveatArgs,
    },
    /// Say whether a token is valid, and what its id in the audit is.
    Check {
        /// The token.
        token: String,
    },
}

#[derive(Debug, Args)]
struct CaveatArgs {
    /// Only these tools: names, globs, effect:read.
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    tools: Vec<String>,
    /// Only these files: globs; tools: or project: name a tree.
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    paths: Vec<String>,
    /// Only for so long: 90s, 15m, 12h or 7d.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<Duration>,
    /// Only so many calls, those of its children included.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    calls: Option<u64>,
    /// Only in this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// A note for people; it decides nothing.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl CaveatArgs {
    fn caveats(self) -> Caveats {
        let some = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
        Caveats {
            tools: some(self.tools),
            paths: some(self.paths),
            expires_ms: self
                .expires
                .and_then(|time| now_ms().checked_add(u64::try_from(time.as_millis()).ok()?)),
            calls: self.calls,
            session: self.session,
            note: self.note,
            ..Caveats::default()
        }
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let seconds = found
        .and_then(|(number, seconds)| number.parse::<u64>().ok()?.checked_mul(*seconds))
        .filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(|| "write a time as 90s, 15m, 12h or 7d".to_owned())
}

pub async fn run(arguments: TokenArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    match arguments.command {
        TokenCommand::Mint(narrowing) => {
            let kernel = session::boot(global, None, printer).await?;
            let token = kernel.mint_token(&narrowing.caveats()).await;
            kernel.shutdown().await;
            show(&token?, printer);
        }
        TokenCommand::Attenuate { token, narrowing } => {
            let caveats = narrowing.caveats();
            if caveats == Caveats::default() {
                return Err(ToolError::new(Code::Validation, "nothing was said that narrows the token")
                    .help("give --tools, --paths, --expires, --calls or --session")
                    .into());
            }
            show(&attenuate_token(&CapabilityToken::new(token), &caveats)?, printer);
        }
        TokenCommand::Check { token } => {
            let kernel = session::boot(global, None, printer).await?;
            let grant = kernel.check_token(&CapabilityToken::new(token));
            kernel.shutdown().await;
            let grant = grant?;
            if printer.json() {
                printer.document(&done(json!({ "id": grant.id() })));
            } else {
                printer.line(&format!("valid; the audit calls it {}", grant.id()));
            }
        }
    }
    Ok(())
}

fn show(token: &CapabilityToken, printer: &Printer) {
    if printer.json() {
        printer.document(&done(json!({ "token": token.reveal() })));
    } else {
        printer.line(token.reveal());
    }
}
