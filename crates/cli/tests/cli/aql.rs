//! Queries through the program: what they answer, what they refuse, and what survives a kill.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::agent::{call, events, say, script};
use crate::processes::{assert_gone, descendants, send, start_session};
use crate::project::{Project, Ran};
use crate::pty::Terminal;

/// A model that says this and has used some tokens.
fn model(project: &Project, name: &str, answer: &str) -> String {
    let usage = json!({ "type": "usage", "inputTokens": 10, "outputTokens": 5 });
    script(project, name, &[vec![say(answer), usage]])
}

/// A run with `--json`: how it ended, and the report of its last event.
fn report(ran: &Ran) -> Value {
    let events = events(&ran.stdout);
    let last = events.last().unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(last["type"], "end", "{last}");
    last["report"].clone()
}

fn run(project: &Project, more: &[&str]) -> (Ran, Value) {
    let mut arguments = vec!["--json", "aql", "run"];
    arguments.extend(more);
    let ran = project.run(&arguments);
    let report = report(&ran);
    (ran, report)
}

/// How often the audit has a call of this tool.
fn recorded(project: &Project, tool: &str) -> usize {
    let entries = project.run(&["--json", "audit", "tail", "-n", "500", "--tool", tool]).expect_code(0);
    entries.stdout.lines().filter(|line| line.contains("\"callId\"")).count()
}

