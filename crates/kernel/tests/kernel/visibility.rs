//! No tool reveals anything about a file that its caller may not see.
//!
//! The same calls are made in three worlds that differ in hidden files alone: their contents, and whether they are
//! there. Every tool that is registered has to be in [`TOOLS`], with how it reads; what it answers must be the same in
//! all worlds, and must never have the mark that is in every hidden file.

use std::collections::BTreeSet;
use std::process::Command;

use regex::Regex;
use serde_json::{Map, Value, json};
use tgp::Kernel;
use tgp::contract::{Actor, CallContext, Consent, ToolCall, ToolDefinition, ToolResult};

use crate::support::{Project, code, data, error};

/// How a tool gets at files, and so what keeps it from hidden ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// The files that its arguments name, which the gates judge, and what they hold as the filter shows it.
    Named,
    /// Files that it comes across: a walk, an index or a graph, with what the filter hides left out before anything is
    /// counted, matched or ranked.
    Filtered,
    /// No file of the project or the tool repository.
    Nothing,
    /// In a jail where hidden files are masked: their contents are out of reach, their names are not.
    Masked,
}

/// Every tool, and how it reads. A tool that is missing here makes the test fail.
const TOOLS: &[(&str, Reads, &str)] = &[
    ("audit_tail", Reads::Nothing, "names and ends of the caller's own calls"),
    ("chronicle_append", Reads::Named, "the chronicle of a file that may be seen"),
    (
        "chronicle_read",
        Reads::Filtered,
        "events that name only files that may be seen, of a chronicle whose file may be",
    ),
    ("call_host", Reads::Nothing, "a function of the embedding program"),
    ("call_upstream", Reads::Nothing, "a server of somebody else, by what its entry lists"),
    (
        "check_tool",
        Reads::Filtered,
        "the tool repository as the filter shows it; so does the TypeScript compiler's jail",
    ),
    ("exec_code", Reads::Filtered, "what it imports; the run's files through the filter"),
    ("exec_sql", Reads::Nothing, "the database"),
    ("exec_tool", Reads::Filtered, "the tool that it names; the run's files through the filter"),
    ("fetch", Reads::Nothing, "the network"),
    ("fs_delete", Reads::Named, "a hidden file is as if it were not there"),
    ("fs_edit", Reads::Named, "a hidden file is as if it were not there"),
    ("fs_exists", Reads::Named, "a hidden file is as if it were not there"),
    ("fs_list", Reads::Filtered, "a walk with the filter"),
    ("fs_read", Reads::Named, "a hidden file is as if it were not there"),
    ("fs_write", Reads::Named, "what was there before is shown where it may be"),
    (
        "git_commit",
        Reads::Filtered,
        "what is not committed, with the filter; hidden files are not part of it",
    ),
    ("git_diff", Reads::Filtered, "versions of files that may be seen"),
    ("git_log", Reads::Filtered, "commits of a path by the files in it that may be seen"),
    ("git_status", Reads::Filtered, "what is not committed, with the filter"),
    ("graph_ingest", Reads::Filtered, "reads everything, counts what may be seen"),
    ("graph_query", Reads::Filtered, "nodes of hidden files are left out before matching"),
    ("list_files", Reads::Filtered, "the tool repository as the filter shows it"),
    ("log", Reads::Filtered, "versions without what may not be seen"),
    ("package_install", Reads::Masked, "the jail masks hidden files; manifests through the filter"),
    ("patch_file", Reads::Named, "a hidden tool is as if it were not there"),
    ("read_file", Reads::Named, "a hidden tool is as if it were not there, and not in meta.json"),
    ("recall", Reads::Nothing, "results of the caller's own session"),
    (
        "reconcile",
        Reads::Named,
        "refused for a file that may not be seen; what is still broken is told without such files",
    ),
    (
        "review_plan",
        Reads::Named,
        "every file of the plan is a target; a hidden one is as if it were not there",
    ),
    ("search", Reads::Filtered, "tools that may not be seen or run are left out before ranking"),
    ("search_glob", Reads::Filtered, "a walk with the filter"),
    ("search_grep", Reads::Filtered, "a walk with the filter"),
    ("shell_exec", Reads::Masked, "the jail masks hidden files"),
    ("sync", Reads::Filtered, "paths that may not be seen are left out of the report"),
    ("test_run", Reads::Masked, "the jail masks hidden files"),
    ("test_tool", Reads::Filtered, "tests that may be seen"),
    ("undo_session", Reads::Filtered, "files of the session that may be seen"),
    ("write_file", Reads::Named, "tools that do the same are named where they may be seen"),
];

