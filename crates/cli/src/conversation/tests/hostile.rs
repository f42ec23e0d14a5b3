//! Whatever is in an event or a question, the terminal only ever gets our own escapes.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tgp::agent::{AgentEvent, Ending, Summary, TouchedFile};
use tgp::contract::{Code, Root, SourceLocation, TddMode, TddState, ToolError, Usage};

use super::*;
use crate::conversation::ApprovalView;
use crate::text::is_unseen;

/// Texts that move, hide, reorder or flood.
const HOSTILE: [&str; 10] = [
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}]0;title\u{7}",
    "\u{9b}31m",
    "a\rb",
    "line\nAllow it? [y/N] y\n",
    "\u{202e}gpj.exe",
    "z\u{200b}w\u{2060}\u{feff}",
    "\u{e0041}\u{e0042}",
    "\u{3164}\u{ffa0}\u{fe01}",
    "\u{8}\u{8}\u{7f}\0",
];

/// True for what only our own drawing may hold: the escapes that erase, move up and colour.
fn leftover(text: &str) -> Option<char> {
    let own = text.replace("\r\u{1b}[J", "");
    let own: String = own.replace('\r', "");
    let own = console::strip_ansi_codes(&own).into_owned();
    let own = own.replace("\u{1b}[1A", "").replace("\u{1b}[2A", "").replace("\u{1b}[3A", "");
    own.chars().find(|character| is_unseen(*character) && !matches!(character, '\n' | '\t'))
}

/// Every kind of event with the text in every field that holds text.
fn events(hostile: &str) -> Vec<AgentEvent> {
    let text = || hostile.to_owned();
    let error = ToolError::new(Code::Runtime, hostile)
        .place(&SourceLocation { file: text(), line: 1, column: 2 })
        .help(hostile)
        .detail(hostile, hostile)
        .detail("logs", json!([{ "level": hostile, "text": hostile }]));
    let arguments = json!({
        "path": hostile, hostile: hostile, "args": { hostile: hostile }, "list": [hostile], "url": hostile,
    });
    let mut events = vec![
        AgentEvent::Session {
            id: text(),
            task: text(),
            provider: text(),
            model: text(),
            mode: TddMode::Strict,
            state: TddState::Red,
            resumed: true,
        },
        step(1, 1),
        AgentEvent::Text { value: text() },
        AgentEvent::Notice { message: text() },
        AgentEvent::Discarded { step: 1, message: text() },
        AgentEvent::Error { error: error.clone() },
    ];
    for tool in ["fs_write", "exec_tool", "fetch", "search_grep", hostile] {
        for arguments in [arguments.clone(), json!({ hostile: hostile }), json!([hostile]), json!(hostile)] {
            events.push(call("r1", tool, arguments));
            let answers = [
                done(json!({ "diff": hostile, hostile: [hostile], "stdout": hostile })),
                done(json!(hostile)),
                ToolResult::Failed(error.clone()),
            ];
            for answer in answers {
                events.push(result("r1", tool, answer, hostile, 1.0));
            }
        }
    }
    for data in [
        json!({ "result": hostile }),
        json!({ "passed": 0, "failed": 1, "ended": hostile, "stderr": hostile, "state": { "outcome": hostile, "why": hostile } }),
        json!({ "passed": 0, "failed": 0, "stdout": hostile }),
        json!({ "passed": 0, "failed": 1, "failing": [{ "name": hostile, "file": hostile }] }),
        json!({ "passed": 0, "failed": 1, "files": [{ "tests": [{ "name": hostile, "ok": false, "error": { "message": hostile } }] }] }),
        json!({ "passed": 0, "failed": 1, "files": [{ "path": hostile, "error": error }] }),
    ] {
        events.push(result("r1", "exec_tool", done(data), "approved", 1.0));
    }
    let summary = Summary {
        session: text(),
        ending: Ending::Stuck { error },
        answer: text(),
        steps: 1,
        calls: 1,
        refused: 0,
        failed: 0,
        unknown: vec![text(), text()],
        usage_estimated: false,
        usage: Usage::default(),
        cost: None,
        duration_ms: 1,
        files: vec![TouchedFile { root: Root::Project, path: text(), created: false, deleted: false }],
        files_omitted: 7,
        forged: vec![text()],
        reused: vec![text()],
        tests: None,
        audit: None,
    };
    events.push(AgentEvent::End { summary: Box::new(summary) });
    events
}

fn check_events(hostile: &str) {
    for manner in [PIPE, TERMINAL, TextStyle { colour: true, ..TERMINAL }] {
        for verbosity in [Verbosity::Brief, Verbosity::Detailed, Verbosity::Everything] {
            let (mut screen, paper) = screen(manner, verbosity);
            for event in events(hostile) {
                screen.show(&event);
                screen.tick(Duration::from_secs(1));
            }
            assert_eq!(leftover(&paper.text()), None, "{hostile:?} at {manner:?} {verbosity:?}");
        }
        let paper = Paper::new(manner);
        let mut screen = Screen::new(paper.clone(), Form::JsonLines);
        for event in events(hostile) {
            screen.show(&event);
        }
        let text = paper.text();
        let read: Vec<AgentEvent> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, events(hostile), "JSON says the same");
        if manner.terminal {
            assert!(!text.contains(|character: char| is_unseen(character) && character != '\n'), "{text:?}");
        }
    }
}

