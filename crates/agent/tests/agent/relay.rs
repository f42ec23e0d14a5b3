//! The relay's suite of tools and models: the loop, malformed arguments, and order under a slow reader.

use serde_json::json;
use tgp_agent::{AgentEvent, AgentOptions, Ending, LineDurability, StopSignal, TranscriptLineKind, run};
use tgp_contract::{Actor, CallVerdict, CapabilityToken, Code, StreamEvent, TddState};
use tokio::sync::mpsc;

use crate::support::*;

/// Everything but the text is one word; text is given as it is.
fn names(events: &[AgentEvent]) -> Vec<String> {
    let name = |event: &AgentEvent| match event {
        AgentEvent::Session { .. } => "session".to_owned(),
        AgentEvent::Step { step, .. } => format!("step {step}"),
        AgentEvent::Text { value } => format!("text {value}"),
        AgentEvent::ToolCall { id, .. } => format!("call {id}"),
        AgentEvent::ToolResult { id, verdict, .. } => format!("result {id} {verdict}"),
        AgentEvent::Usage(_) => "usage".to_owned(),
        AgentEvent::Notice { .. } => "notice".to_owned(),
        AgentEvent::Error { error } => format!("error {}", error.code),
        AgentEvent::End { .. } => "end".to_owned(),
        AgentEvent::Discarded { .. } => "discarded".to_owned(),
    };
    events.iter().map(name).collect()
}

#[tokio::test]
async fn a_call_is_made_and_its_result_reaches_the_model() {
    let world = Fixture::said(vec![
        vec![
            text("I will "),
            text(""),
            text("look."),
            call("look", "c1", json!({ "size": 16 })),
            call("change", "c2", json!({ "path": "src/a.rs", "state": "red" })),
            call("eye.look", "c3", json!({})),
            usage(100, 10),
            end(),
        ],
        vec![text("All "), text("done."), usage(140, 5), end()],
    ]);
    let token = Some(CapabilityToken::new("TOP-SECRET"));
    let (summary, events) = world.run(AgentOptions { token: token.clone(), ..options() }).await;
    let summary = summary.unwrap();
    assert_eq!(summary.ending, Ending::Done);
    assert_eq!((summary.answer.as_str(), summary.steps, summary.calls), ("All done.", 2, 3));
    assert_eq!((summary.usage.input_tokens, summary.usage.output_tokens), (240, 15));
    assert_eq!(
        names(&events),
        [
            "session",
            "step 1",
            "text I will ",
            "text look.",
            "usage",
            "call r1.1",
            "result r1.1 allowed",
            "call r1.2",
            "result r1.2 allowed",
            "call r1.3",
            "result r1.3 allowed",
            "step 2",
            "text All ",
            "text done.",
            "usage",
        ]
    );
    let requests = world.requests();
    requests.iter().for_each(check_request);
    let results = last_results(&requests[1]);
    assert_eq!(results.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c3"]);
    assert!(results[0].1.starts_with(r#"{"ok":true,"data":{"effects":0,"#), "{}", results[0].1);
    assert!(results[1].1.ends_with("\n[tdd: idle -> red]"), "{}", results[1].1);
    // A read after a change sees it.
    assert!(results[2].1.starts_with(r#"{"ok":true,"data":{"effects":1,"#), "{}", results[2].1);
    let (made, context) = world.made.lock().unwrap()[1].clone();
    assert_eq!((made.id.as_str(), context.session.as_str(), context.depth), ("r1.2", "s1", 0));
    assert_eq!((context.actor, context.token), (Actor::Agent("agent".to_owned()), token));
    let everything = format!("{:?} {events:?} {requests:?}", world.lines());
    assert!(!everything.contains("TOP-SECRET"), "the token is for the gates alone");
    // Only what may change something waits for the disk.
    let synced: Vec<bool> =
        world.safeties.lock().unwrap().iter().map(|safety| *safety == LineDurability::Synced).collect();
    let changes: Vec<bool> = world
        .lines()
        .iter()
        .map(|line| matches!(&line.kind, TranscriptLineKind::Call { tool, .. } if tool == "change"))
        .collect();
    assert_eq!(synced, changes);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn malformed_arguments_never_execute() {
    let broken = "{\"path\": \"a\",\n \"x\": }";
    let world = Fixture::said(vec![vec![
        call("change", "c1", json!(broken)),
        call("zz_any", "c2", json!("{\"deep\": 1}")),
        call("no such tool!", "", json!({})),
        end(),
    ]]);
    let (summary, events) = world.run(options()).await;
    assert_eq!(summary.unwrap().ending, Ending::Done);
    assert_eq!(world.effects(), Vec::<String>::new());
    let codes: Vec<Code> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::ToolResult { result, verdict, .. } => {
                assert_eq!(*verdict, CallVerdict::Invalid);
                result.error().map(|error| error.code)
            }
            _ => None,
        })
        .collect();
    assert_eq!(codes, [Code::Validation, Code::Validation, Code::NotFound]);
    let results = last_results(&world.requests()[1]);
    assert!(results[0].1.contains("they break at line 2, column 7"), "{}", results[0].1);
    assert!(results[1].1.contains("give the JSON object itself"), "{}", results[1].1);
    assert!(results.iter().all(|(_, _, is_error)| *is_error));
    // The router leaves the record of the first; a tool that would take any text is not even called.
    let made: Vec<String> = world.made.lock().unwrap().iter().map(|(call, _)| call.id.clone()).collect();
    assert_eq!(made, ["r1.1", "r1.3"]);
    world.requests().iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_slow_reader_sees_everything_in_order() {
    const TURNS: u64 = 20;
    const PIECES: u64 = 20;
    let turn = |turn: u64| -> Vec<StreamEvent> {
        let mut events: Vec<StreamEvent> =
            (0..PIECES).map(|piece| text(&format!("{turn}.{piece} "))).collect();
        // The first of the reads is the slowest.
        events.extend((0..5).map(|one| call("look", "same", json!({ "slow": 10 - 2 * one, "one": one }))));
        events.push(end());
        events
    };
    let world = Fixture::said((0..TURNS).map(turn).collect());
    let (sender, mut receiver) = mpsc::channel(1);
    let (_handle, signal) = StopSignal::new();
    let reader = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            for _ in 0..events.len() % 5 {
                tokio::task::yield_now().await;
            }
            events.push(event);
        }
        events
    };
    let (summary, events) = tokio::join!(run(options(), world.ports(), sender, signal), reader);
    assert_eq!(summary.unwrap().calls, TURNS * 5);
    let mut expected = vec!["session".to_owned()];
    for turn in 0..TURNS {
        let step = turn + 1;
        expected.push(format!("step {step}"));
        expected.extend((0..PIECES).map(|piece| format!("text {turn}.{piece} ")));
        expected.extend((1..=5).map(|one| format!("call r{step}.{one}")));
        expected.extend((1..=5).map(|one| format!("result r{step}.{one} allowed")));
    }
    expected.extend([format!("step {}", TURNS + 1), "text the end".to_owned()]);
    assert_eq!(names(&events), expected);
    assert_eq!(world.most_reads_at_once.load(std::sync::atomic::Ordering::SeqCst), 5, "reads run together");
    world.requests().iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_session_goes_on_when_nobody_listens() {
    let world = Fixture::said(vec![vec![text("hello"), call("change", "c1", json!({})), end()]]);
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let (_handle, signal) = StopSignal::new();
    let summary = run(options(), world.ports(), sender, signal).await.unwrap();
    assert_eq!((summary.ending, summary.calls), (Ending::Done, 1));
    assert_eq!(*world.state.lock().unwrap(), TddState::Idle);
}
