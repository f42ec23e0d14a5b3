//! `tgp aql explain`: what a query would do, before it does it.

use clap::{Args, ValueEnum};
use tgp::aql::choose_query;
use tgp::contract::{Actor, CallContext, Consent};

use super::compile;
use crate::arguments::Global;
use crate::commands::done;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A file of queries; - reads standard input.
    file: String,
    /// Which of its queries, where there are several.
    #[arg(long, value_name = "NAME")]
    query: Option<String>,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Mermaid,
    Dot,
    Json,
}

pub(super) async fn run(arguments: ExplainArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let compiled = compile(&kernel, &arguments.file, printer)?;
    let plan = choose_query(&compiled, arguments.query.as_deref())?;
    let context = CallContext {
        actor: Actor::Agent(super::run::ACTOR.to_owned()),
        session: "aql".to_owned(),
        consent: Consent::Ask,
        dry_run: false,
        depth: 0,
        token: None,
    };
    let explanation = kernel.explain_query(&plan, &context).await;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(serde_json::to_value(&explanation).unwrap_or_default()));
        return Ok(());
    }
    let text = match arguments.format {
        Format::Text => explanation.text(),
        Format::Mermaid => explanation.mermaid(),
        Format::Dot => explanation.dot(),
        Format::Json => serde_json::to_string_pretty(&explanation).unwrap_or_default(),
    };
    printer.line(visible(text.trim_end()).as_str());
    Ok(())
}
