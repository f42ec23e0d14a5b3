//! `tgp call`: any registered tool, for programs.

use std::sync::Arc;

use clap::Args;
use tgp::contract::{CallContext, CapabilityToken, ClientEntry, Consent, ToolCall, ToolResult};
use tgp::project::ClientClaim;

use super::input::json_argument;
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool's name or alias, see `tgp tools`.
    tool: String,
    /// Its arguments: JSON, @FILE, or - for standard input.
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Show what would happen and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Agree to the effect, but not on files that run later.
    #[arg(long)]
    yes: bool,
    /// A capability token to narrow the call.
    #[arg(long, env = "TGP_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// A name for the work, for the record only.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// A name for the caller, for the record.
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
}

/// A program reads the answer, so there is one JSON result on standard output whatever happens.
impl CallArgs {
    pub fn runs_a_tool(&self) -> bool {
        matches!(self.tool.as_str(), "exec_tool" | "test_tool")
    }
}

pub async fn run(arguments: CallArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let result = match call(arguments, global, printer).await {
        Ok(result) => result,
        Err(Failure::Error(shown)) => ToolResult::Failed(shown.error),
        Err(other) => return Err(other),
    };
    printer.document(&serde_json::to_value(&result).unwrap_or_default());
    match result {
        ToolResult::Done(_) => Ok(()),
        ToolResult::Failed(error) => Err(Failure::Silent(error.code)),
    }
}

async fn call(arguments: CallArgs, global: &Global, printer: &Printer) -> Result<ToolResult, Failure> {
    let values = json_argument("arguments", &arguments.arguments, global).await?;
    let approver = Arc::new(TerminalApprover { has_yes: true });
    let kernel = session::boot(global, Some(approver), printer).await?;
    let call = ToolCall { id: "call".to_owned(), tool: arguments.tool, arguments: values };
    let claim = ClientClaim {
        token: arguments.token.map(CapabilityToken::new),
        actor: arguments.actor,
        session: arguments.session,
    };
    let consent = if arguments.yes { Consent::Everything } else { Consent::Ask };
    let result = match kernel.client_context(ClientEntry::Command, claim, consent) {
        Ok(context) => {
            let context = CallContext { dry_run: arguments.dry_run, ..context };
            kernel.call_with(call, context).await
        }
        Err(error) => ToolResult::Failed(error),
    };
    kernel.shutdown().await;
    Ok(result)
}
