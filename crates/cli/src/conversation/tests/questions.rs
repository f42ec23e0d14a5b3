//! The screens of questions, and what each answer does.

use std::collections::VecDeque;
use std::io;

use serde_json::json;

use super::*;
use crate::conversation::pattern::Pattern;
use crate::conversation::{Answer, ApprovalView, Keyboard, Offer, interview};

/// A keyboard on which these lines are typed, each after the question was shown; then its input ends.
pub struct Typed(pub VecDeque<String>);

impl Typed {
    pub fn new(lines: &[&str]) -> Self {
        Self(lines.iter().map(|line| format!("{line}\n")).collect())
    }
}

impl Keyboard for Typed {
    async fn line(&mut self) -> io::Result<Option<String>> {
        Ok(self.0.pop_front())
    }

    fn forget(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn asked_at(manner: TextStyle, asked: &ApprovalQuestion, lines: &[&str]) -> (Answer, String) {
    let paper = Paper::new(manner);
    let offer = Pattern::of(asked).map_or(Offer::Once, |pattern| pattern.offer());
    let sheet = ApprovalView::new(asked);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answer = runtime.block_on(interview(&paper, &mut Typed::new(lines), &sheet, &offer));
    (answer, paper.text())
}

fn write() -> ApprovalQuestion {
    let diff = "--- a/src/a.ts\n+++ b/src/a.ts\n@@ -1,2 +1,2 @@\n const a = 1;\n-\tconst b = 2;\n+\tconst b = '\u{1b}[2K\u{202e}';\n";
    let arguments =
        json!({ "path": "src/a.ts", "content": "const a = 1;\n\tconst b = '\u{1b}[2K\u{202e}';\n" });
    ApprovalQuestion {
        preview: Some(json!({ "path": "src/a.ts", "created": false, "dry_run": true, "diff": diff })),
        ..asked("fs_write", Effect::Write, arguments, vec![file("src/a.ts", "write")])
    }
}

/// A new file of so many lines.
fn long_write(lines: usize) -> ApprovalQuestion {
    let content: String = (1..=lines).map(|number| format!("line {number}\n")).collect();
    let added: String = content.lines().map(|line| format!("+{line}\n")).collect();
    let diff = format!("--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1,{lines} @@\n{added}");
    ApprovalQuestion {
        preview: Some(json!({ "path": "notes.txt", "diff": diff, "diffTruncated": true })),
        ..asked(
            "fs_write",
            Effect::Write,
            json!({ "path": "notes.txt", "content": content }),
            vec![file("notes.txt", "write")],
        )
    }
}

fn command() -> ApprovalQuestion {
    let arguments = json!({ "command": "cargo build --release \\\n  && rm -rf \u{200b}dist", "cwd": "web", "network": true, "template": "build", "stdin": "yes\nno\n", "timeout_ms": 5000 });
    let targets = vec![
        target(json!({ "kind": "command", "command": arguments["command"] })),
        file("web", "read"),
        target(json!({ "kind": "network" })),
    ];
    asked("shell_exec", Effect::Execute, arguments, targets)
}

fn statement() -> ApprovalQuestion {
    let sql = "DELETE FROM users\nWHERE age > ?1 -- all of them";
    ApprovalQuestion {
        preview: Some(json!({ "rows": 3, "columns": ["id"], "changed": 3, "dry_run": true })),
        ..asked(
            "exec_sql",
            Effect::Write,
            json!({ "sql": sql, "params": [17] }),
            vec![target(json!({ "kind": "statement", "sql": sql, "kinds": ["delete"] }))],
        )
    }
}

fn fetch() -> ApprovalQuestion {
    let arguments = json!({ "url": "https://api.example.com/v1/pay?x=1", "method": "POST", "headers": { "x-key": "1" }, "body": "{\n  \"amount\": 7\n}" });
    asked(
        "fetch",
        Effect::Network,
        arguments,
        vec![target(json!({ "kind": "host", "host": "api.example.com" }))],
    )
}

fn program() -> ApprovalQuestion {
    let source = "/** Sends it. */\nexport default (args: { to: string }) => args.to;\n";
    ApprovalQuestion {
        preview: Some(
            json!({ "path": "tools/send.ts", "sha256": "9f86d081884c7d659a2feaa0c55ad015", "source": source, "found": [{ "path": "tools/send.ts" }] }),
        ),
        ..asked(
            "exec_tool",
            Effect::Execute,
            json!({ "path": "tools/send.ts", "args": { "to": "all" } }),
            vec![target(
                json!({ "kind": "file", "root": "tools", "path": "tools/send.ts", "access": "read" }),
            )],
        )
    }
}

fn changes_by_rule() -> ApprovalQuestion {
    ApprovalQuestion {
        reasons: vec![by_rule("generated code is looked at by the team")],
        preview: Some(json!({ "changes": [
            { "path": "gen/a.ts", "diff": "--- /dev/null\n+++ b/gen/a.ts\n@@ -0,0 +1 @@\n+1\n", "truncated": false },
            { "root": "project", "path": "gen/b.ts", "change": "deleted", "sha256": null, "diffTruncated": true },
            { "root": "project", "path": "gen/c.ts", "change": "created", "sha256": "e3b0", "diff": "" },
        ] })),
        ..asked(
            "shell_exec",
            Effect::Execute,
            json!({ "command": "make gen" }),
            vec![
                target(json!({ "kind": "command", "command": "make gen" })),
                file("gen/a.ts", "write"),
                file("gen/b.ts", "delete"),
            ],
        )
    }
}

fn tests() -> ApprovalQuestion {
    ApprovalQuestion {
        preview: Some(json!({ "command": "npm test -- --only 'a\u{202e}b'" })),
        ..asked(
            "test_run",
            Effect::Execute,
            json!({ "only": "a\u{202e}b" }),
            vec![target(json!({ "kind": "command", "command": "the project's tests" })), file("", "read")],
        )
    }
}

fn anything() -> ApprovalQuestion {
    let targets = (0..9).map(|number| file(&format!("deep/{number}"), "write")).collect();
    ApprovalQuestion {
        reasons: vec![by_rule(&format!("a long reason {}", "word ".repeat(120)))],
        ..asked("mystery", Effect::Write, json!({ "what": "\u{1b}[2J", "deep": { "list": [1, 2] } }), targets)
    }
}

#[test]
fn a_question_shows_exactly_what_will_happen() {
    for (name, asked, lines) in [
        ("write", write(), &["?", "m", "m", "y"][..]),
        ("long_write", long_write(100), &["m", "m", "a"]),
        ("command", command(), &["?", "n"]),
        ("statement", statement(), &["y"]),
        ("fetch", fetch(), &[""]),
        ("program", program(), &["m", "a"]),
        ("changes_by_rule", changes_by_rule(), &["?", "a"]),
        ("tests", tests(), &["y"]),
        ("anything", anything(), &["m", "y"]),
    ] {
        let (answer, shown) = asked_at(TERMINAL, &asked, lines);
        golden(&format!("question_{name}.txt"), &format!("{shown}\n=> {answer:?}\n"));
    }
}

#[test]
fn plus_and_minus_have_colours() {
    let (_, shown) = asked_at(TextStyle { colour: true, ..TERMINAL }, &write(), &["y"]);
    assert!(shown.contains("\u{1b}[32m+    const b"), "{shown:?}");
    assert!(shown.contains("\u{1b}[31m-    const b"), "{shown:?}");
    assert!(shown.contains("\u{1b}[36m--- a/src/a.ts"), "{shown:?}");
}

#[test]
fn only_a_clear_yes_is_one() {
    for (lines, expected) in [
        (&["y"][..], Answer::Yes),
        (&[" YES "], Answer::Yes),
        (&["a"], Answer::Always),
        (&["m", "?", "y"], Answer::Yes),
        (&["n"], Answer::no("the answer at the terminal was no")),
        (&[""], Answer::no("the answer at the terminal was no")),
        (&["yy"], Answer::no("the input at the terminal has ended")),
        (&["ja"], Answer::no("the input at the terminal has ended")),
        (&["\u{1b}[A"], Answer::no("the input at the terminal has ended")),
        (&["nothing"], Answer::no("the input at the terminal has ended")),
        (&["y but not there"], Answer::no("the input at the terminal has ended")),
        // What is none of the answers is asked again.
        (&["yy", "y"], Answer::Yes),
        (&["y but not there", "n"], Answer::no("the answer at the terminal was no")),
        (&[], Answer::no("the input at the terminal has ended")),
        (&["m"], Answer::no("the input at the terminal has ended")),
    ] {
        let (answer, shown) = asked_at(TERMINAL, &write(), lines);
        assert_eq!(answer, expected, "{lines:?}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
    // Where a rule asks each time, `always` is none of the answers.
    let (answer, shown) = asked_at(TERMINAL, &changes_by_rule(), &["always", "n"]);
    assert_eq!(answer, Answer::no("the answer at the terminal was no"));
    assert!(!shown.contains("a always"), "{shown}");
}

#[test]
fn bug_a_dropped_table_was_shown_as_no_change_and_a_dry_run_as_a_real_one() {
    let drop = ApprovalQuestion {
        targets: vec![Target::Statement {
            sql: "DROP TABLE a".to_owned(),
            kinds: vec!["drop".to_owned()],
            reads: false,
        }],
        preview: Some(json!({ "changed": 0, "rows": 0 })),
        ..asked("exec_sql", Effect::Write, json!({ "sql": "DROP TABLE a" }), Vec::new())
    };
    let (_, shown) = asked_at(TERMINAL, &drop, &["n"]);
    assert!(
        shown.contains("DROP TABLE a") && !shown.contains("0 rows") && !shown.contains("dry run"),
        "{shown}"
    );
    let (_, shown) = asked_at(TERMINAL, &ApprovalQuestion { dry_run: true, ..drop }, &["n"]);
    assert!(shown.contains("a dry run"), "{shown}");
}

#[test]
fn a_no_with_words_tells_the_caller_why() {
    for (line, reason) in [
        ("n use the other file", "the answer at the terminal was no: use the other file"),
        ("No, Use src/B.ts.", "the answer at the terminal was no: Use src/B.ts."),
        ("n:\ttwo  words", "the answer at the terminal was no: two  words"),
        ("n \u{1b}[2J\u{202e}x", "the answer at the terminal was no: \\u{1b}[2J\\u{202e}x"),
        ("n ,", "the answer at the terminal was no"),
    ] {
        let (answer, _) = asked_at(TERMINAL, &write(), &[line]);
        assert_eq!(answer, Answer::no(reason), "{line:?}");
    }
    let (answer, _) = asked_at(TERMINAL, &write(), &[&format!("n {}", "long ".repeat(1000))]);
    assert!(matches!(&answer, Answer::No { reason } if reason.len() < 1100), "{answer:?}");
    let (_, shown) = asked_at(TERMINAL, &write(), &["?"]);
    assert!(shown.contains("n use the other file"), "{shown}");
}

#[test]
fn a_command_for_a_whole_session_comes_with_a_caution() {
    let (_, shown) = asked_at(TERMINAL, &command(), &["?"]);
    assert!(shown.contains("it may read files that change"), "{shown}");
    for asked in [write(), fetch(), program()] {
        let (_, shown) = asked_at(TERMINAL, &asked, &["?"]);
        assert!(!shown.contains("it may read files that change"), "{shown}");
    }
}

/// A change of which only the beginning is shown.
fn cut(tool: &str, arguments: Value, diff: &str) -> ApprovalQuestion {
    ApprovalQuestion {
        preview: Some(json!({ "path": "a.txt", "diff": diff, "diffTruncated": true })),
        ..asked(tool, Effect::Write, arguments, vec![file("a.txt", "write")])
    }
}

#[test]
fn a_cut_difference_says_what_can_be_seen_of_it() {
    let delete = "--- a/a.txt\n+++ /dev/null\n@@ -1,900 +0,0 @@\n-@@ -1,5 +1,5 @@\n-two\n";
    let change = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n@@ -10,3 +10,4 @@\n a\n-b\n";
    for (asked, words) in [
        (
            cut("fs_delete", json!({ "path": "a.txt" }), delete),
            "898 lines of the difference are not shown, and they cannot be; read the file itself before you agree",
        ),
        (
            cut("fs_write", json!({ "path": "a.txt", "content": "x" }), change),
            "at least 4 lines of the difference are not shown; m shows the arguments, with the whole new text",
        ),
        (
            cut("fs_edit", json!({ "path": "a.txt", "search": "x", "replace": "y" }), change),
            "at least 4 lines of the difference are not shown; m shows the arguments, with what is new",
        ),
        (
            cut("exec_tool", json!({ "path": "tools/x.ts", "args": {} }), delete),
            "898 lines of the difference are not shown, and they cannot be",
        ),
        (
            cut("fs_delete", json!({ "path": "a.txt" }), "Binary files a/a.txt and /dev/null differ\n"),
            "not every difference is shown in full, and the rest cannot be; read the file itself before you agree",
        ),
    ] {
        let (_, shown) = asked_at(TextStyle { columns: 200, ..TERMINAL }, &asked, &["n"]);
        assert!(shown.contains(&format!("  cut       {words}\n")), "{words} in {shown}");
    }
}

#[test]
fn nothing_is_cut_in_silence() {
    // However much there is, paging on shows all of it.
    let (_, shown) = asked_at(TERMINAL, &long_write(500), &["m"; 60]);
    for number in 1..=500 {
        assert!(shown.contains(&format!("+line {number}\n")), "line {number}");
    }
    assert!(shown.contains("more rows: m shows them"), "{shown}");
    // One endless line is rows, too, and each is behind the bar.
    let endless = "z".repeat(10_000);
    let asked = asked("mystery", Effect::Write, json!({ "what": endless }), Vec::new());
    let (_, shown) = asked_at(TERMINAL, &asked, &["m"; 10]);
    assert_eq!(shown.matches('z').count(), 10_000);
    assert!(shown.lines().filter(|line| line.contains('z')).all(|line| line.starts_with("  │ ")), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

/// A keyboard that cannot be read at all.
struct Broken;

impl Keyboard for Broken {
    async fn line(&mut self) -> io::Result<Option<String>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn forget(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_keyboard_that_fails_refuses() {
    let answer =
        interview(&Paper::new(TERMINAL), &mut Broken, &ApprovalView::new(&write()), &Offer::Once).await;
    assert!(matches!(&answer, Answer::No { reason } if reason.contains("could not be read")), "{answer:?}");
}
