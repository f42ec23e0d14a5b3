//! Errors: who is given which, and how often the same one is met.

use serde_json::{Value, json};
use tgp_agent::{Ending, TranscriptLineKind, TurnEnding};
use tgp_contract::{Code, StreamEvent, ToolError};

use crate::support::*;

/// What a call can come to. Written down once more, so that a code that moves is noticed.
const FOR_THE_MODEL: [Code; 21] = [
    Code::Validation,
    Code::State,
    Code::Policy,
    Code::Approval,
    Code::Permission,
    Code::Security,
    Code::Capability,
    Code::Compile,
    Code::IsolateMemory,
    Code::IsolateTimeout,
    Code::Runtime,
    Code::NotFound,
    Code::Conflict,
    Code::Git,
    Code::Sql,
    Code::Fetch,
    Code::Upstream,
    Code::Pin,
    // An embedding server, a database, a transcript: not the session's own.
    Code::Provider,
    Code::Budget,
    Code::Config,
];
const FOR_NOBODY: [Code; 3] = [Code::Halt, Code::Integrity, Code::Internal];

#[tokio::test]
async fn every_code_of_a_call_has_one_way() {
    assert_eq!(FOR_THE_MODEL.len() + FOR_NOBODY.len(), Code::ALL.len());
    for &code in Code::ALL {
        let fail = call("fail", "a", json!({ "code": code.as_str(), "why": "so" }));
        let world = Fixture::said(vec![vec![fail, call("change", "b", json!({})), end()]]);
        let summary = world.run(options()).await.0.unwrap();
        match summary.ending {
            Ending::Done => {
                assert!(FOR_THE_MODEL.contains(&code), "{code}");
                let result = &last_results(&world.requests()[1])[0].1;
                for part in [code.as_str(), "it failed: so", "try something else"] {
                    assert!(result.contains(part), "{result}");
                }
            }
            Ending::Broken { error } => assert!(FOR_NOBODY.contains(&code) && error.code == code, "{code}"),
            other => panic!("{code}: {other:?}"),
        }
        assert_same(&world.lines()).await;
        // What stopped can be resumed: the failing call keeps its result, the next one is made.
        if !FOR_THE_MODEL.contains(&code) {
            assert_eq!(world.effects(), Vec::<String>::new());
            assert_eq!(world.resume(resumption()).await.0.unwrap().ending, Ending::Done);
            assert_same(&world.lines()).await;
        }
        assert_eq!(world.effects(), ["r1.2"]);
    }
}

#[tokio::test]
async fn work_that_a_person_halted_is_theirs_to_lift() {
    let halted = call("fail", "a", json!({ "code": "ESTATE", "state": "halted" }));
    let world = Fixture::said(vec![vec![halted, call("change", "b", json!({})), end()]]);
    let Ending::NeedsUser { error } = world.run(options()).await.0.unwrap().ending else {
        panic!("the user's")
    };
    assert_eq!((error.code, world.effects().len()), (Code::State, 0));
    assert_same(&world.lines()).await;
}

fn failing(arguments: Value) -> Vec<StreamEvent> {
    vec![call("fail", "", arguments), end()]
}

