//! Golden folders: `ok/NAME.yaml` and `err/NAME.yaml` beside `NAME.out`. `UPDATE_GOLDEN=1` regenerates the outputs.
//!
//! In `ok`, comment lines that begin with `#?` are calls as JSON: they are judged one after the other in one session
//! and run when they are not denied. `#??` explains the call first.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use tgp_contract::{Actor, Effect, Target, TddMode, TddState, ToolError};
use tgp_policy::{PastCall, PastOutcome, Policy, PolicySettings, SessionHistory};

use crate::support::{said, source};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    tool: String,
    #[serde(default)]
    aliases: Vec<String>,
    effect: Effect,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    targets: Vec<Target>,
    actor: Option<Actor>,
    mode: Option<TddMode>,
    state: Option<TddState>,
}

impl From<Asked> for PastCall {
    fn from(asked: Asked) -> Self {
        Self {
            tool: asked.tool,
            aliases: asked.aliases,
            effect: asked.effect,
            arguments: asked.arguments,
            targets: asked.targets,
            actor: asked.actor.unwrap_or(Actor::Agent("coder".to_owned())),
            session: "golden".to_owned(),
            mode: asked.mode.unwrap_or(TddMode::Strict),
            state: asked.state.unwrap_or(TddState::Idle),
        }
    }
}

fn render(file: &str, text: &str) -> String {
    let policy = match Policy::load(&[source(file, text)], &PolicySettings::default()) {
        Ok(policy) => policy,
        Err(error) => {
            let mut output: String = error.problems().map(|problem| format!("{problem}\n")).collect();
            let error = ToolError::from(error);
            writeln!(output, "{} at {}: {}", error.code, error.place_of().unwrap(), error.message).unwrap();
            return output;
        }
    };
    let mut output = String::new();
    for rule in policy.rules() {
        let kind = if rule.is_sequence { "sequence" } else { "rule" };
        let (yes, no) = (rule.matching, rule.not_matching);
        writeln!(output, "{kind} {} {} at {}: {yes} match, {no} do not", rule.effect, rule.id, rule.place)
            .unwrap();
    }
    let mut history = SessionHistory::new(&policy);
    for line in text.lines().filter(|line| line.starts_with("#?")) {
        let (explained, json) = match line.strip_prefix("#??") {
            Some(json) => (true, json),
            None => (false, &line[2..]),
        };
        let asked: Asked =
            serde_json::from_str(json).unwrap_or_else(|error| panic!("{file}: {line}: {error}"));
        let call = PastCall::from(asked);
        let question = call.as_question();
        if explained {
            write!(output, "\n{}\n", policy.explain(&question, &history)).unwrap();
        }
        let ruling = policy.judge(&question, &mut history);
        writeln!(output, "{}: {}", call.tool, said(&ruling.decision)).unwrap();
        if let Some(ticket) = ruling.ticket {
            history.settle(&policy, ticket, &question, PastOutcome::Ran);
        }
    }
    output
}

fn check(folder: &str, least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/policy/golden").join(folder);
    let mut inputs: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= least, "only {} inputs in {}", inputs.len(), folder.display());
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for input in inputs {
        let name = input.file_name().unwrap().to_str().unwrap();
        let rendered = render(name, &fs::read_to_string(&input).unwrap());
        let output = input.with_extension("out");
        if update {
            fs::write(&output, &rendered).unwrap();
        } else if fs::read_to_string(&output).unwrap_or_default() != rendered {
            wrong.push(format!("{name}\n{rendered}"));
        }
        assert_eq!(rendered.contains("ECONFIG at"), folder.ends_with("err"), "{name} is in the wrong folder");
    }
    assert!(wrong.is_empty(), "run with UPDATE_GOLDEN=1 and read the difference:\n{}", wrong.join("\n"));
}

#[test]
fn good_files_judge_as_written() {
    check("ok", 6);
}

#[test]
fn bad_files_are_refused_with_every_problem_at_its_place() {
    check("err", 20);
}
