//! The bullet wound, what ends it, and reconciliation.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_agent::{Assertion, Edit, Guardian};
use tgp_chronicle::{ChronicleOptions, FileChronicle};
use tgp_contract::{Code, ToolError};

use crate::guardian_world::{World, path};

const CRITICAL: &str = "MATCH (f:File) WHERE f.path = 'src/critical.ts' RETURN f.path AS path";
const OWN: &str = ".sage/guardian.sage";

fn edit(file: &str) -> Edit {
    Edit { file_path: file.to_owned(), diff_ref: "abc123".to_owned(), invariant: None, reason: None }
}

async fn halted(guardian: &Guardian, assertions: &[Assertion]) -> ToolError {
    let error = guardian.bullet_wound_check(assertions).await.unwrap_err();
    assert_eq!(error.code, Code::Halt, "{error:?}");
    for name in ["invariant", "expected", "actual"] {
        assert!(
            error.details.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty()),
            "{error:?}"
        );
    }
    assert!(error.help_of().unwrap().contains("tgp guardian reconcile"), "{error:?}");
    error
}

#[tokio::test]
async fn t3_a_broken_assertion_halts() {
    let world = World::new(&[]);
    let assertions: Vec<Assertion> =
        serde_json::from_value(json!([{ "cypher": CRITICAL, "expectRows": true }])).unwrap();
    let error = halted(&world.guardian, &assertions).await;
    assert_eq!(error.details["invariant"], CRITICAL);
    assert_eq!((&error.details["expected"], &error.details["actual"]), (&json!("rows"), &json!("no rows")));
    // Again, also from another process: the event is there once.
    halted(&world.guardian, &assertions).await;
    halted(&world.another(500), &assertions).await;
    assert_eq!(world.chronicle.kinds(OWN), ["HALT"]);
    // A check that leaves the assertion out lifts nothing; one that passes does, once.
    halted(&world.guardian, &[]).await;
    world.graph.now.lock().unwrap().insert("src/critical.ts".to_owned(), String::new());
    world.guardian.bullet_wound_check(&[]).await.unwrap();
    world.guardian.bullet_wound_check(&assertions).await.unwrap();
    assert_eq!(world.chronicle.kinds(OWN), ["HALT", "HALT_LIFTED"]);
    assert_eq!(world.guardian.halted().await.unwrap(), None);
    let error = halted(&world.guardian, &[Assertion::new(CRITICAL, false)]).await;
    assert_eq!(
        (&error.details["actual"], &error.details["file"]),
        (&json!("1 row"), &json!("src/critical.ts"))
    );
    assert_eq!(world.chronicle.kinds(OWN), ["HALT", "HALT_LIFTED", "HALT"]);
}

#[tokio::test]
async fn t3_stretch_a_contradiction_between_chronicle_and_graph_halts() {
    for (kind, fields, is_in_graph) in [
        ("FILE_DELETED", json!({}), true),
        ("FILE_CREATED", json!({}), false),
        ("FILE_MODIFIED", json!({}), false),
        ("EDIT", json!({ "change": "deleted" }), true),
        ("NOTE", json!({ "change": "changed" }), false),
    ] {
        let world = World::new(if is_in_graph { &[("src/a.ts", "")] } else { &[] });
        world.event("src/a.ts.sage", "NOTE", None, json!({})).await;
        world.event("src/a.ts.sage", kind, None, fields).await;
        world.event("src/a.ts.sage", "VALVE_PERSONA_TRIGGER", Some("src/a.ts"), json!({})).await;
        let error = halted(&world.guardian, &[]).await;
        assert_eq!(error.details["invariant"], "chronicle-agrees-with-graph");
        assert_eq!(error.details["file"], "src/a.ts");
        assert_eq!(error.details["actual"], if is_in_graph { "present in graph" } else { "absent in graph" });
        assert_eq!(world.guardian.halted().await.unwrap().unwrap().file.as_deref(), Some("src/a.ts"));
        // What is there is accepted, and work goes on.
        let done = world.guardian.reconcile(&edit("src/a.ts")).await.unwrap();
        assert!(done.appended && done.lifted && done.still_broken.is_none(), "{done:?}");
        world.guardian.bullet_wound_check(&[]).await.unwrap();
        assert_eq!(world.chronicle.kinds(OWN), ["HALT", "RECONCILING", "HALT_LIFTED"]);
    }
}

