//! Recorded sessions as they look in a pipe, at a terminal, with `-v` and as JSON.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tgp::agent::{AgentEvent, AuditRange, Ending, Summary, TestCount, TouchedFile};
use tgp::contract::{Code, Root, SourceLocation, ToolError, Usage};

use super::*;

/// A session in which everything happens once.
fn story() -> Vec<AgentEvent> {
    let failing = ToolError::new(Code::Runtime, "tools/slug.ts:3:10: text is not a string. It is a number.")
        .place(&SourceLocation { file: "tools/slug.ts".to_owned(), line: 3, column: 10 })
        .help("convert it with String(text) first")
        .detail(
            "logs",
            json!([{ "level": "log", "text": "begin" }, { "level": "error", "text": "two\nlines" }]),
        );
    let denied = ToolError::new(Code::State, "code comes after a failing test. Write the test first.")
        .help("write tools/slug.test.ts, run it, and see it fail");
    let search = json!({ "query": "make a slug of a title", "limit": 5 });
    let test =
        "import { test, expect } from '@tgp/test';\nimport slug from './slug';\n\ntest('lower', () => {});\n";
    vec![
        session(),
        step(1, 0),
        text("I look for a tool "),
        text("first.\n\nThen "),
        text("I write the test."),
        usage(812, 40),
        call("r1.1", "search", search),
        call("r1.2", "fs_read", json!({ "path": "README.md" })),
        result("r1.1", "search", done(json!({ "results": [], "verdict": "forge" })), "allowed", 6.81),
        result("r1.2", "fs_read", done(json!({ "content": "# A\nb\n", "lines": 2 })), "allowed", 0.38),
        step(2, 852),
        call("r2.1", "write_file", json!({ "path": "tools/slug.ts", "content": "export default 1;\n" })),
        result("r2.1", "write_file", ToolResult::Failed(denied), "denied", 0.12),
        step(3, 1700),
        text("Right: the test comes first.\n"),
        call("r3.1", "write_file", json!({ "path": "tools/slug.test.ts", "content": test })),
        result(
            "r3.1",
            "write_file",
            done(json!({ "path": "tools/slug.test.ts", "created": true })),
            "approved",
            21.4,
        ),
        call("r3.2", "test_tool", json!({ "path": "tools/slug.test.ts" })),
        result("r3.2", "test_tool", done(json!({ "files": [], "passed": 0, "failed": 1 })), "approved", 31.0),
        AgentEvent::Notice { message: "older results were shortened to fit the context".to_owned() },
        step(4, 2600),
        call("r4.1", "exec_tool", json!({ "path": "tools/slug.ts", "args": { "text": 7 } })),
        result("r4.1", "exec_tool", ToolResult::Failed(failing), "approved", 1.25),
        call("r4.2", "shell_exec", json!({ "command": "cargo test\n--all", "cwd": "sub" })),
        result(
            "r4.2",
            "shell_exec",
            done(
                json!({ "exitCode": 101, "stdout": "running\n1 failed\n", "stderr": "", "durationMs": 2100 }),
            ),
            "approved",
            2104.0,
        ),
        call("r4.3", "remember", json!({ "what": { "deep": [1, 2] }, "list": [1] })),
        result("r4.3", "remember", done(json!("kept")), "recovered", 61_200.0),
        AgentEvent::Error {
            error: ToolError::new(Code::Provider, "the connection was lost").help("it is tried again"),
        },
        step(5, 3300),
        text("Done."),
        AgentEvent::End { summary: Box::new(summary(Ending::Done)) },
    ]
}

pub fn summary(ending: Ending) -> Summary {
    let file = |root: Root, path: &str, created: bool, deleted: bool| TouchedFile {
        root,
        path: path.to_owned(),
        created,
        deleted,
    };
    Summary {
        session: "s-7f3a".to_owned(),
        ending,
        answer: "Done.".to_owned(),
        steps: 5,
        calls: 8,
        refused: 1,
        failed: 2,
        unknown: Vec::new(),
        usage_estimated: false,
        usage: Usage { input_tokens: 3012, output_tokens: 288, ..Usage::default() },
        cost: Some(0.0123),
        duration_ms: 12_345,
        files: vec![
            file(Root::Project, "src/new.ts", true, false),
            file(Root::Project, "src/old.ts", false, false),
            file(Root::Project, "src/gone.ts", false, true),
            file(Root::Tools, "tools/slug.ts", true, false),
        ],
        files_omitted: 0,
        forged: vec!["tools/slug.ts".to_owned()],
        reused: vec!["tools/text/lower.ts".to_owned(), "tools/text/trim.ts".to_owned()],
        tests: Some(TestCount { runs: 2, passed: 3, failed: 0, inconclusive: false }),
        audit: Some(AuditRange { first: 12, last: 31 }),
    }
}

