//! Short ways to write policies and calls.

use serde_json::{Value, json};
use tgp_contract::{Access, Actor, Effect, RelativePath, Root, Target, TddMode, TddState};
use tgp_policy::{
    PastCall, Policy, PolicyDecision, PolicyError, PolicySettings, PolicySource, SessionHistory, SourceTrust,
};

pub fn path(text: &str) -> RelativePath {
    RelativePath::new(text).unwrap()
}

pub fn source(file: &str, text: &str) -> PolicySource {
    PolicySource { file: file.to_owned(), text: text.to_owned(), trust: SourceTrust::Full }
}

pub fn try_load(text: &str) -> Result<Policy, PolicyError> {
    Policy::load(&[source("p.yaml", text)], &PolicySettings::default())
}

/// A policy of these rules, in the flow style of YAML.
pub fn rules(rules: &str) -> Policy {
    let text = format!("version: 1\nrules:\n{rules}\n");
    try_load(&text).unwrap_or_else(|error| panic!("{:?}\n{text}", error.problems().collect::<Vec<_>>()))
}

pub fn file(root: Root, name: &str, access: Access) -> Target {
    Target::File { root, path: path(name), access }
}

pub fn written(name: &str) -> Target {
    file(Root::Project, name, Access::Write)
}

pub fn statement(sql: &str, kinds: &[&str]) -> Target {
    Target::Statement {
        sql: sql.to_owned(),
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        reads: false,
    }
}

pub fn host(name: &str) -> Target {
    Target::Host { host: name.to_owned() }
}

pub fn command(text: &str) -> Target {
    Target::Command { command: text.to_owned() }
}

/// A call by an agent in strict mode, idle, without arguments.
pub fn call(tool: &str, effect: Effect, targets: Vec<Target>) -> PastCall {
    PastCall {
        tool: tool.to_owned(),
        aliases: Vec::new(),
        effect,
        arguments: json!({}),
        targets,
        actor: Actor::Agent("coder".to_owned()),
        session: "one".to_owned(),
        mode: TddMode::Strict,
        state: TddState::Idle,
    }
}

pub fn with_arguments(arguments: Value) -> PastCall {
    PastCall { arguments, ..call("query", Effect::Write, Vec::new()) }
}

/// Effect and rule, as `deny no-migrations`.
pub fn said(decision: &PolicyDecision) -> String {
    format!("{} {}", decision.effect, decision.rule)
}

pub fn judged(policy: &Policy, call: &PastCall) -> String {
    said(&policy.preview(&call.as_question(), &SessionHistory::new(policy)))
}
