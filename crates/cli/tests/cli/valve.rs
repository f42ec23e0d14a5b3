//! The valve through the program: what becomes an event, what is done about it, and what survives a kill.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::agent::{say, script};
use crate::processes::{send, start_session};
use crate::project::Project;

const GUARD: &str = "personas:\n  - name: guard\n    filters: [\"src/\"]\n";

fn watched(personas: &str) -> Project {
    let project = Project::initialised();
    project.explore();
    project.write(".sage/valve.yml", personas);
    project
}

/// A watch that runs, line by line.
struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    fn start(project: &Project, more: &[&str]) -> Self {
        let mut arguments = vec!["--json", "valve", "watch"];
        arguments.extend(more);
        let mut command = project.command(&arguments);
        let mut child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut watch = Self { child, lines };
        watch.wait(|event| event["type"] == "started");
        watch
    }

    fn wait(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("the watch goes on").unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            if is_it(&event) {
                return event;
            }
        }
    }

    fn kill(mut self) {
        send(self.child.id(), 9);
        self.child.wait().unwrap();
    }

    fn interrupt(mut self) -> Option<i32> {
        send(self.child.id(), 2);
        self.child.wait().unwrap().code()
    }
}

fn chronicle(project: &Project, path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(project.file(&format!(".sage/files/{path}"))).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn changes(events: &[Value]) -> Vec<&str> {
    let triggers = events.iter().filter(|event| event["type"] == "VALVE_PERSONA_TRIGGER");
    triggers.map(|event| event["change"].as_str().unwrap()).collect()
}

#[test]
fn t6_a_change_becomes_an_event_while_watching_and_after_an_outage() {
    let project = watched(GUARD);
    project.write("src/old.txt", "old\n");
    let mut watch = Watch::start(&project, &[]);
    project.write("src/core/secrets.txt", "KEY=1\n");
    let event = watch.wait(|event| event["type"] == "triggered");
    assert_eq!(event["event"]["filePath"], "src/core/secrets.txt", "{event}");
    let status = project.run(&["--json", "valve", "status"]).expect_code(0).document();
    assert!(status["data"]["watcher"]["pid"].is_number(), "{status}");
    // Two cannot watch at once.
    let second = project.run(&["--json", "valve", "scan"]);
    assert_eq!(second.document()["error"]["code"], "ECONFLICT", "{second:?}");
    watch.kill();
    let before = project.read(".sage/files/src/core/secrets.txt.sage");
    project.write("src/core/secrets.txt", "KEY=2\n");
    project.write("src/old.txt", "new\n");
    std::fs::rename(project.file("src/old.txt"), project.file("src/renamed.txt")).unwrap();
    let report = project.run(&["--json", "valve", "scan"]).expect_code(0).document();
    assert_eq!(report["data"]["triggered"], 2, "{report}");
    assert!(
        project.read(".sage/files/src/core/secrets.txt.sage").starts_with(&before),
        "the past stays as it is"
    );
    assert_eq!(changes(&chronicle(&project, "src/core/secrets.txt.sage")), ["created", "changed"]);
    let renamed = chronicle(&project, "src/renamed.txt.sage");
    assert_eq!((changes(&renamed), &renamed[0]["from"]), (vec!["renamed"], &json!("src/old.txt")));
    // Another scan reports nothing again, and the events are complete.
    let again = project.run(&["--json", "valve", "scan"]).expect_code(0).document();
    assert_eq!((&again["data"]["triggered"], &again["data"]["changes"]), (&json!(0), &json!(0)), "{again}");
    project.run(&["chronicle", "verify", "src/core/secrets.txt.sage"]).expect_code(0);
}

#[test]
fn a_watch_ends_with_ctrl_c_and_reads_its_personas_again() {
    let project = watched(GUARD);
    let mut watch = Watch::start(&project, &[]);
    project.write(".sage/valve.yml", "personas:\n  - name: [\n");
    watch.wait(|event| event["type"] == "problem");
    project.write("src/a.txt", "1");
    watch.wait(|event| event["type"] == "triggered" && event["persona"] == "guard");
    project.write(".sage/valve.yml", &GUARD.replace("guard", "other"));
    watch.wait(|event| event["type"] == "reloaded");
    project.write("src/b.txt", "1");
    watch.wait(|event| event["type"] == "triggered" && event["persona"] == "other");
    assert_eq!(watch.interrupt(), Some(0));
}

#[test]
fn what_personas_do_goes_through_the_gates() {
    let personas = "\
personas:
  - name: counter
    filters: [\"src/*.txt\"]
    action: {tool: \"tools/note.ts\", args: {table: notes}}
  - name: reviewer
    filters: [\"src/*.md\"]
    action: {query: \"review.aql\"}
  - name: asker
    filters: [\"src/*.log\"]
    action: {agent: {prompt: \"what is this?\", model: \"script:model.json\"}}
";
    let project = watched(personas);
    project.run(&["sql", "CREATE TABLE notes (path TEXT)"]).expect_code(0);
    let tool = "/** Notes a change. */\nexport default async function note(args: { table: string; trigger: { filePath: string } }): Promise<number> {\n  \
                await tgp.exec_sql('INSERT INTO notes VALUES (:path)', { path: args.trigger.filePath });\n  return 1;\n}\n";
    project.run_with_input(&["write", "tools/note.ts"], tool).expect_code(0);
    script(&project, "model.json", &[vec![say("a log")]]);
    project.write("review.aql", "query Review($path: String, $change: String) { a: agent(model: \"script:model.json\") { prompt: \"{{$path}} {{$change}}\" } }");
    project.run(&["valve", "scan"]).expect_code(0);
    for name in ["src/a.txt", "src/b.md", "src/c.log"] {
        project.write(name, "1\n");
    }
    // There is no user to ask, so a tool is not run; agents that touch nothing are free.
    let report = project.run(&["--json", "valve", "scan"]).expect_code(0).document();
    assert_eq!(
        (&report["data"]["actionsDone"], &report["data"]["actionsFailed"]),
        (&json!(2), &json!(1)),
        "{report}"
    );
    let outcome = |path: &str| {
        let events = chronicle(&project, path);
        events.into_iter().find(|event| event["type"] == "VALVE_ACTION").unwrap_or_else(|| panic!("{path}"))
    };
    assert_eq!(
        (&outcome("src/a.txt.sage")["ok"], &outcome("src/a.txt.sage")["code"]),
        (&json!(false), &json!("EAPPROVAL"))
    );
    assert_eq!(outcome("src/b.md.sage")["ok"], true, "{}", outcome("src/b.md.sage"));
    assert_eq!(outcome("src/c.log.sage")["ok"], true, "{}", outcome("src/c.log.sage"));
    project.write("src/a.txt", "2\n");
    let report = project.run(&["--json", "valve", "scan", "--yes"]).expect_code(0).document();
    assert_eq!(report["data"]["actionsDone"], 1, "{report}");
    let rows = project.run(&["--json", "sql", "SELECT path FROM notes"]).document();
    assert_eq!(rows["data"]["rows"], json!([{ "path": "src/a.txt" }]));
    let audit = project.run(&["audit", "tail", "-n", "50", "--tool", "exec_tool"]).expect_code(0).stdout;
    assert!(audit.contains("valve:counter"), "{audit}");
}

#[test]
fn a_tool_gets_the_trigger_only_as_it_declares_it() {
    let personas = "\
personas:
  - name: plain
    filters: [\"src/plain.txt\"]
    action: {tool: \"tools/plain.ts\", args: {n: 1}}
  - name: partly
    filters: [\"src/partly.txt\"]
    action: {tool: \"tools/partly.ts\"}
  - name: loose
    filters: [\"src/loose.txt\"]
    action: {tool: \"tools/loose.ts\"}
  - name: wrong
    filters: [\"src/wrong.txt\"]
    action: {tool: \"tools/plain.ts\", args: {m: 1}}
";
    let project = watched(personas);
    for (name, source) in [
        (
            "plain",
            "/** Names what it gets. */\nexport default (args: { n: number }): string => Object.keys(args).join();\n",
        ),
        (
            "partly",
            "type Trigger = { filePath: string; from?: string };\n/** Names what it gets. */\nexport default (args: { trigger?: Trigger }): string => Object.keys(args.trigger ?? {}).join();\n",
        ),
        ("loose", "Object.keys(args.trigger).includes('eventId')"),
    ] {
        project.run(&["write", &format!("tools/{name}.ts"), "--content", source]).expect_code(0);
    }
    project.run(&["valve", "scan"]).expect_code(0);
    for name in ["plain", "partly", "loose", "wrong"] {
        project.write(&format!("src/{name}.txt"), "1\n");
    }
    let shown = project.run(&["valve", "scan", "--yes"]).expect_code(0);
    let shown = format!("{}{}", shown.stdout, shown.stderr);
    for answer in [
        "tools/plain.ts answered \"n\"",
        "tools/partly.ts answered \"filePath\"",
        "tools/loose.ts answered true",
    ] {
        assert!(shown.contains(answer), "{answer}: {shown}");
    }
    assert!(shown.contains(".n is missing, the tool declares number"), "{shown}");
}

#[test]
fn a_deletion_by_hand_is_no_contradiction_once_the_valve_has_told_it() {
    let project = watched(GUARD);
    project.shell("git init --quiet");
    project.run(&["valve", "scan"]).expect_code(0);
    let write = json!({ "path": "src/a.ts", "content": "export const a = 1;\n" }).to_string();
    project.run(&["call", "fs_write", &write, "--yes"]).expect_code(0);
    project.run(&["valve", "scan"]).expect_code(0);
    std::fs::remove_file(project.file("src/a.ts")).unwrap();
    project.run(&["valve", "scan"]).expect_code(0);
    project.run(&["guardian", "assert"]).expect_code(0);
}
