//! `tgp policy`: check the rules, try them, and ask why.

use clap::{Args, Subcommand};
use console::Style;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{Actor, CallContext, Consent, ToolCall};
use tgp::gates::{PolicyExplanation, RuleEffect, RuleFinding};

use super::{done, parse_json};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, shown_sources, visible};

#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Read every rule and say what is wrong with them.
    Check,
    /// Check the examples, and what recorded calls would be judged now.
    Test {
        /// How many of the last recorded calls.
        #[arg(short = 'n', long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000))]
        number: u64,
    },
    /// Confirm the rules of the tool repository, so that they may allow.
    Trust {
        /// Confirm without being asked.
        #[arg(long)]
        yes: bool,
        /// Print the hash for TGP_TRUST, and confirm nothing.
        #[arg(long, conflicts_with = "yes")]
        print: bool,
    },
    /// Say which rule decides about a call, and why others do not.
    Explain {
        /// The tool's name or alias, see `tgp tools`.
        tool: String,
        /// Its arguments as JSON.
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        /// Who would make the call.
        #[arg(long, value_name = "NAME", default_value = "cli")]
        actor: String,
        /// The session whose history counts.
        #[arg(long, value_name = "ID", default_value = "cli")]
        session: String,
        /// Also print rules that do not concern it.
        #[arg(short, long)]
        verbose: bool,
    },
}

pub async fn run(arguments: PolicyArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let outcome = match arguments.command {
        PolicyCommand::Check => check(&kernel, printer).await,
        PolicyCommand::Test { number } => test(&kernel, number, global, printer).await,
        PolicyCommand::Trust { yes, print } => super::trust::rules(&kernel, yes, print, printer).await,
        PolicyCommand::Explain { tool, arguments, actor, session, verbose } => {
            let question = ApprovalQuestion { tool, arguments, actor, session };
            explain(&kernel, question, verbose, printer).await
        }
    };
    kernel.shutdown().await;
    outcome
}

async fn check(kernel: &Kernel, printer: &Printer) -> Result<(), Failure> {
    // Rules that nothing reads are in no order.
    kernel.policy().check_files()?;
    let names: Vec<String> = kernel
        .definitions()
        .flat_map(|definition| std::iter::once(definition.name.to_string()).chain(definition.aliases.clone()))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let listing = kernel.policy().listing().await?;
    let doubts = kernel.policy().doubts(&names).await?;
    if printer.json() {
        printer.document(&done(json!({
            "rules": listing.rules, "extensions": listing.extensions, "sources": listing.sources, "doubts": doubts
        })));
        return Ok(());
    }
    for rule in &listing.rules {
        let waits = if rule.has_effect { "" } else { " [no effect until `tgp policy trust`]" };
        let line = format!("{} {} ({}): {}{waits}", rule.effect.as_str(), rule.id, rule.place, rule.reason);
        printer.line(&visible(&line));
    }
    listing.extensions.iter().for_each(|name| printer.line(&format!("extension {}", visible(name))));
    doubts.iter().for_each(|doubt| printer.warn(&visible(doubt)));
    printer.note(&format!("{}; the built-in rules come on top", visible(&shown_sources(&listing))));
    Ok(())
}

struct ApprovalQuestion {
    tool: String,
    arguments: String,
    actor: String,
    session: String,
}

fn context(actor: String, session: String) -> CallContext {
    CallContext {
        actor: Actor::Agent(actor),
        session,
        consent: Consent::Ask,
        dry_run: false,
        depth: 0,
        token: None,
    }
}

async fn explain(
    kernel: &Kernel,
    asked: ApprovalQuestion,
    verbose: bool,
    printer: &Printer,
) -> Result<(), Failure> {
    let values = parse_json("arguments", &asked.arguments)?;
    let call = ToolCall { id: "explain".to_owned(), tool: asked.tool, arguments: values };
    let explanation = kernel.explain(&call, &context(asked.actor, asked.session)).await?;
    if printer.json() {
        printer.document(&done(serde_json::to_value(&explanation).unwrap_or_default()));
    } else {
        show(&explanation, verbose, printer);
    }
    Ok(())
}

