//! Servers and their tools as a person reads them before agreeing to them.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tgp::files::unified_diff;
use tgp::upstream::{Pin, PinChange, ServerDefinition, UpstreamModule, UpstreamTool, ValueSource};

use crate::text::{single_line, visible};

/// What replaces a value that was written into a definition: it may be a key.
const HIDDEN: &str = "(a value of your own)";

/// What a server gets, and the types of its tools.
pub(super) fn server(name: &str, definition: &ServerDefinition, pin: &Pin) -> String {
    let types = UpstreamModule::new(name, pin.clone()).whole_types();
    format!("mcp:{name}\n{}\n{}", definition_of(definition), visible(&types))
}

/// How a server is started, and what it gets.
pub(super) fn definition_of(definition: &ServerDefinition) -> String {
    let mut text = String::new();
    let word = if matches!(definition, ServerDefinition::Http(_)) { "reached" } else { "started" };
    let _ = writeln!(text, "  {word:<10}{}", how(definition));
    match definition {
        ServerDefinition::Stdio(server) => {
            let paths = |paths: &[std::path::PathBuf]| -> Vec<String> {
                paths.iter().map(|path| single_line(&path.display().to_string())).collect()
            };
            listed(
                &mut text,
                "reads",
                &paths(&server.read),
                "programs and libraries of the system, its own home",
            );
            listed(&mut text, "changes", &paths(&server.write), "its own home");
            let hosts: Vec<String> = server.hosts.iter().map(|host| single_line(host)).collect();
            listed(&mut text, "reaches", &hosts, "");
            listed(&mut text, "variables", &values(server.env.iter()), "");
        }
        ServerDefinition::Http(server) => listed(&mut text, "headers", &values(server.headers.iter()), ""),
    }
    text
}

fn listed(text: &mut String, what: &str, items: &[String], always: &str) {
    let mut all: Vec<&str> = items.iter().map(String::as_str).collect();
    if !always.is_empty() {
        all.push(always);
    }
    let shown = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
    let _ = writeln!(text, "  {what:<10}{shown}");
}

fn values<'v>(sources: impl Iterator<Item = (&'v String, &'v ValueSource)>) -> Vec<String> {
    let one = |(name, source): (&String, &ValueSource)| match source {
        ValueSource::Value(_) => format!("{} {HIDDEN}", single_line(name)),
        ValueSource::Env(variable) if variable == name => single_line(name),
        ValueSource::Env(variable) => single_line(&format!("{name} (your variable {variable})")),
        ValueSource::Secret(secret) => single_line(&format!("{name} (the secret {secret})")),
    };
    sources.map(one).collect()
}

/// How a server is started or reached, on one line.
pub(super) fn how(definition: &ServerDefinition) -> String {
    match definition {
        ServerDefinition::Stdio(server) => single_line(&server.command.join(" ")),
        ServerDefinition::Http(server) => single_line(&server.url),
    }
}

/// A definition without the values that may be keys.
pub(super) fn shown_definition(definition: &ServerDefinition) -> Value {
    let mut shown = json!(definition);
    for field in ["env", "headers"] {
        let values = shown.get_mut(field).and_then(Value::as_object_mut);
        for value in values.into_iter().flat_map(|values| values.values_mut()) {
            if value.get("value").is_some() {
                *value = json!({ "value": HIDDEN });
            }
        }
    }
    shown
}

/// What has changed, tool by tool, with every word of it.
pub(super) fn difference(changes: &[PinChange<'_>]) -> String {
    let mut text = String::new();
    for change in changes {
        let (name, before, now) = match change {
            PinChange::Added(now) => (&now.name, None, Some(definition(now))),
            PinChange::Removed(before) => (&before.name, Some(definition(before)), None),
            PinChange::Changed { before, now } => {
                (&now.name, Some(definition(before)), Some(definition(now)))
            }
        };
        let (diff, complete) = unified_diff(name, before.as_deref(), now.as_deref());
        text.push_str(&visible(&diff));
        if !complete {
            text.push_str("(the rest is too long to be shown)\n");
        }
    }
    text
}

fn definition(tool: &UpstreamTool) -> String {
    let mut text = serde_json::to_string_pretty(tool).unwrap_or_default();
    text.push('\n');
    text
}
