//! `tgp token`: make, narrow and read capability tokens.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use tgp::Kernel;
use tgp::contract::{CapabilityToken, Code, ToolError};
use tgp::gates::{Caveats, attenuate_token};
use tgp_text::now_ms;

use super::{done, shown_time};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

#[derive(Debug, Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token of this project's kernel. It needs a scope, or --all.
    Mint(MintArgs),
    /// Make a narrower token from another one.
    Attenuate {
        /// The token to start from.
        token: String,
        #[command(flatten)]
        narrowing: CaveatArgs,
    },
    /// End a token, with all that were made from the same one.
    Revoke {
        /// The token.
        token: String,
    },
    /// Say whether a token is valid, when it ends, and its id in the audit.
    Check {
        /// The token.
        token: String,
    },
}

#[derive(Debug, Args)]
struct MintArgs {
    #[command(flatten)]
    caveats: CaveatArgs,
    /// Cover everything that the rules allow.
    #[arg(long, conflicts_with_all = ["tools", "paths", "calls", "session"])]
    all: bool,
    /// Without an end; the default is 30 days.
    #[arg(long, conflicts_with = "expires")]
    no_expiry: bool,
}

/// How long a token lives that says nothing about it.
const LIFETIME: Duration = Duration::from_secs(30 * 86_400);

impl MintArgs {
    /// Returns the caveats of a new token.
    ///
    /// # Errors
    /// `EVALIDATION` without a scope, or for tools that the kernel does not have.
    fn caveats(self, kernel: &Kernel) -> Result<Caveats, ToolError> {
        let mut caveats = self.caveats;
        if caveats.expires.is_none() && !self.no_expiry {
            caveats.expires = Some(LIFETIME);
        }
        let caveats = caveats.caveats();
        let has_scope = caveats.tools.is_some()
            || caveats.paths.is_some()
            || caveats.calls.is_some()
            || caveats.session.is_some();
        if !has_scope && !self.all {
            return Err(ToolError::new(Code::Validation, "the token has no scope").help(
                "give --tools, --paths, --calls or --session, or --all for everything that the rules allow",
            ));
        }
        check_tools(caveats.tools.as_deref().unwrap_or_default(), kernel)?;
        Ok(caveats)
    }
}

/// Refuses the name of a tool that the kernel does not have: its token would be for nothing.
fn check_tools(patterns: &[String], kernel: &Kernel) -> Result<(), ToolError> {
    let names: Vec<&str> = kernel
        .definitions()
        .flat_map(|tool| std::iter::once(tool.name.as_str()).chain(tool.aliases.iter().map(String::as_str)))
        .chain(tgp::BRIDGE_TOOLS)
        .collect();
    for pattern in patterns {
        // A glob, `effect:…`, or a forged tool by its path.
        let is_name = !pattern.contains(['*', '?', '[', '{', ':', '/', '!']);
        if !is_name || names.contains(&pattern.as_str()) {
            continue;
        }
        let primary = kernel.definitions().map(|tool| tool.name.as_str());
        let help = tgp_text::did_you_mean(pattern, primary)
            .unwrap_or_else(|| "`tgp tools` lists the tools".to_owned());
        return Err(ToolError::new(Code::Validation, format!("there is no tool `{pattern}`")).help(help));
    }
    Ok(())
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
            let minted = match narrowing.caveats(&kernel) {
                Ok(caveats) => kernel.mint_token(&caveats).await.map(|token| (token, caveats.expires_ms)),
                Err(error) => Err(error),
            };
            kernel.shutdown().await;
            let (token, ends) = minted?;
            show(&token, printer);
            match ends {
                Some(ends) => printer.note(&format!("it ends at {}", shown_time(ends))),
                None => printer.note("it has no end; `tgp token revoke TOKEN` ends it"),
            }
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
            let ends = grant.expires_ms();
            if printer.json() {
                printer.document(&done(json!({ "id": grant.id(), "expiresMs": ends })));
            } else {
                let ends = ends.map_or_else(
                    || "it has no end".to_owned(),
                    |ends| format!("it ends at {}", shown_time(ends)),
                );
                printer.line(&format!("valid; {ends}; the audit calls it {}", grant.id()));
            }
        }
        TokenCommand::Revoke { token } => {
            let kernel = session::boot(global, None, printer).await?;
            let revoked = kernel.revoke_token(&CapabilityToken::new(token)).await;
            kernel.shutdown().await;
            if let Some(warning) = revoked? {
                printer.warn(&visible(&warning));
            }
            if printer.json() {
                printer.document(&done(json!({ "revoked": true })));
            } else {
                printer.line("revoked, with every token that was made from the same one");
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
