//! Actions: at most once, one after the other, and never in circles.

use std::path::Path;

use serde_json::json;
use tgp_contract::{ChronicleEvent, Code, FileEffect, Root, ToolError};
use tgp_valve::{ACTION_EVENT, Action, ActionFailure, ActionReport, ActionState, Trigger, ValveEvent};

use crate::support::{World, at, hash};

fn outcomes(events: &[ChronicleEvent]) -> Vec<&ChronicleEvent> {
    events.iter().filter(|event| event.kind == ACTION_EVENT).collect()
}

/// Writes a file as an action does, and reports it.
fn effect(project: &Path, path: &str, content: &str) -> FileEffect {
    let before = std::fs::read(project.join(path)).ok().map(hash);
    std::fs::write(project.join(path), content).unwrap();
    FileEffect::new(Root::Project, at(path), before, Some(hash(content)))
}

fn report(files: Vec<FileEffect>) -> Result<ActionReport, ActionFailure> {
    Ok(ActionReport { summary: format!("{} files", files.len()), files })
}

const FORMATTER: &str = "
personas:
  - name: formatter
    filters: ['*.ts']
    action: {tool: tools/format.ts, args: {width: 100}}
";

#[tokio::test]
async fn an_action_is_carried_out_once_and_its_outcome_told() {
    let world = World::new(FORMATTER);
    world.act(Box::new(|_, _, trigger| match trigger.file_path.as_str() {
        "bad.ts" => Err(ToolError::new(Code::Compile, "does not parse").help("fix it").into()),
        "panic.ts" => panic!("an action that breaks off"),
        _ => report(Vec::new()),
    }));
    world.scan().await;
    for name in ["good.ts", "bad.ts", "panic.ts", "not.rs"] {
        world.write(name, name);
    }
    let scanned = world.scan().await;
    assert_eq!((scanned.actions_done, scanned.actions_failed, scanned.triggered), (1, 2, 3));
    let calls = world.script.calls.lock().unwrap().clone();
    assert_eq!(calls.len(), 3);
    let expected = Action::Tool {
        path: "tools/format.ts".to_owned(),
        args: json!({ "width": 100 }).as_object().unwrap().clone(),
    };
    assert!(calls.iter().all(|(action, trigger)| *action == expected && trigger.depth == 0));
    let events = world.events("bad.ts.sage").await;
    assert_eq!(events.len(), 2);
    let outcome = serde_json::to_value(&events[1].fields).unwrap();
    let sequence = events[1].fields["sequence"].clone();
    let expected = json!({
        "persona": "formatter", "trigger": events[0].event_id, "ok": false, "code": "ECOMPILE",
        "message": "does not parse", "sequence": sequence,
    });
    assert_eq!(outcome, expected);
    assert_eq!(world.events("good.ts.sage").await[1].fields["ok"], true);
    assert_eq!(world.events("panic.ts.sage").await[1].fields["code"], "EINTERNAL");
    world.scan().await;
    assert_eq!(world.calls().len(), 3);
    let status = world.status();
    assert_eq!((status.done_actions, status.pending_actions, status.unfinished.len()), (1, 0, 2));
}

#[tokio::test]
async fn a_persona_does_not_wake_itself() {
    // Whatever it is given, the formatter writes something new into the same file.
    let world = World::new(FORMATTER);
    let write = |project: &Path, _: &Action, trigger: &Trigger| {
        report(vec![effect(project, trigger.file_path.as_str(), &format!("formatted {}", trigger.sequence))])
    };
    world.act(Box::new(write));
    world.scan().await;
    world.write("a.ts", "raw");
    world.scan().await;
    let scanned = world.scan().await;
    assert_eq!((scanned.triggered, scanned.changes), (1, 1));
    assert_eq!(world.scan().await.changes, 0);
    assert_eq!(world.calls(), ["formatter a.ts"]);
    let last = world.events("a.ts.sage").await.pop().unwrap();
    assert_eq!(last.fields["causedBy"], "formatter");
    // A person who edits it afterwards wakes it again.
    world.write("a.ts", "raw again");
    world.scan().await;
    assert_eq!(world.calls().len(), 2);

    // The same while it watches, where the change may be seen before the action has ended.
    let mut watch = world.watch();
    watch.started().await;
    world.write("b.ts", "raw");
    let caused = |event: &ValveEvent| {
        matches!(event, ValveEvent::Triggered { event, .. }
            if event.file_path.as_deref() == Some("b.ts") && event.fields.contains_key("causedBy"))
    };
    watch.until("the change by the action", caused).await;
    watch.end().await;
    assert_eq!(world.calls().iter().filter(|call| call.ends_with("b.ts")).count(), 1);
}

