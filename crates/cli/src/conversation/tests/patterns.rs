//! What `always` covers, and what it never does.

use serde_json::json;

use super::*;
use crate::conversation::pattern::Pattern;

fn write(tool: &str, path: &str) -> ApprovalQuestion {
    asked(tool, Effect::Write, json!({ "path": path, "content": path }), vec![file(path, "write")])
}

fn run(arguments: Value) -> ApprovalQuestion {
    let mut targets = vec![target(json!({ "kind": "command", "command": arguments["command"] }))];
    if arguments["network"] == json!(true) {
        targets.push(target(json!({ "kind": "network" })));
    }
    asked("shell_exec", Effect::Execute, arguments, targets)
}

fn tool(path: &str, sha256: Option<&str>, args: u64) -> ApprovalQuestion {
    ApprovalQuestion {
        preview: sha256.map(|hash| json!({ "sha256": hash, "source": "…" })),
        ..asked("exec_tool", Effect::Execute, json!({ "path": path, "args": args }), vec![file(path, "read")])
    }
}

fn sql(sql: &str, params: &[u64]) -> ApprovalQuestion {
    let targets = vec![target(json!({ "kind": "statement", "sql": sql, "kinds": ["insert"] }))];
    asked("exec_sql", Effect::Write, json!({ "sql": sql, "params": params }), targets)
}

fn fetch(method: Option<&str>, host: &str, path: &str) -> ApprovalQuestion {
    let mut arguments = json!({ "url": format!("https://{host}/{path}") });
    if let Some(method) = method {
        arguments["method"] = json!(method);
    }
    asked("fetch", Effect::Network, arguments, vec![target(json!({ "kind": "host", "host": host }))])
}

fn sync(arguments: Value) -> ApprovalQuestion {
    asked("sync", Effect::Network, arguments, Vec::new())
}

fn by(asked: ApprovalQuestion, actor: &str) -> ApprovalQuestion {
    ApprovalQuestion { actor: actor.to_owned(), ..asked }
}

fn of_session(asked: ApprovalQuestion, session: &str) -> ApprovalQuestion {
    ApprovalQuestion { session: session.to_owned(), ..asked }
}

fn with_target(asked: ApprovalQuestion, target: Target) -> ApprovalQuestion {
    ApprovalQuestion { targets: [asked.targets.clone(), vec![target]].concat(), ..asked }
}