#[tokio::test]
async fn the_same_failure_three_times_ends_the_attempt() {
    // The same arguments in another order are the same.
    let script = vec![
        failing(json!({ "code": "ESQL", "why": "no table" })),
        failing(json!({ "why": "no table", "code": "ESQL" })),
        failing(json!({ "code": "ESQL", "why": "no table" })),
        failing(json!({ "code": "ESQL", "why": "no table" })),
    ];
    let world = Fixture::said(script);
    let summary = world.run(options()).await.0.unwrap();
    let Ending::Stuck { error } = summary.ending else { panic!("it is stuck") };
    assert_eq!((error.code, summary.steps), (Code::Sql, 3));
    for part in ["`fail`", "3 times", "it failed: no table"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert_eq!((error.details["attempts"].clone(), error.details["call"].clone()), (json!(3), json!("r3.1")));
    let warned: Vec<bool> = world
        .requests()
        .iter()
        .skip(1)
        .map(|request| last_results(request)[0].1.contains("failed twice"))
        .collect();
    assert_eq!(warned, [false, true]);
    assert_same(&world.lines()).await;
    // Resuming gives it three more.
    assert_eq!(world.resume(resumption()).await.0.unwrap().ending, Ending::Done);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_success_another_code_and_other_arguments_are_not_the_same_failure() {
    let fine = |why: &str| vec![call("look", "", json!({ "why": why })), end()];
    let denied = || vec![call("look", "", json!({ "why": "a", "deny": 1 })), end()];
    let world = Fixture::said(vec![
        failing(json!({ "code": "ESQL", "why": "1" })),
        failing(json!({ "code": "ESQL", "why": "1" })),
        failing(json!({ "code": "ESQL", "why": "2" })),
        failing(json!({ "code": "EGIT", "why": "1" })),
        // An integer that has no canonical form is compared by its digits, and stops nothing.
        failing(json!({ "code": "ESQL", "why": 9_007_199_254_740_993_u64 })),
        failing(json!({ "code": "ESQL", "why": 9_007_199_254_740_992_u64 })),
        failing(json!({ "code": "ESQL", "why": 9_007_199_254_740_993_u64 })),
        fine("a"),
        denied(),
        denied(),
    ]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, summary.failed, summary.refused), (Ending::Done, 7, 2));
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_call_that_has_succeeded_may_fail_twice_again() {
    let script = |each: u64| (0..8).map(|_| failing(json!({ "code": "ESQL", "each": each }))).collect();
    let world = Fixture::said(script(3));
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, summary.failed), (Ending::Done, 6));
    let world = Fixture::said(script(4));
    assert!(matches!(world.run(options()).await.0.unwrap().ending, Ending::Stuck { .. }));
}

#[tokio::test]
async fn every_code_of_a_turn_stops_the_session() {
    for &code in Code::ALL {
        let world = Fixture::new(vec![Play::Refuse(ToolError::new(code, "no turn"))]);
        match world.run(options()).await.0.unwrap().ending {
            Ending::NeedsUser { error } => {
                assert!(FOR_THE_MODEL.contains(&code) && error.code == code, "{code}");
                assert!(error.help_of().unwrap().contains("tgp run --resume s1"));
            }
            Ending::Broken { error } => assert!(FOR_NOBODY.contains(&code) && error.code == code, "{code}"),
            other => panic!("{code}: {other:?}"),
        }
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn a_turn_that_fails_is_the_users_and_makes_no_call() {
    let refusal = ToolError::new(Code::Provider, "the key is wrong").help("set the key");
    let midway = StreamEvent::Error { error: ToolError::new(Code::Provider, "overloaded") };
    let broken = StreamEvent::Error { error: ToolError::new(Code::Integrity, "no trust") };
    let change = || call("change", "a", json!({}));
    let cases = [
        (Play::Refuse(refusal), "the key is wrong"),
        (Play::Events(vec![text("well"), change(), midway, change(), end()]), "overloaded"),
        (Play::Events(vec![text("well"), change()]), "stopped without its end"),
        (Play::Events(vec![text(&"x".repeat(9 << 20)), change(), end()]), "bytes in one turn"),
        (Play::Events(vec![broken]), "no trust"),
    ];
    for (play, message) in cases {
        let mut world = Fixture::new(vec![play]);
        let summary = world.run(options()).await.0.unwrap();
        let (Ending::NeedsUser { error } | Ending::Broken { error }) = &summary.ending else {
            panic!("{summary:?}")
        };
        assert!(error.message.contains(message), "{error:?}");
        assert!(error.help_of().unwrap().ends_with("`tgp run --resume s1`"), "{error:?}");
        assert_eq!(error.code == Code::Integrity, matches!(summary.ending, Ending::Broken { .. }));
        assert_eq!((summary.steps, world.effects().len()), (0, 0));
        let lines = world.lines();
        assert!(matches!(&lines[1].kind, TranscriptLineKind::Turn { ending: TurnEnding::Failed { .. }, .. }));
        assert_same(&lines).await;
        world.plays = vec![Play::Events(vec![text("now it works"), end()])];
        assert_eq!(world.resume(resumption()).await.0.unwrap().answer, "now it works");
        let requests = world.requests();
        assert_eq!(requests[0], requests[1]);
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn a_journal_that_fails_ends_the_run_before_the_effect() {
    let world = Fixture::said(vec![vec![call("change", "a", json!({})), end()]]);
    // The session and the turn are written; the line of the call is not.
    world.kill_after(2);
    let error = world.run(options()).await.0.unwrap_err();
    assert_eq!(error.code, Code::Internal);
    assert_eq!(world.effects(), Vec::<String>::new());
}
