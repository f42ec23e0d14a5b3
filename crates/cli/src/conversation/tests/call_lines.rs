//! Lines of calls: what is on them, and what is cut first.

use serde_json::json;
use tgp::contract::{Code, SourceLocation, ToolError};

use super::*;

fn shown(manner: TextStyle, tool: &str, arguments: Value, answer: ToolResult, verdict: &str) -> String {
    let (mut screen, paper) = screen(manner, Verbosity::Brief);
    screen.show(&call("r1", tool, arguments));
    screen.show(&result("r1", tool, answer, verdict, 1.0));
    paper.text()
}

fn tested(tool: &str, data: Value) -> String {
    shown(PIPE, tool, json!({}), done(data), "approved")
}

#[test]
fn a_test_run_without_a_result_says_why() {
    let inconclusive = json!({ "outcome": "inconclusive", "why": "no test was found; write one" });
    let passed = json!({ "outcome": "passed", "why": "all pass" });
    for (data, expected) in [
        (
            json!({ "passed": 0, "failed": 0, "exitCode": 0, "ended": "exit", "state": inconclusive }),
            "  ✗ test_run  approved, no result: no test was found; write one  1.0 ms\n",
        ),
        (
            json!({ "passed": null, "failed": null, "exitCode": 2, "ended": "exit", "stderr": "a\n\u{1b}[31mno such option\u{1b}[0m\n\n" }),
            "  ✗ test_run  approved, no result: no such option  1.0 ms\n",
        ),
        (
            json!({ "passed": 3, "failed": 0, "exitCode": null, "ended": "deadline", "stderr": "", "stdout": "test four" }),
            "  ✗ test_run  approved, 3 passed, 0 failed, no result (deadline): test four  1.0 ms\n",
        ),
        (
            json!({ "passed": 3, "failed": 0, "exitCode": 0, "ended": "exit", "state": { "outcome": "stale", "why": "files changed" } }),
            "  ✗ test_run  approved, 3 passed, 0 failed, no result: files changed  1.0 ms\n",
        ),
        (
            json!({ "passed": null, "failed": null, "exitCode": 0, "ended": "exit", "state": passed }),
            "  ✓ test_run  approved, passed, no test was counted  1.0 ms\n",
        ),
        (
            json!({ "passed": 3, "failed": 0, "exitCode": 0, "ended": "exit", "state": passed }),
            "  ✓ test_run  approved, 3 passed, 0 failed  1.0 ms\n",
        ),
        (
            json!({ "files": [], "passed": 0, "failed": 0 }),
            "  ✗ test_run  approved, no result: there was no test to run  1.0 ms\n",
        ),
    ] {
        assert_eq!(tested("test_run", data.clone()), expected, "{data}");
    }
    let stopped = done(json!({ "exitCode": null, "ended": "memory_full", "stdout": "" }));
    let line = shown(PIPE, "shell_exec", json!({ "command": "x" }), stopped, "approved");
    assert_eq!(line, "  ✗ shell_exec x  approved, ended by memory full  1.0 ms\n");
}

