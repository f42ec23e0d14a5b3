//! A transcript that was changed does not replay: the first line that the loop would have written otherwise is named.

use serde_json::{Value, json};
use tgp_agent::{AgentLimits, AgentOptions, Prices, Replayed, TranscriptLine, replay};
use tgp_contract::StreamEvent;

use crate::support::*;

fn script() -> Vec<Vec<StreamEvent>> {
    vec![
        vec![
            text("I look."),
            call("look", "a", json!({})),
            call("change", "b", json!({ "state": "red" })),
            usage(50, 5),
            end(),
        ],
        vec![call("fail", "c", json!({ "code": "ESQL" })), end()],
        vec![text("It is done."), usage(60, 6), end()],
    ]
}

/// 0 session, 1 turn, 2 call, 3 result, 4 call, 5 result, 6 turn, 7 call, 8 result, 9 turn, 10 stop
async fn recorded() -> Vec<TranscriptLine> {
    let world = Fixture::said(script());
    let prices = Some(Prices { input: 3.0, output: 15.0, ..Prices::default() });
    world.run(AgentOptions { limits: AgentLimits { prices, ..limits() }, ..options() }).await.0.unwrap();
    let lines = world.lines();
    assert_eq!(lines.len(), 11);
    assert_same(&lines).await;
    lines
}

fn with(lines: &[TranscriptLine], at: usize, change: impl FnOnce(&mut Value)) -> Vec<TranscriptLine> {
    let mut lines = lines.to_vec();
    let mut value: Value = serde_json::to_value(&lines[at]).unwrap();
    let before = value.clone();
    change(&mut value);
    assert_ne!(value, before, "something was changed");
    lines[at] = serde_json::from_value(value).unwrap();
    lines
}

async fn check(lines: &[TranscriptLine], at: usize, found_at: u64, pointer: &str, new: Value) {
    let changed = with(lines, at, |value| *value.pointer_mut(pointer).unwrap() = new);
    match replay(&changed).await.unwrap() {
        Replayed::Differs { line, expected, actual } => {
            assert_eq!(line, found_at, "line {at} {pointer}");
            assert_eq!(expected, changed[usize::try_from(line).unwrap()].encode());
            assert_ne!(expected, actual);
        }
        Replayed::Same { .. } | Replayed::SameWithOlderPrompt { .. } => {
            panic!("line {at} {pointer} was not found")
        }
    }
}

#[tokio::test]
async fn whatever_is_changed_is_found_at_the_line_it_would_have_changed() {
    let lines = recorded().await;
    let cases: Vec<(usize, u64, &str, Value)> = vec![
        // What the model was asked is bound by the hash of each turn.
        (0, 1, "/task", json!("another task")),
        (0, 1, "/system", json!("another prompt")),
        (0, 1, "/model", json!("another model")),
        (0, 1, "/tools/0/description", json!("another tool")),
        (0, 1, "/limits/temperature", json!(0.2)),
        (0, 2, "/tools/3/effect", json!("write")),
        (0, 1, "/budgets/maxSteps", json!(1)),
        (0, 10, "/limits/prices/input", json!(4.0)),
        (1, 1, "/request", json!("00")),
        (1, 1, "/step", json!(2)),
        (1, 6, "/events/0/value", json!("I do not look.")),
        (1, 2, "/events/1/toolName", json!("fail")),
        (1, 10, "/events/3/outputTokens", json!(6)),
        (1, 2, "/ending", json!({ "kind": "interrupted" })),
        (2, 2, "/arguments", json!({ "x": 1 })),
        (2, 2, "/callId", json!("z")),
        (2, 2, "/effect", json!("write")),
        (3, 6, "/result/data/text", json!("another text")),
        (3, 6, "/result", json!({ "ok": false, "error": { "code": "ESQL", "message": "no" } })),
        (3, 4, "/result", json!({ "ok": false, "error": { "code": "EHALT", "message": "no" } })),
        (3, 3, "/id", json!("r1.2")),
        (3, 6, "/state", json!("green")),
        (5, 10, "/files/0/path", json!("other.txt")),
        (5, 6, "/verdict", json!("denied")),
        (8, 9, "/result/error/message", json!("it never failed")),
        (9, 10, "/events/0/value", json!("It is not done.")),
        // Time is the clock's, but it does not run backwards and it adds up.
        (4, 5, "/atMs", json!(2_000_000)),
        (10, 10, "/atMs", json!(2_000_000)),
        (10, 10, "/summary/calls", json!(2)),
        (
            10,
            10,
            "/summary/ending",
            json!({ "kind": "budget", "error": { "code": "EBUDGET", "message": "no" } }),
        ),
        (7, 7, "/sequence", json!(8)),
    ];
    for (at, found_at, pointer, new) in cases {
        check(&lines, at, found_at, pointer, new).await;
    }
}

#[tokio::test]
async fn lines_that_are_missing_doubled_or_moved_are_found() {
    let lines = recorded().await;
    for at in 1..lines.len() {
        // Without its last lines it is a session that was killed there.
        assert_same(&lines[..at]).await;
        let mut missing = lines.clone();
        missing.remove(at);
        let found = replay(&missing).await.unwrap();
        if at < lines.len() - 1 {
            assert!(matches!(found, Replayed::Differs { line, .. } if line == at as u64), "{at}: {found:?}");
        }
        let mut doubled = lines.clone();
        doubled.insert(at, lines[at].clone());
        let found = replay(&doubled).await.unwrap();
        assert!(matches!(found, Replayed::Differs { line, .. } if line == at as u64 + 1), "{at}: {found:?}");
        let mut moved = lines.clone();
        moved.swap(at, at - 1);
        match replay(&moved).await {
            Ok(Replayed::Differs { line, .. }) => assert_eq!(line, at as u64 - 1),
            Ok(_) => panic!("{at} was moved"),
            Err(error) => assert_eq!((at, error.code.as_str()), (1, "EINTEGRITY")),
        }
    }
    assert!(replay(&[]).await.is_err());
    assert!(replay(&lines[1..]).await.is_err());
}

#[tokio::test]
async fn a_change_before_a_crash_is_found_in_the_run_after_it() {
    let world = Fixture::said(script());
    world.kill_after(6);
    assert!(world.run(options()).await.0.is_err());
    world.kill_after(usize::MAX);
    world.resume(resumption()).await.0.unwrap();
    let lines = world.lines();
    assert_same(&lines).await;
    // 0 session, 1 turn, 2-5 calls, 6 resumed, 7 turn
    check(&lines, 3, 7, "/result/data/text", json!("another text")).await;
    check(&lines, 6, 7, "/model", json!("another model")).await;
    let changed = with(&lines, 6, |value| {
        value.as_object_mut().unwrap().insert("message".to_owned(), json!("do something else"));
    });
    let found = replay(&changed).await.unwrap();
    assert!(matches!(found, Replayed::Differs { line: 7, .. }), "{found:?}");
}
