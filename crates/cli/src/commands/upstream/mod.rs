//! `tgp upstream`: MCP servers of others, as imports of forged tools.

mod advice;
mod definition;
mod import;
mod login;
mod view;

use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tgp::audit::Decision;
use tgp::contract::{Code, ToolError};
use tgp::upstream::{
    HttpServer, Pin, ServerDefinition, UpstreamModule, UpstreamStore, UpstreamTool, Upstreams, add_decision,
    check_server_name, pin_decision,
};

use super::{done, trust};
use crate::approval;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::count;
use definition::DefinitionArgs;
use import::ImportArgs;

#[derive(Debug, Args)]
pub struct UpstreamArgs {
    #[command(subcommand)]
    command: UpstreamCommand,
}

#[derive(Debug, Subcommand)]
enum UpstreamCommand {
    /// Add a server: start it, look at its tools, and keep them.
    Add(Box<AddArgs>),
    /// Add servers that MCP hosts on this machine are set up with.
    Import(ImportArgs),
    /// List the servers.
    List,
    /// Show what a server gets, and the types of its tools.
    Show(NameArgs),
    /// Start a server, and compare its tools with those that you have seen.
    Test(NameArgs),
    /// Log in to a server over HTTP, in a browser.
    Login(LoginArgs),
    /// Look at what a server has changed, and accept it.
    Pin(PinArgs),
    /// Forget a server.
    Remove(NameArgs),
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The name of the server, as in `mcp:NAME`.
    name: String,
}

#[derive(Debug, Args)]
struct LoginArgs {
    /// The name of the server, as in `mcp:NAME`.
    name: String,
    /// The address of a server that is not added yet.
    url: Option<String>,
}

#[derive(Debug, Args)]
struct AddArgs {
    /// The name that tools import it by: `mcp:NAME`.
    name: String,
    #[command(flatten)]
    definition: DefinitionArgs,
    /// Add it without being asked.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct PinArgs {
    /// The name of the server, as in `mcp:NAME`.
    name: String,
    /// Accept without being asked.
    #[arg(long)]
    yes: bool,
    /// Name the definitions in the tool repository; other users call no other.
    #[arg(long)]
    share: bool,
}

pub async fn run(arguments: UpstreamArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let options = session::records_options(global)?;
    let servers = tgp::upstream::open(&options).await.map_err(ToolError::from)?;
    match arguments.command {
        UpstreamCommand::Add(arguments) => add(*arguments, &servers, global, printer).await,
        UpstreamCommand::Import(arguments) => import::import(arguments, &servers, global, printer).await,
        UpstreamCommand::List => list(servers.store(), printer),
        UpstreamCommand::Show(NameArgs { name }) => show(&name, servers.store(), printer),
        UpstreamCommand::Test(NameArgs { name }) => test(&name, &servers, printer).await,
        UpstreamCommand::Login(LoginArgs { name, url }) => {
            let definition = match url {
                Some(url) => ServerDefinition::Http(HttpServer { url, headers: Default::default() }),
                None => known(&name, servers.store())?,
            };
            login::run(&name, &definition, &servers, global, printer).await
        }
        UpstreamCommand::Pin(arguments) => pin(&arguments, &servers, global, printer).await,
        UpstreamCommand::Remove(NameArgs { name }) => remove(&name, &servers, global, printer).await,
    }
}

async fn add(
    arguments: AddArgs,
    servers: &Arc<Upstreams>,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let AddArgs { name, definition, yes } = arguments;
    check_server_name(&name)?;
    let store = servers.store();
    if store.definition(&name)?.is_some() {
        let message = format!("an upstream server `{name}` is there already");
        return Err(ToolError::new(Code::Conflict, message)
            .help(format!("`tgp upstream show {name}` shows it; `tgp upstream remove {name}` makes room"))
            .into());
    }
    let definition = definition.into_definition()?;
    definition.check()?;
    if let ServerDefinition::Stdio(_) = definition {
        printer.note("starting the server in the jail");
    }
    let tools = inspect(&name, &definition, yes, servers, global, printer).await?;
    let pin = Pin::of(&tools);
    confirm_server(&name, &definition, &pin, yes, printer).await?;
    let decision = session::record_decision(global, add_decision(&name, &definition, &pin)).await?;
    servers.keep(&name, &definition, &pin, decision).await?;
    let first = UpstreamModule::new(&name, pin.clone()).function_names().into_iter().next();
    if printer.json() {
        printer.document(&done(json!({ "name": name, "tools": pin.tools().count() })));
        return Ok(());
    }
    printer.line(&format!("added {name} with {}", count(pin.tools().count(), "tool")));
    if let Some(first) = first {
        printer.note(&format!("a forged tool writes: import {{ {first} }} from 'mcp:{name}';"));
    }
    Ok(())
}

/// The tools of a server that is not added yet, after a login where it needs one.
async fn inspect(
    name: &str,
    definition: &ServerDefinition,
    yes: bool,
    servers: &Arc<Upstreams>,
    global: &Global,
    printer: &Printer,
) -> Result<Vec<UpstreamTool>, Failure> {
    let error = match servers.inspect(name, definition).await {
        Err(error) if Upstreams::needs_login(&error) => error,
        inspected => return Ok(inspected.map_err(|error| advice::with_advice(error, definition))?),
    };
    let is_wanted = approval::can_ask()
        && (yes || approval::confirm(&format!("{}\n", error.message), "Log in now?").await);
    if let (false, ServerDefinition::Http(server)) = (is_wanted, definition) {
        return Err(error
            .help(format!(
                "a person logs in with `tgp upstream login {name} {}`, and adds it again",
                server.url
            ))
            .into());
    }
    login::log_in(name, definition, servers, global, printer).await?;
    Ok(servers.inspect(name, definition).await?)
}