#[tokio::test]
async fn a_failing_action_that_says_what_it_changed_does_not_wake_itself() {
    let world = World::new(FORMATTER);
    world.act(Box::new(|project, _, trigger| {
        let file = effect(project, trigger.file_path.as_str(), "half done");
        let error = ToolError::new(Code::Budget, "out of steps").help("give it more");
        Err(ActionFailure { files: vec![file], ..error.into() })
    }));
    world.scan().await;
    world.write("a.ts", "raw");
    for _ in 0..4 {
        world.scan().await;
    }
    assert_eq!(world.calls().len(), 1);
}

#[tokio::test]
async fn a_chain_of_personas_ends() {
    let personas = "
personas:
  - {name: ping, filters: [ball], action: {query: queries/ping.aql, name: Ping, inputs: {force: 1}}}
  - {name: pong, filters: [ball], action: {agent: {prompt: return it, tools: [fs_write], max_steps: 3}}}
";
    let world = World::new(personas);
    world.act(Box::new(|project, _, trigger| {
        report(vec![effect(project, "ball", &format!("{} {}", trigger.persona, trigger.sequence))])
    }));
    world.write("ball", "at rest");
    world.scan().await;
    world.write("ball", "served");
    let mut scans = 0;
    while world.scan().await.changes > 0 {
        scans += 1;
        assert!(scans < 20, "they play on: {:?}", world.calls());
    }
    let depths: Vec<u32> =
        world.script.calls.lock().unwrap().iter().map(|(_, trigger)| trigger.depth).collect();
    assert_eq!(depths.iter().max(), Some(&2), "{depths:?}");
    let events = world.all_events().await;
    assert!(
        events.iter().any(|event| event.fields.get("suppressed") == Some(&json!("chain"))),
        "{events:#?}"
    );
}

#[tokio::test]
async fn a_chain_ends_while_watching_too() {
    let personas = "
personas:
  - {name: one, filters: [x], action: {tool: tools/one.ts}}
  - {name: two, filters: [x], action: {tool: tools/two.ts}}
";
    let world = World::new(personas);
    world.act(Box::new(|project, _, trigger| {
        report(vec![effect(project, "x", &format!("{} {}", trigger.persona, trigger.sequence))])
    }));
    world.write("x", "0");
    world.scan().await;
    let mut watch = world.watch();
    watch.started().await;
    world.write("x", "1");
    let is_chain = |event: &ValveEvent| match event {
        ValveEvent::Triggered { event, .. } => event.fields.get("suppressed") == Some(&json!("chain")),
        _ => false,
    };
    watch.until("the end of the chain", is_chain).await;
    watch.end().await;
    assert!(world.calls().len() <= 8, "{:?}", world.calls());
}

#[tokio::test]
async fn an_action_that_was_interrupted_is_not_repeated() {
    let world = World::new(FORMATTER);
    world.scan().await;
    *world.script.hangs.lock().unwrap() = true;
    world.write("a.ts", "1");
    let mut watch = world.watch();
    watch.until("the action", |event| matches!(event, ValveEvent::ActionBegun { .. })).await;
    watch.abort().await;
    *world.script.hangs.lock().unwrap() = false;
    let report = world.scan().await;
    assert_eq!(world.calls().len(), 1);
    assert_eq!((report.actions_done, report.actions_failed), (0, 1));
    let events = world.events("a.ts.sage").await;
    let told = outcomes(&events);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].fields["interrupted"], true);
    assert_eq!(world.status().unfinished[0].state, ActionState::Interrupted);
}

