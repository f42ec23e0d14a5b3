//! Bounds: each stops the session cleanly, says what was used, and how to continue.

use std::sync::atomic::Ordering;

use serde_json::json;
use tgp_agent::{
    AgentEvent, AgentLimits, Budgets, Ending, Prices, ResumeOptions, TranscriptLineKind, TurnEnding,
};
use tgp_contract::{Code, StreamEvent, ToolError};

use crate::support::*;

fn looks(count: usize) -> Vec<Vec<StreamEvent>> {
    let turn = |one: usize| vec![call("look", "", json!({ "one": one })), usage(100, 50), end()];
    (0..count).map(turn).collect()
}

fn budget_error(ending: Ending, bound: &str) -> ToolError {
    let Ending::Budget { error } = ending else { panic!("{ending:?}") };
    assert_eq!((error.code, error.details["bound"].as_str()), (Code::Budget, Some(bound)));
    error
}

#[tokio::test]
async fn each_bound_stops_cleanly_and_a_larger_one_goes_on() {
    let cases = [
        ("steps", Budgets { max_steps: 3, ..budgets() }, 3, "used 3 of 3 steps", "--max-steps 6"),
        (
            "tokens",
            Budgets { max_tokens: Some(300), ..budgets() },
            2,
            "used 300 of 300 tokens",
            "--max-tokens 600",
        ),
        (
            "seconds",
            Budgets { max_seconds: Some(5), ..budgets() },
            2,
            "used 6 of 5 seconds",
            "--max-seconds 12",
        ),
        (
            "cost",
            Budgets { max_cost: Some(0.002), ..budgets() },
            3,
            "cost 0.0024 of 0.0020",
            "--max-cost 0.004",
        ),
    ];
    for (bound, budgets, steps, used, help) in cases {
        let world = Fixture::said(looks(10));
        // Three lines a step: each second step takes five seconds and more.
        world.clock_step.store(1000, Ordering::SeqCst);
        // 100 in at 3 and 50 out at 10 are 0.0008 a step.
        let limits = AgentLimits {
            prices: Some(Prices { input: 3.0, output: 10.0, ..Prices::default() }),
            ..limits()
        };
        let summary = world.run(tgp_agent::AgentOptions { budgets, limits, ..options() }).await.0.unwrap();
        let error = budget_error(summary.ending, bound);
        assert!(error.message.contains(used), "{}", error.message);
        assert!(error.help_of().unwrap().ends_with(&format!("`tgp run --resume s1 {help}`")), "{error:?}");
        assert_eq!(summary.steps, steps, "{bound}");
        assert_same(&world.lines()).await;
        // With the same bounds it stops at once, with larger ones it continues to its end.
        let again = world.resume(ResumeOptions { budgets, limits, ..resumption() }).await.0.unwrap();
        budget_error(again.ending, bound);
        assert_eq!(again.steps, steps);
        assert_eq!(world.resume(resumption()).await.0.unwrap().ending, Ending::Done);
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn time_between_two_runs_does_not_count_and_a_clock_that_falls_back_does_no_harm() {
    let world = Fixture::said(looks(4));
    world.clock_step.store(100, Ordering::SeqCst);
    let few = Budgets { max_steps: 2, ..budgets() };
    let first = world.run(tgp_agent::AgentOptions { budgets: few, ..options() }).await.0.unwrap();
    assert_eq!(first.duration_ms, 700);
    world.clock.fetch_add(1_000_000_000, Ordering::SeqCst);
    let bounds = Budgets { max_seconds: Some(10), ..few };
    let second = world.resume(ResumeOptions { budgets: bounds, ..resumption() }).await.0.unwrap();
    assert_eq!(second.duration_ms, 800);
    world.clock.store(5, Ordering::SeqCst);
    let third = world.resume(resumption()).await.0.unwrap();
    assert_eq!(third.ending, Ending::Done);
    assert!(third.duration_ms < 2000, "{}", third.duration_ms);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_turn_that_hangs_ends_with_the_sessions_time() {
    let world = Fixture::new(vec![
        Play::Events(vec![call("change", "", json!({})), end()]),
        Play::Hang(vec![text("hm"), call("change", "", json!({}))]),
    ]);
    // By the lines' clock all but two milliseconds of the second are used when the second turn begins.
    world.clock_step.store(333, Ordering::SeqCst);
    world.clock.store(1, Ordering::SeqCst);
    let bounds = Budgets { max_seconds: Some(1), ..budgets() };
    let summary = world.run(tgp_agent::AgentOptions { budgets: bounds, ..options() }).await.0.unwrap();
    budget_error(summary.ending, "seconds");
    assert_eq!(world.effects(), ["r1.1"]);
    let lines = world.lines();
    let cut = &lines[lines.len() - 2].kind;
    assert!(matches!(cut, TranscriptLineKind::Turn { ending: TurnEnding::OutOfTime, .. }), "{cut:?}");
    assert_same(&lines).await;
}

#[tokio::test]
async fn a_bound_that_is_reached_by_a_turn_stops_before_its_calls_and_they_are_made_later() {
    let turn = vec![call("change", "a", json!({})), usage(400, 100), end()];
    let world = Fixture::said(vec![turn]);
    let bounds = Budgets { max_tokens: Some(500), ..budgets() };
    let summary = world.run(tgp_agent::AgentOptions { budgets: bounds, ..options() }).await.0.unwrap();
    budget_error(summary.ending, "tokens");
    assert_eq!(world.effects(), Vec::<String>::new());
    assert_eq!(world.resume(resumption()).await.0.unwrap().ending, Ending::Done);
    assert_eq!(world.effects(), ["r1.1"]);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn the_model_is_told_when_its_steps_run_out() {
    let world = Fixture::said(looks(10));
    let bounds = Budgets { max_steps: 5, ..budgets() };
    world.run(tgp_agent::AgentOptions { budgets: bounds, ..options() }).await.0.unwrap();
    let told: Vec<String> = world.requests().iter().map(last_text).collect();
    assert!(told[1].is_empty(), "{told:?}");
    assert!(told[2].contains("3 steps are left") && told[3].contains("2 steps are left"), "{told:?}");
    assert!(told[4].contains("this is the last step"), "{told:?}");
}

#[tokio::test]
async fn tokens_are_estimated_where_a_provider_does_not_count() {
    let turn = |one: usize| vec![call("look", "", json!({ "one": one, "size": 4000 })), end()];
    let world = Fixture::said((0..10).map(turn).collect());
    let bounds = Budgets { max_tokens: Some(6000), ..budgets() };
    let summary = world.run(tgp_agent::AgentOptions { budgets: bounds, ..options() }).await.0.unwrap();
    budget_error(summary.ending, "tokens");
    assert!(summary.steps > 2 && summary.steps < 6, "{}", summary.steps);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn options_that_cannot_be_right_are_refused_before_anything_is_written() {
    let world = Fixture::said(Vec::new());
    let cases = [
        tgp_agent::AgentOptions { task: " \n".to_owned(), ..options() },
        tgp_agent::AgentOptions { task: "x".repeat(2 << 20), ..options() },
        tgp_agent::AgentOptions { limits: context(10), ..options() },
        tgp_agent::AgentOptions {
            limits: AgentLimits {
                prices: Some(Prices { input: f64::NAN, output: 1.0, ..Prices::default() }),
                ..limits()
            },
            ..options()
        },
        tgp_agent::AgentOptions { budgets: Budgets { max_cost: Some(-1.0), ..budgets() }, ..options() },
    ];
    for wrong in cases {
        let error = world.run(wrong).await.0.unwrap_err();
        assert!(matches!(error.code, Code::Validation | Code::Config) && error.help_of().is_some());
    }
    assert!(world.lines().is_empty() && world.requests().is_empty());
}

#[tokio::test]
async fn what_is_left_of_a_budget_bounds_an_answer() {
    let prices = Some(Prices { input: 3.0, output: 10.0, ..Prices::default() });
    let tokens = |most: u64| Budgets { max_tokens: Some(most), ..budgets() };
    let cost = |most: f64| Budgets { max_cost: Some(most), ..budgets() };
    // A turn takes 150 tokens and costs 0.0008, which is the price of 80 tokens of output.
    let cases = [
        (budgets(), None, [None; 3]),
        (budgets(), Some(500), [Some(500); 3]),
        (tokens(400), Some(300), [Some(300), Some(250), Some(100)]),
        (tokens(400), None, [Some(400), Some(250), Some(100)]),
        // A model may not have so many, so its own limit applies until it has.
        (tokens(4_300), None, [None, None, Some(4_000)]),
        (tokens(10_000), Some(9_900), [Some(9_900), Some(9_850), Some(9_700)]),
        (cost(0.001_705), Some(1_000), [Some(170), Some(90), Some(10)]),
        (Budgets { max_tokens: Some(301), ..cost(0.1) }, None, [Some(301), Some(151), Some(1)]),
        // What is left is less than a token costs.
        (cost(0.001_600_1), None, [Some(160), Some(80), Some(1)]),
    ];
    for (bounds, configured, expected) in cases {
        let world = Fixture::said(looks(10));
        let limits = AgentLimits { prices, max_output_tokens: configured, ..limits() };
        world.run(tgp_agent::AgentOptions { budgets: bounds, limits, ..options() }).await.0.unwrap();
        let asked: Vec<Option<u64>> =
            world.requests().iter().take(3).map(|request| request.max_output_tokens).collect();
        assert_eq!(asked, expected, "{bounds:?} {configured:?}");
        assert_same(&world.lines()).await;
    }
    // What costs nothing is not bounded by its cost.
    let world = Fixture::said(looks(1));
    let limits =
        AgentLimits { prices: Some(Prices { input: 3.0, output: 0.0, ..Prices::default() }), ..limits() };
    world.run(tgp_agent::AgentOptions { budgets: cost(0.01), limits, ..options() }).await.0.unwrap();
    assert_eq!(world.requests()[0].max_output_tokens, None);
}

#[tokio::test]
async fn a_session_that_is_done_over_its_bounds_says_so() {
    let prices = Some(Prices { input: 3.0, output: 10.0, ..Prices::default() });
    let bounds =
        |tokens: u64, cost: f64| Budgets { max_tokens: Some(tokens), max_cost: Some(cost), ..budgets() };
    // 400 in and 200 out are 600 tokens, and cost 0.0032.
    let cases = [
        (bounds(600, 0.0032), None),
        (bounds(500, 1.0), Some("over its bounds: 600 of 500 tokens")),
        (bounds(599, 0.003), Some("600 of 599 tokens, 0.0032 of 0.0030 in cost")),
    ];
    for (bounds, told) in cases {
        let world = Fixture::said(vec![vec![text("done"), usage(400, 200), end()]]);
        let limits = AgentLimits { prices, ..limits() };
        let (summary, events) =
            world.run(tgp_agent::AgentOptions { budgets: bounds, limits, ..options() }).await;
        assert_eq!(summary.unwrap().ending, Ending::Done);
        let notices: Vec<&String> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Notice { message } => Some(message),
                _ => None,
            })
            .collect();
        assert_eq!(notices.len(), usize::from(told.is_some()), "{notices:?}");
        assert!(told.is_none_or(|told| notices[0].ends_with(told)), "{notices:?}");
    }
}
