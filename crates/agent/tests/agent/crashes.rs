//! A session that is killed at any point can be resumed, and no effect happens twice.

use std::sync::atomic::Ordering;

use serde_json::json;
use tgp_agent::{Ending, RecoveredOutcome, ResumeOptions, TranscriptLine, TranscriptLineKind};
use tgp_contract::{CallVerdict, Code, StopReason, StreamEvent, ToolError};

use crate::support::*;

/// Reads, changes, errors, a cut answer, an empty turn, a state that moves, and ids that repeat.
fn long_script() -> Vec<Vec<StreamEvent>> {
    let opaque = StreamEvent::Opaque { provider: "scripted".to_owned(), value: json!({ "signature": "x" }) };
    let cut = StreamEvent::End { reason: Some(StopReason::Length) };
    vec![
        vec![
            text("First I "),
            text("look."),
            call("look", "a", json!({})),
            call("look", "a", json!({ "slow": 3 })),
            end(),
        ],
        vec![
            opaque,
            call("look", "b", json!({ "slow": 2 })),
            call("change", "", json!({ "state": "test_written" })),
            call("look", "c", json!({})),
            call("look", "d", json!({})),
            call("change", "e", json!({ "state": "red" })),
            call("change", "f", json!({ "deny": true })),
            usage(321, 12),
            end(),
        ],
        vec![text("a long answer that is cu"), cut],
        vec![end()],
        vec![
            call("fail", "g", json!({ "code": "ECOMPILE" })),
            call("change", "h", json!({ "state": "code_allowed" })),
            call("fail", "i", json!({ "code": "ECOMPILE" })),
            call("change", "j", json!("no json")),
            end(),
        ],
        vec![
            call("write_file", "k", json!({ "path": "tools/x.ts" })),
            call("test_run", "l", json!({ "failed": 0 })),
            end(),
        ],
        vec![text("It is done."), usage(999, 3), end()],
    ]
}

const CHANGES: [&str; 4] = ["r2.2", "r2.5", "r5.2", "r6.1"];

fn ending_of(lines: &[TranscriptLine]) -> Option<&Ending> {
    match lines.last().map(|line| &line.kind) {
        Some(TranscriptLineKind::Stop { summary }) => Some(&summary.ending),
        _ => None,
    }
}