#[test]
fn the_first_failing_test_stands_below_the_line() {
    let place = SourceLocation { file: "tools/a.test.ts".to_owned(), line: 4, column: 2 };
    let failing = json!({ "files": [
        { "path": "tools/b.test.ts", "tests": [{ "name": "fine", "ok": true }], "passed": 1, "failed": 0 },
        { "path": "tools/a.test.ts", "tests": [
            { "name": "adds", "ok": true },
            { "name": "sums", "ok": false, "error": { "message": "expected 3\nreceived 4", "place": place } },
            { "name": "other", "ok": false, "error": { "message": "no" } },
        ], "passed": 1, "failed": 2 },
    ], "passed": 2, "failed": 2 });
    assert_eq!(
        tested("test_tool", failing),
        "  ✗ test_tool  approved, 2 passed, 2 failed  1.0 ms\n      failed: sums: expected 3 received 4\n      at tools/a.test.ts:4:2\n"
    );
    let error = ToolError::new(Code::Compile, "tools/a.test.ts:4:2: a brace is missing")
        .place(&place)
        .help("close it");
    let whole = |inconclusive: bool| {
        json!({ "files": [
        { "path": "tools/a.test.ts", "tests": [], "passed": 0, "failed": 1, "error": error, "inconclusive": inconclusive },
    ], "passed": 0, "failed": 1 })
    };
    assert_eq!(
        tested("test_tool", whole(false)),
        "  ✗ test_tool  approved, 0 passed, 1 failed  1.0 ms\n      failed: tools/a.test.ts: ECOMPILE: a brace is missing\n      at tools/a.test.ts:4:2\n      help: close it\n"
    );
    assert_eq!(
        tested("test_tool", whole(true)),
        "  ✗ test_tool  approved, no result: a brace is missing  1.0 ms\n      at tools/a.test.ts:4:2\n      help: close it\n"
    );
    let run = json!({ "passed": 1, "failed": 1, "exitCode": 1, "ended": "exit",
        "failing": [{ "name": "slug > lower", "file": "src/slug.test.ts" }, { "name": "x", "file": null }],
        "state": { "outcome": "failed", "why": "red" } });
    assert_eq!(
        tested("test_run", run),
        "  ✗ test_run  approved, 1 passed, 1 failed  1.0 ms\n      failed: slug > lower\n      at src/slug.test.ts\n"
    );
}

#[test]
fn a_path_is_never_cut_for_the_rest_of_its_line() {
    let path = format!("src/{}/end.ts", "deep/".repeat(20));
    let error =
        ToolError::new(Code::NotFound, "no such file or directory, and a long text about that").help("look");
    for columns in [20, 40, 80, 119, 120, 400] {
        for terminal in [true, false] {
            let manner = TextStyle { terminal, columns, ..PIPE };
            for (tool, arguments) in [
                ("fs_read", json!({ "path": path })),
                ("search_grep", json!({ "path": path, "pattern": "x".repeat(200) })),
                ("exec_tool", json!({ "path": path, "args": { "a": "x".repeat(200) } })),
            ] {
                let failed = ToolResult::Failed(error.clone());
                let text = shown(manner, tool, arguments, failed, "allowed");
                assert!(text.contains(&path), "{columns}: {text}");
                assert!(text.contains("failed ENOTFOUND") && text.contains("1.0 ms"), "{text}");
            }
        }
    }
}

#[test]
fn a_short_result_of_a_forged_tool_stands_on_its_line() {
    for (result, expected) in [
        (json!(14.4), "  = 14.4"),
        (json!("a\u{202e}"), "  = \"a\\u{202e}\""),
        (json!({ "kg": 2 }), "  = {\"kg\":2}"),
        (json!(false), "  = false"),
        (json!(null), ""),
        (json!("x".repeat(41)), ""),
    ] {
        let data = json!({ "result": result, "logs": [], "stats": {} });
        let text = shown(PIPE, "exec_tool", json!({ "path": "tools/a.ts" }), done(data.clone()), "approved");
        assert_eq!(text, format!("  ✓ exec_tool tools/a.ts  approved{expected}  1.0 ms\n"));
        let other = shown(PIPE, "mystery", json!({ "path": "tools/a.ts" }), done(data), "approved");
        assert!(!other.contains('='), "{other}");
    }
}

#[test]
fn whoever_said_no_is_not_told_how_to_be_asked() {
    let help = "nothing was changed; agree when asked at a terminal, or pass --yes";
    for (reason, help, is_shown) in [
        ("the answer at the terminal was no", help, false),
        ("the answer at the terminal was no: use b.ts (a rule asks: care)", help, false),
        ("the input at the terminal has ended", help, false),
        ("the session is being stopped", help, false),
        ("the answer at the terminal was no", "nothing was changed; do something else", true),
        (
            "standard input is not a terminal, so no person can be asked; pass --yes to agree to everything",
            help,
            true,
        ),
    ] {
        let message = format!("`fs_write` was not approved: {reason}");
        let error = ToolError::new(Code::Approval, &*message).help(help);
        let text = shown(PIPE, "fs_write", json!({ "path": "a" }), ToolResult::Failed(error), "refused");
        assert!(text.contains(&message), "{text}");
        assert_eq!(text.contains("help: "), is_shown, "{text}");
    }
}
