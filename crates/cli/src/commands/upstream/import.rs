//! `tgp upstream import`: servers from the configurations of MCP hosts, one question each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value, json};
use tgp::contract::{Code, ToolError};
use tgp::upstream::{HttpServer, Pin, ServerDefinition, StdioServer, Upstreams, ValueSource, add_decision};
use tgp_mcp::install::{ForeignServer, Host, Scope};

use super::super::mcp_install::{self, HostArg};
use super::advice::{suggested_reads, with_advice};
use super::{confirm_server, view};
use crate::approval;
use crate::arguments::Global;
use crate::commands::done;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, short_line, single_line};

/// Columns of a command line that is suggested; a longer one is in the file of the host.
const MAX_RETRY: usize = 240;

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Only these servers.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only from this host; default: all that are found.
    #[arg(long, value_enum, value_name = "HOST")]
    from: Vec<HostArg>,
    /// Start and add every server without being asked.
    #[arg(long)]
    yes: bool,
    /// Put tgp in the place of what was added, in the hosts' files.
    #[arg(long)]
    replace: bool,
}

/// A server of a host.
struct Offer {
    host: Host,
    file: PathBuf,
    server: ForeignServer,
    /// A project comes from somebody else.
    is_of_project: bool,
}

pub(super) async fn import(
    arguments: ImportArgs,
    servers: &Arc<Upstreams>,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let offers = offers(&arguments, global)?;
    if offers.is_empty() {
        return Err(ToolError::new(Code::NotFound, "the configurations of MCP hosts name no other server")
            .help("add one with `tgp upstream add NAME -- COMMAND`")
            .into());
    }
    if !arguments.yes && !approval::can_ask() {
        for offer in &offers {
            printer.lines(&described(offer));
        }
        return Err(ToolError::new(Code::Approval, "there is no terminal to ask at")
            .help("pass --yes to start and add what is shown above")
            .into());
    }
    let mut added = 0;
    // What the hosts can reach through tgp.
    let mut present: Vec<&Offer> = Vec::new();
    let mut report: Vec<Value> = Vec::new();
    for offer in &offers {
        let name = local_name(&offer.server.name);
        if servers.store().definition(&name).is_ok_and(|known| known.is_some()) {
            printer.note(&format!("{name} is there already"));
            report.push(json!({ "name": name, "state": "there already" }));
            present.push(offer);
            continue;
        }
        let text = described(offer);
        if arguments.yes && offer.is_of_project && gets_variables(&offer.server) {
            printer.warn(&format!(
                "{} was not added: the project's file gives it variables of yours, which --yes does not cover",
                single_line(&offer.server.name)
            ));
            printer.note(&format!("to add it by hand: {}", retry(offer)));
            report.push(json!({ "name": offer.server.name, "state": "left out" }));
            continue;
        }
        let question = match offer.server.url {
            Some(_) => "Connect to it, and look at its tools?",
            None => "Start this in the jail, and look at its tools?",
        };
        if !arguments.yes && !approval::confirm(&text, question).await {
            report.push(json!({ "name": offer.server.name, "state": "left out" }));
            continue;
        }
        match add(offer, arguments.yes, servers, global, printer).await {
            Ok(tools) => {
                printer.note(&format!("added {name} with {}", count(tools, "tool")));
                report.push(json!({ "name": name, "state": "added", "tools": tools }));
                added += 1;
                present.push(offer);
            }
            Err(error) => {
                printer.warn(&format!(
                    "{} was not added: {}",
                    single_line(&offer.server.name),
                    error.message
                ));
                printer.note(&format!("to try again with files or hosts that it needs: {}", retry(offer)));
                report.push(json!({ "name": offer.server.name, "state": "failed", "error": error }));
            }
        }
    }
    if printer.json() {
        printer.document(&done(json!({ "servers": report })));
    } else {
        printer.line(&format!("added {} of {}", added, count(offers.len(), "server")));
    }
    replace(&arguments, &present, global, printer).await
}

/// Offers to let the hosts reach what was added through tgp, with its gates, instead of directly.
async fn replace(
    arguments: &ImportArgs,
    added: &[&Offer],
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let can_offer = approval::can_ask() && !arguments.yes && !printer.json();
    if added.is_empty() || !(arguments.replace || can_offer) {
        return Ok(());
    }
    let mut files: BTreeMap<PathBuf, (Host, Vec<&str>)> = BTreeMap::new();
    for offer in added {
        let entry = files.entry(offer.file.clone()).or_insert((offer.host, Vec::new()));
        entry.1.push(&offer.server.name);
    }
    for (file, (host, names)) in files {
        let question = format!(
            "{} still starts {} itself, without the gates of tgp.\n",
            single_line(&file.display().to_string()),
            single_line(&names.join(", "))
        );
        if arguments.replace || approval::confirm(&question, "Put tgp in their place?").await {
            mcp_install::put_in_place(host, &file, &names, global, arguments.replace, printer).await?;
        }
    }
    Ok(())
}