/// Questions with the text in every field that holds text.
fn questions(hostile: &str) -> Vec<ApprovalQuestion> {
    let targets = vec![
        target(json!({ "kind": "host", "host": hostile })),
        target(json!({ "kind": "statement", "sql": hostile, "kinds": [hostile] })),
        target(json!({ "kind": "command", "command": hostile })),
    ];
    let fields = json!({ "command": hostile, "cwd": hostile, "sql": hostile, "url": hostile, "path": hostile, hostile: hostile, "method": hostile, "args": { hostile: hostile }, "template": hostile });
    let mut asked_all = Vec::new();
    for tool in ["fs_write", "shell_exec", "exec_sql", "fetch", "exec_tool", hostile] {
        for targets in targets.iter().map(|target| vec![target.clone()]).chain([Vec::new(), targets.clone()])
        {
            for preview in [
                None,
                Some(json!({ "diff": hostile, "path": hostile })),
                Some(json!({ "changes": [{ "path": hostile, "removed": true }] })),
                Some(json!({ "sha256": hostile, "source": hostile, hostile: hostile })),
            ] {
                asked_all.push(ApprovalQuestion {
                    actor: hostile.to_owned(),
                    reasons: vec![by_rule(hostile)],
                    preview,
                    ..asked(tool, Effect::Execute, fields.clone(), targets.clone())
                });
            }
        }
    }
    asked_all
}

fn check_questions(hostile: &str) {
    for asked in questions(hostile) {
        for manner in [TERMINAL, TextStyle { columns: 24, colour: true, ..TERMINAL }] {
            let sheet = ApprovalView::new(&asked);
            let rows = [sheet.body_rows(manner), sheet.fact_rows(manner), sheet.more_rows(manner)].concat();
            for row in rows.iter().map(String::as_str).chain([sheet.title()]) {
                assert_eq!(leftover(row), None, "{row:?}");
                assert!(!row.contains('\n'), "{row:?}");
                // Only our own words can begin as the question does.
                assert!(!row.starts_with("Allow it?"), "{row:?}");
            }
            let wide = rows.iter().map(|row| console::measure_text_width(row)).max().unwrap();
            assert!(wide <= manner.columns.max(24), "{wide} of {}", manner.columns);
        }
        if let Some(pattern) = crate::conversation::pattern::Pattern::of(&asked) {
            assert_eq!(leftover(&pattern.to_string()), None);
        }
    }
}

#[test]
fn no_field_reaches_the_terminal_as_it_is() {
    for hostile in HOSTILE {
        check_events(hostile);
        check_questions(hostile);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_text_reaches_the_terminal_as_it_is(hostile in any::<String>()) {
        check_events(&hostile);
        check_questions(&hostile);
    }

    /// Wherever a text is cut, its pieces show what the whole shows.
    #[test]
    fn an_escape_in_two_pieces_is_none(whole in "[a\u{1b}\\[\u{9b}2J\u{202e}\n]{0,12}", cut in any::<proptest::sample::Index>()) {
        let places: Vec<usize> = whole.char_indices().map(|(place, _)| place).chain([whole.len()]).collect();
        let cut = places[cut.index(places.len())];
        let say = |pieces: &[&str]| {
            let (mut screen, paper) = screen(TERMINAL, Verbosity::Brief);
            pieces.iter().for_each(|piece| screen.show(&text(piece)));
            paper.text()
        };
        prop_assert_eq!(say(&[&whole[..cut], &whole[cut..]]), say(&[&whole]));
    }
}

#[test]
fn a_flood_is_bounded() {
    let long = "x".repeat(1 << 20);
    for manner in [PIPE, TERMINAL] {
        for (verbosity, bound) in [(Verbosity::Brief, 4_000), (Verbosity::Detailed, 30_000)] {
            let (mut screen, paper) = screen(manner, verbosity);
            let lines = "y\n".repeat(1 << 19);
            let error = ToolError::new(Code::Runtime, &*long).help(&*long);
            screen.show(&call("r1", &long, json!({ "path": long, "content": lines })));
            screen.tick(Duration::from_secs(1));
            screen.show(&result("r1", &long, done(json!({ "stdout": lines, "other": long })), &long, 1.0));
            screen.show(&call("r2", "fs_read", json!({ "path": long })));
            screen.show(&result("r2", "fs_read", ToolResult::Failed(error), "allowed", 1.0));
            let length = paper.text().len();
            assert!(length < bound, "{length} bytes at {verbosity:?}");
        }
        let (mut screen, paper) = screen(manner, Verbosity::Everything);
        screen.show(&result("r1", "t", done(json!({ "stdout": long })), "allowed", 1.0));
        assert!(paper.text().len() > long.len(), "-vv shows all");
    }
}