/// Shows a server with all of its tools, and asks once.
async fn confirm_server(
    name: &str,
    definition: &ServerDefinition,
    pin: &Pin,
    yes: bool,
    printer: &Printer,
) -> Result<(), ToolError> {
    let text = view::server(name, definition, pin);
    trust::agree(&text, "Add this server, with these tools?", yes, printer).await
}

fn list(store: &UpstreamStore, printer: &Printer) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut documents = Vec::new();
    for name in store.names()? {
        let Some(definition) = store.definition(&name)? else { continue };
        let tools = store.pin(&name)?.map_or(0, |pin| pin.tools().count());
        documents
            .push(json!({ "name": name, "definition": view::shown_definition(&definition), "tools": tools }));
        rows.push(vec![name, count(tools, "tool"), view::how(&definition)]);
    }
    if printer.json() {
        printer.document(&done(json!(documents)));
    } else if rows.is_empty() {
        printer.note("there are no upstream servers; add one with `tgp upstream add NAME -- COMMAND`");
    } else {
        printer.table(&["name".to_owned(), "tools".to_owned(), "started with".to_owned()], &rows);
    }
    Ok(())
}

fn show(name: &str, store: &UpstreamStore, printer: &Printer) -> Result<(), Failure> {
    let definition = known(name, store)?;
    let pin = store.pin(name)?.unwrap_or_default();
    if printer.json() {
        let tools: Vec<_> = pin.tools().map(|tool| json!({ "tool": tool, "pin": tool.hash() })).collect();
        let definition = view::shown_definition(&definition);
        printer.document(&done(json!({ "name": name, "definition": definition, "tools": tools })));
    } else {
        printer.data(&view::server(name, &definition, &pin));
    }
    Ok(())
}

async fn test(name: &str, servers: &Arc<Upstreams>, printer: &Printer) -> Result<(), Failure> {
    let definition = known(name, servers.store())?;
    let before = servers.store().pin(name)?.unwrap_or_default();
    let now = Pin::of(&servers.inspect(name, &definition).await?);
    let changes = before.changes(&now);
    if !changes.is_empty() {
        printer.lines(view::difference(&changes).trim_end());
        let message =
            format!("{} of `{name}` changed since you have seen them", count(changes.len(), "tool"));
        return Err(ToolError::new(Code::Pin, message)
            .help(format!("calls of what changed are refused until you accept it: tgp upstream pin {name}"))
            .into());
    }
    let number = now.tools().count();
    if printer.json() {
        printer.document(&done(json!({ "name": name, "tools": number })));
    } else {
        printer.line(&format!("{name} answers, with {} as you have seen them", count(number, "tool")));
    }
    Ok(())
}

async fn pin(
    arguments: &PinArgs,
    servers: &Arc<Upstreams>,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let name = &arguments.name;
    let definition = known(name, servers.store())?;
    let before = servers.store().pin(name)?.unwrap_or_default();
    let now = Pin::of(&servers.inspect(name, &definition).await?);
    let changes = before.changes(&now);
    let document = json!({ "name": name, "changed": changes.len(), "tools": now.tools().count() });
    if changes.is_empty() {
        share(arguments, servers, &now, printer)?;
        say("the server offers what you have seen; nothing was changed", document, printer);
        return Ok(());
    }
    let text = view::difference(&changes);
    trust::agree(&text, "Accept these changes?", arguments.yes, printer).await?;
    let decision = session::record_decision(global, pin_decision(name, &before, &now)).await?;
    servers.store().keep_pin(name, &now, decision)?;
    share(arguments, servers, &now, printer)?;
    say(&format!("accepted {} of {name}", count(changes.len(), "changed tool")), document, printer);
    Ok(())
}

/// Names what was accepted in the tool repository, where the user wants that.
fn share(arguments: &PinArgs, servers: &Upstreams, pin: &Pin, printer: &Printer) -> Result<(), Failure> {
    if !arguments.share {
        return Ok(());
    }
    servers.share_pin(&arguments.name, pin)?;
    printer.note("policy/upstream.json of the tool repository names them; `tgp sync` shares it");
    Ok(())
}

fn say(line: &str, document: Value, printer: &Printer) {
    if printer.json() {
        printer.document(&done(document));
    } else {
        printer.line(line);
    }
}

async fn remove(name: &str, servers: &Upstreams, global: &Global, printer: &Printer) -> Result<(), Failure> {
    if !servers.remove(name).await? {
        return Err(unknown(name, servers.store()).into());
    }
    let removed = Decision::new("upstream_remove", json!({ "name": name }));
    session::record_tightening(global, removed, printer).await?;
    if printer.json() {
        printer.document(&done(json!({ "removed": name })));
    } else {
        printer.line(&format!("removed {name}"));
    }
    Ok(())
}

fn known(name: &str, store: &UpstreamStore) -> Result<ServerDefinition, Failure> {
    store.definition(name)?.ok_or_else(|| unknown(name, store).into())
}

fn unknown(name: &str, store: &UpstreamStore) -> ToolError {
    let names = store.names().unwrap_or_default();
    let near = tgp_text::nearest_names(name, names.iter().map(String::as_str), 1);
    let help = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`tgp upstream list` shows the servers".to_owned(),
    };
    ToolError::new(Code::NotFound, format!("the upstream server `{name}` is not known")).help(help)
}