const POLICY: &str = "version: 1
rules:
  - {id: no-secret, effect: deny, tools: '*', where: {path: 'src/secret/**'}, reason: not for agents}
  - {id: no-vault, effect: deny, tools: [fs_read], where: {path: 'vault/**'}, reason: not for reading}
  - {id: no-tool, effect: deny, tools: '*', where: {path: 'tools/hush/**'}, reason: not for agents}
";

const INVARIANTS: &str = "version: 1
invariants:
  - name: util-has-one-importer
    query: |
      MATCH (f:File)-[:IMPORTS]->(:File {path: 'src/util.ts'}) RETURN f.path, f.name
    expect: none
    severity: error
    message: Nobody imports util any more.
";

/// Paths that no call may learn anything about.
const HIDDEN: &[&str] = &[
    ".env",
    ".git/config",
    ".tgp/.state/note.txt",
    ".tgp/.state/sessions/s-other/transcript.ndjson",
    "src/secret/k.ts",
    "src/secret/k.ts.sage",
    ".sage/files/src/secret/k.ts.sage",
    "server.pem",
    "server.pem.sage",
    ".sage/files/server.pem.sage",
    "vault/v.ts",
    "vault/v.ts.sage",
    ".sage/files/vault/v.ts.sage",
    "tools/hush/t.ts",
    ".state/note.txt",
];

/// Is in every hidden file of a world that has them.
const MARK: &str = "canary";

/// What is hidden in a world.
#[derive(Clone, Copy, Debug)]
enum World {
    One,
    Another,
    Nothing,
}

fn git(project: &Project, arguments: &[&str]) {
    let done = Command::new("git")
        .current_dir(project.path())
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "2026-11-01T12:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-11-01T12:00:00Z")
        .output()
        .unwrap();
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A project whose visible part is the same in every world.
fn furnished(world: World) -> Project {
    let project = Project::new();
    project
        .put("tgp.config.json", &json!({ "tdd": { "command": "true" }, "sandbox": { "cpuMs": 5_000, "wallMs": 30_000 } }).to_string())
        .put("tgp.policy.yaml", POLICY)
        .put(".sage/invariants.yml", INVARIANTS)
        .put(".gitignore", ".env\n.tgp/\n")
        .put("src/util.ts", "export const helper = (n: number): number => n + 1;\n")
        .put("src/app.ts", "import { helper } from './util';\nexport const total = (): number => helper(2);\n")
        .put("src/app.test.ts", "import { total } from './app';\ntotal();\n")
        .put("src/lonely.ts", "export const alone = 1;\n")
        .tool("open.ts", "/** Adds two numbers. */\nexport default ({ a, b }: { a: number; b: number }): number => a + b;\n")
        .tool("open.test.ts", "import { test, expect } from '@tgp/test';\nimport add from './open.ts';\ntest('adds', () => expect(add({ a: 1, b: 2 })).toBe(3));\n")
        .tool("probe.ts", PROBE);
    // A rule about what is in a directory does not hide the directory.
    for directory in ["vault", "src/secret", ".tgp/tools/hush"] {
        std::fs::create_dir_all(project.file(directory)).unwrap();
    }
    git(&project, &["init", "--quiet", "--initial-branch=main"]);
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--message", "The visible part"]);
    let secret = match world {
        World::One => Some(("alpha", 1)),
        World::Another => Some(("beta-and-longer", 3)),
        World::Nothing => None,
    };
    if let Some((word, times)) = secret {
        hide(&project, word, times);
    }
    project.put("src/late.ts", "import { alone } from './lonely';\nexport const late = alone;\n");
    git(&project, &["add", "--all"]);
    git(&project, &["commit", "--quiet", "--message", "More"]);
    git(&project, &["config", "user.name", "Ann"]);
    git(&project, &["config", "user.email", "ann@example.org"]);
    project
}

