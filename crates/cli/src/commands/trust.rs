//! `tgp trust` and `tgp policy trust`: a person confirms what takes effect only then.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::audit::Decision;
use tgp::contract::{Code, ToolError};
use tgp::files::unified_diff;
use tgp::gates::ForeignRules;
use tgp::trust::{
    SensitiveField, TrustRequest, TrustStore, fields_decision, fields_hash, file_decision, rules_decision,
    rules_hash,
};

use super::done;
use crate::approval;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, visible};

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Queries of the tool repository, instead of the configuration.
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Confirm without being asked.
    #[arg(long)]
    yes: bool,
    /// Print the hash for TGP_TRUST, and confirm nothing.
    #[arg(long, conflicts_with_all = ["yes", "files"])]
    print: bool,
    /// With --print: where the project is on the other machine.
    #[arg(long, value_name = "DIR", requires = "print")]
    at: Option<PathBuf>,
    /// List every project of which something was confirmed.
    #[arg(long, conflicts_with_all = ["yes", "print", "files"])]
    list: bool,
    /// Take back everything that was confirmed of this project.
    #[arg(long, conflicts_with_all = ["yes", "print", "files", "list"])]
    revoke: bool,
}

pub async fn run(arguments: TrustArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    if arguments.list {
        return list(&store()?, printer);
    }
    if !arguments.files.is_empty() {
        return files(&arguments, global, printer).await;
    }
    let options = session::records_options(global)?;
    if arguments.revoke {
        // Without reading the confirmations or the configuration: either may be what is wrong.
        let project = options.directory.canonicalize().unwrap_or_else(|_| options.directory.clone());
        let found = store()?.revoke(&project)?;
        if found {
            let revoked = Decision::new("trust_revoke", json!({ "project": project.display().to_string() }));
            session::record_tightening(global, revoked, printer).await?;
        }
        let line = if found { "revoked" } else { "nothing was confirmed of this project" };
        say(line, json!({ "revoked": found }), printer);
        return Ok(());
    }
    let request = tgp::trust::trust_request(&options).await.map_err(ToolError::from)?;
    let at = arguments.at.as_deref().unwrap_or(&request.project);
    let hash = fields_hash(at, &request.fields);
    if arguments.print {
        say(&hash, json!({ "hash": hash, "fields": names(&request) }), printer);
        return Ok(());
    }
    confirm_fields(&request, &hash, arguments.yes, global, printer).await
}

async fn confirm_fields(
    request: &TrustRequest,
    hash: &str,
    yes: bool,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let document = json!({ "confirmed": names(request), "hash": hash });
    if request.unconfirmed.is_empty() {
        say("nothing in the configuration needs a confirmation", document, printer);
        return Ok(());
    }
    request.unconfirmed.iter().try_for_each(SensitiveField::check_supported)?;
    let store = store()?;
    let text = format!(
        "of the configuration of {}:\n{}",
        shown_path(request),
        session::shown_fields(&request.unconfirmed)
    );
    agree(&text, "Confirm these fields?", yes, printer).await?;
    let decision = fields_decision(&request.project, &request.fields)?;
    let decision = session::record_decision(global, decision).await?;
    store.confirm_fields(&request.project, &request.fields, decision)?;
    say(&format!("confirmed {}", count(request.unconfirmed.len(), "field")), document, printer);
    printer.note("a server that runs already (`tgp mcp`, `tgp serve`) takes it up when it is started again");
    Ok(())
}

fn shown_path(request: &TrustRequest) -> String {
    visible(&request.project.display().to_string())
}

fn names(request: &TrustRequest) -> Vec<&'static str> {
    request.fields.iter().map(|field| field.name).collect()
}