#[test]
fn the_example_of_the_repository_runs_with_three_agents_a_tool_the_graph_and_a_merge() {
    let project = Project::initialised();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/review");
    let copied = project.shell(&format!("cp -r {}/. . && git init --quiet", example.display()));
    assert_eq!(copied.code, Some(0), "{copied:?}");
    project.write(
        "src/price.ts",
        "export function price(weight: number): number {\n  return 4 + weight * 0.5;\n}\n",
    );
    project.write("src/app.ts", "import { price } from './price';\nexport const total = price(2);\n");
    project.run_with_input(&["write", "tools/review/tally.ts"], &project.read("tally.ts")).expect_code(0);
    project.run(&["graph", "ingest", "--commit", "WORKTREE"]).expect_code(0);
    project.run(&["aql", "check", "review.aql"]).expect_code(0);
    let (ran, report) = run(&project, &["review.aql", "--input", "path=src/price.ts", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(report["outputs"]["report"]["tally"], json!({ "high": 1, "low": 1 }), "{report}");
    assert_eq!(report["outputs"]["report"]["findings"].as_array().unwrap().len(), 2, "{report}");
    let steps: Vec<Value> = events(&ran.stdout)
        .iter()
        .filter(|event| event["type"] == "done")
        .map(|event| json!([event["step"], event["kind"]]))
        .collect();
    assert_eq!(steps.len(), 8, "{steps:?}");
    // Each agent has a session with a transcript, and each call is in the audit.
    let sessions = project.run(&["--json", "sessions", "list"]).expect_code(0).document();
    assert_eq!(sessions["data"]["sessions"].as_array().unwrap().len(), 3, "{sessions}");
    assert_eq!(recorded(&project, "graph_query"), 1);
    assert_eq!(recorded(&project, "exec_tool"), 1);
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn t4_the_query_of_the_contract_compiles_and_gives_a_text() {
    let project = Project::initialised();
    let provider = model(&project, "m.json", "hello");
    project.write("x.aql", "query X { step: agent(model: \"t\"){prompt:\"hi\"} final: merge(step) }");
    let (ran, report) = run(&project, &["x.aql", "--provider", &provider]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(report["outputs"], json!({ "final": "hello" }));
    let ran = project.run(&["aql", "run", "x.aql", "--provider", &provider]).expect_code(0);
    assert_eq!(ran.stdout, "{\n  \"final\": \"hello\"\n}\n");
    assert!(ran.stderr.contains("✓ step agent ("), "{}", ran.stderr);
}

#[test]
fn t4_what_is_wrong_with_a_query_is_told_before_anything_runs() {
    let project = Project::initialised();
    let cases = [
        ("query X { a: agent() { promt: \"hi\" } }", "promt", 1, 24),
        ("quary X { a: agent() { prompt: \"hi\" } }", "quary", 1, 1),
        ("query X {\n  a: tool(fs_read) { path: \"a\", colour: \"red\" }\n}", "colour", 2, 33),
        ("query X {\n  a: tool(fs_raed) { path: \"a\" }\n}", "fs_raed", 2, 11),
        (
            "query X {\n  a: agent() { prompt: \"{{b}}\" }\n  b: agent() { prompt: \"{{a}}\" }\n}",
            "cycle",
            2,
            3,
        ),
        ("query X {\n  a: agent() { prompt: \"{{nobody}}\" }\n}", "nobody", 2, 27),
        ("query X($n: Int) {\n  a: tool(fs_read) { path: $n }\n}", "String", 2, 28),
    ];
    for (source, word, line, column) in cases {
        project.write("x.aql", source);
        let ran = project.run(&["--json", "aql", "run", "x.aql", "--provider", "script:none.json", "--yes"]);
        assert_eq!(ran.code, Some(2), "{source}: {ran:?}");
        let error = &ran.document()["error"];
        assert_eq!(error["code"], "EVALIDATION", "{source}");
        let problems = error["details"]["problems"].as_array().unwrap();
        let found = problems.iter().find(|problem| problem.to_string().contains(word));
        let place = &found.unwrap_or_else(|| panic!("{source}: {error}"))["place"];
        assert_eq!((&place["line"], &place["column"]), (&json!(line), &json!(column)), "{source}: {error}");
        // A person sees the line, and nothing has run.
        let shown = project.run(&["aql", "check", "x.aql"]).expect_code(1);
        assert!(shown.stdout.contains("x.aql:"), "{}", shown.stdout);
        assert!(shown.stdout.contains('^'), "{}", shown.stdout);
    }
    assert!(
        project.run(&["--json", "aql", "runs"]).document()["data"]["runs"].as_array().unwrap().is_empty()
    );
    assert_eq!(recorded(&project, "fs_read"), 0);
}

#[test]
fn values_are_data_for_cypher_sql_and_tools_whatever_they_say() {
    let project = Project::initialised();
    project.explore();
    project.run(&["sql", "CREATE TABLE t (name TEXT)"]).expect_code(0);
    project.run_with_input(&["write", "tools/echo.ts"], "/** Echoes. */\nexport default function echo(args: { text: string }): string {\n  return args.text;\n}\n").expect_code(0);
    project.write(
        "x.aql",
        "query X($text: String) {\n  row: sql(\"INSERT INTO t VALUES (:text)\") { text: $text }\n  \
         back: sql(\"SELECT name FROM t\", after: row)\n  said: exec(\"tools/echo.ts\") { text: $text }\n}\n",
    );
    let nasty = "'); DROP TABLE t; -- \"}) RETURN 1 {{row}} ${process.env}";
    let (ran, report) = run(&project, &["x.aql", "--input", &format!("text={nasty}"), "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(report["outputs"]["back"]["rows"], json!([{ "name": nasty }]), "{report}");
    assert_eq!(report["outputs"]["said"], nasty);
    // Code that is put together is refused.
    project.write("x.aql", "query X($text: String) {\n  a: sql(\"SELECT {{$text}}\")\n}\n");
    let shown = project.run(&["aql", "check", "x.aql"]).expect_code(1);
    assert!(shown.stdout.contains("x.aql:2:"), "{}", shown.stdout);
}

#[test]
fn an_effect_is_asked_for_and_an_agent_has_the_tools_of_its_step_only() {
    let project = Project::initialised();
    project.explore();
    project.write("w.aql", "query W {\n  a: tool(fs_write) { path: \"src/a.txt\", content: \"one\" }\n}\n");
    let (ran, report) = run(&project, &["w.aql"]);
    assert_eq!((ran.code, &report["error"]["code"]), (Some(3), &json!("EAPPROVAL")), "{report}");
    assert_eq!(report["step"], "a");
    assert!(!project.file("src/a.txt").exists());
    let (ran, _) = run(&project, &["w.aql", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(project.read(".sage/files/src/a.txt.sage").contains("\"EDIT\""));
    let made = project.run(&["audit", "tail", "-n", "20", "--tool", "fs_write"]).expect_code(0);
    assert!(made.stdout.contains("by aql:W.a"), "{}", made.stdout);
    // The token of the step lets the agent read, whatever it tries and whatever is approved.
    let provider = script(
        &project,
        "m.json",
        &[
            vec![
                call("fs_read", json!({ "path": "src/a.txt" })),
                call("fs_write", json!({ "path": "src/a.txt", "content": "two" })),
                call("exec_sql", json!({ "sql": "SELECT 1" })),
            ],
            vec![say("I could not.")],
        ],
    );
    project.write("g.aql", "query G {\n  a: agent(tools: [\"Read\"]) { prompt: \"change it\" }\n}\n");
    let (ran, report) = run(&project, &["g.aql", "--provider", &provider, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(report["outputs"]["a"], "I could not.");
    assert_eq!(project.read("src/a.txt"), "one");
    let denied = project.run(&["audit", "tail", "-n", "20", "--verdict", "denied"]).expect_code(0);
    assert!(denied.stdout.contains("fs_write"), "{}", denied.stdout);
}

/// Branches that are done, one that hangs, and items of a map of which some hang.
const BRANCHES: &str = "\
query Work($names: [String]) budget(parallel: 8) {
  quick: exec(\"tools/count.ts\") { name: \"quick\" }
  slow: agent(model: \"script:slow.json\") { prompt: \"think\" }
  each: map(name in $names, concurrency: 4) {
    counted: exec(\"tools/count.ts\") { name: name }
    said: agent(model: \"script:slow.json\") { prompt: \"{{name}} {{counted}}\" }
    return said
  }
}
";

#[test]
fn a_run_that_is_killed_goes_on_and_repeats_nothing_that_was_done() {
    let project = Project::initialised();
    project.explore();
    project.run(&["sql", "CREATE TABLE runs (name TEXT)"]).expect_code(0);
    let tool = "/** Counts a run. */\nexport default async function count(args: { name: string }): Promise<string> {\n  \
                await tgp.exec_sql('INSERT INTO runs VALUES (:name)', args);\n  return args.name;\n}\n";
    project.run_with_input(&["write", "tools/count.ts"], tool).expect_code(0);
    project.write("work.aql", BRANCHES);
    project.write("slow.json", r#"[{"events": [{"type": "text", "value": "late"}], "delayMs": 60000}]"#);
    let arguments =
        ["--json", "aql", "run", "work.aql", "--yes", "--inputs", r#"{"names": ["a", "b", "c"]}"#];
    let mut command = project.command(&arguments);
    let mut child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut done = 0;
    let mut id = String::new();
    while done < 4 {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if event["type"] == "run" {
            id = event["id"].as_str().unwrap().to_owned();
        }
        done += usize::from(event["type"] == "done" && event["kind"] == "exec");
    }
    let known = descendants(child.id());
    send(child.id(), 9);
    child.wait().unwrap();
    assert_gone(&known, child.id());
    let runs = project.run(&["--json", "aql", "runs"]).document();
    assert_eq!(runs["data"]["runs"][0]["state"], "killed", "{runs}");
    project.write("slow.json", r#"[[{"type": "text", "value": "late"}]]"#);
    // The sources of the run are those it began with.
    project.write("work.aql", "query Other { a: agent() { prompt: \"x\" } }");
    let (ran, report) = run(&project, &["--resume", &id, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(report["outputs"]["each"], json!(["late", "late", "late"]), "{report}");
    assert_eq!((&report["outputs"]["slow"], &report["kept"]), (&json!("late"), &json!(4)), "{report}");
    let rows = project.run(&["--json", "sql", "SELECT name FROM runs ORDER BY name"]).document();
    assert_eq!(
        rows["data"]["rows"],
        json!([{ "name": "a" }, { "name": "b" }, { "name": "c" }, { "name": "quick" }]),
        "each was run once"
    );
    let again = project.run(&["aql", "run", "--resume", "last", "--yes"]).expect_code(0);
    assert!(again.stdout.contains("late"), "a finished run gives its outputs again: {again:?}");
}

#[test]
fn ctrl_c_stops_a_run_in_order_and_it_can_be_gone_on_with() {
    let project = Project::initialised();
    project.write("slow.json", r#"[{"events": [{"type": "text", "value": "late"}], "delayMs": 60000}]"#);
    project
        .write("x.aql", "query X { a: agent(model: \"script:slow.json\") { prompt: \"think\" } return a }");
    let mut terminal = Terminal::start(project.command(&["aql", "run", "x.aql"]));
    terminal.wait_for("… a agent");
    terminal.type_keys("\u{3}");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("tgp aql run --resume"), "{screen}");
    project.write("slow.json", r#"[[{"type": "text", "value": "late"}]]"#);
    let runs = project.run(&["--json", "aql", "runs"]).document();
    assert_eq!(runs["data"]["runs"][0]["state"], "stopped", "{runs}");
    let ran = project.run(&["aql", "run", "--resume", "last"]).expect_code(0);
    assert_eq!(ran.stdout, "late\n");
}

#[test]
fn a_step_that_says_cache_is_done_once_for_the_same_content() {
    let project = Project::initialised();
    project.explore();
    let source = |number: u32| {
        format!(
            "/** A number. */\nexport default function f(args: {{ n: number }}): number {{\n  return args.n + {number};\n}}\n"
        )
    };
    project.run_with_input(&["write", "tools/f.ts"], &source(1)).expect_code(0);
    project.write("x.aql", "query X($n: Int) { a: exec(\"tools/f.ts\", cache: true) { n: $n } }");
    let cached = |n: &str| {
        let (ran, report) = run(&project, &["x.aql", "--yes", "--input", &format!("n={n}")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (report["outputs"]["a"].as_i64().unwrap(), report["cached"].as_u64().unwrap())
    };
    assert_eq!(cached("1"), (2, 0));
    assert_eq!(cached("1"), (2, 1));
    assert_eq!(cached("2"), (3, 0));
    // Another tool is another content.
    project.run_with_input(&["write", "tools/f.ts"], &source(10)).expect_code(0);
    assert_eq!(cached("1"), (11, 0));
}

#[test]
fn a_budget_ends_a_run_and_says_which() {
    let project = Project::initialised();
    model(&project, "m.json", "hi");
    project.write(
        "x.aql",
        "query X budget(tokens: 20) {\n  a: agent(model: \"script:m.json\") { prompt: \"1\" }\n  \
         b: agent(model: \"script:m.json\", after: a) { prompt: \"2\" }\n  \
         c: agent(model: \"script:m.json\", after: b) { prompt: \"3\" }\n}\n",
    );
    let (ran, report) = run(&project, &["x.aql"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(report["error"]["code"], "EBUDGET", "{report}");
}

#[test]
fn queries_are_formatted_and_explained() {
    let project = Project::initialised();
    project.write("x.aql", "query X{a:agent(model:\"t\"){prompt:\"hi\"} b:tool(fs_write){path:\"a.txt\",content:a}\nc:tool(fs_write){path:\"b.txt\",content:\"x\"}}");
    project.run(&["aql", "fmt", "--check", "x.aql"]).expect_code(1);
    project.run(&["aql", "fmt", "x.aql"]).expect_code(0);
    let formatted = project.read("x.aql");
    project.run(&["aql", "fmt", "--check", "x.aql"]).expect_code(0);
    let piped = project.run_with_input(&["aql", "fmt", "-"], &formatted).expect_code(0);
    assert_eq!(piped.stdout, formatted);
    let text = project.run(&["aql", "explain", "x.aql"]).expect_code(0).stdout;
    assert!(text.contains("ask") && text.contains("fs_write"), "{text}");
    let explained = project.run(&["--json", "aql", "explain", "x.aql"]).expect_code(0).document();
    let steps = explained["data"]["steps"].as_array().unwrap();
    let gates = |step: &str| {
        let found = steps.iter().find(|found| found["step"] == step).unwrap();
        found["planned"][0]["gates"].clone()
    };
    assert_eq!(gates("b")[0]["verdict"], "ask", "what is known is enough: {explained}");
    assert_eq!(gates("c")[0]["verdict"], "ask", "{explained}");
    for (format, word) in [("mermaid", "flowchart"), ("dot", "digraph")] {
        let shown = project.run(&["aql", "explain", "x.aql", "--format", format]).expect_code(0).stdout;
        assert!(shown.contains(word), "{shown}");
    }
    assert!(!project.file("a.txt").exists());
}

#[test]
fn mistakes_leave_no_run_behind() {
    let project = Project::initialised();
    project.write("x.aql", "query X($n: Int) { return $n }");
    for arguments in [
        &["aql", "run", "x.aql", "--input", "n=x"][..],
        &["aql", "run", "x.aql", "--input", "m=1"],
        &["aql", "run", "x.aql"],
        &["aql", "run", "x.aql", "--input", "n"],
        &["aql", "run", "x.aql", "--input", "n=1", "--query", "Y"],
        &["aql", "run", "x.aql", "--input", "n=1", "--again", "a"],
        &["aql", "run", "nowhere.aql"],
    ] {
        let ran = project.run(arguments);
        assert!(matches!(ran.code, Some(1 | 2)), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("help"), "{arguments:?}: {}", ran.stderr);
    }
    let runs = project.run(&["--json", "aql", "runs"]).document();
    assert!(runs["data"]["runs"].as_array().unwrap().is_empty(), "{runs}");
    // A failure to resume does not change what the run was.
    project.run(&["aql", "run", "x.aql", "--input", "n=1"]).expect_code(0);
    project.run(&["aql", "run", "--resume", "last", "--again", "nothing"]).expect_code(2);
    let runs = project.run(&["--json", "aql", "runs"]).document();
    assert_eq!(runs["data"]["runs"][0]["state"], "done", "{runs}");
}

#[test]
fn a_query_imports_files_of_the_project_only() {
    let project = Project::initialised();
    std::fs::write(project.path("secret.aql"), "type Secret = String").unwrap();
    std::os::unix::fs::symlink(project.path("secret.aql"), project.file("link.aql")).unwrap();
    project.write("shared/types.aql", "type Name = String");
    for (import, valid) in [("./shared/types.aql", true), ("../secret.aql", false), ("./link.aql", false)] {
        project.write("x.aql", &format!("import \"{import}\"\nquery X {{ return 1 }}"));
        for file in ["x.aql".to_owned(), project.file("x.aql").display().to_string()] {
            let ran = project.run(&["aql", "check", &file]);
            assert_eq!(ran.code, Some(if valid { 0 } else { 1 }), "{import}: {ran:?}");
            assert!(!ran.stdout.contains("Secret"), "{}", ran.stdout);
        }
    }
}

#[test]
fn an_agent_that_runs_forged_tools_does_not_get_what_they_call() {
    let project = Project::initialised();
    project.explore();
    project.run(&["sql", "CREATE TABLE n (w TEXT)"]).expect_code(0);
    let tool = "/** Inserts. */\nexport default async function ins(args: { w: string }): Promise<string> {\n  \
                await tgp.exec_sql('INSERT INTO n VALUES (:w)', args);\n  return args.w;\n}\n";
    project.run_with_input(&["write", "tools/ins.ts"], tool).expect_code(0);
    let provider = script(
        &project,
        "m.json",
        &[
            vec![
                call("exec_tool", json!({ "path": "tools/ins.ts", "args": { "w": "by the tool" } })),
                call("exec_sql", json!({ "sql": "INSERT INTO n VALUES ('by the agent')" })),
            ],
            vec![say("done")],
        ],
    );
    project.write("x.aql", "query X { a: agent(tools: [\"exec_tool\"]) { prompt: \"x\" } }");
    let (ran, _) = run(&project, &["x.aql", "--provider", &provider, "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows = project.run(&["--json", "sql", "SELECT w FROM n"]).document();
    assert_eq!(rows["data"]["rows"], json!([{ "w": "by the tool" }]));
}

#[test]
fn a_session_that_did_a_step_goes_on_with_the_tools_of_that_step() {
    let project = Project::initialised();
    project.explore();
    project.write("a.txt", "one\n");
    script(&project, "m.json", &[vec![call("fs_read", json!({ "path": "a.txt" }))], vec![say("read")]]);
    project.write(
        "x.aql",
        "query X { a: agent(model: \"script:m.json\", tools: [\"fs_read\"]) { prompt: \"x\" } }",
    );
    run(&project, &["x.aql"]);
    let write = call("fs_write", json!({ "path": "pwned.txt", "content": "x" }));
    script(&project, "m.json", &[vec![say("1")], vec![say("2")], vec![write], vec![say("bye")]]);
    project.run(&["run", "--resume", "last", "more", "--yes"]);
    assert!(!project.file("pwned.txt").exists());
}