/// Lays hidden files; `word` and `times` make two worlds differ in every way that matters.
fn hide(project: &Project, word: &str, times: usize) {
    let mark = format!("{MARK}-{word}");
    let name = mark.replace('-', "_");
    project
        .put(".env", &format!("SECRET={mark}\n").repeat(times))
        .put(".tgp/.state/note.txt", &mark)
        .put(".tgp/.state/sessions/s-other/transcript.ndjson", &format!("{{\"text\":\"{mark}\"}}\n").repeat(times))
        .put("server.pem", &format!("-----BEGIN KEY-----\n{mark}\n").repeat(times))
        .put("vault/v.ts", &format!("import '../src/util';\nimport '{mark}-package';\nexport const {name}_v = 1;\n").repeat(times))
        .put("src/secret/package.json", &format!("{{\"name\": \"{mark}-own\"}}"))
        .put(
            "src/secret/k.ts",
            &format!("import {{ helper }} from '../util';\nimport pad from '{mark}-pad';\nexport const {name} = helper({times});\n"),
        )
        .put("src/secret/deep/more.ts", &format!("import {{ total }} from '../../app';\nexport const {name}_more = total();\n"))
        .put("src/secret/k.test.ts", "import { total } from '../app';\ntotal();\n")
        .tool("hush/t.ts", &format!("/** Adds two numbers quickly, {mark}. */\nexport default ({{ a, b }}: {{ a: number; b: number }}): number => a + b;\n"))
        .tool("hush/t.test.ts", &format!("import {{ test, expect }} from '@tgp/test';\ntest('{mark}', () => expect(1).toBe({times}));\n"));
    for file in ["server.pem", "vault/v.ts", "src/secret/k.ts"] {
        let event = json!({
            "type": "EDIT", "timestamp": "2026-11-01T12:00:00Z", "actor": { "agent": "person", "id": "Ann" },
            "filePath": file, "change": "changed", "after": mark
        });
        let id = tgp::contract::canonical::hash(&event).unwrap();
        let mut event = event;
        event["eventId"] = json!(id);
        let line = tgp::contract::canonical::to_string(&event).unwrap();
        // Where the layout has it, and where an earlier version has left it.
        project.put(&format!("{file}.sage"), &format!("{line}\n"));
        project.put(&format!(".sage/files/{file}.sage"), &format!("{line}\n"));
    }
    git(project, &["config", "remote.origin.url", &format!("https://{mark}@example.org/x.git")]);
}

/// A forged tool that tries everything a forged tool can on one path.
const PROBE: &str = "/** Tries a path. */
export default async ({ path }: { path: string }) => {
  const attempt = async (what: () => Promise<unknown>) => {
    try { return await what(); } catch (error) { return { code: (error as { code?: string }).code, message: String((error as Error).message) }; }
  };
  return {
    read: await attempt(() => tgp.read_file(path)),
    list: await attempt(() => tgp.list_files(path)),
    dot: await attempt(() => tgp.list_files('.')),
  };
};
";

/// Arguments with which a tool is tried on a hidden path: every text of its schema that could be one, in arguments that
/// are otherwise as the tool takes them.
fn on_path(definition: &ToolDefinition, path: &str) -> Vec<Value> {
    let base = crate::router::arguments(definition.name.as_str());
    let names = ["path", "dir", "cwd", "only", "file", "despite", "paths"];
    let properties = definition.input_schema["properties"].as_object().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for (name, schema) in &properties {
        if !names.contains(&name.as_str()) {
            continue;
        }
        let mut arguments = base.as_object().cloned().unwrap_or_default();
        let value = if schema["type"] == "array" { json!([path]) } else { json!(path) };
        arguments.insert(name.clone(), value);
        all.push(Value::Object(arguments));
    }
    all
}

