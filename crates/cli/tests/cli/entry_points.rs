//! The scenarios of `sdk/scenarios` through the command line, an MCP host and the Rust library. The clients in `sdk/` run
//! the same file: whatever drives the kernel, its audit says the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tgp::prelude::*;
use tgp::trust::Confirmations;
use tgp::{Environment, audit};

use crate::mcp::McpHost;
use crate::project::Project;
use crate::scenario_file::{Agent, Scenario, ScenarioFile, Step, comparable, is_confirmation};

/// More entries than a scenario leaves.
const MANY: usize = 1_000;
/// In a copy of this program that is an agent: the numbers of the scenario and of the agent, and the folder of both.
const AGENT: &str = "TGP_TEST_SCENARIO_AGENT";

/// An entry point of the kernel, and how its agents run.
struct EntryPoint {
    name: &'static str,
    /// Takes the calls of an agent, checks its answers, and ends its process.
    run: fn(Project, &Place<'_>) -> Project,
    /// The bodies of the audit of a project, oldest first.
    records: fn(&Project, &str) -> Vec<Value>,
}

/// An agent of a scenario.
struct Place<'a> {
    file: &'a ScenarioFile,
    scenario: usize,
    number: usize,
    agent: &'a Agent,
}

#[test]
fn the_command_line() {
    run_scenarios(&EntryPoint { name: "cli", run: run_commands, records: listed_records });
}

#[test]
fn an_mcp_host() {
    run_scenarios(&EntryPoint { name: "mcp", run: run_mcp_host, records: listed_records });
}

/// In a copy of this program, one agent.
#[test]
fn the_rust_library() {
    match std::env::var(AGENT) {
        Ok(place) => run_library_agent(&place),
        Err(_) => run_scenarios(&EntryPoint { name: "rust", run: run_library, records: read_records }),
    }
}

fn run_scenarios(entry_point: &EntryPoint) {
    let file = ScenarioFile::read();
    assert!(!file.scenarios.is_empty());
    for (scenario_number, scenario) in file.scenarios.iter().enumerate() {
        let mut project = set_up(scenario);
        for (number, agent) in scenario.agents.iter().enumerate() {
            let place = Place { file: &file, scenario: scenario_number, number, agent };
            project = (entry_point.run)(project, &place);
            project.assert_clean();
        }
        check_end(&project, scenario);
        for name in project_names(scenario) {
            let mut found = (entry_point.records)(&project, name);
            found.retain(|entry| !is_confirmation(entry));
            let found: Vec<Value> = found.iter().map(comparable).collect();
            let expected = file.expected_records(entry_point.name, scenario, name);
            assert_same_records(
                &format!("{}, {}, {name}", entry_point.name, scenario.name),
                &found,
                &expected,
            );
        }
    }
}

/// The first difference is shown alone: whole audits are long.
fn assert_same_records(place: &str, found: &[Value], expected: &[Value]) {
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            found == expected,
            "{place}: entry {} differs\nfound    {found:#}\nexpected {expected:#}",
            number + 1
        );
    }
    let tools = |records: &[Value]| records.iter().map(|record| record["tool"].clone()).collect::<Vec<_>>();
    assert_eq!(tools(found), tools(expected), "{place}");
}

fn project_names(scenario: &Scenario) -> BTreeSet<&str> {
    scenario.agents.iter().map(|agent| agent.project.as_str()).collect()
}

