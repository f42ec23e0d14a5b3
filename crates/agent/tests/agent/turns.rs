//! What the model says, and what the loop makes of it.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tgp_agent::{AgentEvent, Ending, LineKind, TestCount};
use tgp_contract::{Block, Code, Root, StopReason, StreamEvent, ToolName};

use crate::support::*;

fn notices(events: &[AgentEvent]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Notice { message } => Some(message.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_cut_answer_goes_on_and_silence_is_met_once() {
    let cut = || StreamEvent::End { reason: Some(StopReason::Length) };
    let opaque = || StreamEvent::Opaque { provider: "scripted".to_owned(), value: json!({ "thought": 1 }) };
    let world = World::said(vec![
        vec![text("half of it"), cut()],
        vec![opaque(), text("  \n"), end()],
        vec![call("look", "a", json!({})), end()],
        vec![end()],
        vec![opaque(), end()],
    ]);
    let (summary, events) = world.run(options()).await;
    let summary = summary.unwrap();
    assert_eq!((summary.ending, summary.answer.as_str(), summary.steps), (Ending::Done, "half of it", 5));
    assert_eq!(notices(&events), ["the model said nothing twice, so the session ends here"]);
    let requests = world.requests();
    assert!(last_text(&requests[1]).contains("cut off"));
    assert!(last_text(&requests[2]).contains("you said nothing"));
    assert!(last_text(&requests[4]).contains("you said nothing"));
    // A thought without a word is not sent back, and every message has something in it.
    requests.iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_refusal_to_answer_is_for_the_user() {
    let refusal = StreamEvent::End { reason: Some(StopReason::Refusal) };
    let world = World::said(vec![vec![text("I would rather not."), refusal]]);
    let summary = world.run(options()).await.0.unwrap();
    let Ending::NeedsUser { error } = summary.ending else { panic!("it needs the user") };
    assert_eq!(error.code, Code::Provider);
    assert_eq!(world.resume(resumption()).await.0.unwrap_err().code, Code::Validation);
    let options = tgp_agent::ResumeOptions { message: Some("please".to_owned()), ..resumption() };
    assert_eq!(world.resume(options).await.0.unwrap().ending, Ending::Done);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn what_the_model_said_goes_back_in_its_order() {
    let opaque = |thought: u64| StreamEvent::Opaque {
        provider: "scripted".to_owned(),
        value: json!({ "thought": thought }),
    };
    let world = World::said(vec![vec![
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
        // An alias is no name that a provider takes, so the tool's own stands there.
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
async fn ids_that_repeat_or_are_empty_are_made_unique() {
    let world = World::said(vec![
        vec![call("look", "x", json!({})), call("look", "x", json!({})), call("look", "", json!({})), end()],
        vec![
            call("look", "x", json!({})),
            call("look", "call_r2_1", json!({})),
            call("look", &"y".repeat(500), json!({})),
            end(),
        ],
        vec![
            call("look", "", json!({})),
            call("look", "call_r3_1", json!({})),
            call("a b\u{1F600}", "x", json!({})),
            end(),
        ],
    ]);
    world.run(options()).await.0.unwrap();
    world.requests().iter().for_each(check_request);
    let lines = world.lines();
    let ids: Vec<(&str, &str)> = lines
        .iter()
        .filter_map(|line| match &line.kind {
            LineKind::Call { id, call_id, .. } => Some((id.as_str(), call_id.as_str())),
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
    let world = World::said(vec![events]);
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
    let world = World::said(vec![events]);
    assert_eq!(world.run(options()).await.0.unwrap().calls, 64);
    assert_eq!(world.effects().len(), 64);
    assert!(last_text(&world.requests()[1]).contains("the last 6 of your 70 were not made"));
    world.requests().iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn values_that_are_nested_too_deeply_do_no_harm() {
    let deep = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({ "in": inner }));
    let world = World::said(vec![vec![call("look", "", deep(60)), call("change", "", deep(120)), end()]]);
    let summary = world.run(options()).await.0.unwrap();
    assert_eq!((summary.ending, summary.failed), (Ending::Done, 1));
    assert_eq!(world.effects(), Vec::<String>::new(), "it is a text now, and refused as one");
    assert_same(&world.lines()).await;
    let opaque = StreamEvent::Opaque { provider: "scripted".to_owned(), value: deep(120) };
    let world = World::said(vec![vec![opaque, end()]]);
    let Ending::NeedsUser { error } = world.run(options()).await.0.unwrap().ending else {
        panic!("it fails")
    };
    assert!(error.message.contains("nested too deeply"));
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn results_that_no_line_can_hold_are_cut_and_counted() {
    let world = World::said(vec![vec![
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
    let LineKind::Result { result, .. } = &lines[4].kind else { panic!("the first result") };
    assert!(result.data().unwrap()["cut"].as_str().unwrap().starts_with("6000"), "{result:?}");
    assert_same(&lines).await;
}

#[tokio::test]
async fn the_summary_says_what_records_show() {
    let write =
        |path: &str, before: Option<&str>| call("write_file", "", json!({ "path": path, "before": before }));
    let exec = |path: &str| call("exec_tool", "", json!({ "path": path }));
    let world = World::said(vec![
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
    assert_eq!(summary.tests, Some(TestCount { runs: 2, passed: 3, failed: 0 }));
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
