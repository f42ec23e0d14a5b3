//! What the model says, and what the loop makes of it.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tgp_agent::{
    AgentEvent, AgentLimits, AgentOptions, Ending, ResumeOptions, TestCount, TranscriptLineKind,
};
use tgp_contract::{Block, Code, Root, StopReason, StreamEvent, ToolName};

use crate::support::*;

/// The answer reached its limit.
fn cut() -> StreamEvent {
    StreamEvent::End { reason: Some(StopReason::Length) }
}

#[tokio::test]
async fn a_cut_answer_goes_on_and_two_silences_are_for_the_user() {
    let opaque = || StreamEvent::Opaque { provider: "scripted".to_owned(), value: json!({ "thought": 1 }) };
    let world = Fixture::said(vec![
        vec![text("half of it"), cut()],
        vec![opaque(), text("  \n"), end()],
        vec![call("look", "a", json!({})), end()],
        vec![end()],
        vec![opaque(), end()],
    ]);
    let (summary, events) = world.run(options()).await;
    let summary = summary.unwrap();
    assert_eq!((summary.answer.as_str(), summary.steps), ("half of it", 5));
    let Ending::NeedsUser { error } = summary.ending else { panic!("nothing was done") };
    assert_eq!((error.code, error.message.as_str()), (Code::Provider, "the model said nothing twice"));
    assert!(error.help_of().unwrap().contains("tgp run --resume s1"));
    assert!(matches!(events.last(), Some(AgentEvent::Error { .. })));
    let requests = world.requests();
    assert!(last_text(&requests[1]).contains("cut off"));
    assert!(last_text(&requests[2]).contains("you said nothing"));
    assert!(last_text(&requests[4]).contains("you said nothing"));
    // A thought without text is not sent back, and every message has something in it.
    requests.iter().for_each(check_request);
    assert_same(&world.lines()).await;
    // A user who has fixed what was wrong with the model just resumes.
    assert_eq!(world.resume(resumption()).await.0.unwrap().answer, "the end");
    world.requests().iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn three_cut_answers_without_a_call_are_for_the_user() {
    let half = || vec![text("a long story"), cut()];
    let thought = || vec![cut()];
    let broken = |id: &str| vec![call("change", id, json!("{\"path\": \"a")), cut()];
    let made = || vec![call("look", "", json!({})), cut()];
    // A session that has made a call in between continues.
    let fine = Fixture::said(vec![half(), broken(""), made(), thought(), half(), vec![text("done"), end()]]);
    assert_eq!(fine.run(options()).await.0.unwrap().ending, Ending::Done);
    assert!(last_text(&fine.requests()[3]).contains("cut off at its limit after these calls"));
    assert_same(&fine.lines()).await;
    for turns in [vec![half(), half(), half()], vec![thought(), broken("a"), broken("b")]] {
        let world = Fixture::said(turns);
        let small = AgentLimits { max_output_tokens: Some(64), ..limits() };
        let summary = world.run(AgentOptions { limits: small, ..options() }).await.0.unwrap();
        let Ending::NeedsUser { error } = summary.ending else { panic!("it does not get on") };
        assert_eq!((error.code, summary.steps), (Code::Config, 3));
        assert!(error.message.contains("3 times in a row"), "{error:?}");
        assert!(error.help_of().unwrap().contains("raise llm.maxOutputTokens (64)"), "{error:?}");
        assert_eq!(world.effects(), Vec::<String>::new());
        assert_same(&world.lines()).await;
        // With a larger one it continues, without another message.
        let larger = AgentLimits { max_output_tokens: Some(4096), ..limits() };
        let summary = world.resume(ResumeOptions { limits: larger, ..resumption() }).await.0.unwrap();
        assert_eq!(summary.ending, Ending::Done);
        let requests = world.requests();
        assert_eq!(requests[3].max_output_tokens, Some(4096));
        requests.iter().for_each(check_request);
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn a_call_that_was_cut_says_so_and_its_text_stands_there_once() {
    let raw = format!("{{\"path\": \"a\", \"content\": \"MARK{}", "x".repeat(50_000));
    let world =
        Fixture::said(vec![vec![call("look", "a", json!({})), call("change", "b", json!(raw)), cut()]]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, world.effects().len()), (Ending::Done, 0));
    let request = &world.requests()[1];
    check_request(request);
    let results = last_results(request);
    let first = results[1].1.lines().next().unwrap();
    assert!(first.starts_with("not executed: your answer was cut off at its output limit"), "{first}");
    assert!(first.contains("incomplete") && results[1].2, "{first}");
    assert!(!results[0].1.contains("not executed"));
    let all = serde_json::to_string(&request.messages).unwrap();
    assert_eq!(all.matches("MARK").count(), 1, "{all}");
    assert!(all.len() < 5_000, "{}", all.len());
    assert!(all.contains("bytes are left out here"));
    // The record and the line have all of it.
    assert_eq!(world.made.lock().unwrap()[1].0.arguments, json!(raw));
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_call_that_was_denied_or_refused_is_not_executed() {
    let world = Fixture::said(vec![vec![
        call("change", "a", json!({ "deny": 1 })),
        call("change", "b", json!({ "refuse": 1 })),
        call("change", "c", json!({ "unapplied": 1 })),
        call("no_such", "d", json!({})),
        call("fail", "e", json!({ "code": "ESQL" })),
        end(),
    ]]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.refused, summary.failed), (3, 2));
    let results = last_results(&world.requests()[1]);
    let first: Vec<&str> = results.iter().map(|(_, content, _)| content.lines().next().unwrap()).collect();
    assert_eq!(first[0], "not executed: a gate denied this call");
    assert_eq!(first[1], "not executed: this call was refused before it began");
    // It ran, so it would be wrong to say that it did not.
    assert!(first[2].starts_with("rolled back: this call ran"), "{}", first[2]);
    assert_eq!(world.effects(), ["r1.3"]);
    assert_eq!(first[3], "not executed: this call is not valid");
    assert!(first[4].starts_with(r#"{"ok":false,"#), "{}", first[4]);
    assert!(results[0].1.contains("a rule forbids it"));
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn what_the_loop_says_itself_names_no_command() {
    let broken = |id: &str| call("change", id, json!("{"));
    let world = Fixture::said(vec![
        vec![text("half"), cut()],
        vec![end()],
        vec![broken("a"), call("look", "", json!({})), cut()],
        vec![
            broken("b"),
            call("change", "", json!({ "deny": 1 })),
            call("change", "", json!({ "state": "red" })),
            end(),
        ],
        vec![call("fail", "", json!({})), call("fail", "", json!({})), cut()],
    ]);
    let few = tgp_agent::Budgets { max_steps: 6, ..budgets() };
    assert_eq!(world.run(AgentOptions { budgets: few, ..options() }).await.0.unwrap().ending, Ending::Done);
    for request in world.requests() {
        let all = serde_json::to_string(&request.messages).unwrap();
        assert!(!all.contains("tgp"), "{all}");
    }
}

#[tokio::test]
async fn a_refusal_to_answer_is_for_the_user() {
    let refusal = StreamEvent::End { reason: Some(StopReason::Refusal) };
    let world = Fixture::said(vec![vec![text("I would rather not."), refusal]]);
    let summary = world.run(options()).await.0.unwrap();
    let Ending::NeedsUser { error } = summary.ending else { panic!("it needs the user") };
    assert_eq!(error.code, Code::Provider);
    assert_eq!(world.resume(resumption()).await.0.unwrap_err().code, Code::Validation);
    let options = ResumeOptions { message: Some("please".to_owned()), ..resumption() };
    assert_eq!(world.resume(options).await.0.unwrap().ending, Ending::Done);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn what_the_model_said_goes_back_in_its_order() {
    let opaque = |thought: u64| StreamEvent::Opaque {
        provider: "scripted".to_owned(),
        value: json!({ "thought": thought }),
    };
    let world = Fixture::said(vec![vec![
        opaque(1),
        text("one "),
        text("piece"),
        opaque(2),
        call("eye.look", "toolu_1", json!({ "b": 1.5, "a": [1e300, -0.0] })),
        text("between"),
        call("look", "toolu_2", json!({})),
        end(),
    ]]);
    world.run(options()).await.0.unwrap();
    let said = &world.requests()[1].messages[1].blocks;
    let expected = [
        Block::Opaque { provider: "scripted".to_owned(), value: json!({ "thought": 1 }) },
        Block::Text { text: "one piece".to_owned() },
        Block::Opaque { provider: "scripted".to_owned(), value: json!({ "thought": 2 }) },
        // An alias is not a name that a provider takes, so the tool's own name is there.
        Block::ToolCall {
            call_id: "toolu_1".to_owned(),
            tool_name: "look".to_owned(),
            arguments: json!({ "b": 1.5, "a": [1e300, -0.0] }),
        },
        Block::Text { text: "between".to_owned() },
        Block::ToolCall { call_id: "toolu_2".to_owned(), tool_name: "look".to_owned(), arguments: json!({}) },
    ];
    assert_eq!(said[..], expected);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn ids_that_repeat_are_empty_or_too_long_are_replaced() {
    let longest = "z".repeat(40);
    let world = Fixture::said(vec![
        vec![call("look", "x", json!({})), call("look", "x", json!({})), call("look", "", json!({})), end()],
        vec![
            call("look", "x", json!({})),
            call("look", "call_r2_1", json!({})),
            call("look", &"y".repeat(41), json!({})),
            end(),
        ],
        vec![
            call("look", "", json!({})),
            call("look", "call_r3_1", json!({})),
            call("a b\u{1F600}", "x", json!({})),
            call("look", &longest, json!({})),
            end(),
        ],
    ]);
    world.run(options()).await.0.unwrap();
    world.requests().iter().for_each(check_request);
    let lines = world.lines();
    let ids: Vec<(&str, &str)> = lines
        .iter()
        .filter_map(|line| match &line.kind {
            TranscriptLineKind::Call { id, call_id, .. } => Some((id.as_str(), call_id.as_str())),
            _ => None,
        })
        .collect();
    let expected = [
        ("r1.1", "x"),
        ("r1.2", "call_r1_2"),
        ("r1.3", "call_r1_3"),
        ("r2.1", "call_r2_1"),
        ("r2.2", "call_r2_2"),
        ("r2.3", "call_r2_3"),
        ("r3.1", "call_r3_1"),
        ("r3.2", "call_r3_2"),
        ("r3.3", "call_r3_3"),
        ("r3.4", &longest),
    ];
    assert_eq!(ids, expected);
    assert!(ToolName::new("a b\u{1F600}").is_err());
    assert_same(&lines).await;
}

#[tokio::test]
async fn reads_run_together_but_never_past_a_change() {
    let look = |slow: u64| call("look", "", json!({ "slow": slow }));
    let change = || call("change", "", json!({}));
    let mut events: Vec<StreamEvent> = (0..20).map(|one| look(20 - one)).collect();
    events.extend([change(), look(1), change(), change(), look(3), look(0), end()]);
    let world = Fixture::said(vec![events]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!(summary.calls, 26);
    assert_eq!(world.most_reads_at_once.load(Ordering::SeqCst), 8);
    let seen: Vec<u64> = last_results(&world.requests()[1])
        .iter()
        .filter_map(|(_, content, _)| {
            serde_json::from_str::<Value>(content).unwrap()["data"]["effects"].as_u64()
        })
        .collect();
    assert_eq!(seen, [vec![0; 20], vec![1, 3, 3]].concat());
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_turn_of_too_many_calls_makes_the_first_of_them() {
    let events = (0..70).map(|_| call("change", "", json!({}))).chain([end()]).collect();
    let world = Fixture::said(vec![events]);
    assert_eq!(world.run(options()).await.0.unwrap().calls, 64);
    assert_eq!(world.effects().len(), 64);
    assert!(last_text(&world.requests()[1]).contains("the last 6 of your 70 were not made"));
    world.requests().iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn values_that_are_nested_too_deeply_do_no_harm() {
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "in": inner }));
    let world = Fixture::said(vec![vec![call("look", "", deep(60)), call("change", "", deep(120)), end()]]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, summary.failed), (Ending::Done, 1));
    assert_eq!(world.effects(), Vec::<String>::new(), "it is a text now, and refused as one");
    assert_same(&world.lines()).await;
    let opaque = StreamEvent::Opaque { provider: "scripted".to_owned(), value: deep(120) };
    let world = Fixture::said(vec![vec![opaque, end()]]);
    let Ending::NeedsUser { error } = world.run(options()).await.0.unwrap().ending else {
        panic!("it fails")
    };
    assert!(error.message.contains("nested too deeply"));
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn results_that_no_line_can_hold_are_cut_and_counted() {
    let world = Fixture::said(vec![vec![
        call("look", "", json!({ "size": 6_000_000 })),
        call("fail", "", json!({ "long": 5_000_000, "code": "ESQL" })),
        call("change", "", json!({ "files": 12_000 })),
        end(),
    ]]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, summary.failed), (Ending::Done, 1));
    assert_eq!((summary.files.len(), summary.files_omitted), (1_000, 11_000));
    let lines = world.lines();
    assert!(lines.iter().all(|line| line.encode().len() < 5 << 20));
    let TranscriptLineKind::Result { result, .. } = &lines[4].kind else { panic!("the first result") };
    assert!(result.data().unwrap()["cut"].as_str().unwrap().starts_with("6000"), "{result:?}");
    assert_same(&lines).await;
}

#[tokio::test]
async fn files_of_a_line_are_bounded_by_their_bytes() {
    const MANY: u64 = 9_000;
    let world = Fixture::said(vec![vec![call("change", "", json!({ "files": MANY, "wide": 200 })), end()]]);
    let summary = world.run(options()).await.0.unwrap();
    let lines = world.lines();
    let TranscriptLineKind::Result { files, files_omitted, .. } = &lines[3].kind else {
        panic!("the result")
    };
    assert!(*files_omitted > 0 && files.len() as u64 + files_omitted == MANY, "{files_omitted}");
    let bytes = lines[3].encode().len();
    assert!(((1 << 20) - 1_000..(1 << 20) + 1_000).contains(&bytes), "{bytes}");
    assert_eq!(summary.files.len() as u64 + summary.files_omitted, MANY);
    assert_same(&lines).await;
}

#[tokio::test]
async fn calls_beyond_the_bound_are_told_to_the_person() {
    for (calls, told) in [(64, None), (70, Some("wanted 70 calls at once; the last 6 were not made"))] {
        let turn = (0..calls).map(|_| call("look", "", json!({}))).chain([end()]).collect();
        let world = Fixture::said(vec![turn]);
        let (summary, events) = world.run(options()).await;
        assert_eq!(summary.unwrap().calls, 64);
        let notices: Vec<&String> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Notice { message } => Some(message),
                _ => None,
            })
            .collect();
        assert_eq!(notices.len(), usize::from(told.is_some()), "{notices:?}");
        assert!(told.is_none_or(|told| notices[0].contains(told)), "{notices:?}");
    }
}

#[tokio::test]
async fn a_test_run_without_a_result_is_no_result() {
    let none = json!({ "passed": null, "failed": null });
    let outcome =
        |word: &str| json!({ "passed": 2, "failed": 0, "ended": "exit", "state": { "outcome": word } });
    let mut late = none.clone();
    late["ended"] = json!("deadline");
    let mut unclear = none.clone();
    unclear["state"] = json!({ "outcome": "inconclusive" });
    let cases = [
        (late, (0, 0, true)),
        (unclear, (0, 0, true)),
        (outcome("stale"), (2, 0, true)),
        (outcome("passed"), (2, 0, false)),
        (outcome("failed"), (2, 0, false)),
    ];
    for (answer, (passed, failed, inconclusive)) in cases {
        // What the run before it said is not what the last one says.
        let world = Fixture::said(vec![
            vec![call("test_run", "", json!({ "ended": "deadline", "failed": 7 })), end()],
            vec![call("test_run", "", answer), end()],
        ]);
        let summary = world.run(options()).await.0.unwrap();
        assert_eq!(summary.tests, Some(TestCount { runs: 2, passed, failed, inconclusive }));
        let json = serde_json::to_value(summary.tests).unwrap();
        assert_eq!(json.get("inconclusive").is_some(), inconclusive);
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn the_summary_says_what_records_show() {
    let write =
        |path: &str, before: Option<&str>| call("write_file", "", json!({ "path": path, "before": before }));
    let exec = |path: &str| call("exec_tool", "", json!({ "path": path }));
    let world = Fixture::said(vec![
        vec![
            write("tools/new.ts", None),
            write("tools/new.test.ts", None),
            write("tools/types.d.ts", None),
            write("tools/old.ts", Some("bb")),
            write("notes/new.ts", None),
            call("change", "", json!({ "path": "tools/not_a_tool.ts" })),
            end(),
        ],
        vec![
            exec("tools/new.ts"),
            exec("./tools/other.ts"),
            call("exec_tool", "", json!({ "path": "tools/denied.ts", "deny": 1 })),
            call("test_run", "", json!({ "failed": 2 })),
            call("test_run", "", json!({ "failed": 0 })),
            text("I also forged tools/imagined.ts."),
            end(),
        ],
    ]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!(summary.forged, ["tools/new.ts"]);
    assert_eq!(summary.reused, ["tools/other.ts"]);
    assert_eq!(summary.tests, Some(TestCount { runs: 2, passed: 3, failed: 0, inconclusive: false }));
    assert_eq!((summary.calls, summary.refused, summary.failed), (11, 1, 0));
    let files: Vec<(Root, &str, bool)> =
        summary.files.iter().map(|file| (file.root, file.path.as_str(), file.created)).collect();
    let expected = [
        (Root::Tools, "notes/new.ts", true),
        (Root::Tools, "tools/new.test.ts", true),
        (Root::Tools, "tools/new.ts", true),
        (Root::Tools, "tools/old.ts", false),
        (Root::Tools, "tools/types.d.ts", true),
        (Root::Project, "tools/not_a_tool.ts", true),
    ];
    assert_eq!(files, expected);
    assert!(summary.audit.is_none(), "the audit is somebody else's");
}