fn show(explanation: &PolicyExplanation, verbose: bool, printer: &Printer) {
    let decision = &explanation.decision;
    let style = match decision.effect {
        RuleEffect::Allow => Style::new().green(),
        RuleEffect::Ask => Style::new().yellow(),
        RuleEffect::Deny => Style::new().red(),
    };
    let place = decision.source.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
    printer.line(&format!(
        "{} by {}{}: {}",
        printer.paint_out(&style, decision.effect.as_str()),
        visible(&decision.rule),
        visible(&place),
        visible(&decision.reason)
    ));
    let mut left_out = 0;
    for report in &explanation.rules {
        // A built-in rule that does not concern the call is not worth showing.
        if report.finding == RuleFinding::Idle && report.source.is_none() && !verbose {
            left_out += 1;
            continue;
        }
        if report.finding != RuleFinding::Decided {
            let line = format!("  {} {}: {}", report.effect.as_str(), report.rule, report.why);
            printer.line(&visible(&line));
        }
    }
    if left_out > 0 {
        printer.note(&format!(
            "{} left out, which have nothing to do with it (-v shows them)",
            count(left_out, "built-in rule")
        ));
    }
}

/// What a recorded call was judged, in the words of the rules, and by which.
fn judged(entry: &Value) -> Option<(&str, &str)> {
    let verdicts = entry.get("verdicts")?.as_array()?;
    let of_policy = |verdict: &&Value| verdict.get("gate").and_then(Value::as_str) == Some("policy");
    let verdict = verdicts.iter().find(of_policy)?;
    Some((verdict.get("verdict")?.as_str()?, verdict.get("rule")?.as_str()?))
}

async fn test(kernel: &Kernel, number: u64, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let rules = kernel.policy().listing().await?.rules;
    let sequences: Vec<String> =
        rules.iter().filter(|rule| rule.is_sequence).map(|rule| rule.id.clone()).collect();
    for rule in rules {
        if !printer.json() {
            printer.line(&visible(&format!("{}: {} hold", rule.id, count(rule.examples, "example"))));
        }
    }
    kernel.flush().await?;
    let reader = session::records(global).await?;
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    let entries = reader.tail(&tgp::audit::AuditFilter::default(), number)?;
    let mut differences = Vec::new();
    let mut compared = 0_usize;
    for entry in &entries {
        let body = &entry.body;
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some((was, rule)) = judged(body) else { continue };
        // What a call's own past decided cannot be decided without it.
        if sequences.iter().any(|sequence| sequence == rule) {
            continue;
        }
        let arguments = body.get("arguments").cloned().unwrap_or_default();
        let call = ToolCall { id: "test".to_owned(), tool: text("tool"), arguments };
        let Ok(actor) = serde_json::from_value(body.get("actor").cloned().unwrap_or_default()) else {
            continue;
        };
        // A separate session: what the recorded one did since must not count against its own past.
        let context = CallContext { actor, ..context(String::new(), "policy-test".to_owned()) };
        let Ok(explanation) = kernel.explain(&call, &context).await else { continue };
        compared += 1;
        let now = explanation.decision.effect.as_str();
        if now != was {
            differences.push(json!({
                "sequence": entry.sequence, "tool": call.tool, "was": was, "now": now,
                "rule": explanation.decision.rule, "reason": explanation.decision.reason,
            }));
        }
    }
    if printer.json() {
        printer.document(&done(json!({ "compared": compared, "differences": differences })));
        return Ok(());
    }
    for difference in &differences {
        let text = |name: &str| super::text_of(difference, name);
        let sequence = difference.get("sequence").and_then(Value::as_u64).unwrap_or_default();
        printer.line(&format!(
            "{sequence} {}: was {}, now {} by {}: {}",
            text("tool"),
            text("was"),
            text("now"),
            text("rule"),
            text("reason")
        ));
    }
    printer.note(&format!(
        "of {}, {} would be judged otherwise by the rules as they are now",
        count(compared, "recorded call"),
        differences.len()
    ));
    Ok(())
}