fn played(manner: TextStyle, verbosity: Verbosity) -> String {
    let (mut screen, paper) = screen(manner, verbosity);
    story().iter().for_each(|event| screen.show(event));
    paper.text()
}

#[test]
fn a_session_reads_as_a_story() {
    golden("plain.txt", &played(PIPE, Verbosity::Brief));
    let ascii = played(TextStyle { charset: Charset::Ascii, ..PIPE }, Verbosity::Brief);
    assert!(ascii.is_ascii(), "{ascii}");
    golden("plain_ascii.txt", &ascii);
    golden("detailed.txt", &played(PIPE, Verbosity::Detailed));
    let colourful = played(TextStyle { colour: true, ..TERMINAL }, Verbosity::Brief);
    let plain = played(TERMINAL, Verbosity::Brief);
    assert_ne!(colourful, plain);
    assert_eq!(console::strip_ansi_codes(&colourful), plain, "colour changes nothing but the colour");
}

#[test]
fn json_lines_are_the_events() {
    let paper = Paper::new(PIPE);
    let mut screen = Screen::new(paper.clone(), Form::JsonLines);
    for event in story() {
        screen.show(&event);
        screen.tick(Duration::from_secs(1));
        screen.make_room();
    }
    let text = paper.text();
    let read: Vec<AgentEvent> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read, story());
    golden("events.jsonl", &text);
}

#[test]
fn numbers_beyond_all_bounds_are_no_panic() {
    let (mut screen, paper) = screen(TERMINAL, Verbosity::Brief);
    screen.show(&step(u64::MAX, u64::MAX));
    screen.show(&usage(u64::MAX, u64::MAX));
    screen.tick(Duration::from_secs(u64::MAX / 1000));
    let most = Usage { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Usage::default() };
    let tests = Some(TestCount { runs: u64::MAX, passed: u64::MAX, failed: u64::MAX, inconclusive: false });
    let ended = Summary { usage: most, duration_ms: u64::MAX, tests, ..summary(Ending::Done) };
    screen.show(&AgentEvent::End { summary: Box::new(ended) });
    assert!(paper.text().contains("18,446,744,073,709,551,615 in"), "{}", paper.text());
}