#[tokio::test]
async fn the_newest_claim_counts_wherever_it_stands() {
    type Event<'a> = (&'a str, &'a str, Option<&'a str>, Value);
    // Kind, chronicle and subject of events, oldest first, and whether they fit a graph with src/a.ts alone.
    let cases: Vec<(Vec<Event<'_>>, bool)> = vec![
        (
            vec![
                ("DELETED", "src/a.ts.sage", None, json!({})),
                ("CREATED", "src/a.ts.sage", None, json!({})),
            ],
            true,
        ),
        (
            vec![
                ("CREATE", "src/a.ts.sage", None, json!({})),
                ("DELETE", ".sage/x.sage", Some("src/a.ts"), json!({})),
            ],
            false,
        ),
        (
            vec![
                ("DELETE", ".sage/x.sage", Some("src/a.ts"), json!({})),
                ("CREATE", "src/a.ts.sage", None, json!({})),
            ],
            true,
        ),
        (vec![("RENAMED", "src/a.ts.sage", None, json!({ "from": "src/old.ts" }))], true),
        (vec![("RENAMED", "src/old.ts.sage", None, json!({ "to": "src/a.ts" }))], true),
        (vec![("RENAMED", "src/a.ts.sage", None, json!({ "to": "src/b.ts" }))], false),
        (vec![("RECONCILIATION", "src/a.ts.sage", None, json!({ "present": false }))], false),
        (vec![("RECONCILIATION", "src/none.ts.sage", None, json!({}))], true),
        (
            vec![
                ("DELETE", ".sage/x.sage", None, json!({})),
                ("DELETE", ".sage/x.sage", Some("../a"), json!({})),
            ],
            true,
        ),
    ];
    for (events, fits) in cases {
        let world = World::new(&[("src/a.ts", "")]);
        for (kind, chronicle, subject, fields) in &events {
            world.event(chronicle, kind, *subject, fields.clone()).await;
        }
        let checked = world.guardian.bullet_wound_check(&[]).await;
        assert_eq!(checked.is_ok(), fits, "{events:?}: {checked:?}");
    }
    // A file that the graph ignores and the work tree has is no contradiction.
    let world = World::new(&[("src/ignored.ts", "")]);
    world.graph.now.lock().unwrap().clear();
    world.event("src/ignored.ts.sage", "FILE_CREATED", None, json!({})).await;
    world.guardian.bullet_wound_check(&[]).await.unwrap();
}