#[test]
fn a_pattern_covers_what_it_says() {
    let first = write("fs_write", "src/a.ts");
    for (agreed, words, next, expected) in [
        (first.clone(), "fs_write on files directly in `src/`", write("fs_write", "src/b.ts"), true),
        (first.clone(), "fs_write on files directly in `src/`", write("fs_write", "src/deep/b.ts"), false),
        (first.clone(), "fs_write on files directly in `src/`", write("fs_write", "b.ts"), false),
        (first.clone(), "fs_write on files directly in `src/`", write("fs_write", "src2/b.ts"), false),
        (first.clone(), "fs_write on files directly in `src/`", write("fs_edit", "src/a.ts"), false),
        (
            first.clone(),
            "fs_write on files directly in `src/`",
            by(write("fs_write", "src/b.ts"), "tools/x.ts"),
            false,
        ),
        (
            first.clone(),
            "fs_write on files directly in `src/`",
            of_session(write("fs_write", "src/b.ts"), "other"),
            false,
        ),
        (
            first.clone(),
            "fs_write on files directly in `src/`",
            with_target(first.clone(), file("etc/b", "write")),
            false,
        ),
        (
            first.clone(),
            "fs_write on files directly in `src/`",
            with_target(first.clone(), file("src/b", "read")),
            false,
        ),
        (
            first,
            "fs_write on files directly in `src/`",
            with_target(write("fs_write", "src/b"), file("src/c", "write")),
            true,
        ),
        (
            write("fs_write", "a.ts"),
            "fs_write on files directly in the project's top folder",
            write("fs_write", "b.ts"),
            true,
        ),
        (
            write("fs_write", "a.ts"),
            "fs_write on files directly in the project's top folder",
            write("fs_write", "src/b.ts"),
            false,
        ),
        (
            run(json!({ "command": "cargo test" })),
            "shell_exec `cargo test` in .",
            run(json!({ "command": "cargo test", "timeout_ms": 9 })),
            true,
        ),
        (
            run(json!({ "command": "cargo test" })),
            "shell_exec `cargo test` in .",
            run(json!({ "command": "cargo test " })),
            false,
        ),
        (
            run(json!({ "command": "cargo test" })),
            "shell_exec `cargo test` in .",
            run(json!({ "command": "cargo test", "cwd": "sub" })),
            false,
        ),
        (
            run(json!({ "command": "cargo test" })),
            "shell_exec `cargo test` in .",
            run(json!({ "command": "cargo test", "network": true })),
            false,
        ),
        (
            run(json!({ "command": "cargo test", "cwd": "sub", "network": true })),
            "shell_exec `cargo test` in sub with the network",
            run(json!({ "command": "cargo test", "cwd": "sub", "network": true, "stdin": "y" })),
            false,
        ),
        (
            tool("tools/a.ts", Some("0123456789abcdef"), 1),
            "exec_tool tools/a.ts as it is now (sha256 0123456789ab), with any arguments",
            tool("tools/a.ts", Some("0123456789abcdef"), 2),
            true,
        ),
        (
            tool("tools/a.ts", Some("0123456789abcdef"), 1),
            "exec_tool tools/a.ts as it is now (sha256 0123456789ab), with any arguments",
            tool("tools/a.ts", Some("0123456789abcdee"), 1),
            false,
        ),
        (
            tool("tools/a.ts", None, 1),
            "exec_tool with exactly these arguments",
            tool("tools/a.ts", None, 2),
            false,
        ),
        (
            sql("INSERT INTO t VALUES (?)", &[1]),
            "exec_sql `INSERT INTO t VALUES (?)`, with any parameters",
            sql("INSERT INTO t VALUES (?)", &[2]),
            true,
        ),
        (
            sql("INSERT INTO t VALUES (?)", &[1]),
            "exec_sql `INSERT INTO t VALUES (?)`, with any parameters",
            sql("INSERT INTO u VALUES (?)", &[1]),
            false,
        ),
        (
            fetch(None, "a.example", "x"),
            "fetch GET to any address of https://a.example:443",
            fetch(Some("get"), "a.example", "y"),
            true,
        ),
        (
            fetch(None, "a.example", "x"),
            "fetch GET to any address of https://a.example:443",
            fetch(Some("POST"), "a.example", "x"),
            false,
        ),
        (
            fetch(None, "a.example", "x"),
            "fetch GET to any address of https://a.example:443",
            fetch(None, "b.a.example", "x"),
            false,
        ),
        (sync(json!({})), "sync with exactly these arguments", sync(json!({})), true),
        (sync(json!({})), "sync with exactly these arguments", sync(json!({ "force": true })), false),
    ] {
        let pattern = Pattern::of(&agreed).unwrap();
        assert_eq!(pattern.to_string(), words);
        assert!(pattern.covers(&agreed), "a pattern covers what it was made of: {words}");
        assert_eq!(pattern.covers(&next), expected, "{words}: {next:?}");
    }
}

fn tests(tool: &str, arguments: Value, preview: Value) -> ApprovalQuestion {
    let targets = match tool {
        "test_run" => vec![target(json!({ "kind": "command", "command": "the project's tests" }))],
        _ => vec![file("tools", "read")],
    };
    ApprovalQuestion { preview: Some(preview), ..asked(tool, Effect::Execute, arguments, targets) }
}