#[test]
fn an_error_and_how_to_go_on_are_said_once() {
    let resume = "tgp run --resume s-7f3a";
    let with = |help: &str| ToolError::new(Code::Provider, "500: it broke").help(help);
    for (help, expected) in [
        (
            "wait a while; when that is fixed, resume with `tgp run --resume s-7f3a`",
            "help: wait a while\n|  go on     tgp run --resume s-7f3a\n",
        ),
        (
            "go on with `tgp run --resume s-7f3a --max-steps 4`",
            "|  go on     tgp run --resume s-7f3a --max-steps 4\n",
        ),
        (
            "raise llm.maxOutputTokens (5), then go on with `tgp run --resume s-7f3a`",
            "help: raise llm.maxOutputTokens (5)\n|  go on     tgp run --resume s-7f3a\n",
        ),
        (
            "put it differently: `tgp run --resume s-7f3a \"…\"`",
            "help: put it differently: `tgp run --resume s-7f3a \"…\"`\n",
        ),
        (
            "go on with `tgp run --resume other`",
            "help: go on with `tgp run --resume other`\n|  go on     tgp run --resume s-7f3a\n",
        ),
        ("", "|  go on     tgp run --resume s-7f3a\n"),
    ] {
        let error = with(help);
        let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
        screen.show(&AgentEvent::Error { error: error.clone() });
        assert_eq!(paper.text(), "", "the summary tells it");
        screen.show(&AgentEvent::End { summary: Box::new(summary(Ending::NeedsUser { error })) });
        screen.finish();
        let text = paper.text();
        assert_eq!(text.matches("it broke").count(), 1, "{text}");
        assert_eq!(text.matches(resume).count(), 1, "{text}");
        for part in expected.split('|') {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
    // One that the summary does not report is shown.
    let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
    screen.show(&AgentEvent::Error { error: with("a") });
    screen.show(&AgentEvent::End { summary: Box::new(summary(Ending::Done)) });
    assert!(paper.text().starts_with("  ✗ EPROVIDER: 500: it broke\n      help: a\n"), "{}", paper.text());
}

#[test]
fn trouble_is_called_by_its_name() {
    let provider = |status: Option<u16>, passing: Option<bool>| {
        let mut error = ToolError::new(Code::Provider, "it failed");
        if let Some(status) = status {
            error = error.detail("status", status);
        }
        passing.map_or(error.clone(), |passing| error.detail("retryable", passing))
    };
    for (error, words) in [
        (provider(Some(500), Some(true)), "the provider did not answer"),
        (provider(Some(503), None), "the provider did not answer"),
        (provider(None, Some(true)), "the provider did not answer"),
        (provider(Some(401), Some(false)), "the provider does not accept the key"),
        (provider(Some(429), Some(true)), "the provider allows no more requests for now"),
        (provider(Some(404), Some(false)), "the provider does not accept the request"),
        (provider(None, Some(false)), "the provider's answer cannot be used"),
        (provider(None, None), "the model gave no answer"),
        (ToolError::new(Code::Config, "no"), "the configuration has to be changed"),
        (ToolError::new(Code::Budget, "no"), "a budget is used up"),
        (ToolError::new(Code::State, "no").detail("state", "halted"), "a person has halted the work"),
        (ToolError::new(Code::State, "no"), "only you can fix this"),
    ] {
        let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
        screen.show(&AgentEvent::End { summary: Box::new(summary(Ending::NeedsUser { error })) });
        let first = format!("\nSession s-7f3a was stopped: {words}.\n");
        assert!(paper.text().starts_with(&first), "{first}{}", paper.text());
    }
}

#[test]
fn files_beyond_the_summary_are_counted_and_nothing_is_promised_of_them() {
    let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
    let much = Summary { files_omitted: 1234, ..summary(Ending::Done) };
    screen.show(&AgentEvent::End { summary: Box::new(much) });
    assert!(paper.text().contains("            and 1,234 more\n"), "{}", paper.text());
}

#[test]
fn what_nobody_knows_is_said() {
    let calls = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let tests = |passed, inconclusive| Some(TestCount { runs: 1, passed, failed: 0, inconclusive });
    for (unknown, tests, expected) in [
        (
            calls(&["r3.1 fs_write one.txt"]),
            tests(0, true),
            ["  tests     no result\n", "  unknown   r3.1 fs_write one.txt: look whether it happened\n"],
        ),
        (
            calls(&["r3.1 fs_write one.txt", "r3.2 shell_exec\u{1b}[2J"]),
            tests(4, true),
            [
                "  tests     no result; before it 4 passed, 0 failed\n",
                "  unknown   look whether these happened:\n            r3.1 fs_write one.txt\n            r3.2 shell_exec\\u{1b}[2J\n",
            ],
        ),
        (
            Vec::new(),
            tests(0, false),
            ["  tests     none was counted\n", "  calls     8 (1 refused, 2 failed)\n  steps"],
        ),
    ] {
        let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
        let ended = Summary { unknown, tests, ..summary(Ending::Done) };
        screen.show(&AgentEvent::End { summary: Box::new(ended) });
        for part in expected {
            assert!(paper.text().contains(part), "{part} in {}", paper.text());
        }
    }
}

#[test]
fn a_model_called_as_its_provider_is_named_once() {
    let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
    let AgentEvent::Session { id, task, provider, mode, state, resumed, .. } = session() else {
        unreachable!()
    };
    screen.show(&AgentEvent::Session { model: provider.clone(), id, task, provider, mode, state, resumed });
    assert_eq!(paper.text(), "session s-7f3a · script · strict, idle\n");
}

#[test]
fn a_notice_is_seen_at_once_and_the_status_says_what_is_waited_for() {
    let (mut screen, paper) = screen(TERMINAL, Verbosity::Brief);
    let notice = |message: &str| AgentEvent::Notice { message: message.to_owned() };
    let status = |paper: &Paper| paper.screen(40, 80).lines().last().unwrap_or_default().to_owned();
    screen.show(&session());
    screen.show(&notice("older results were shortened"));
    screen.show(&step(1, 0));
    screen.tick(Duration::from_secs(1));
    assert_eq!(status(&paper), "  step 1 · 1 s · strict, idle · 0 tokens · the model thinks");
    screen.show(&notice("429 rate limited; attempt 2 of 4 in 8 s"));
    assert_eq!(status(&paper), "  note: 429 rate limited; attempt 2 of 4 in 8 s");
    screen.tick(Duration::from_secs(2));
    assert_eq!(status(&paper), "  step 1 · 2 s · 429 rate limited; attempt 2 of 4 in 8 s · strict, idle");
    screen.show(&text("Hello.\n"));
    screen.show(&call("r1.1", "fs_read", json!({ "path": "a" })));
    screen.tick(Duration::from_secs(3));
    assert_eq!(status(&paper), "  step 1 · 3 s · strict, idle · 0 tokens");
    paper.resize(80, 5);
    screen.tick(Duration::from_secs(4));
    assert_eq!(status(&paper), "  step 1 · 4 s · fs_read runs · strict, idle · 0 tokens");
}

/// No row of ours is wider than the terminal, and none is broken within a word.
#[test]
fn our_own_lines_break_between_words() {
    let manner = TextStyle { columns: 40, ..TERMINAL };
    let (mut screen, paper) = screen(manner, Verbosity::Brief);
    let error = ToolError::new(Code::NotFound, "there is no file of this name in the whole project")
        .help("list the directory to see which files there are");
    screen.show(&session());
    screen.show(&AgentEvent::Notice {
        message: "the context was shortened to fit what the model reads".to_owned(),
    });
    screen.show(&call("r1", "fs_read", json!({ "path": "src/some/where/deep/below.ts" })));
    screen.show(&result("r1", "fs_read", ToolResult::Failed(error.clone()), "allowed", 1.0));
    screen.show(&AgentEvent::End { summary: Box::new(summary(Ending::Stuck { error })) });
    let text = paper.text();
    for line in text.lines() {
        let is_one_word = line.split_whitespace().count() == 1;
        assert!(is_one_word || console::measure_text_width(line) <= 40, "{line:?} in\n{text}");
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    for sentence in [
        "was shortened to fit what the model reads",
        "✗ fs_read src/some/where/deep/below.ts allowed, failed ENOTFOUND 1.0 ms there is no file of this name",
        "entries 12 to 31: tgp audit tail --session s-7f3a",
        "was stopped: the same call failed again and again.",
    ] {
        assert!(words.join(" ").contains(sentence), "{sentence} in\n{text}");
    }
}

#[test]
fn every_ending_says_what_to_do() {
    let error = |code, message: &str, help: &str| ToolError::new(code, message).help(help);
    let mut all = String::new();
    for ending in [
        Ending::Done,
        Ending::Interrupted,
        Ending::Budget { error: error(Code::Budget, "5 of 5 steps are used", "--max-steps allows more") },
        Ending::Stuck {
            error: error(Code::NotFound, "`fs_read` failed three times: no file", "name a file"),
        },
        Ending::NeedsUser {
            error: error(Code::Provider, "401: the key is wrong", "set OPENAI_API_KEY").detail("status", 401),
        },
        Ending::Broken { error: error(Code::Integrity, "the audit was changed", "see `tgp audit verify`") },
    ] {
        let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
        let is_done = ending == Ending::Done;
        screen.show(&AgentEvent::End { summary: Box::new(summary(ending)) });
        assert_eq!(paper.text().contains("tgp run --resume s-7f3a"), !is_done);
        all.push_str(&paper.text());
    }
    // A session that did nothing has no empty rows.
    let (mut screen, paper) = screen(PIPE, Verbosity::Brief);
    let nothing = Summary {
        files: Vec::new(),
        forged: Vec::new(),
        reused: Vec::new(),
        tests: None,
        audit: None,
        cost: None,
        usage: Usage::default(),
        calls: 0,
        refused: 0,
        failed: 0,
        steps: 1,
        ..summary(Ending::Done)
    };
    screen.show(&AgentEvent::End { summary: Box::new(nothing) });
    all.push_str(&paper.text());
    // One that did more than a summary can hold says so.
    let (mut screen, paper) = self::screen(PIPE, Verbosity::Brief);
    let name = |number: usize| TouchedFile {
        root: Root::Project,
        path: format!("src/{number}.ts"),
        created: true,
        deleted: false,
    };
    let files: Vec<TouchedFile> = (0..25).map(name).collect();
    let much = Summary { files, files_omitted: 1234, ..summary(Ending::Done) };
    screen.show(&AgentEvent::End { summary: Box::new(much) });
    all.push_str(&paper.text());
    golden("endings.txt", &all);
}

/// What is on the terminal at the moments when a person reads it.
#[test]
fn a_terminal_shows_what_is_waited_for() {
    let (mut screen, paper) = screen(TERMINAL, Verbosity::Brief);
    let mut looks = String::new();
    for (number, event) in story().iter().enumerate() {
        screen.show(event);
        screen.tick(Duration::from_secs(number as u64 * 5));
        if matches!(event, AgentEvent::ToolCall { .. } | AgentEvent::Step { .. } | AgentEvent::End { .. }) {
            let shown = paper.screen(60, 80);
            let last: Vec<&str> = shown.lines().rev().take(5).collect();
            looks.push_str(&format!("--- event {number}\n"));
            last.iter().rev().for_each(|line| looks.push_str(&format!("{line}\n")));
        }
    }
    looks.push_str("--- the end\n");
    looks.push_str(&paper.screen(60, 80));
    golden("terminal.txt", &looks);
}

#[test]
fn a_status_is_drawn_only_when_it_says_something_new_and_only_where_it_can_be_taken_back() {
    let (mut shown, paper) = screen(TERMINAL, Verbosity::Brief);
    shown.show(&session());
    shown.show(&step(1, 0));
    shown.tick(Duration::from_secs(1));
    let length = paper.text().len();
    shown.tick(Duration::from_millis(1900));
    assert_eq!(paper.text().len(), length, "the same second is drawn once");
    shown.tick(Duration::from_secs(2));
    assert!(paper.text().len() > length);
    // While the model speaks there is no status, not even between two lines.
    shown.show(&text("one\n"));
    let length = paper.text().len();
    shown.tick(Duration::from_secs(3));
    assert_eq!(paper.text().len(), length);

    for manner in [PIPE, TextStyle { movable: false, ..TERMINAL }] {
        let (mut screen, paper) = screen(manner, Verbosity::Brief);
        for event in story() {
            screen.show(&event);
            screen.tick(Duration::from_secs(9));
        }
        assert_eq!(paper.text(), played(manner, Verbosity::Brief), "no status at all");
        assert!(!paper.text().contains(['\r', '\u{1b}']), "{:?}", paper.text());
    }
}

#[test]
fn a_status_fits_the_terminal_and_is_gone_after_a_resize() {
    for columns in [1, 2, 5, 10, 20, 40, 80, 200] {
        let (mut screen, paper) = screen(TextStyle { columns, ..TERMINAL }, Verbosity::Brief);
        screen.show(&step(12, 123_456));
        screen.show(&call("r1.1", "shell_exec", json!({ "command": "x".repeat(300) })));
        let before = paper.text().len();
        screen.tick(Duration::from_secs(4000));
        let drawn = paper.text()[before..].replace('\r', "\n");
        let widest = drawn.lines().map(console::measure_text_width).max().unwrap();
        assert!(widest < columns.max(2), "{widest} of {columns}: {drawn:?}");
    }
    // A terminal that is made narrower while a status is shown: it is broken into rows below the cursor.
    let (mut screen, paper) = screen(TERMINAL, Verbosity::Brief);
    screen.show(&text("kept\n"));
    screen.show(&step(3, 1000));
    screen.tick(Duration::from_secs(5));
    let drawn = paper.text();
    assert!(drawn.ends_with('\r'), "the cursor stands before the status: {drawn:?}");
    paper.resize(20, 40);
    screen.tick(Duration::from_secs(6));
    assert!(paper.text()[drawn.len()..].starts_with("\r\u{1b}[J"), "everything below goes");
    screen.make_room();
    assert_eq!(paper.screen(10, 80), "kept\n");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// However often the status was drawn in between, in the end the terminal shows what it shows without one.
    #[test]
    fn no_status_is_left_behind(
        ticks in proptest::collection::vec(0..4_u64, 40),
        columns in 24..100_u16,
        rows in 4..60_u16,
    ) {
        let manner = TextStyle { columns: usize::from(columns), rows: usize::from(rows), ..TERMINAL };
        let (mut with, drawn) = screen(manner, Verbosity::Brief);
        let (mut without, plain) = screen(manner, Verbosity::Brief);
        let mut clock = 0;
        for (event, ticks) in story().iter().zip(ticks) {
            with.show(event);
            without.show(event);
            for _ in 0..ticks {
                clock += 1;
                with.tick(Duration::from_secs(clock));
            }
        }
        with.make_room();
        without.make_room();
        // Rows that have left the screen are compared, too, by a terminal that is high enough for all of them.
        prop_assert_eq!(drawn.screen(rows, columns), plain.screen(rows, columns));
        prop_assert_eq!(drawn.screen(400, columns), plain.screen(400, columns));
    }
}

#[test]
fn a_piece_of_text_is_written_at_once_and_whole() {
    let (mut screen, paper) = screen(TERMINAL, Verbosity::Brief);
    screen.show(&step(1, 0));
    for piece in ["a", "", "ä", "\t", "b\n", "…"] {
        let before = paper.text().len();
        screen.show(&text(piece));
        assert_eq!(&paper.text()[before..], piece);
    }
}