/// What else a tool is tried with.
fn special(tool: &str) -> Vec<Value> {
    match tool {
        "graph_query" => queries(),
        "review_plan" => HIDDEN.iter().flat_map(|path| plans(path)).collect(),
        "reconcile" => {
            let invariant = json!({ "path": "src/util.ts", "invariant": "util-has-one-importer" });
            HIDDEN.iter().map(|path| json!({ "path": path })).chain([invariant]).collect()
        }
        "chronicle_append" => HIDDEN.iter().map(|path| append(path)).collect(),
        "chronicle_read" => {
            vec![json!({ "path": ".sage/project.sage" }), json!({ "path": ".sage/guardian.sage" })]
        }
        "search" => ["adds two numbers", "canary", "hush", "canary-alpha", "quickly"]
            .iter()
            .map(|query| json!({ "query": query, "limit": 50 }))
            .collect(),
        "search_grep" => ["canary", "SECRET", "BEGIN KEY", "helper"]
            .iter()
            .flat_map(|text| [json!({ "pattern": text }), json!({ "pattern": text, "ignored": true })])
            .collect(),
        "search_glob" => ["**/*", "**/*.pem", "src/secret/*", "vault/*", ".e*", "**/*.sage"]
            .iter()
            .flat_map(|glob| [json!({ "pattern": glob }), json!({ "pattern": glob, "ignored": true })])
            .collect(),
        "fs_list" => ["", "src", "src/secret", "vault"]
            .iter()
            .flat_map(|path| {
                [json!({ "path": path, "depth": 5 }), json!({ "path": path, "depth": 5, "ignored": true })]
            })
            .collect(),
        "fs_edit" => HIDDEN
            .iter()
            .flat_map(|path| {
                ["canary-alpha", "SECRET=", "export"]
                    .map(|text| json!({ "path": path, "search": text, "replace": text }))
            })
            .collect(),
        "fs_write" => {
            let hash = "0".repeat(64);
            HIDDEN
                .iter()
                .map(|path| json!({ "path": path, "content": "x", "expected_sha256": hash }))
                .collect()
        }
        "exec_tool" => HIDDEN
            .iter()
            .chain(&["meta.json", "tools", "tools/hush", "/lib/hush/t.ts", "/lib/hush", "/lib"])
            .map(|path| json!({ "path": "tools/probe.ts", "args": { "path": path } }))
            .chain([json!({ "path": "tools/hush/tt.ts" }), json!({ "path": "tools/tt.ts" })])
            .collect(),
        "exec_code" => vec![
            json!({ "code": "import t from './hush/t'; return t({});" }),
            json!({ "code": "import probe from './probe'; return probe(args);", "args": { "path": "/lib/hush/t.ts" } }),
            json!({ "code": "return await tgp.exec_tool('tools/hush/t.ts', {});" }),
        ],
        "read_file" => vec![json!({ "path": "meta.json" })],
        "list_files" => vec![json!({}), json!({ "dir": "tools/hush" })],
        "test_tool" => vec![json!({}), json!({ "path": "tools/hush" }), json!({ "path": "tools/hush/t.ts" })],
        "write_file" => vec![
            json!({ "path": "tools/again.ts", "content": "/** Adds two numbers quickly. */\nexport default ({ a, b }: { a: number; b: number }): number => a + b + 0;\n" }),
        ],
        "patch_file" => vec![json!({ "path": "tools/hush/t.ts", "search": "canary-alpha", "replace": "x" })],
        "graph_ingest" => vec![json!({}), json!({ "commit": "WORKTREE" }), json!({ "commit": "HEAD" })],
        "git_status" => ["", "src", "vault"].iter().map(|path| json!({ "path": path })).collect(),
        "git_diff" => vec![
            json!({ "from": "HEAD~1" }),
            json!({ "from": "HEAD~1", "to": "HEAD" }),
            json!({ "from": "HEAD~1", "to": "HEAD", "path": "vault" }),
            json!({ "staged": true }),
        ],
        "git_log" => ["", "src", "src/secret", "vault", "vault/v.ts"]
            .iter()
            .map(|path| json!({ "path": path }))
            .collect(),
        "git_commit" => vec![
            json!({ "message": "All", "branch": "all" }),
            json!({ "message": "Vault", "paths": ["vault"], "branch": "side" }),
            json!({ "message": "All again", "branch": "side" }),
        ],
        "log" => vec![json!({ "limit": 1 }), json!({ "limit": 50 }), json!({ "path": "tools/hush/t.ts" })],
        "package_install" => ["", "src", "vault"].iter().map(|path| json!({ "directory": path })).collect(),
        "shell_exec" => vec![
            json!({ "command": "cat .env server.pem src/secret/k.ts vault/v.ts .git/config .tgp/.state/note.txt 2>&1; true" }),
        ],
        _ => Vec::new(),
    }
}

