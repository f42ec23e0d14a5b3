//! Chronicle, graph and Guardian as a person meets them.

use serde_json::{Value, json};

use crate::agent::{call, say, script};
use crate::project::{Project, Ran};
use crate::pty::Terminal;

/// Git with nothing of the user's own, and with times that are the same each time.
pub fn git(project: &Project, arguments: &[&str]) -> String {
    let mut command = project.program("git");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Ann").env(format!("GIT_{who}_EMAIL"), "ann@example.org");
    }
    let output = command.args(["-c", "init.defaultBranch=main"]).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", text(output.stderr));
    text(output.stdout).trim().to_owned()
}

pub fn commit(project: &Project, message: &str) -> String {
    git(project, &["add", "--all"]);
    git(project, &["commit", "--quiet", "--allow-empty", "-m", message]);
    git(project, &["rev-parse", "HEAD"])
}

/// A project in git: `src/app.ts` uses `src/price.ts`, and a test reaches it.
pub fn shop() -> Project {
    let project = Project::initialised();
    // What is asked here is what the Guardian says, not whether a test came first.
    project.explore();
    git(&project, &["init", "--quiet"]);
    project.write(
        ".git/info/exclude",
        "/tgp.config.ts\n/.gitignore\n/.gitattributes\n/.sage\n/plan.json\n*.sage\n",
    );
    project.write("src/price.ts", "export function price(items: number): number {\n  return items * 3;\n}\n");
    project.write(
        "src/app.ts",
        "import { price } from './price';\n\nexport function total(items: number): number {\n  return price(items);\n}\n",
    );
    project.write(
        "test/app.test.ts",
        "import { total } from '../src/app';\n\nif (total(2) !== 6) throw new Error('wrong');\n",
    );
    commit(&project, "A shop");
    project
}

fn query(project: &Project, cypher: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["--json", "graph", "query", cypher];
    arguments.extend(more);
    let answer = project.run(&arguments).expect_code(0).document();
    answer["data"].clone()
}

/// The values of one column.
fn column(data: &Value, name: &str) -> Vec<String> {
    let rows = data["results"].as_array().unwrap();
    rows.iter().map(|row| row[name].as_str().unwrap_or_else(|| panic!("{row}")).to_owned()).collect()
}

fn error_code(ran: &Ran) -> String {
    ran.document()["error"]["code"].as_str().unwrap_or_default().to_owned()
}

const IMPORTERS: &str =
    "MATCH (f:File)-[:IMPORTS]->(:File {path: $path}) RETURN f.path AS path ORDER BY path";