#[tokio::test]
async fn t3_a_reconciliation_is_recorded_beside_the_file() {
    let world = World::new(&[("src/modified.ts", "")]);
    let done = world.guardian.reconcile(&edit("src/modified.ts")).await.unwrap();
    assert!(done.ok && done.appended && !done.lifted);
    assert_eq!(done.chronicle, path("src/modified.ts.sage"));
    let [event] = world.chronicle.of("src/modified.ts.sage").try_into().unwrap();
    let event = serde_json::to_value(event).unwrap();
    for (name, value) in [
        ("type", json!("RECONCILIATION")),
        ("filePath", json!("src/modified.ts")),
        ("diffRef", json!("abc123")),
        ("present", json!(true)),
        ("actor", json!({ "agent": "guardian", "id": "reconciler" })),
        ("eventId", json!(done.event_id)),
    ] {
        assert_eq!(event[name], value, "{event}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t3_stretch_the_same_reconciliation_is_appended_once_by_many_at_once() {
    for (file, chronicle) in [("src/a.ts", "src/a.ts.sage"), ("docs/a.md", ".sage/project.sage")] {
        let world = Arc::new(World::new(&[(file, "")]));
        // Eight processes with clocks of their own, each of which asks four times at once.
        let guardians: Vec<Arc<Guardian>> = (0..8).map(|at| world.another(at * 1_000)).collect();
        let mut tasks = Vec::new();
        for at in 0..32 {
            let guardian = Arc::clone(&guardians[at % 8]);
            let spelt = if at % 3 == 0 { format!("./{file}") } else { file.to_owned() };
            tasks.push(tokio::spawn(async move { guardian.reconcile(&edit(&spelt)).await.unwrap() }));
        }
        let mut ids = std::collections::BTreeSet::new();
        let mut appended = 0;
        for task in tasks {
            let done = task.await.unwrap();
            assert_eq!(done.chronicle, path(chronicle));
            appended += usize::from(done.appended);
            ids.insert(done.event_id);
        }
        assert_eq!((ids.len(), appended), (1, 1));
        assert_eq!(world.chronicle.kinds(chronicle), ["RECONCILIATION"]);
        // Later, too, and though the file has changed its presence since.
        world.graph.now.lock().unwrap().clear();
        let again = world.guardian.reconcile(&edit(file)).await.unwrap();
        assert!(!again.appended && ids.contains(&again.event_id));
        assert_eq!(world.chronicle.kinds(chronicle), ["RECONCILIATION"]);
        // Another edit is another event.
        let other = Edit { diff_ref: "def456".to_owned(), ..edit(file) };
        assert!(world.guardian.reconcile(&other).await.unwrap().appended);
        assert_eq!(world.chronicle.kinds(chronicle).len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t3_stretch_the_same_reconciliation_is_one_line_of_a_real_chronicle() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let world = World::new(&[("src/a.ts", "")]);
    let mut tasks = Vec::new();
    for at in 0..12 {
        // Each opens the files anew, so that their locks stand between them as between processes.
        let options = ChronicleOptions::new(folder.path());
        let guardian = world.another_on(Arc::new(FileChronicle::open(&options).unwrap()), at * 1_000);
        tasks
            .push(tokio::spawn(async move { guardian.reconcile(&edit("src/a.ts")).await.unwrap().appended }));
    }
    let mut appended = 0;
    for task in tasks {
        appended += usize::from(task.await.unwrap());
    }
    assert_eq!(appended, 1);
    let lines = std::fs::read_to_string(folder.path().join("src/a.ts.sage")).unwrap();
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(lines.contains("\"type\":\"RECONCILIATION\""), "{lines}");
}

#[tokio::test]
async fn a_claim_from_the_future_can_be_reconciled() {
    let world = World::new(&[("src/a.ts", "")]);
    world.clock.store(50_000, std::sync::atomic::Ordering::SeqCst);
    world.event(".sage/project.sage", "FILE_DELETED", Some("src/a.ts"), json!({})).await;
    world.clock.store(0, std::sync::atomic::Ordering::SeqCst);
    halted(&world.guardian, &[]).await;
    assert!(world.guardian.reconcile(&edit("src/a.ts")).await.unwrap().lifted);
    world.guardian.bullet_wound_check(&[]).await.unwrap();
}

#[tokio::test]
async fn a_process_that_died_between_its_word_and_the_event_is_finished_by_the_next() {
    let world = World::new(&[("src/a.ts", "")]);
    world.guardian.reconcile(&edit("src/a.ts")).await.unwrap();
    let first = world.chronicle.files.lock().unwrap().remove(&path("src/a.ts.sage")).unwrap();
    let done = world.another(9_000).reconcile(&edit("src/a.ts")).await.unwrap();
    assert!(done.appended);
    assert_eq!(world.chronicle.of("src/a.ts.sage"), first);
}

const RULES: &str = "
version: 1
invariants:
  - name: no-web
    query: MATCH (a:File)-[:IMPORTS]->(b:File) WHERE b.path = 'src/web.ts' RETURN a.path AS importer
    expect: none
    message: Nobody imports the web.
  - name: entry
    query: MATCH (f:File) WHERE f.path = 'src/main.ts' RETURN f.path AS path
    expect: rows
    message: There is an entry.
  - name: soft
    query: MATCH (f:File) RETURN f.path AS path
    expect: none
    severity: warning
    message: Only a warning.
";

#[tokio::test]
async fn accepted_rows_halt_no_more_and_new_ones_do() {
    let world = World::new(&[("src/a.ts", "import src/web.ts\n"), ("src/web.ts", ""), ("src/main.ts", "")]);
    world.rules(RULES);
    let error = halted(&world.guardian, &[]).await;
    assert_eq!(error.details["invariant"], "no-web");
    assert_eq!(error.details["rows"], json!([{ "importer": "src/a.ts" }]));
    assert!(error.message.contains("Nobody imports the web."), "{error}");
    // Accepting the file alone does not accept the rows.
    let done = world.guardian.reconcile(&edit("src/a.ts")).await.unwrap();
    assert!(!done.lifted && done.still_broken.unwrap().code == Code::Halt);
    let accept =
        Edit { invariant: Some("no-web".to_owned()), reason: Some("for now".to_owned()), ..edit("src/a.ts") };
    let done = world.guardian.reconcile(&accept).await.unwrap();
    assert!(done.lifted, "{done:?}");
    world.guardian.bullet_wound_check(&[]).await.unwrap();
    // A row more is a break more, and the accepted one is not shown again.
    world.graph.now.lock().unwrap().insert("src/b.ts".to_owned(), "import src/web.ts\n".to_owned());
    let error = halted(&world.guardian, &[]).await;
    assert_eq!(error.details["rows"], json!([{ "importer": "src/b.ts" }]));
    // One that appears afterwards is another halt, not the same one.
    world.graph.now.lock().unwrap().insert("src/c.ts".to_owned(), "import src/web.ts\n".to_owned());
    halted(&world.guardian, &[]).await;
    assert_eq!(world.chronicle.kinds(OWN).iter().filter(|kind| *kind == "HALT").count(), 3);
}

#[tokio::test]
async fn missing_rows_and_loose_assertions_can_be_accepted_too() {
    let world = World::new(&[("src/a.ts", "")]);
    world.rules(RULES);
    assert_eq!(halted(&world.guardian, &[]).await.details["invariant"], "entry");
    let accept = |name: &str| Edit { invariant: Some(name.to_owned()), ..edit("src/a.ts") };
    assert!(world.guardian.reconcile(&accept("entry")).await.unwrap().lifted);
    let loose = Assertion::new(CRITICAL, true);
    halted(&world.guardian, std::slice::from_ref(&loose)).await;
    assert!(world.guardian.reconcile(&accept(CRITICAL)).await.unwrap().lifted);
    world.guardian.bullet_wound_check(&[loose]).await.unwrap();
    let error = world.guardian.reconcile(&accept("entri")).await.unwrap_err();
    assert_eq!((error.code, error.help_of()), (Code::NotFound, Some("did you mean `entry`?")));
}

#[tokio::test]
async fn a_halt_is_in_force_however_much_was_written_after_it() {
    let world = World::new(&[]);
    halted(&world.guardian, &[Assertion::new(CRITICAL, true)]).await;
    for at in 0..1_000 {
        world.event(OWN, "NOTE", None, json!({ "at": at })).await;
        if [15, 16, 17, 511, 512, 999].contains(&at) {
            assert!(world.guardian.halted().await.unwrap().is_some(), "{at}");
        }
    }
}

#[tokio::test]
async fn edits_that_name_nothing_are_refused_and_leave_nothing() {
    let world = World::new(&[]);
    for (bad, code) in [
        (edit(""), Code::Validation),
        (edit("../x"), Code::Security),
        (Edit { diff_ref: " ".to_owned(), ..edit("src/a.ts") }, Code::Validation),
        (Edit { reason: Some("x".repeat(20_000)), ..edit("src/a.ts") }, Code::Validation),
    ] {
        assert_eq!(world.guardian.reconcile(&bad).await.unwrap_err().code, code, "{bad:?}");
    }
    assert!(world.chronicle.files.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_cannot_be_found_out_is_an_error_and_no_pass() {
    let world = World::new(&[("src/a.ts", "")]);
    halted(&world.guardian, &[Assertion::new(CRITICAL, true)]).await;
    let check = async |assertions: &[Assertion]| {
        world.guardian.bullet_wound_check(assertions).await.unwrap_err().code
    };
    assert_eq!(check(&[Assertion::new("MATCH (f:File", true)]).await, Code::Validation);
    assert_eq!(check(&vec![Assertion::new(CRITICAL, true); 201]).await, Code::Validation);
    world.rules("version: 7");
    world.graph.now.lock().unwrap().insert("src/critical.ts".to_owned(), String::new());
    assert_eq!(check(&[]).await, Code::Config);
    world.rules("");
    world.chronicle.torn.lock().unwrap().insert("src/a.ts.sage".to_owned());
    assert_eq!(check(&[]).await, Code::Integrity);
    // None of these has lifted the halt.
    assert!(world.guardian.halted().await.unwrap().is_some());
}