fn append(path: &str) -> Value {
    let actor = json!({ "agent": "agent", "id": "a" });
    json!({ "path": path, "event": { "type": "NOTE", "timestamp": "2026-11-15T12:00:00Z", "actor": actor } })
}

/// The steps of the review's oracle, and others that would reveal whether a file is there.
fn plans(path: &str) -> Vec<Value> {
    let plan = |steps: Value| json!({ "plan": { "id": "p", "steps": steps } });
    let mut all = Vec::new();
    for guess in ["SECRET=canary-alpha", "SECRET=canary-beta", "canary", "export const"] {
        all.push(plan(json!([
            { "type": "RENAME_FILE", "filePath": path, "to": "src/zz.ts" },
            { "type": "EDIT_FILE", "filePath": "src/zz.ts", "oldText": guess, "newText": guess },
        ])));
        all.push(plan(
            json!([{ "type": "EDIT_FILE", "filePath": path, "oldText": guess, "newText": guess }]),
        ));
        all.push(plan(json!([{ "type": "CALL_TOOL", "tool": "fs_edit", "arguments": { "path": path, "search": guess, "replace": guess } }])));
    }
    all.push(plan(json!([{ "type": "CREATE_FILE", "filePath": path, "content": "x" }])));
    all.push(plan(json!([{ "type": "DELETE_FILE", "filePath": path, "acknowledged": true }])));
    all.push(plan(json!([{ "type": "RENAME_FILE", "filePath": "src/lonely.ts", "to": path }])));
    all.push(plan(
        json!([{ "type": "CREATE_FILE", "filePath": format!("{path}/below.ts"), "content": "x" }]),
    ));
    all.push(plan(json!([{ "type": "NONSENSE", "filePath": path }])));
    // Hidden files import it, and no other file does.
    all.push(plan(json!([{ "type": "DELETE_FILE", "filePath": "src/app.test.ts", "acknowledged": true }])));
    all
}

