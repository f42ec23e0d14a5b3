//! A stop request: after the call, in the middle of a turn, at once; and resuming from there.

use serde_json::json;
use tgp_agent::{AgentEvent, Ending, StopLevel, TranscriptLineKind, TurnEnding};
use tgp_contract::StreamEvent;

use crate::support::*;

fn script() -> Vec<Vec<StreamEvent>> {
    vec![
        vec![
            call("look", "a", json!({})),
            call("change", "b", json!({})),
            call("change", "c", json!({})),
            call("look", "d", json!({})),
            end(),
        ],
        vec![text("done"), end()],
    ]
}

fn results(world: &Fixture) -> Vec<(String, String)> {
    let lines = world.lines();
    let result = |kind: &TranscriptLineKind| match kind {
        TranscriptLineKind::Result { id, verdict, .. } => Some((id.clone(), verdict.to_string())),
        _ => None,
    };
    lines.iter().filter_map(|line| result(&line.kind)).collect()
}

fn wish_at(world: &Fixture, call: &str, wish: StopLevel, hangs: bool) {
    *world.wish_at.lock().unwrap() = Some(WishAt { call: call.to_owned(), wish, hangs });
}

#[tokio::test]
async fn after_the_call_means_that_it_ends_and_nothing_more_begins() {
    let world = Fixture::said(script());
    wish_at(&world, "r1.2", StopLevel::AfterCall, false);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, summary.calls), (Ending::Interrupted, 2));
    assert_eq!(world.effects(), ["r1.2"]);
    assert_same(&world.lines()).await;
    // A user who resumes wants the rest of the turn too.
    let summary = world.resume(resumption()).await.0.unwrap();
    assert_eq!((summary.ending, summary.calls), (Ending::Done, 4));
    assert_eq!(world.effects(), ["r1.2", "r1.3"]);
    assert_eq!(world.requests().len(), 2);
    world.requests().iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn at_once_cancels_the_call_and_says_so() {
    let world = Fixture::said(script());
    wish_at(&world, "r1.2", StopLevel::Now, true);
    let (summary, events) = world.run(options()).await;
    assert_eq!(summary.unwrap().ending, Ending::Interrupted);
    assert_eq!(results(&world)[1], ("r1.2".to_owned(), "cancelled".to_owned()));
    assert!(events.iter().any(
        |event| matches!(event, AgentEvent::ToolResult { verdict, .. } if *verdict == tgp_contract::CallVerdict::Cancelled)
    ));
    assert_same(&world.lines()).await;
    let summary = world.resume(resumption()).await.0.unwrap();
    assert_eq!(summary.ending, Ending::Done);
    // The cancelled call is the model's to make again.
    assert_eq!(world.effects(), ["r1.3"]);
    assert!(last_results(&world.requests()[1])[1].1.contains("the user stopped the session"));
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn at_once_cancels_all_reads_that_run_and_keeps_what_has_ended() {
    let calls = (0..12).map(|one| call("look", "", json!({ "one": one })));
    let world = Fixture::said(vec![calls.chain([end()]).collect()]);
    wish_at(&world, "r1.3", StopLevel::Now, true);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!(summary.ending, Ending::Interrupted);
    let verdicts: Vec<String> = results(&world).into_iter().map(|(_, verdict)| verdict).collect();
    // Eight run at once, and only the third had not ended.
    let expected: Vec<&str> = (1..=8).map(|one| if one == 3 { "cancelled" } else { "allowed" }).collect();
    assert_eq!(verdicts, expected);
    assert_same(&world.lines()).await;
    assert_eq!(world.resume(resumption()).await.0.unwrap().calls, 12);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_model_that_talks_is_cut_off_and_asked_again_later() {
    let mut world =
        Fixture::new(vec![Play::Hang(vec![text("I was about to "), call("change", "a", json!({}))])]);
    *world.wish_at_turn.lock().unwrap() = Some(0);
    let (summary, _) = world.run(options()).await;
    assert_eq!(summary.unwrap().ending, Ending::Interrupted);
    let lines = world.lines();
    assert!(matches!(&lines[1].kind, TranscriptLineKind::Turn { ending: TurnEnding::Interrupted, .. }));
    assert_eq!(world.effects(), Vec::<String>::new(), "a turn that was cut makes no call");
    assert_same(&lines).await;
    *world.wish_at_turn.lock().unwrap() = None;
    world.plays = vec![Play::Events(vec![text("done"), end()])];
    assert_eq!(world.resume(resumption()).await.0.unwrap().ending, Ending::Done);
    let requests = world.requests();
    assert_eq!(requests[0], requests[1], "it is asked the same again");
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn what_is_kept_of_a_cut_turn_is_what_was_shown() {
    let pieces: Vec<StreamEvent> = (0..50).map(|piece| text(&format!("{piece} "))).collect();
    let world = Fixture::new(vec![Play::Hang(pieces)]);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let (handle, signal) = tgp_agent::StopSignal::new();
    let reader = async {
        let mut shown = String::new();
        let mut count = 0;
        while let Some(event) = receiver.recv().await {
            if let AgentEvent::Text { value } = event {
                shown.push_str(&value);
                count += 1;
                if count == 20 {
                    handle.request(StopLevel::AfterCall);
                }
            }
        }
        shown
    };
    let (summary, shown) = tokio::join!(tgp_agent::run(options(), world.ports(), sender, signal), reader);
    assert_eq!(summary.unwrap().ending, Ending::Interrupted);
    let lines = world.lines();
    let TranscriptLineKind::Turn { events, .. } = &lines[1].kind else { panic!("a turn") };
    assert_eq!(events[..], [text(&shown)]);
    assert!(shown.starts_with("0 1 2 "));
    assert_same(&lines).await;
}

#[tokio::test]
async fn a_wish_that_comes_before_the_call_is_made_keeps_it_from_happening() {
    let world = Fixture::said(vec![vec![call("change", "a", json!({})), end()]]);
    // The reader requests the stop when it gets the call's event, and the loop waits for the reader.
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    let (handle, signal) = tgp_agent::StopSignal::new();
    let reader = async {
        while let Some(event) = receiver.recv().await {
            if matches!(event, AgentEvent::Step { .. }) {
                // The room for the line of the call is taken until this one is read.
                while world.lines().len() < 3 {
                    tokio::task::yield_now().await;
                }
                handle.request(StopLevel::Now);
            }
        }
    };
    let (summary, ()) = tokio::join!(tgp_agent::run(options(), world.ports(), sender, signal), reader);
    assert_eq!(summary.unwrap().ending, Ending::Interrupted);
    assert_eq!(world.effects(), Vec::<String>::new());
    assert_eq!(results(&world), [("r1.1".to_owned(), "cancelled".to_owned())]);
    assert_same(&world.lines()).await;
}