fn set_up(scenario: &Scenario) -> Project {
    let project = Project::empty();
    if scenario.setup.remote {
        project.shell("git init --quiet --bare --initial-branch=main ../remote.git").expect_code(0);
    }
    for name in project_names(scenario) {
        let folder = project.path(name);
        std::fs::create_dir(&folder).unwrap();
        if scenario.setup.init {
            project.run(&["-C", folder.to_str().unwrap(), "init", "--json"]).expect_code(0);
        }
        let config = format!("export default {};\n", Value::Object(scenario.setup.config.clone()));
        std::fs::write(folder.join("tgp.config.ts"), config).unwrap();
        // A person has written this configuration.
        project.run(&["-C", folder.to_str().unwrap(), "trust", "--yes"]).expect_code(0);
    }
    for (path, content) in &scenario.setup.tools {
        let file = project.path(&scenario.agents[0].project).join(".tgp").join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
    project
}

fn check_end(project: &Project, scenario: &Scenario) {
    for (path, content) in &scenario.end.disk {
        assert_eq!(&std::fs::read_to_string(project.path(path)).unwrap(), content, "{path}");
    }
    if scenario.end.clone.is_empty() {
        return;
    }
    project.shell("git clone --quiet \"file://$PWD/../remote.git\" ../clone").expect_code(0);
    for (path, content) in &scenario.end.clone {
        let cloned = project.path("clone").join(path);
        assert_eq!(&std::fs::read_to_string(cloned).unwrap(), content, "{path} of the clone");
    }
}

/// What is in the tool repository is what the step says, beside the files of git and of the kernel.
fn check_repository(root: &Path, project: &str, step: &Step) {
    let Some(expected) = &step.repository else { return };
    let folder = root.join(project).join(".tgp");
    let (mut found, mut open) = (Vec::new(), vec![folder.clone()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            let name = entry.path().strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
            match entry.file_type().unwrap().is_dir() {
                _ if name.starts_with("data.sqlite") => {}
                _ if [".git", ".gitignore", ".gitattributes", ".state"].contains(&name.as_str()) => {}
                true => open.push(entry.path()),
                false => found.push(name),
            }
        }
    }
    found.sort();
    assert_eq!(&found, expected, "{}", step.tool);
}

/// The command that a person types for a call.
fn command_line(step: &Step) -> Vec<String> {
    let text = |name: &str| step.arguments[name].as_str().unwrap().to_owned();
    let option = |option: &str, name: &str| vec![option.to_owned(), text(name)];
    let (command, rest) = match step.tool.as_str() {
        "list_files" => ("list", vec![text("dir")]),
        "read_file" => ("read", vec![text("path")]),
        "write_file" => ("write", [vec![text("path")], option("--content", "content")].concat()),
        "patch_file" => (
            "patch",
            [vec![text("path")], option("--search", "search"), option("--replace", "replace")].concat(),
        ),
        "check_tool" => ("check", vec![text("path")]),
        "exec_tool" => ("exec", vec![text("path"), "--args".to_owned(), step.arguments["args"].to_string()]),
        "sync" => ("sync", Vec::new()),
        other => panic!("a person has no command for `{other}`"),
    };
    [vec![command.to_owned()], rest].concat()
}

/// Each command is a process of its own.
fn run_commands(project: Project, place: &Place<'_>) -> Project {
    let folder = project.path(&place.agent.project);
    for step in &place.agent.steps {
        let words = command_line(step);
        let mut arguments = vec!["--json", "-C", folder.to_str().unwrap()];
        arguments.extend(words.iter().map(String::as_str));
        let document = project.run(&arguments).document();
        let is_done = document["ok"] == true;
        step.check(if is_done { Ok(&document["data"]) } else { Err(&document["error"]) });
        check_repository(project.root(), &place.agent.project, step);
    }
    project
}

/// The host sees the tools of the kernel by their own names.
fn run_mcp_host(project: Project, place: &Place<'_>) -> Project {
    let folder = project.path(&place.agent.project).to_str().unwrap().to_owned();
    let only = place.file.tools().into_iter().collect::<Vec<_>>().join(",");
    let mut host = McpHost::start(project, &["-C", &folder, "--mode", "direct", "--only", &only, "--yes"]);
    for step in &place.agent.steps {
        let (is_failed, text) = host.call(&step.tool, &Value::Object(step.arguments.clone()));
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        step.check(if is_failed { Err(&value) } else { Ok(&value) });
        check_repository(host.project.root(), &place.agent.project, step);
    }
    let (project, code) = host.close();
    assert_eq!(code, Some(0));
    project
}

/// The audit as `tgp audit tail` shows it.
fn listed_records(project: &Project, name: &str) -> Vec<Value> {
    let folder = project.path(name);
    let number = MANY.to_string();
    let tail = project.run(&["-C", folder.to_str().unwrap(), "--json", "audit", "tail", "-n", &number]);
    let document = tail.expect_code(0).document();
    let entries = document["data"]["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["entry"].clone()).collect()
}

/// The agent is a copy of this program.
fn run_library(project: Project, place: &Place<'_>) -> Project {
    let Place { scenario, number, .. } = place;
    let mut program = project.program(std::env::current_exe().unwrap().to_str().unwrap());
    program.args(["--exact", "entry_points::the_rust_library", "--nocapture"]);
    program.env(AGENT, format!("{scenario} {number} {}", project.root().display()));
    let ended = program.output().unwrap();
    let shown = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && shown.contains("1 passed"), "{shown}\n{errors}");
    project
}

fn run_library_agent(place: &str) {
    let mut parts = place.splitn(3, ' ');
    let mut number = || parts.next().unwrap().parse::<usize>().unwrap();
    let (scenario, agent) = (number(), number());
    let root = PathBuf::from(parts.next().unwrap());
    let file = ScenarioFile::read();
    let agent = &file.scenarios[scenario].agents[agent];
    let work = async {
        let kernel = Kernel::boot(boot_options(&root, &agent.project)).await.unwrap();
        for step in &agent.steps {
            let call = ToolCall {
                id: "scenario".to_owned(),
                tool: step.tool.clone(),
                arguments: Value::Object(step.arguments.clone()),
            };
            // What the program calls, it has agreed to.
            let context = CallContext {
                actor: Actor::Agent("scenario".to_owned()),
                session: "scenario".to_owned(),
                consent: Consent::Given,
                dry_run: false,
                depth: 0,
                token: None,
            };
            match kernel.call_with(call, context).await {
                ToolResult::Done(data) => step.check(Ok(&data)),
                ToolResult::Failed(error) => step.check(Err(&json!(error))),
            }
            check_repository(&root, &agent.project, step);
        }
        kernel.shutdown().await;
    };
    tokio::runtime::Runtime::new().unwrap().block_on(work);
}

/// A kernel that believes what the person has confirmed whose home is in this folder.
fn boot_options(root: &Path, project: &str) -> BootOptions {
    let home = root.join("home/state").to_str().unwrap().to_owned();
    let environment: Environment = Arc::new(move |name| match name {
        "TGP_HOME" => Some(home.clone()),
        other => std::env::var(other).ok(),
    });
    BootOptions {
        worker: Some(PathBuf::from(env!("CARGO_BIN_EXE_tgp"))),
        trust: Trust::Confirmed(Confirmations::of_user(&environment, None)),
        environment,
        ..BootOptions::new(root.join(project))
    }
}

/// The audit through the library.
fn read_records(project: &Project, name: &str) -> Vec<Value> {
    let read = async {
        let reader = audit::open_records(&boot_options(project.root(), name)).await.unwrap();
        reader.tail(&AuditFilter::default(), MANY).unwrap()
    };
    let entries = tokio::runtime::Runtime::new().unwrap().block_on(read);
    entries.into_iter().map(|entry| entry.body).collect()
}