/// Confirms the text of queries that came with the tool repository.
async fn files(arguments: &TrustArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let store = store()?;
    let kernel = session::boot(global, None, printer).await?;
    let mut confirmed = Vec::new();
    for path in &arguments.files {
        let text = kernel.query_source(path)?;
        if !kernel.is_in_tools(path) {
            printer.note(&format!(
                "{} is a file of the project itself, which needs no confirmation",
                visible(path)
            ));
            continue;
        }
        agree(
            &format!("{}:\n{}\n", visible(path), visible(&text)),
            "Confirm this text?",
            arguments.yes,
            printer,
        )
        .await?;
        let decision = kernel.record_decision(file_decision(kernel.project(), path, &text)).await?;
        store.confirm_file(kernel.project(), path, &text, decision)?;
        confirmed.push(path);
    }
    kernel.shutdown().await;
    say(&format!("confirmed {}", count(confirmed.len(), "file")), json!({ "confirmed": confirmed }), printer);
    Ok(())
}

/// `tgp policy trust`.
pub async fn rules(kernel: &Kernel, yes: bool, print: bool, printer: &Printer) -> Result<(), Failure> {
    let files = kernel.policy().foreign().await?;
    let hash = rules_hash(kernel.project(), &files);
    let document = json!({ "files": files.keys().collect::<Vec<_>>(), "hash": hash });
    if print {
        say(&hash, document, printer);
        return Ok(());
    }
    let store = store()?;
    let last = store.rules(kernel.project())?.unwrap_or_default();
    if files.is_empty() || last.hash == hash {
        say("the tool repository has no rules that need a confirmation", document, printer);
        return Ok(());
    }
    let text = difference(&last.files, &files);
    agree(&text, "Confirm these rules, so that they may allow?", yes, printer).await?;
    let decision = kernel.record_decision(rules_decision(kernel.project(), &files)).await?;
    store.confirm_rules(kernel.project(), &files, decision)?;
    say(&format!("confirmed {} of rules", count(files.len(), "file")), document, printer);
    Ok(())
}

/// What has changed since the last confirmation; everything when there was none.
fn difference(before: &ForeignRules, now: &ForeignRules) -> String {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let mut shown = String::new();
    for name in names {
        let texts = (before.get(name).map(String::as_str), now.get(name).map(String::as_str));
        let (text, complete) = unified_diff(name, texts.0, texts.1);
        shown.push_str(&visible(&text));
        if !complete {
            shown.push_str(&format!("(the rest is too long to be shown; read {})\n", visible(name)));
        }
    }
    shown
}

/// Shows what is confirmed, and asks once unless the command said yes.
pub(super) async fn agree(text: &str, question: &str, yes: bool, printer: &Printer) -> Result<(), ToolError> {
    if yes {
        printer.lines(text.trim_end());
        return Ok(());
    }
    if !approval::can_ask() {
        printer.lines(text.trim_end());
        return Err(ToolError::new(Code::Approval, "there is no terminal to ask at")
            .help("pass --yes to confirm what is shown above"));
    }
    if approval::confirm(text, question).await {
        return Ok(());
    }
    Err(ToolError::new(Code::Approval, "the answer at the terminal was no; nothing was confirmed"))
}

fn list(store: &TrustStore, printer: &Printer) -> Result<(), Failure> {
    let projects = store.list()?;
    if printer.json() {
        printer.document(&done(json!(projects)));
        return Ok(());
    }
    for (project, confirmed) in &projects {
        printer.line(&visible(&format!("{project}: {}", confirmed.join(", "))));
    }
    if projects.is_empty() {
        printer.note("nothing was confirmed yet");
    }
    Ok(())
}

fn store() -> Result<TrustStore, Failure> {
    TrustStore::of_user(&session::environment()).ok_or_else(|| {
        ToolError::new(Code::Config, "there is no place to keep confirmations: HOME is not set")
            .help("set TGP_HOME to an absolute path outside of every project")
            .into()
    })
}

fn say(line: &str, document: Value, printer: &Printer) {
    if printer.json() {
        printer.document(&done(document));
    } else {
        printer.line(line);
    }
}
