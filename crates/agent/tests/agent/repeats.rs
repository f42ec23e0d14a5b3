//! Answers that break off before they have an effect: discarded, told, and asked for again, within bounds.

use serde_json::json;
use tgp_agent::{
    AgentEvent, AgentLimits, AgentOptions, Budgets, Ending, Prices, TranscriptLine, TranscriptLineKind,
    TurnEnding,
};
use tgp_contract::{Code, REPEATABLE_DETAIL, StreamEvent, ToolError, Usage};

use crate::support::*;

fn cut() -> Vec<StreamEvent> {
    let error = ToolError::new(Code::Provider, "the connection was closed").detail(REPEATABLE_DETAIL, true);
    vec![text("I would"), call("change", "a", json!({})), StreamEvent::Error { error }]
}

fn whole() -> Vec<StreamEvent> {
    vec![text("I do"), call("change", "a", json!({})), end()]
}

fn endings(lines: &[TranscriptLine]) -> Vec<&TurnEnding> {
    let mut found = Vec::new();
    for line in lines {
        if let TranscriptLineKind::Turn { ending, .. } = &line.kind {
            found.push(ending);
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn bug_an_answer_that_breaks_off_is_discarded_and_asked_for_again() {
    let world = Fixture::new(vec![Play::Again(vec![cut(), cut(), whole()])]);
    let (summary, events) = world.run(options()).await;
    let summary = summary.unwrap();
    assert_eq!((&summary.ending, summary.steps, summary.calls), (&Ending::Done, 2, 1));
    // The call of the broken answers was not made, and the same was asked each time.
    assert_eq!(world.effects(), ["r1.1"]);
    let requests = world.requests();
    assert_eq!((&requests[0], requests.len()), (&requests[2], 4));
    let lines = world.lines();
    let [
        TurnEnding::Discarded { .. },
        TurnEnding::Discarded { .. },
        TurnEnding::Complete,
        TurnEnding::Complete,
    ] = endings(&lines)[..]
    else {
        panic!("{lines:?}")
    };
    assert_same(&lines).await;
    // A reader of the events drops what it has shown since the last step.
    let mut shown = String::new();
    let mut said = Vec::new();
    for event in &events {
        match event {
            AgentEvent::Step { .. } => said.push(std::mem::take(&mut shown)),
            AgentEvent::Text { value } => shown.push_str(value),
            AgentEvent::Discarded { step, message } => {
                assert_eq!((*step, shown.as_str()), (1, "I would"));
                assert!(
                    message.contains("the connection was closed") && message.contains("of 4"),
                    "{message}"
                );
                shown.clear();
            }
            _ => {}
        }
    }
    assert_eq!((said.join("|"), shown.as_str()), ("|||I do".to_owned(), "the end"));
}

#[tokio::test(start_paused = true)]
async fn what_breaks_off_again_and_again_is_for_the_user() {
    let world = Fixture::new(vec![Play::Again(vec![cut()])]);
    let summary = world.run(options()).await.0.unwrap();
    let Ending::NeedsUser { error } = &summary.ending else { panic!("{summary:?}") };
    assert!(error.message.contains("the connection was closed"), "{error:?}");
    assert_eq!((world.requests().len(), summary.steps, world.effects().len()), (4, 0, 0));
    // What the broken answers have used counts.
    assert!(summary.usage.output_tokens > 0 && summary.usage_estimated);
    assert_same(&world.lines()).await;
    // Another run has its own attempts.
    world.resume(resumption()).await.0.unwrap();
    assert_eq!(world.requests().len(), 8);
    assert_same(&world.lines()).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_that_does_not_allow_it_is_not_repeated() {
    let error = ToolError::new(Code::Provider, "overloaded").detail("retryable", true);
    let world = Fixture::new(vec![Play::Events(vec![text("well"), StreamEvent::Error { error }])]);
    let summary = world.run(options()).await.0.unwrap();
    assert!(matches!(summary.ending, Ending::NeedsUser { .. }), "{summary:?}");
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_and_a_bound_end_the_pause() {
    let world = Fixture::new(vec![Play::Again(vec![cut(), whole()])]);
    *world.wish_at_turn.lock().unwrap() = Some(0);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, world.effects().len()), (Ending::Interrupted, 0));
    assert_same(&world.lines()).await;

    // The clock of the fixture moves on by ten seconds a line, so that the discarded turn has used them up.
    let world = Fixture::new(vec![Play::Again(vec![cut(), whole()])]);
    world.clock_step.store(10_000, std::sync::atomic::Ordering::SeqCst);
    let budgets = Budgets { max_seconds: Some(10), ..budgets() };
    let summary = world.run(AgentOptions { budgets, ..options() }).await.0.unwrap();
    assert!(matches!(summary.ending, Ending::Budget { .. }), "{summary:?}");
    assert_eq!(world.effects().len(), 0);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn bug_cached_tokens_are_priced_as_cached() {
    let used =
        Usage { input_tokens: 6000, output_tokens: 0, cached_input_tokens: 5000, cache_write_tokens: 100 };
    let prices = |cached_input, cache_write| Prices { input: 3.0, output: 15.0, cached_input, cache_write };
    for (prices, cost) in [
        (prices(None, None), 0.018),
        (prices(Some(0.3), None), 0.003 + 0.0015),
        (prices(Some(0.3), Some(3.75)), 0.0027 + 0.0015 + 0.000_375),
        (prices(Some(0.0), Some(0.0)), 0.0027),
    ] {
        let world = Fixture::said(vec![vec![text("done"), StreamEvent::Usage(used), end()]]);
        let limits = AgentLimits { prices: Some(prices), ..limits() };
        let summary = world.run(AgentOptions { limits, ..options() }).await.0.unwrap();
        let found = summary.cost.unwrap();
        assert!((found - cost).abs() < 1e-9, "{prices:?}: {found}");
        assert_eq!(summary.usage, used);
        assert_same(&world.lines()).await;
    }
    // More of it cached than was read.
    let odd =
        Usage { input_tokens: 10, cached_input_tokens: u64::MAX, cache_write_tokens: 7, ..Usage::default() };
    let world = Fixture::said(vec![vec![text("done"), StreamEvent::Usage(odd), end()]]);
    let limits = AgentLimits { prices: Some(prices(Some(1.0), Some(1.0))), ..limits() };
    let summary = world.run(AgentOptions { limits, ..options() }).await.0.unwrap();
    assert!((summary.cost.unwrap() - 0.000_01).abs() < 1e-12, "{summary:?}");
}