/// Questions whose answers would depend on hidden files if those were matched, counted, walked or sorted.
fn queries() -> Vec<Value> {
    let texts = [
        "MATCH (f:File) RETURN f.path ORDER BY f.path",
        "MATCH (f:File) RETURN count(f) AS n",
        "MATCH (f:File) RETURN f.path ORDER BY f.bytes DESC LIMIT 3",
        "MATCH (f:File) RETURN sum(f.lines) AS n, max(f.bytes) AS b, collect(f.name) AS names",
        "MATCH (s:Symbol) RETURN s.name, s.path ORDER BY s.name",
        "MATCH (s:Symbol) WHERE s.name CONTAINS 'canary' RETURN count(*) AS n",
        "MATCH (p:Package) RETURN p.name, p.external ORDER BY p.name",
        "MATCH (t:Tool) RETURN t.path, t.description ORDER BY t.path",
        "MATCH (n) RETURN labels(n) AS l, count(*) AS n ORDER BY n",
        "MATCH ()-[r]->() RETURN type(r) AS t, count(*) AS n ORDER BY t, n",
        "MATCH (f:File {path: 'src/secret/k.ts'}) RETURN f",
        "MATCH (f:File {path: 'server.pem'}) RETURN f.bytes, f.blob",
        "MATCH (f:File) WHERE f.path IN ['src/secret/k.ts', 'vault/v.ts', 'src/app.ts'] RETURN f.path",
        "MATCH (f:File)-[:IMPORTS]->(g:File) RETURN f.path, g.path ORDER BY f.path, g.path",
        "MATCH (g:File {path: 'src/util.ts'})<-[r:IMPORTS]-(f) RETURN count(r) AS n",
        "MATCH (g:File {path: 'src/util.ts'})<-[r:IMPORTS]-() RETURN r.specifier, r.names ORDER BY r.specifier",
        "MATCH (f:File) WHERE EXISTS { MATCH (f)<-[:IMPORTS]-(:File) } RETURN f.path ORDER BY f.path",
        "MATCH (f:File) WHERE NOT (f)<-[:IMPORTS]-() RETURN f.path ORDER BY f.path",
        "MATCH (a:File)-[:IMPORTS*1..4]->(b:File) RETURN DISTINCT a.path, b.path ORDER BY a.path, b.path",
        "MATCH p = (a:File)-[:IMPORTS*]->(b:File) RETURN count(p) AS n",
        "MATCH (a)-[:CALLS]->(b:Symbol) RETURN a.name, b.name ORDER BY a.name, b.name",
        "MATCH (f:File)-[:CHANGED_IN]->(c:Commit) RETURN c.message, count(f) AS n ORDER BY c.message",
        "MATCH (c:Commit) OPTIONAL MATCH (c)<-[r:CHANGED_IN]-(f) RETURN c.message, f.path ORDER BY c.message, f.path",
        "MATCH (f:File) WHERE NOT exists_at(f, 'HEAD~1') RETURN f.path ORDER BY f.path",
        "MATCH (f:File) WHERE f.path STARTS WITH 'src/secret' AND 1 / (f.bytes - f.bytes) = 1 RETURN f.path",
        "MATCH (f:File) WHERE f.path STARTS WITH 'server' WITH toInteger(f.blob) + {a: 1} AS broken RETURN broken",
        "MATCH (g:File {path: 'src/util.ts'})<-[r:IMPORTS]-(f) WHERE 1 / (size(r.specifier) - 7) > 5 RETURN f.path",
        "MATCH (f:File) WITH f ORDER BY f.path SKIP 2 LIMIT 2 RETURN f.path",
        "MATCH (f:File) RETURN f.language AS l, count(*) AS n ORDER BY l",
        "MATCH (f:File), (g:File) WHERE f.path < g.path RETURN count(*) AS n",
        "MATCH (p:Package)-[:CONTAINS]->(f:File) RETURN p.name, f.path ORDER BY p.name, f.path",
        "UNWIND [1, 2] AS i MATCH (f:File) RETURN i, count(f) AS n ORDER BY i",
        "MATCH (f:Fil) RETURN f",
    ];
    let mut all = Vec::new();
    for text in texts {
        for commit in [None, Some("WORKTREE"), Some("HEAD~1")] {
            let mut arguments = Map::from_iter([("query".to_owned(), json!(text))]);
            arguments.extend(commit.map(|commit| ("commit".to_owned(), json!(commit))));
            all.push(Value::Object(arguments));
        }
    }
    all
}

fn context(dry_run: bool) -> CallContext {
    CallContext {
        actor: Actor::Agent("hostile".to_owned()),
        session: "hostile".to_owned(),
        consent: Consent::Given,
        dry_run,
        depth: 0,
        token: None,
    }
}

