//! The schemas of all tools: a golden file each in `schemas/`, and results that fit them. A schema changes what models
//! send and what programs read, so a change is reviewed; `UPDATE_GOLDEN=1 cargo test -p tgp-cli schemas` regenerates
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::project::Project;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli/schemas")
}

/// Every tool's definition with the schema of its results, by name.
fn tools(project: &Project) -> BTreeMap<String, Value> {
    let listed = project.run(&["tools", "--format", "json"]).expect_code(0);
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    listed.into_iter().map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool)).collect()
}

#[test]
fn the_schemas_of_all_tools_are_golden_files() {
    let tools = tools(&Project::initialised());
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for (name, tool) in &tools {
        let path = folder().join(format!("{name}.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(tool).unwrap());
        if update {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, text).unwrap();
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            wrong.push(format!("{name}: {}", serde_json::to_string_pretty(tool).unwrap()));
        }
    }
    assert!(wrong.is_empty(), "look at it, then UPDATE_GOLDEN=1 if it is right\n{}", wrong.join("\n"));
    let files: BTreeSet<String> = folder()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(files, tools.keys().cloned().collect(), "a file for a tool that is not there");
}

/// A call, and whether it is a dry run.
type Call = (&'static str, Value, bool);

fn calls() -> Vec<Call> {
    let event = json!({
        "type": "NOTE", "timestamp": "2026-11-15T12:00:00Z", "actor": { "agent": "agent", "id": "ann" }, "why": "so"
    });
    let tool =
        "export default function add(args: { a: number }): number { console.log('a'); return args.a + 1; }\n";
    let test = "import { test, expect } from '@tgp/test';\nimport add from './add.ts';\n\
                test('adds', () => { expect(add({ a: 1 })).toBe(2); });\ntest('fails', () => { expect(1).toBe(2); });\n";
    vec![
        ("write_file", json!({ "path": "tools/add.ts", "content": tool }), true),
        ("write_file", json!({ "path": "tools/add.ts", "content": tool }), false),
        ("write_file", json!({ "path": "tools/add.test.ts", "content": test }), false),
        ("patch_file", json!({ "path": "tools/add.ts", "search": "+ 1", "replace": "+ 1 * 1" }), true),
        ("patch_file", json!({ "path": "tools/add.ts", "search": "+ 1", "replace": "+ 1 * 1" }), false),
        ("list_files", json!({}), false),
        ("read_file", json!({ "path": "tools/add.ts" }), false),
        ("check_tool", json!({ "path": "tools/add.ts" }), false),
        ("exec_tool", json!({ "path": "tools/add.ts", "args": { "a": 1 } }), true),
        ("exec_tool", json!({ "path": "tools/add.ts", "args": { "a": 1 } }), false),
        ("exec_code", json!({ "code": "return args.a + 1;", "args": { "a": 1 } }), true),
        ("exec_code", json!({ "code": "console.log('a'); return 1;" }), false),
        ("test_tool", json!({}), false),
        ("audit_tail", json!({ "last": 3 }), false),
        ("search", json!({ "query": "add a number" }), false),
        ("log", json!({}), false),
        ("sync", json!({}), false),
        ("exec_sql", json!({ "sql": "CREATE TABLE t (n INTEGER)" }), true),
        ("exec_sql", json!({ "sql": "SELECT 1 AS n" }), false),
        ("fs_write", json!({ "path": "src/a.ts", "content": "export const a = 1;\n" }), true),
        ("fs_write", json!({ "path": "src/a.ts", "content": "export const a = 1;\n" }), false),
        ("fs_read", json!({ "path": "src/a.ts" }), false),
        ("fs_edit", json!({ "path": "src/a.ts", "search": "1", "replace": "2" }), true),
        ("fs_edit", json!({ "path": "src/a.ts", "edits": [{ "search": "1", "replace": "2" }] }), false),
        ("git_status", json!({}), false),
        ("git_commit", json!({ "message": "One", "paths": ["src/a.ts"] }), true),
        ("git_commit", json!({ "message": "One", "paths": ["src/a.ts"] }), false),
        ("git_log", json!({}), false),
        ("git_diff", json!({ "from": "HEAD" }), false),
        ("fs_list", json!({ "limit": 1 }), false),
        ("fs_exists", json!({ "path": "src/a.ts" }), false),
        ("fs_exists", json!({ "path": "src/b.ts" }), false),
        ("search_grep", json!({ "pattern": "const", "context": 1, "limit": 1 }), false),
        ("search_glob", json!({ "pattern": "*.ts" }), false),
        ("graph_ingest", json!({ "commit": "WORKTREE" }), false),
        ("graph_query", json!({ "query": "MATCH (f:File) RETURN f", "commit": "WORKTREE" }), false),
        ("chronicle_append", json!({ "path": "src/a.ts", "event": event }), true),
        ("chronicle_append", json!({ "path": "src/a.ts", "event": event }), false),
        ("chronicle_read", json!({ "path": "src/a.ts" }), false),
        ("review_plan", json!({ "plan": { "id": "p", "steps": [{ "type": "RUN_TESTS" }] } }), false),
        ("reconcile", json!({ "path": "src/a.ts" }), false),
        ("shell_exec", json!({ "command": "echo a > b.txt; echo done" }), true),
        ("shell_exec", json!({ "command": "echo a > b.txt; chmod +x b.txt; mkdir d" }), false),
        ("shell_exec", json!({ "command": "exit 3" }), false),
        ("test_run", json!({}), false),
        ("fs_delete", json!({ "path": "src/a.ts" }), true),
        ("fs_delete", json!({ "path": "src/a.ts" }), false),
    ]
}

/// Tools that need what this test does not have: a server on the network, an index of packages (`packages` checks its result), a
/// session of an agent.
const NOT_CALLED: [&str; 6] =
    ["call_host", "call_upstream", "fetch", "package_install", "recall", "undo_session"];

#[test]
fn the_input_schema_of_every_tool_can_be_compiled() {
    // The router compiles them when they are needed first.
    for (tool, definition) in tools(&Project::initialised()) {
        if let Err(error) = jsonschema::validator_for(&definition["input_schema"]) {
            panic!("{tool}: {error}");
        }
    }
}

#[test]
fn the_results_of_all_tools_fit_their_schemas() {
    let project = Project::initialised();
    project.write("tgp.config.ts", "export default { tdd: { mode: 'explore', command: 'true' } };\n");
    project.trust();
    for arguments in
        [&["init", "-q"][..], &["config", "user.name", "Ann"], &["config", "user.email", "ann@example.org"]]
    {
        std::process::Command::new("git").args(arguments).current_dir(project.root()).status().unwrap();
    }
    let tools = tools(&project);
    let mut called = BTreeSet::new();
    for (tool, arguments, dry_run) in calls() {
        let arguments = arguments.to_string();
        let mut command = vec!["call", tool, &arguments, "--yes"];
        command.extend(dry_run.then_some("--dry-run"));
        let ran = project.run(&command);
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        assert_eq!(answer["ok"], true, "{tool} {arguments}: {} {}", ran.stdout, ran.stderr);
        let schema = &tools[tool]["output_schema"];
        let wrong: Vec<String> = jsonschema::validator_for(schema)
            .unwrap()
            .iter_errors(&answer["data"])
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .collect();
        assert!(wrong.is_empty(), "{tool} {arguments}: {wrong:#?}\n{}", answer["data"]);
        called.insert(tool.to_owned());
    }
    called.extend(NOT_CALLED.map(str::to_owned));
    assert_eq!(called, tools.keys().cloned().collect(), "a tool that no call of this test covers");
}