#[test]
fn always_for_tests_is_bound_to_what_was_shown_of_them() {
    let path = json!({ "path": "tools/a.test.ts" });
    let found = |hash: &str| json!({ "tests": ["tools/a.test.ts"], "found": [{ "path": "tools/a.test.ts", "sha256": hash }] });
    for (agreed, words, next, expected) in [
        (
            tests("test_tool", path.clone(), found("1")),
            "test_tool tools/a.test.ts, as long as the tests are as they are now",
            tests("test_tool", path.clone(), found("1")),
            true,
        ),
        (
            tests("test_tool", path.clone(), found("1")),
            "test_tool tools/a.test.ts, as long as the tests are as they are now",
            tests("test_tool", path.clone(), found("2")),
            false,
        ),
        (
            tests("test_tool", json!({}), found("1")),
            "test_tool of all tools, as long as the tests are as they are now",
            tests("test_tool", path, found("1")),
            false,
        ),
        (
            tests("test_run", json!({}), json!({ "command": "npm test", "found": [1] })),
            "test_run `npm test` in .",
            tests("test_run", json!({ "timeout_ms": 5 }), json!({ "command": "npm test", "found": [1] })),
            true,
        ),
        (
            tests("test_run", json!({}), json!({ "command": "npm test", "found": [1] })),
            "test_run `npm test` in .",
            tests("test_run", json!({}), json!({ "command": "npm test", "found": [2] })),
            false,
        ),
        // What a command has changed is not an agreement to what it changes next time.
        (
            tests("shell_exec", json!({ "command": "make" }), json!({ "changes": [1] })),
            "shell_exec with exactly these arguments and what is shown of it",
            tests("shell_exec", json!({ "command": "make" }), json!({ "changes": [2] })),
            false,
        ),
    ] {
        let pattern = Pattern::of(&agreed).unwrap();
        assert_eq!(pattern.to_string(), words);
        assert!(pattern.covers(&agreed), "{words}");
        assert_eq!(pattern.covers(&next), expected, "{words}: {next:?}");
    }
}

#[test]
fn always_for_a_request_is_bound_to_scheme_host_and_port() {
    let request = |url: &str| {
        asked(
            "fetch",
            Effect::Network,
            json!({ "url": url }),
            vec![target(json!({ "kind": "host", "host": "a.example" }))],
        )
    };
    for (first, words, second, expected) in [
        ("https://a.example/x", "https://a.example:443", "HTTPS://A.example:443?y", true),
        ("https://a.example/x", "https://a.example:443", "http://a.example/x", false),
        ("https://a.example/x", "https://a.example:443", "https://a.example:8443/x", false),
        ("http://a.example:8080#a", "http://a.example:8080", "http://a.example:8080/b", true),
    ] {
        let pattern = Pattern::of(&request(first)).unwrap();
        assert_eq!(pattern.to_string(), format!("fetch GET to any address of {words}"));
        assert_eq!(pattern.covers(&request(second)), expected, "{first} {second}");
    }
    // An address that two readers could read in two ways is agreed to as it is, and not beyond.
    for odd in [
        "https://you@a.example/",
        "https://a.example:/",
        "https://a.example:+443/",
        "https://a.example:99999/",
        "https://a.example.evil/",
        "https://a.example\\@evil/",
        " https://a.example/",
        "https:a.example/",
        "ftp://a.example/",
        "",
    ] {
        let pattern = Pattern::of(&request(odd)).unwrap();
        assert_eq!(pattern.to_string(), "fetch with exactly these arguments", "{odd}");
    }
}

#[test]
fn a_rule_that_somebody_made_is_never_covered() {
    let agreed = write("fs_write", "src/a.ts");
    let pattern = Pattern::of(&agreed).unwrap();
    for reasons in [
        vec![by_rule("migrations are looked at")],
        vec![agreed.reasons[0].clone(), by_rule("migrations are looked at")],
        // Its reason is that of a default, and its rule is a person's.
        vec![by_rule(&agreed.reasons[0].reason)],
        Vec::new(),
    ] {
        let asked = ApprovalQuestion { reasons, ..agreed.clone() };
        assert!(!pattern.covers(&asked), "{asked:?}");
        assert_eq!(Pattern::of(&asked), None);
    }
}

/// An answer for a folder is not one for the pipeline, hook or task list in it.
#[test]
fn always_never_covers_what_runs_later() {
    let agreed = Pattern::of(&write("fs_write", "notes.md")).unwrap();
    let usual = write("fs_write", "Makefile");
    assert!(agreed.covers(&usual), "by its folder alone it would");
    let reason = "files that run later need a person's agreement: `Makefile`".to_owned();
    let reason = ApprovalReason { origin: ApprovalOrigin::RunsLater, reason };
    let later = ApprovalQuestion { reasons: [usual.reasons.clone(), vec![reason]].concat(), ..usual };
    assert!(!agreed.covers(&later) && Pattern::of(&later).is_none());
}