#[tokio::test]
async fn actions_are_told_to_end_with_the_watch() {
    let world = World::new(FORMATTER);
    world.scan().await;
    *world.script.hangs.lock().unwrap() = true;
    let mut watch = world.watch();
    watch.started().await;
    world.write("a.ts", "1");
    watch.until("the action", |event| matches!(event, ValveEvent::ActionBegun { .. })).await;
    watch.end().await;
    let events = world.events("a.ts.sage").await;
    let told = outcomes(&events);
    assert_eq!((told.len(), &told[0].fields["message"]), (1, &json!("told to end")));
}

#[tokio::test]
async fn an_action_that_takes_too_long_is_ended_and_has_failed() {
    let world =
        World::new("personas: [{name: slow, filters: ['*.ts'], timeout: 200ms, action: {tool: t.ts}}]");
    world.scan().await;
    *world.script.hangs.lock().unwrap() = true;
    // One ends when it is asked to; the other does not even listen, and is dropped.
    for (name, is_deaf) in [("a.ts", false), ("b.ts", true)] {
        *world.script.is_deaf.lock().unwrap() = is_deaf;
        world.write(name, "1");
        let report = world.scan().await;
        assert_eq!((report.actions_done, report.actions_failed), (0, 1), "{name}");
        let error = report.events.iter().find_map(|event| match event {
            ValveEvent::ActionDone { error, .. } => error.clone(),
            _ => None,
        });
        let error = error.unwrap();
        assert_eq!((error.code, &error.details["timeoutMs"]), (Code::Runtime, &json!(200)), "{error:?}");
        assert!(error.help_of().unwrap().contains("`timeout`"), "{error:?}");
        let events = world.events(&format!("{name}.sage")).await;
        let outcome = &outcomes(&events)[0].fields;
        assert_eq!((&outcome["code"], &outcome["timeoutMs"]), (&json!("ERUNTIME"), &json!(200)));
        assert_eq!(world.status().unfinished[0].state, ActionState::Failed);
    }
    *world.script.hangs.lock().unwrap() = false;
    world.write("c.ts", "1");
    assert_eq!(world.scan().await.actions_done, 1, "the persona goes on");
}

#[tokio::test]
async fn an_action_whose_event_was_not_kept_is_not_begun() {
    let memory = std::sync::Arc::new(crate::memory::MemoryChronicle::default());
    let world = World::with(tempfile::tempdir().unwrap(), memory.clone(), FORMATTER);
    world.scan().await;
    memory.broken.lock().unwrap().insert("src/a.ts.sage".to_owned());
    world.write("src/a.ts", "1");
    world.scan().await;
    assert!(world.calls().is_empty());
    assert_eq!(world.status().pending_actions, 1);
    memory.broken.lock().unwrap().clear();
    world.scan().await;
    assert_eq!(world.calls(), ["formatter src/a.ts"]);
    *memory.is_closed.lock().unwrap() = true;
    world.write("src/b.ts", "1");
    world.scan().await;
    *memory.is_closed.lock().unwrap() = false;
    world.scan().await;
    assert_eq!(world.calls().len(), 1, "a skipped event has no action");
    assert_eq!(world.status().unfinished[0].state, ActionState::Skipped);
}

#[tokio::test]
async fn an_action_that_fails_without_a_word_does_not_wake_itself() {
    let world = World::new(FORMATTER);
    world.act(Box::new(|project, _, trigger| {
        effect(project, trigger.file_path.as_str(), &format!("half done {}", trigger.sequence));
        Err(ToolError::new(Code::Runtime, "broke").help("none").into())
    }));
    world.scan().await;
    world.write("a.ts", "raw");
    for _ in 0..4 {
        world.scan().await;
    }
    assert_eq!(world.calls().len(), 1);
    // Repairing the file wakes it again.
    world.write("a.ts", "mended");
    world.scan().await;
    assert_eq!(world.calls().len(), 2);
}

