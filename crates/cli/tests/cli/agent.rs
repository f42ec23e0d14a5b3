//! What tests of an agent share: scripts for the model, and the events of a session.

use serde_json::{Value, json};

use crate::project::{Project, Ran};

/// The model calls a tool.
pub fn call(tool: &str, arguments: impl Into<Value>) -> Value {
    let arguments: Value = arguments.into();
    json!({ "type": "tool_call", "toolName": tool, "callId": "c", "arguments": arguments })
}

/// The model says something.
pub fn say(text: &str) -> Value {
    json!({ "type": "text", "value": text })
}

/// Writes a script into the project, and gives the provider's name.
pub fn script(project: &Project, name: &str, turns: &[Vec<Value>]) -> String {
    project.write(name, &json!(turns).to_string());
    format!("script:{name}")
}

/// A session with `--json`: how it ended, and its events.
pub fn session(project: &Project, arguments: &[&str]) -> (Ran, Vec<Value>) {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let ran = project.run(&all);
    let events = events(&ran.stdout);
    (ran, events)
}

pub fn events(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The results of a session's calls: tool, verdict and the error's code, if there is one.
pub fn results(events: &[Value]) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .filter(|event| event["type"] == "tool_result")
        .map(|event| {
            let code = text(&event["result"]["error"]["code"]);
            (text(&event["toolName"]), text(&event["verdict"]), code)
        })
        .collect()
}

/// The summary that ends a session.
pub fn summary(events: &[Value]) -> &Value {
    let last = events.last().expect("a session has events");
    assert_eq!(last["type"], "end", "{last}");
    &last["summary"]
}

/// The state of test-driven work, as `tgp state` reports it.
pub fn state(project: &Project) -> String {
    let shown = project.run(&["--json", "state", "show"]).expect_code(0);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    shown["data"]["scopes"][0]["state"].as_str().unwrap().to_owned()
}