async fn add(
    offer: &Offer,
    yes: bool,
    servers: &Arc<Upstreams>,
    global: &Global,
    printer: &Printer,
) -> Result<usize, ToolError> {
    let name = local_name(&offer.server.name);
    tgp::upstream::check_server_name(&name)?;
    let definition = definition(&offer.server);
    let inspected = servers.inspect(&name, &definition).await;
    let pin = Pin::of(&inspected.map_err(|error| with_advice(error, &definition))?);
    confirm_server(&name, &definition, &pin, yes, printer).await?;
    let options = session::records_options(global).map_err(|_| {
        ToolError::new(Code::Config, "the directory of the command cannot be used")
            .help("name another with -C")
    })?;
    let decision = tgp::audit::record_decision(&options, add_decision(&name, &definition, &pin)).await?;
    servers.keep(&name, &definition, &pin, decision).await?;
    Ok(pin.tools().count())
}

/// Every server of the hosts that is not tgp itself, each name once.
fn offers(arguments: &ImportArgs, global: &Global) -> Result<Vec<Offer>, Failure> {
    let named: Vec<Host> = arguments.from.iter().map(|host| Host::from(*host)).collect();
    let mut offers: Vec<Offer> = Vec::new();
    for (host, scope, file, server) in mcp_install::foreign_servers(&named, global)? {
        let is_wanted = arguments.names.is_empty() || arguments.names.contains(&server.name);
        let is_new = offers.iter().all(|offer| offer.server.name != server.name);
        if is_wanted && is_new && !is_tgp(&server) {
            offers.push(Offer { host, file, server, is_of_project: scope == Scope::Project });
        }
    }
    for name in &arguments.names {
        if offers.iter().all(|offer| offer.server.name != *name) {
            let message = format!("no configuration of a host names a server `{name}`");
            return Err(ToolError::new(Code::NotFound, message).into());
        }
    }
    Ok(offers)
}

fn gets_variables(server: &ForeignServer) -> bool {
    let mut values = server.env.values().chain(server.headers.values());
    values.any(|value| matches!(source(value), ValueSource::Env(_)))
}

fn is_tgp(server: &ForeignServer) -> bool {
    let program = server.command.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    program == Some("tgp") && server.command.iter().any(|word| word == "mcp")
}

fn definition(server: &ForeignServer) -> ServerDefinition {
    let values = |pairs: &BTreeMap<String, String>| -> BTreeMap<String, ValueSource> {
        pairs.iter().map(|(name, value)| (name.clone(), source(value))).collect()
    };
    match &server.url {
        Some(url) => {
            ServerDefinition::Http(HttpServer { url: url.clone(), headers: values(&server.headers) })
        }
        None => ServerDefinition::Stdio(StdioServer {
            command: server.command.clone(),
            env: values(&server.env),
            // Shown to the person with the rest, before anything is started.
            read: suggested_reads(&server.command),
            ..StdioServer::default()
        }),
    }
}

/// Hosts write `${NAME}` for a variable of the user.
fn source(value: &str) -> ValueSource {
    let variable = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let variable = variable.map(|name| name.strip_prefix("env:").unwrap_or(name));
    match variable {
        Some(name) if !name.contains([':', '$', '{']) => ValueSource::Env(name.to_owned()),
        _ => ValueSource::Value(value.to_owned()),
    }
}

/// The name as an import can hold it.
fn local_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}

fn described(offer: &Offer) -> String {
    let definition = definition(&offer.server);
    let file = single_line(&offer.file.display().to_string());
    format!(
        "{} ({}, {file})\n{}",
        single_line(&offer.server.name),
        offer.host.title(),
        view::definition_of(&definition)
    )
}

/// A word as a shell reads it: the line is there to be copied, and its words are of somebody else.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "@%+=:,./_-".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// The command line with which a person adds it by hand.
fn retry(offer: &Offer) -> String {
    let name = local_name(&offer.server.name);
    match &offer.server.url {
        Some(url) => single_line(&format!("tgp upstream add {name} {}", quoted(url))),
        None => {
            let one = |(name, value): (&String, &String)| match source(value) {
                ValueSource::Env(variable) => format!(" --env {name}=env:{variable}"),
                _ => format!(" --env {name}=VALUE"),
            };
            let variables: String = offer.server.env.iter().map(one).collect();
            let command: Vec<String> = offer.server.command.iter().map(|word| quoted(word)).collect();
            let command = command.join(" ");
            let line = format!("tgp upstream add {name}{variables} --read PATH --host HOST -- {command}");
            short_line(&single_line(&line), MAX_RETRY, "…")
        }
    }
}

#[cfg(test)]
mod tests {
    use tgp::upstream::ValueSource;

    use super::{local_name, source};

    #[test]
    fn names_and_values_of_hosts_become_ours() {
        assert_eq!(local_name("My_Server 2"), "my-server-2");
        for (value, expected) in [
            ("${KEY}", ValueSource::Env("KEY".to_owned())),
            ("${env:KEY}", ValueSource::Env("KEY".to_owned())),
            ("${input:key}", ValueSource::Value("${input:key}".to_owned())),
            ("plain", ValueSource::Value("plain".to_owned())),
        ] {
            assert_eq!(source(value), expected, "{value}");
        }
    }
}