#[tokio::test]
async fn after_a_kill_at_every_line_each_effect_happens_once() {
    let whole = Fixture::said(long_script());
    let summary = whole.run(options()).await.0.unwrap();
    let count = whole.lines().len();
    assert!(count > 30, "{count}");
    for killed in 1..=count {
        let world = Fixture::said(long_script());
        world.kill_after(killed);
        let first = world.run(options()).await.0;
        assert_eq!(first.is_err(), killed < count);
        assert_eq!(world.lines().len(), killed);
        world.kill_after(usize::MAX);
        let (second, _) = world.resume(resumption()).await;
        if killed == count {
            // It had said that it is done.
            assert_eq!(second.unwrap_err().code, Code::Validation);
            continue;
        }
        let second = second.unwrap();
        assert_eq!(second.ending, Ending::Done, "killed after {killed}");
        assert_eq!(world.effects(), CHANGES, "killed after {killed}");
        assert_eq!((second.calls, &second.answer), (summary.calls, &summary.answer), "killed after {killed}");
        assert_eq!(
            (second.refused, second.failed),
            (summary.refused, summary.failed),
            "killed after {killed}"
        );
        // The file that a call has changed is known from its record, if not from its result.
        assert_eq!(second.files, summary.files, "killed after {killed}");
        world.requests().iter().for_each(check_request);
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn a_session_that_is_killed_again_and_again_still_ends() {
    for step in 1..=3 {
        let world = Fixture::said(long_script());
        world.kill_after(step);
        assert!(world.run(options()).await.0.is_err());
        let mut lives = 1;
        while ending_of(&world.lines()) != Some(&Ending::Done) {
            // Each life writes the line that resumes, and one to three more.
            world.kill_after(world.lines().len() + 1 + step);
            let _ = world.resume(resumption()).await.0;
            lives += 1;
            assert!(lives < 100, "it makes no progress");
        }
        assert_eq!(world.effects(), CHANGES);
        assert!(lives > 5);
        world.requests().iter().for_each(check_request);
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn a_process_that_dies_in_a_call_leaves_at_most_one_effect() {
    for call in ["r2.2", "r2.5", "r5.2"] {
        for death in [Death::BeforeTheEffect, Death::BeforeTheRecord, Death::AfterTheRecord] {
            let world = Fixture::said(long_script());
            *world.death.lock().unwrap() = Some((call.to_owned(), death));
            world.run_until_death(options()).await;
            let asked = world.requests().len();
            let summary = world.resume(resumption()).await.0.unwrap();
            assert_eq!(summary.ending, Ending::Done);
            let expected: Vec<&str> =
                CHANGES.into_iter().filter(|one| *one != call || death != Death::BeforeTheEffect).collect();
            assert_eq!(world.effects(), expected, "{call} {death:?}");
            let results = last_results(&world.requests()[asked]);
            let told = results.iter().any(|(_, content, is_error)| {
                if death == Death::AfterTheRecord {
                    content.contains("its answer is lost, and this is its record") && !is_error
                } else {
                    content.contains("what it has done is not known") && *is_error
                }
            });
            assert!(told, "{call} {death:?}: {results:?}");
            let lines = world.lines();
            let of_call = |line: &&TranscriptLine| matches!(&line.kind, TranscriptLineKind::Result { id, .. } if id == call);
            let found: Vec<&TranscriptLine> = lines.iter().filter(of_call).collect();
            assert!(
                matches!(&found[..], [TranscriptLine { kind: TranscriptLineKind::Result { verdict, .. }, .. }] if *verdict == CallVerdict::Recovered)
            );
            assert_same(&lines).await;
        }
    }
}

#[tokio::test]
async fn the_summary_names_calls_whose_fate_is_unknown() {
    const DEATHS: usize = 103;
    let turn = |one: usize| vec![call("change", "", json!({ "path": format!("f/{one}.txt") })), end()];
    let world = Fixture::said((1..=DEATHS + 2).map(turn).collect());
    let plan = |step: usize, death: Death| {
        *world.death.lock().unwrap() = Some((format!("r{step}.1"), death));
    };
    plan(1, Death::BeforeTheRecord);
    world.run_until_death(options()).await;
    for step in 2..=DEATHS {
        plan(step, Death::BeforeTheEffect);
        tokio::select! {
            ended = world.resume(resumption()) => panic!("it should have died: {:?}", ended.0),
            () = world.died.notified() => {}
        }
    }
    // What left its record is known.
    plan(DEATHS + 1, Death::AfterTheRecord);
    tokio::select! {
        ended = world.resume(resumption()) => panic!("it should have died: {:?}", ended.0),
        () = world.died.notified() => {}
    }
    let summary = world.resume(resumption()).await.0.unwrap();
    assert_eq!((summary.ending, summary.failed, summary.calls), (Ending::Done, 0, DEATHS as u64 + 2));
    assert_eq!(summary.unknown.len(), 101);
    assert_eq!(summary.unknown[..2], ["r1.1 change f/1.txt", "r2.1 change f/2.txt"]);
    assert_eq!(summary.unknown[100], "and 3 more");
    assert_same(&world.lines()).await;
    // Where there is none, nothing is said.
    let whole = Fixture::said(long_script());
    let summary = whole.run(options()).await.0.unwrap();
    assert!(summary.unknown.is_empty() && !serde_json::to_string(&summary).unwrap().contains("unknown"));
}

#[tokio::test]
async fn what_went_wrong_in_a_killed_run_is_told_and_ends_nothing() {
    let world = Fixture::said(long_script());
    *world.death.lock().unwrap() = Some(("r2.2".to_owned(), Death::BeforeTheEffect));
    world.run_until_death(options()).await;
    let outcome =
        json!({ "ok": false, "errorCode": "EHALT", "message": "an invariant is broken", "files": [] });
    let entry = json!({ "auditEntry": 9, "verdict": "allowed", "outcome": outcome });
    world.records.lock().unwrap().insert("r2.2".to_owned(), entry);
    let asked = world.requests().len();
    // The user who resumes has checked it; the model only has to be informed.
    assert_eq!(world.resume(resumption()).await.0.unwrap().ending, Ending::Done);
    let (_, content, is_error) = last_results(&world.requests()[asked]).swap_remove(1);
    assert!(is_error && content.contains("EHALT") && content.contains("an invariant is broken"), "{content}");
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_session_that_was_killed_asks_what_an_unbroken_one_asks() {
    // Small, so that results are shortened and turns summarised on the way; counted, so that the estimate moves.
    let turn = |one: u64| {
        let look = call("look", "same", json!({ "path": format!("src/{one}.rs"), "size": 1_200 }));
        let fail = call("fail", "", json!({ "code": "ESQL", "why": one.to_string() }));
        vec![text("hm"), look, fail, end()]
    };
    let script: Vec<Vec<StreamEvent>> = (0..30).map(turn).collect();
    let small = || tgp_agent::AgentOptions { limits: context(6_000), ..options() };
    let counted = || {
        let world = Fixture::said(script.clone());
        world.tokens_a_thousand_bytes.store(400, Ordering::SeqCst);
        world
    };
    let whole = counted();
    assert_eq!(whole.run(small()).await.0.unwrap().ending, Ending::Done);
    let unbroken = whole.requests();
    assert!(serde_json::to_string(&unbroken[29]).unwrap().contains("Earlier steps are no longer shown"));
    for killed in (2..whole.lines().len()).step_by(13) {
        let world = counted();
        world.kill_after(killed);
        assert!(world.run(small()).await.0.is_err());
        world.kill_after(usize::MAX);
        world.resume(tgp_agent::ResumeOptions { limits: context(6_000), ..resumption() }).await.0.unwrap();
        for request in world.requests() {
            assert_eq!(request, unbroken[usize::try_from(request.turn).unwrap()], "killed after {killed}");
        }
        assert_same(&world.lines()).await;
    }
}

#[tokio::test]
async fn reads_are_made_again_and_their_results_stay_in_order() {
    let world = Fixture::said(long_script());
    // The two calls of the first turn are begun, and the first has its result.
    world.kill_after(5);
    assert!(world.run(options()).await.0.is_err());
    world.kill_after(usize::MAX);
    world.resume(resumption()).await.0.unwrap();
    let made: Vec<String> =
        world.made.lock().unwrap().iter().map(|(call, _)| call.id.clone()).take(3).collect();
    assert_eq!(made, ["r1.1", "r1.2", "r1.2"]);
    let begun = world
        .lines()
        .iter()
        .filter(|line| matches!(&line.kind, TranscriptLineKind::Call { id, .. } if id == "r1.2"))
        .count();
    assert_eq!(begun, 1, "one call has one line");
}

#[tokio::test]
async fn records_that_cannot_be_read_stop_the_session_before_anything_happens() {
    struct Damaged<'a>(&'a Fixture);
    #[async_trait::async_trait]
    impl tgp_agent::Recovery for Damaged<'_> {
        async fn fate(&self, _session: &str, _call: &str) -> Result<RecoveredOutcome, ToolError> {
            Err(ToolError::new(Code::Integrity, "the audit is damaged").help("run `tgp audit verify`"))
        }
    }
    let world = Fixture::said(long_script());
    *world.death.lock().unwrap() = Some(("r2.2".to_owned(), Death::BeforeTheRecord));
    world.run_until_death(options()).await;
    let damaged = Damaged(&world);
    assert_eq!(damaged.0.effects(), ["r2.2"]);
    let (sender, receiver) = tokio::sync::mpsc::channel(4);
    let (_handle, signal) = tgp_agent::StopSignal::new();
    let ports = tgp_agent::AgentPorts { recovery: &damaged, ..world.ports() };
    let session = tgp_agent::resume(world.lines(), resumption(), ports, sender, signal);
    let (summary, _) = tokio::join!(session, collect(receiver));
    let summary = summary.unwrap();
    let Ending::Broken { error } = summary.ending else { panic!("it is broken") };
    assert_eq!(error.code, Code::Integrity);
    assert_eq!(summary.unknown, ["r2.2 change"], "nobody has looked it up yet");
    assert_eq!(world.effects(), ["r2.2"]);
    assert_same(&world.lines()).await;
    // Once they can be read again, it continues; that call left no record, so it stays unknown.
    let summary = world.resume(resumption()).await.0.unwrap();
    assert_eq!((summary.ending, summary.unknown), (Ending::Done, vec!["r2.2 change".to_owned()]));
    assert_eq!(world.effects(), CHANGES);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn a_done_session_takes_a_message_and_another_model() {
    let world = Fixture::said(vec![vec![text("done"), end()], vec![call("look", "a", json!({})), end()]]);
    world.run(options()).await.0.unwrap();
    let refused = world.resume(resumption()).await.0.unwrap_err();
    assert_eq!(refused.code, Code::Validation);
    assert!(refused.help_of().unwrap().contains("tgp run --resume s1"));
    let before = world.lines().len();
    let options = ResumeOptions {
        message: Some("and now the other thing".to_owned()),
        model: Some("m2".to_owned()),
        ..resumption()
    };
    let summary = world.resume(options).await.0.unwrap();
    assert_eq!((summary.ending, summary.steps), (Ending::Done, 3));
    let request = &world.requests()[1];
    assert_eq!((request.model.as_str(), last_text(request).as_str()), ("m2", "and now the other thing"));
    assert!(matches!(&world.lines()[before].kind, TranscriptLineKind::Resumed { message: Some(_), .. }));
    world.requests().iter().for_each(check_request);
    assert_same(&world.lines()).await;
}

#[tokio::test]
async fn lines_that_are_no_transcript_are_refused() {
    let world = Fixture::said(long_script());
    world.run(options()).await.0.unwrap();
    let good = world.lines();
    let at = |kind: fn(&TranscriptLineKind) -> bool| good.iter().position(|line| kind(&line.kind)).unwrap();
    let turn = at(|kind| matches!(kind, TranscriptLineKind::Turn { .. }));
    let call = at(|kind| matches!(kind, TranscriptLineKind::Call { .. }));
    let result = at(|kind| matches!(kind, TranscriptLineKind::Result { .. }));
    type Damage = Box<dyn Fn(&mut Vec<TranscriptLine>)>;
    let damages: Vec<(&str, Damage)> = vec![
        ("no first line", Box::new(|lines| drop(lines.remove(0)))),
        ("a gap", Box::new(move |lines| drop(lines.remove(turn)))),
        ("a result without a call", Box::new(move |lines| lines[call].kind = lines[result].kind.clone())),
        ("a call without a turn", Box::new(move |lines| lines[turn].kind = lines[call].kind.clone())),
        ("a second beginning", Box::new(|lines| lines[3].kind = lines[0].kind.clone())),
        ("a turn in the middle of calls", Box::new(move |lines| lines[call].kind = lines[turn].kind.clone())),
    ];
    for (name, damage) in damages {
        let mut lines = good.clone();
        damage(&mut lines);
        *world.lines.lock().unwrap() = lines;
        let made = world.made.lock().unwrap().len();
        let error = world.resume(resumption()).await.0.unwrap_err();
        assert_eq!(error.code, Code::Integrity, "{name}");
        assert_eq!(world.made.lock().unwrap().len(), made, "{name}");
    }
    *world.lines.lock().unwrap() = Vec::new();
    assert_eq!(world.resume(resumption()).await.0.unwrap_err().code, Code::NotFound);
}
