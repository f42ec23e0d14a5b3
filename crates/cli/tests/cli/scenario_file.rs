//! `sdk/scenarios/scenarios.json`: what every entry point has to do, and what the audit has to say of it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Everything an entry point is compared with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// By the name of the entry point, where there are any.
    pub differences: BTreeMap<String, Difference>,
    pub scenarios: Vec<Scenario>,
}

/// What an entry point records beside what all of them record.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    pub why: String,
    /// Entries of a process before its first call.
    pub opening: Vec<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    pub story: String,
    pub setup: Setup,
    /// One process each, one after the other.
    pub agents: Vec<Agent>,
    pub end: End,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// Whether a bare repository `remote.git` is beside the projects.
    pub remote: bool,
    /// Whether `tgp init` makes the projects; otherwise they have nothing but the configuration.
    pub init: bool,
    pub config: Map<String, Value>,
    /// Files of the tool repository of the first project, by path.
    pub tools: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The folder that it works in. One that no agent has used before is empty.
    pub project: String,
    pub steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Part of the data of a call that works.
    pub answer: Option<Value>,
    /// Part of the error of a call that fails.
    pub error: Option<Value>,
    /// The files of the tool repository after the call, without those of git and of the kernel.
    pub repository: Option<Vec<String>>,
    pub record: ExpectedRecord,
}

/// What the audit has of a call, beside its tool and its arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRecord {
    pub targets: Value,
    /// Gates and their decisions, in the order in which they were asked.
    pub verdicts: Vec<(String, String)>,
    pub verdict: String,
    pub execution: String,
    pub outcome: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Files below the folder of the projects, by path, byte for byte.
    pub disk: BTreeMap<String, String>,
    /// Files of a new clone of the remote.
    pub clone: BTreeMap<String, String>,
}

impl ScenarioFile {
    pub fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/scenarios/scenarios.json");
        let file: Self = serde_json::from_str(&std::fs::read_to_string(path).unwrap())
            .unwrap_or_else(|error| panic!("scenarios.json: {error}"));
        for (name, text) in file.texts() {
            assert!(!text.is_empty(), "`{name}` has no explanation");
        }
        for step in file.steps() {
            assert!(step.answer.is_some() != step.error.is_some(), "`{}`: answer or error", step.tool);
        }
        file
    }

    /// What explains a difference or a scenario to a reader.
    fn texts(&self) -> impl Iterator<Item = (&String, &String)> {
        let differences = self.differences.iter().map(|(name, difference)| (name, &difference.why));
        differences.chain(self.scenarios.iter().map(|scenario| (&scenario.name, &scenario.story)))
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.scenarios.iter().flat_map(|scenario| &scenario.agents).flat_map(|agent| &agent.steps)
    }

    /// Every tool that an agent calls.
    pub fn tools(&self) -> BTreeSet<&str> {
        self.steps().map(|step| step.tool.as_str()).collect()
    }

    /// What the audit of a project has to hold after all agents of a scenario.
    pub fn expected_records(&self, entry_point: &str, scenario: &Scenario, project: &str) -> Vec<Value> {
        let difference = self.differences.get(entry_point);
        let of_agent = |agent: &Agent| {
            let opening = difference.into_iter().flat_map(|difference| &difference.opening);
            let opening = opening.cloned().map(Value::Object);
            opening.chain(agent.steps.iter().map(Step::expected_record)).collect::<Vec<_>>()
        };
        scenario.agents.iter().filter(|agent| agent.project == project).flat_map(of_agent).collect()
    }
}

impl Step {
    fn expected_record(&self) -> Value {
        let ExpectedRecord { targets, verdicts, verdict, execution, outcome } = &self.record;
        json!({
            "tool": self.tool,
            "arguments": self.arguments,
            "targets": targets,
            "verdicts": verdicts,
            "verdict": verdict,
            "execution": execution,
            "outcome": outcome,
        })
    }

    /// Compares what a call gave with what it has to give.
    #[track_caller]
    pub fn check(&self, given: Result<&Value, &Value>) {
        let Self { tool, arguments, .. } = self;
        let arguments = Value::Object(arguments.clone());
        match (given, &self.answer, &self.error) {
            (Ok(data), Some(expected), _) | (Err(data), _, Some(expected)) => {
                assert!(contains(data, expected), "{tool} {arguments} gave {data}, expected {expected}");
            }
            (given, ..) => panic!("{tool} {arguments} gave {given:?}"),
        }
    }
}

/// Whether an entry is a person's confirmation of the configuration, before any agent.
pub fn is_confirmation(entry: &Value) -> bool {
    entry["tool"] == "trust_confirm"
}

/// The fields of an entry that do not depend on who called, when, and on which machine.
pub fn comparable(entry: &Value) -> Value {
    let mut arguments = entry["arguments"].clone();
    if entry["tool"] == "token_mint" {
        arguments.as_object_mut().unwrap().retain(|name, _| name == "caveats");
    }
    let verdicts = entry["verdicts"].as_array().unwrap_or_else(|| panic!("{entry}"));
    let verdicts: Vec<Value> =
        verdicts.iter().map(|verdict| json!([verdict["gate"], verdict["verdict"]])).collect();
    let mut outcome = entry["outcome"].clone();
    outcome.as_object_mut().unwrap().retain(|name, value| name != "durationUs" && !value.is_null());
    json!({
        "tool": entry["tool"],
        "arguments": arguments,
        "targets": entry["targets"],
        "verdicts": verdicts,
        "verdict": entry["verdict"],
        "execution": entry["execution"],
        "outcome": outcome,
    })
}

/// Whether a value has everything of another: fields of objects, all elements of lists, anything else itself.
fn contains(value: &Value, part: &Value) -> bool {
    match (value, part) {
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| fields.get(name).is_some_and(|field| contains(field, wanted)))
        }
        (Value::Array(items), Value::Array(wanted)) => {
            items.len() == wanted.len()
                && items.iter().zip(wanted).all(|(item, wanted)| contains(item, wanted))
        }
        (value, part) => value == part,
    }
}