/// An outcome without what no two runs share: times, durations, the ids of commits.
fn told(answer: &ToolResult) -> String {
    let text = match answer {
        ToolResult::Done(data) => format!("done {}", without_times(data.clone())),
        ToolResult::Failed(error) => {
            let details = without_times(json!(error.details));
            format!("{}: {} {details}", error.code.as_str(), error.message)
        }
    };
    let text = Regex::new(r"\b[0-9a-f]{40}\b").unwrap().replace_all(&text, "COMMIT").into_owned();
    Regex::new(r"\d{4}-\d{2}-\d{2}T[0-9:.]+Z").unwrap().replace_all(&text, "TIME").into_owned()
}

fn without_times(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let varies = ["durationMs", "stats", "duration_ms", "cpuMs", "eventId", "short"];
            let kept = fields.into_iter().filter(|(name, _)| !varies.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name, without_times(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_times).collect()),
        other => other,
    }
}

/// Every call that is made, in order: reads first, so that no write makes the worlds alike.
fn probes(kernel: &Kernel) -> Vec<(String, Reads, Value, bool)> {
    let mut all = Vec::new();
    let mut definitions: Vec<&ToolDefinition> = kernel.definitions().collect();
    definitions.sort_by_key(|definition| (definition.effect, definition.name.to_string()));
    for definition in definitions {
        let name = definition.name.as_str();
        let reads = TOOLS.iter().find(|(tool, ..)| *tool == name).map(|(_, reads, _)| *reads);
        let reads = reads.unwrap_or_else(|| panic!("`{name}` is new: say in TOOLS how it reads"));
        let mut calls = special(name);
        calls.extend(HIDDEN.iter().flat_map(|path| on_path(definition, path)));
        assert!(!calls.is_empty() || reads == Reads::Nothing || name == "sync", "`{name}` is not tried");
        for arguments in calls {
            if definition.dry_run {
                all.push((name.to_owned(), reads, arguments.clone(), true));
            }
            all.push((name.to_owned(), reads, arguments, false));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_registered_tool_reveals_anything_about_a_hidden_file() {
    let worlds = [World::One, World::Another, World::Nothing];
    let mut outcomes: Vec<Vec<(String, Reads, String)>> = Vec::new();
    for world in worlds {
        let project = furnished(world);
        let kernel = project.boot().await.unwrap();
        let known: BTreeSet<&str> = kernel.definitions().map(|definition| definition.name.as_str()).collect();
        let covered: BTreeSet<&str> = TOOLS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(known, covered, "every registered tool says in TOOLS how it reads");
        data(&kernel.call("sync", json!({})).await);
        data(&kernel.call("graph_ingest", json!({})).await);
        let mut made = Vec::new();
        for (tool, reads, arguments, dry_run) in probes(&kernel) {
            let what = format!("{tool} {arguments} dry_run={dry_run}");
            let call = ToolCall { id: "1".to_owned(), tool, arguments };
            let answer = kernel.call_with(call, context(dry_run)).await;
            made.push((what, reads, told(&answer)));
        }
        let name = project.path().file_name().unwrap().to_str().unwrap().to_owned();
        let prompt = kernel.system_prompt().await.replace(&name, "PROJECT");
        made.push(("the system prompt".to_owned(), Reads::Filtered, prompt));
        kernel.shutdown().await;
        outcomes.push(made);
    }
    let [one, another, nothing] = outcomes.as_slice() else { panic!("three worlds") };
    let mut wrong = Vec::new();
    for ((first, second), third) in one.iter().zip(another).zip(nothing) {
        let (what, reads, answer) = first;
        // A word of the probe itself may come back.
        let is_marked = |text: &str| text.contains(MARK) && !what.contains(MARK);
        for text in [answer, &second.2, &third.2] {
            if is_marked(text) {
                wrong.push(format!("{what}\n  has the mark: {text}"));
            }
        }
        if *answer != second.2 {
            wrong.push(format!("{what}\n  one world: {answer}\n  another:   {}", second.2));
        }
        if *answer != third.2 && *reads != Reads::Masked {
            wrong.push(format!("{what}\n  with:    {answer}\n  without: {}", third.2));
        }
    }
    assert!(one.len() > 400, "only {} probes", one.len());
    assert!(
        wrong.is_empty(),
        "{} of {} probes tell of hidden files:\n{}",
        wrong.len(),
        one.len(),
        wrong.join("\n")
    );
}

/// The script of the review that read a whole `.env`, one letter a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_plan_is_no_oracle_for_the_text_of_a_hidden_file() {
    let project = furnished(World::One);
    let kernel = project.boot().await.unwrap();
    for (path, expected) in [(".env", "EPOLICY"), (".git/config", "EPOLICY"), ("src/secret/k.ts", "EPOLICY")]
    {
        for plan in plans(path) {
            let call =
                ToolCall { id: "1".to_owned(), tool: "review_plan".to_owned(), arguments: plan.clone() };
            let answer = kernel.call_with(call, context(false)).await;
            if plan.to_string().contains(path) && !plan.to_string().contains("/below.ts") {
                assert_eq!(code(&answer), expected, "{plan}");
            }
        }
    }
    // A rule that names `fs_read` alone leaves the call to the tool, and the tool to the filter.
    for guess in ["export const canary_alpha_v", "nothing of that kind"] {
        let steps = json!([
            { "type": "RENAME_FILE", "filePath": "vault/v.ts", "to": "src/zz.ts" },
            { "type": "EDIT_FILE", "filePath": "src/zz.ts", "oldText": guess, "newText": guess },
        ]);
        let plan = json!({ "plan": { "id": "p", "steps": steps } });
        let answer = kernel.call("review_plan", plan).await;
        let reason = data(&answer)["decision"]["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("neither in the graph nor in the work tree"), "{reason}");
        assert!(!reason.contains("does not occur"), "{reason}");
    }
    kernel.shutdown().await;
}

/// Invariants judge everything; what they say of hidden files names nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_violation_is_told_without_the_names_of_hidden_files() {
    let project = furnished(World::One);
    project.put(
        ".sage/invariants.yml",
        "version: 1\ninvariants:\n  - name: nothing-reaches-app\n    query: |\n      MATCH (f:File)-[:IMPORTS*1..5]->(:File {path: 'src/app.ts'}) MATCH (g:File {path: 'src/new.ts'}) RETURN f.path, f.name\n    expect: none\n    severity: error\n    message: App is alone.\n",
    );
    let kernel = project.boot().await.unwrap();
    let answer =
        kernel.call("fs_write", json!({ "path": "src/new.ts", "content": "export const a = 1;\n" })).await;
    let refused = error(&answer);
    assert_eq!(refused.code.as_str(), "EPOLICY", "{refused}");
    let text = format!("{refused} {:?}", refused.details);
    assert!(text.contains("src/app.test.ts"), "what may be seen is named: {text}");
    assert!(!text.contains("secret") && !text.contains(MARK), "{text}");
    // Where all that breaks it is hidden, it is refused all the same, and nothing is named or counted.
    project.put(
        ".sage/invariants.yml",
        "version: 1\ninvariants:\n  - name: no-secret-neighbour\n    query: |\n      MATCH (s:Symbol) WHERE s.name STARTS WITH 'canary' MATCH (g:File {path: 'src/new.ts'}) RETURN s.name, s.path\n    expect: none\n    severity: error\n    message: None beside it.\n",
    );
    let answer =
        kernel.call("fs_write", json!({ "path": "src/new.ts", "content": "export const a = 1;\n" })).await;
    let refused = error(&answer);
    assert_eq!(refused.code.as_str(), "EPOLICY", "{refused}");
    let text = format!("{refused} {:?}", refused.details);
    assert!(text.contains("hidden from this call"), "{text}");
    assert!(!text.contains("secret/") && !text.contains(MARK) && !text.contains("rows ("), "{text}");
    assert!(!project.file("src/new.ts").exists());
    kernel.shutdown().await;
}