#[tokio::test]
async fn a_loop_that_nothing_else_has_noticed_is_slowed_down() {
    // It changes another file, fails, and does not say so: the author of that change cannot be known.
    let personas = "
personas:
  - {name: left, filters: [a.ts], action: {tool: tools/l.ts}}
  - {name: right, filters: [b.ts], action: {tool: tools/r.ts}}
";
    let world = World::new(personas);
    world.act(Box::new(|project, _, trigger| {
        let other = if trigger.file_path.as_str() == "a.ts" { "b.ts" } else { "a.ts" };
        effect(project, other, &format!("{}", trigger.sequence));
        Err(ToolError::new(Code::Runtime, "broke").help("none").into())
    }));
    world.scan().await;
    world.write("a.ts", "raw");
    for _ in 0..40 {
        world.scan().await;
    }
    assert_eq!(world.calls().len(), 20, "ten a minute for each persona and file");
    let events = world.all_events().await;
    assert!(events.iter().any(|event| event.fields.get("suppressed") == Some(&json!("pace"))));
}

#[tokio::test]
async fn an_action_that_nobody_wants_any_more_is_not_begun() {
    let memory = std::sync::Arc::new(crate::memory::MemoryChronicle::default());
    let world = World::with(tempfile::tempdir().unwrap(), memory.clone(), FORMATTER);
    world.scan().await;
    for name in ["src/a.ts.sage", "src/b.ts.sage"] {
        memory.broken.lock().unwrap().insert(name.to_owned());
    }
    world.write("src/a.ts", "1");
    world.write("src/b.ts", "1");
    world.scan().await;
    memory.broken.lock().unwrap().remove("src/a.ts.sage");
    world.write(crate::support::PERSONAS, FORMATTER.replace("width: 100", "width: 80"));
    world.scan().await;
    memory.broken.lock().unwrap().clear();
    world.write(crate::support::PERSONAS, "personas: []");
    world.scan().await;
    assert_eq!(world.calls(), ["formatter src/a.ts"]);
    let (action, _) = world.script.calls.lock().unwrap()[0].clone();
    assert!(matches!(action, Action::Tool { args, .. } if args["width"] == 80), "the file has the last word");
    assert_eq!(world.events("src/b.ts.sage").await[1].fields["suppressed"], "gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_a_person_does_while_an_action_runs_is_acted_on() {
    let world = World::new(FORMATTER);
    world.act(Box::new(|project, _, trigger| {
        if trigger.after != Some(hash("raw")) {
            return report(Vec::new());
        }
        let file = effect(project, trigger.file_path.as_str(), "by the action");
        crate::support::wait_until("the test", || project.join("go-on").exists());
        report(vec![file])
    }));
    world.write(".gitignore", "go-on");
    world.scan().await;
    let mut watch = world.watch();
    watch.started().await;
    world.write("a.ts", "raw");
    watch.until("the action", |event| matches!(event, ValveEvent::ActionBegun { .. })).await;
    tokio::task::block_in_place(|| {
        crate::support::wait_until("its writing", || {
            std::fs::read(world.disk("a.ts")).unwrap() == b"by the action"
        });
    });
    world.write("a.ts", "by a person");
    world.write("z.ts", "by a person");
    watch.told("formatter: created z.ts").await;
    world.write("go-on", "");
    for _ in 0..2 {
        watch.until("the next action", |event| matches!(event, ValveEvent::ActionBegun { .. })).await;
    }
    watch.end().await;
    // A file that is seen while it is being written may be acted on twice.
    let calls = world.script.calls.lock().unwrap().clone();
    let acted = |path: &str, content: &str| {
        calls.iter().any(|(_, trigger)| trigger.file_path == at(path) && trigger.after == Some(hash(content)))
    };
    assert!(
        acted("a.ts", "raw") && acted("a.ts", "by a person") && acted("z.ts", "by a person"),
        "{calls:#?}"
    );
    assert!(!acted("a.ts", "by the action"), "{calls:#?}");
}