#[test]
fn the_code_is_asked_at_any_commit() {
    let project = shop();
    let ingested = project.run(&["graph", "ingest"]).expect_code(0);
    assert!(
        ingested.stdout.contains("3 files at") && ingested.stdout.contains("1 commit new"),
        "{ingested:?}"
    );
    let data = query(&project, IMPORTERS, &["--params", r#"{"path": "src/price.ts"}"#]);
    assert_eq!(column(&data, "path"), ["src/app.ts"]);
    assert_eq!((data["ref"].clone(), data["behind"].clone()), (json!("main"), json!(false)));
    let calls = query(
        &project,
        "MATCH (a:Symbol)-[c:CALLS]->(b:Symbol {name: 'price'}) RETURN a.name AS caller, c.bestEffort AS guess",
        &[],
    );
    assert_eq!(calls["results"], json!([{ "caller": "total", "guess": true }]));
    // The repository moves on; the graph says that it has not.
    let first = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["mv", "src/price.ts", "src/cost.ts"]);
    git(&project, &["rm", "--quiet", "-r", "test"]);
    let app = project.read("src/app.ts").replace("./price", "./cost");
    project.write("src/app.ts", &app);
    commit(&project, "Prices are costs");
    let behind = query(&project, "MATCH (f:File) RETURN f.path AS path ORDER BY path", &[]);
    assert_eq!((&behind["stale"], &behind["behind"]), (&json!(true), &json!(true)));
    assert_eq!(behind["commit"], json!(first));
    assert_eq!(column(&behind, "path"), ["src/app.ts", "src/price.ts", "test/app.test.ts"]);
    let missing = project.run(&["--json", "graph", "query", "MATCH (n) RETURN n", "--commit", "HEAD"]);
    assert_eq!((missing.code, error_code(&missing).as_str()), (Some(1), "ENOTFOUND"), "{missing:?}");
    assert!(missing.stdout.contains("tgp graph ingest"), "no next step: {missing:?}");
    project.run(&["graph", "ingest"]).expect_code(0);
    let again = project.run(&["graph", "ingest"]).expect_code(0);
    assert!(again.stdout.contains("0 commits new, 0 blobs parsed"), "{again:?}");
    let files = "MATCH (f:File) RETURN f.path AS path ORDER BY path";
    assert_eq!(column(&query(&project, files, &[]), "path"), ["src/app.ts", "src/cost.ts"]);
    assert_eq!(
        column(&query(&project, files, &["--commit", "HEAD~1"]), "path"),
        ["src/app.ts", "src/price.ts", "test/app.test.ts"]
    );
    let renamed = query(
        &project,
        "MATCH (n:File)-[:WAS_RENAMED_FROM]->(o:File) RETURN n.path AS new, o.path AS old",
        &[],
    );
    assert_eq!(renamed["results"], json!([{ "new": "src/cost.ts", "old": "src/price.ts" }]));
    let gone = query(
        &project,
        "MATCH (f:File) WHERE NOT exists_at(f, 'HEAD') RETURN f.path AS path ORDER BY path",
        &["--commit", &first],
    );
    assert_eq!(column(&gone, "path"), ["src/price.ts", "test/app.test.ts"]);
    // What is not committed yet.
    project.write("src/new.ts", "export const fresh = 1;\n");
    project.run(&["graph", "ingest", "--commit", "WORKTREE"]).expect_code(0);
    let draft = query(&project, files, &["--commit", "WORKTREE"]);
    assert_eq!(column(&draft, "path"), ["src/app.ts", "src/cost.ts", "src/new.ts"]);
    assert_eq!(draft["draft"], json!(true));
    assert_eq!(column(&query(&project, files, &[]), "path"), ["src/app.ts", "src/cost.ts"]);
}

#[test]
fn bug_exists_at_answered_from_an_old_draft_of_the_work_tree() {
    let project = shop();
    project.run(&["graph", "ingest", "--commit", "WORKTREE"]).expect_code(0);
    let text = "MATCH (f:File) WHERE NOT exists_at(f, 'WORKTREE') RETURN f.path AS path ORDER BY path";
    assert!(column(&query(&project, text, &[]), "path").is_empty());
    std::fs::remove_file(project.file("test/app.test.ts")).unwrap();
    assert_eq!(column(&query(&project, text, &[]), "path"), ["test/app.test.ts"]);
    std::fs::remove_file(project.file("src/price.ts")).unwrap();
    let by_parameter = text.replace("'WORKTREE'", "$now");
    let gone = query(&project, &by_parameter, &["--params", r#"{"now": "WORKTREE"}"#, "--commit", "HEAD"]);
    assert_eq!(column(&gone, "path"), ["src/price.ts", "test/app.test.ts"]);
    assert_eq!(gone["draft"], json!(false), "the question is about the commit");
}

#[test]
fn answers_can_be_read_drawn_and_counted() {
    let project = shop();
    project.run(&["graph", "ingest"]).expect_code(0);
    let table = project.run(&["graph", "query", "MATCH (f:File) RETURN f.path AS path ORDER BY path"]);
    assert_eq!(
        table.stdout, "path\n----------------\nsrc/app.ts\nsrc/price.ts\ntest/app.test.ts\n",
        "{table:?}"
    );
    assert!(table.stderr.starts_with("3 rows at main ("), "{table:?}");
    let path =
        "MATCH p = (:File {path: 'test/app.test.ts'})-[:IMPORTS*]->(:File {path: 'src/price.ts'}) RETURN p";
    let dot = project.run(&["graph", "query", path, "--format", "dot"]).expect_code(0).stdout;
    assert_eq!((dot.matches("IMPORTS").count(), dot.matches("[label=").count()), (2, 5), "{dot}");
    let mermaid = project.run(&["graph", "query", path, "--format", "mermaid"]).expect_code(0).stdout;
    assert!(mermaid.starts_with("flowchart LR\n") && mermaid.contains("-->|IMPORTS|"), "{mermaid}");
    let stats = project.run(&["--json", "graph", "stats"]).expect_code(0).document();
    assert_eq!(stats["data"]["nodes"]["File"], json!(3), "{stats}");
    assert_eq!(stats["data"]["relationships"]["IMPORTS"], json!(2), "{stats}");
    let export = project.run(&["graph", "export"]).expect_code(0).stdout;
    let export: Value = serde_json::from_str(&export).unwrap();
    assert!(export["nodes"].as_array().unwrap().len() > 5, "{export}");
    // A mistake is shown where it is.
    let wrong = project.run(&["graph", "query", "MATCH (f:File)\nRETURN g.path"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("2:8") && wrong.stderr.contains('g'), "{wrong:?}");
    let write = project.run(&["--json", "graph", "query", "CREATE (n) RETURN n"]);
    assert_eq!((write.code, error_code(&write).as_str()), (Some(2), "EVALIDATION"), "{write:?}");
}

#[test]
fn events_are_kept_once_and_every_change_of_them_is_found() {
    let project = Project::initialised();
    project.explore();
    let event = r#"{"type":"DECISION","timestamp":"2026-11-15T12:00:00Z","actor":{"agent":"person","id":"ann"},"why":"prices are in cents"}"#;
    let append = ["chronicle", "append", "src/price.ts", event];
    let first = project.run(&append).expect_code(0);
    let again = project.run(&append).expect_code(0);
    assert_eq!(first.stdout, again.stdout);
    assert!(again.stderr.contains("already"), "{again:?}");
    let id = first.stdout.trim();
    assert_eq!(project.read(".sage/files/src/price.ts.sage").lines().count(), 1);
    let tail = project.run(&["chronicle", "tail", "src/price.ts.sage"]).expect_code(0).stdout;
    assert!(tail.contains("DECISION person:ann") && tail.contains("why=prices are in cents"), "{tail}");
    let read = project.run(&["chronicle", "read", "src/price.ts"]).expect_code(0).stdout;
    assert_eq!(read, project.read(".sage/files/src/price.ts.sage"));
    assert!(read.contains(id), "{read}");
    project.run(&["chronicle", "verify"]).expect_code(0);
    let outside = project.run(&["--json", "chronicle", "append", "lib/a.ts", event]);
    assert_eq!((outside.code, error_code(&outside).as_str()), (Some(3), "EPERMISSION"), "{outside:?}");
    assert!(
        outside.stdout.contains("`chronicle.scope` is `.sage/*.sage`"),
        "the setting is named: {outside:?}"
    );
    let wrong = project.run(&["--json", "chronicle", "append", "src/a.ts", r#"{"type":"X"}"#]);
    assert_eq!((wrong.code, error_code(&wrong).as_str()), (Some(2), "EVALIDATION"), "{wrong:?}");
    // It cannot be written by another tool.
    for call in [
        json!({ "path": ".sage/files/src/price.ts.sage", "content": "" }),
        json!({ "path": ".sage/invariants.yml", "content": "" }),
    ] {
        let written = project.run(&["call", "fs_write", &call.to_string(), "--yes"]);
        assert_eq!((written.code, error_code(&written).as_str()), (Some(3), "EPOLICY"), "{written:?}");
    }
    let edited = project.read(".sage/files/src/price.ts.sage").replace("cents", "euros");
    project.write(".sage/files/src/price.ts.sage", &edited);
    let broken = project.run(&["chronicle", "verify"]).expect_code(4);
    assert!(broken.stdout.contains(".sage/files/src/price.ts.sage:1:"), "{broken:?}");
    // An error leads to the file, which has another path than the chronicle has as a name.
    let tail = project.run(&["chronicle", "tail", "src/price.ts"]).expect_code(4);
    assert!(tail.stderr.contains(".sage/files/src/price.ts.sage"), "{tail:?}");
    project.write(".sage/files/src/price.ts.sage", &format!("{read}{{\"type\":"));
    let torn = project.run(&["chronicle", "verify"]);
    assert!(torn.stderr.contains("warning: .sage/files/src/price.ts.sage: its last line"), "{torn:?}");
}

#[test]
fn bug_a_call_without_a_user_name_was_made_by_unknown() {
    let project = Project::initialised();
    // The environment of the tests names no user.
    project.run(&["list"]).expect_code(0);
    let tail = project.run(&["audit", "tail"]).expect_code(0).stdout;
    assert!(tail.contains(" by ") && !tail.contains("by unknown"), "{tail}");
}

#[test]
fn a_change_leaves_an_event_that_names_its_call_and_is_named_by_its_record() {
    let project = Project::initialised();
    let write = json!({ "path": "src/notes.md", "content": "one\n" }).to_string();
    project.run(&["call", "fs_write", &write, "--yes"]).expect_code(0);
    let write = json!({ "path": "README.md", "content": "two\n" }).to_string();
    project.run(&["call", "fs_write", &write, "--yes"]).expect_code(0);
    for (path, chronicle) in
        [("src/notes.md", ".sage/files/src/notes.md.sage"), ("README.md", ".sage/project.sage")]
    {
        let event: Value = serde_json::from_str(project.read(chronicle).lines().next().unwrap()).unwrap();
        assert_eq!((&event["type"], &event["change"]), (&json!("EDIT"), &json!("created")), "{event}");
        assert_eq!(event["filePath"], json!(path));
        assert!(event["diffRef"].as_str().is_some_and(|hash| hash.len() == 64), "{event}");
        let tail = project.run(&["--json", "audit", "tail", "--tool", "fs_write"]).expect_code(0).document();
        let entries = tail["data"]["entries"].as_array().unwrap();
        let of_call = |entry: &&Value| {
            entry["entry"]["outcome"]["files"][0]["event"] == event["eventId"]
                && ["session", "callId", "time"]
                    .iter()
                    .all(|name| entry["entry"][name] == event["audit"][name])
        };
        assert_eq!(entries.iter().filter(of_call).count(), 1, "{event} {tail}");
    }
    project.run(&["chronicle", "verify"]).expect_code(0);
}

fn plan(project: &Project, steps: &Value) -> String {
    project.write("plan.json", &json!({ "id": "plan-1", "steps": steps }).to_string());
    "plan.json".to_owned()
}

#[test]
fn a_plan_that_contradicts_the_code_is_vetoed_and_nothing_of_it_happens() {
    let project = shop();
    project.run(&["graph", "ingest"]).expect_code(0);
    let file = plan(
        &project,
        &json!([
            { "type": "CREATE_FILE", "filePath": "src/new.ts", "content": "export const a = 1;\n" },
            { "type": "DELETE_FILE", "filePath": "src/price.ts" },
        ]),
    );
    let denied = project.run(&["guardian", "review", &file]).expect_code(3);
    assert!(denied.stdout.contains("exists in graph"), "{denied:?}");
    assert!(denied.stdout.contains("src/app.ts") && denied.stdout.contains("step 2"), "{denied:?}");
    let before = project.contents();
    let vetoed = project.run(&["guardian", "run", &file, "--yes"]).expect_code(3);
    assert!(vetoed.stdout.contains("denied"), "{vetoed:?}");
    assert_eq!(before, project.contents(), "a vetoed plan has changed something");
    let file = plan(
        &project,
        &json!([
            { "type": "CREATE_FILE", "filePath": "docs/new.md", "content": "new\n" },
            { "type": "EDIT_FILE", "filePath": "docs/new.md", "oldText": "new", "newText": "newer" },
        ]),
    );
    project.run(&["guardian", "review", &file]).expect_code(0);
    project.run(&["guardian", "run", &file, "--yes"]).expect_code(0);
    assert_eq!(project.read("docs/new.md"), "newer\n");
    project.write("plan.json", "{\"id\": 1}");
    let wrong = project.run(&["guardian", "review", "plan.json"]).expect_code(2);
    assert!(wrong.stderr.contains("plan.json:1:"), "{wrong:?}");
}

const LAYERS: &str = "version: 1
invariants:
  - name: prices-know-no-app
    query: |
      MATCH (a:File {path: 'src/price.ts'})-[:IMPORTS]->(b:File)
      RETURN a.path AS importer, b.path AS imported
    expect: none
    severity: error
    message: Prices know nothing of the app.
";

#[test]
fn a_write_that_would_break_an_invariant_does_not_happen() {
    let project = shop();
    project.write(".sage/invariants.yml", LAYERS);
    let content = format!("import {{ total }} from './app';\n{}", project.read("src/price.ts"));
    let call = |content: &str| json!({ "path": "src/price.ts", "content": content }).to_string();
    let before = project.read("src/price.ts");
    let command = "printf \"import { total } from './app';\\n\" >> src/price.ts";
    for (tool, arguments) in
        [("fs_write", call(&content)), ("shell_exec", json!({ "command": command }).to_string())]
    {
        let refused = project.run(&["call", tool, &arguments, "--yes"]);
        assert_eq!((refused.code, error_code(&refused).as_str()), (Some(3), "EPOLICY"), "{refused:?}");
        assert!(refused.stdout.contains("prices-know-no-app"), "{refused:?}");
        assert!(refused.stdout.contains("Prices know nothing of the app."), "{refused:?}");
    }
    assert_eq!(before, project.read("src/price.ts"));
    let fine = project.read("src/price.ts").replace("* 3", "* 4");
    project.run(&["call", "fs_write", &call(&fine), "--yes"]).expect_code(0);
    assert_eq!(project.read("src/price.ts"), fine);
}

#[test]
fn a_contradiction_halts_all_work_until_it_is_reconciled() {
    let project = shop();
    project.run(&["guardian", "assert"]).expect_code(0);
    let event = r#"{"type":"EDIT","timestamp":"2026-11-15T12:00:00Z","actor":{"agent":"agent","id":"a"},"filePath":"src/ghost.ts","change":"created"}"#;
    project.run(&["chronicle", "append", "src/ghost.ts", event]).expect_code(0);
    let halted = project.run(&["--json", "guardian", "assert"]);
    assert_eq!((halted.code, error_code(&halted).as_str()), (Some(4), "EHALT"), "{halted:?}");
    let details = halted.document()["error"]["details"].clone();
    assert!(["invariant", "expected", "actual"].iter().all(|name| details.get(name).is_some()), "{details}");
    let write = json!({ "path": "docs/a.md", "content": "a" }).to_string();
    let before = project.contents();
    for words in [
        vec!["call", "fs_write", write.as_str(), "--yes"],
        vec!["call", "shell_exec", r#"{"command": "touch b"}"#, "--yes"],
    ] {
        let stopped = project.run(&words);
        assert_eq!((stopped.code, error_code(&stopped).as_str()), (Some(4), "EHALT"), "{stopped:?}");
        assert!(stopped.stdout.contains("tgp guardian reconcile"), "no next step: {stopped:?}");
    }
    assert_eq!(before, project.contents());
    project.run(&["call", "fs_read", r#"{"path": "src/app.ts"}"#]).expect_code(0);
    let reconcile = ["guardian", "reconcile", "src/ghost.ts", "--reason", "it was never there"];
    project.run(&reconcile).expect_code(0);
    project.run(&reconcile).expect_code(0);
    let events = project.read(".sage/files/src/ghost.ts.sage");
    assert_eq!(events.matches("\"RECONCILIATION\"").count(), 1, "{events}");
    project.run(&["guardian", "assert"]).expect_code(0);
    project.run(&["call", "fs_write", &write, "--yes"]).expect_code(0);
}

#[test]
fn an_inquiry_says_what_does_not_fit_and_what_to_do() {
    let project = shop();
    project.run(&["graph", "ingest"]).expect_code(0);
    let fine = project.run(&["guardian", "inquire"]).expect_code(0);
    assert!(fine.stderr.contains("everything fits together"), "{fine:?}");
    project.write("src/late.ts", "export const late = 1;\n");
    commit(&project, "Late");
    project.write(".sage/files/src/late.ts.sage", "not an event\n");
    let found = project.run(&["guardian", "inquire"]).expect_code(0);
    assert!(found.stdout.contains("tgp graph ingest"), "the index is behind: {found:?}");
    assert!(found.stdout.contains("src/late.ts.sage"), "the chronicle is broken: {found:?}");
    assert!(found.stdout.matches("remedy:").count() >= 2, "{found:?}");
}

#[test]
fn whoever_is_asked_sees_who_uses_what_is_about_to_change() {
    let project = shop();
    let content = project.read("src/price.ts").replace("* 3", "* 4");
    let write = call("fs_write", json!({ "path": "src/price.ts", "content": content }));
    let provider = script(&project, "model.json", &[vec![write], vec![say("Done.")]]);
    let mut command = project.command(&["change the price", "--provider", &provider]);
    command.env("LANG", "C.UTF-8");
    let mut terminal = Terminal::start(command);
    terminal.wait_until(|screen| screen.contains("Allow it? [y/N]"));
    terminal.type_keys("n\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, Some(0), "{screen}");
    for fact in ["used by   src/app.ts", "called by total (src/app.ts)", "tested by test/app.test.ts"] {
        assert!(screen.contains(fact), "{fact} is not in\n{screen}");
    }
}

#[test]
fn an_agent_writes_no_event_of_the_kernel_and_none_as_somebody_else() {
    let project = shop();
    let append = |kind: &str, agent: &str| {
        let event = json!({ "type": kind, "timestamp": "2026-11-15T12:00:00Z", "actor": { "agent": agent, "id": "x" } });
        let call = json!({ "path": "src/app.ts", "event": event }).to_string();
        let ran = project.run(&["call", "chronicle_append", &call, "--yes"]);
        (ran.code, error_code(&ran))
    };
    for (kind, agent) in [
        ("RECONCILIATION", "agent"),
        ("halt_lifted", "agent"),
        ("EDIT", "agent"),
        ("NOTE", "guardian"),
        ("NOTE", "Person"),
    ] {
        assert_eq!(append(kind, agent), (Some(3), "EPERMISSION".to_owned()), "{kind} {agent}");
    }
    assert!(!project.file(".sage/files/src/app.ts.sage").exists());
    let note = json!({ "type": "NOTE", "timestamp": "2026-11-15T12:00:00Z", "actor": { "agent": "agent", "id": "x" } });
    let call = json!({ "path": "src/app.ts", "event": note }).to_string();
    project.run(&["call", "chronicle_append", &call, "--yes"]).expect_code(0);
}

#[test]
fn commands_move_and_remove_folders_with_chronicles_which_stay_as_they_are() {
    let project = shop();
    let write = json!({ "path": "src/feat/a.md", "content": "a" }).to_string();
    project.run(&["call", "fs_write", &write, "--yes"]).expect_code(0);
    let chronicle = ".sage/files/src/feat/a.md.sage";
    let events = project.read(chronicle);
    for command in [
        "echo '{}' >> .sage/files/src/feat/a.md.sage",
        "rm .sage/files/src/feat/a.md.sage",
        "cp -r src/feat src/copy; cp .sage/files/src/feat/a.md.sage src/copy/",
        "rm -rf src/feat",
    ] {
        let call = json!({ "command": command }).to_string();
        let ran = project.run(&["call", "shell_exec", &call, "--yes"]).expect_code(0);
        assert_eq!(ran.document()["data"]["exitCode"], json!(0), "{command}: {ran:?}");
        assert!(project.read(chronicle).starts_with(&events), "{command}");
    }
    // The tree as a whole is not removed by any command.
    let call = json!({ "command": "rm -rf .sage/files" }).to_string();
    let refused = project.run(&["call", "shell_exec", &call, "--yes"]).expect_code(3);
    assert_eq!(error_code(&refused), "EPOLICY", "{refused:?}");
    assert!(project.read(chronicle).starts_with(&events));
    assert!(!project.file("src/feat/a.md").exists() && project.file("src/copy/a.md").exists());
    assert!(!project.file("src/copy/a.md.sage").exists(), "a copy could be taken for a chronicle");
    project.run(&["chronicle", "verify"]).expect_code(0);
    let forbidden =
        json!({ "command": "mkdir -p .sage; echo version: 1 > .sage/invariants.yml" }).to_string();
    let refused = project.run(&["call", "shell_exec", &forbidden, "--yes"]);
    assert_eq!((refused.code, error_code(&refused).as_str()), (Some(3), "EPOLICY"), "{refused:?}");
}

#[test]
fn branches_that_were_merged_keep_every_event_of_both() {
    let project = Project::initialised();
    git(&project, &["init", "--quiet"]);
    commit(&project, "A project");
    for (branch, file) in [("one", "one.md"), ("two", "two.md")] {
        git(&project, &["checkout", "--quiet", "-b", branch, "main"]);
        let write = json!({ "path": file, "content": "x" }).to_string();
        project.run(&["call", "fs_write", &write, "--yes"]).expect_code(0);
        commit(&project, branch);
    }
    git(&project, &["merge", "--quiet", "-m", "Both", "one"]);
    let verified = project.run(&["chronicle", "verify"]).expect_code(0);
    assert!(verified.stdout.contains("intact: 2 events in 1 chronicle"), "{verified:?}");
    project.run(&["guardian", "assert"]).expect_code(0);
    // A line that is taken out is missed, because the audit names it.
    let kept = project.read(".sage/project.sage").lines().next().unwrap().to_owned() + "\n";
    project.write(".sage/project.sage", &kept);
    let found = project.run(&["guardian", "inquire"]).expect_code(0);
    assert!(found.stdout.contains("that no chronicle has"), "{found:?}");
}

#[test]
fn files_that_were_removed_by_hand_are_reconciled_together_and_again() {
    let project = shop();
    for round in ["first", "second"] {
        for name in ["one", "two", "three"] {
            let write = json!({ "path": format!("src/{name}.md"), "content": round }).to_string();
            project.run(&["call", "fs_write", &write, "--yes"]).expect_code(0);
            std::fs::remove_file(project.file(&format!("src/{name}.md"))).unwrap();
        }
        project.run(&["guardian", "assert"]).expect_code(4);
        let all = project.run(&["guardian", "reconcile", "--all"]).expect_code(0);
        assert_eq!(all.stdout.lines().count(), 3, "{round}: {all:?}");
        project.run(&["guardian", "assert"]).expect_code(0);
    }
    let nothing = project.run(&["guardian", "reconcile", "--all"]).expect_code(0);
    assert!(nothing.stderr.contains("agree"), "{nothing:?}");
}

#[test]
fn bug_a_changed_mode_left_no_event() {
    let project = Project::initialised();
    project.explore();
    project.write("src/run.txt", "echo a\n");
    project.run(&["call", "shell_exec", r#"{"command": "chmod +x src/run.txt"}"#, "--yes"]).expect_code(0);
    let events = std::fs::read_to_string(project.path("here/.sage/files/src/run.txt.sage")).unwrap();
    assert!(events.contains(r#""executable":true"#) && events.contains(r#""change":"changed""#), "{events}");
}
