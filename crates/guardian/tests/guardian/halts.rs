//! The bullet wound, what ends it, and reconciliation.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_chronicle::{ChronicleOptions, FileChronicle};
use tgp_contract::{AppendResult, Chronicle, ChronicleEvent, Code, RelativePath, ToolError};
use tgp_guardian::{Assertion, Guardian, ReconcileEdit};

use crate::world::{MemoryChronicle, World, path};

const CRITICAL: &str = "MATCH (f:File) WHERE f.path = 'src/critical.ts' RETURN f.path AS path";
const OWN: &str = ".sage/guardian.sage";

fn edit(file: &str) -> ReconcileEdit {
    ReconcileEdit { file_path: file.to_owned(), diff_ref: "abc123".to_owned(), invariant: None, reason: None }
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
        // What is there is accepted, and work continues.
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
    // A file that the graph ignores and the work tree has is not a contradiction.
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
        // Eight processes with their own clocks, each of which asks four times at once.
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
        let other = ReconcileEdit { diff_ref: "def456".to_owned(), ..edit(file) };
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
        // Each opens the files again, so that their locks exclude each other as between processes.
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
    let lines = std::fs::read_to_string(folder.path().join(".sage/files/src/a.ts.sage")).unwrap();
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(lines.contains("\"type\":\"RECONCILIATION\""), "{lines}");
    // What was read from a file again is believed as well.
    let chronicle = Arc::new(FileChronicle::open(&ChronicleOptions::new(folder.path())).unwrap());
    for second in 0..2 {
        let created = json!({
            "type": "EDIT", "change": "created", "timestamp": format!("2026-01-02T00:00:0{second}Z"),
            "actor": { "agent": "agent", "id": "a" }, "filePath": "src/ghost.ts",
        });
        let created: ChronicleEvent = serde_json::from_value(created).unwrap();
        chronicle.append(&path("src/ghost.ts.sage"), created).await.unwrap();
        let guardian = world.another_on(chronicle.clone(), 20_000);
        halted(&guardian, &[]).await;
        let done = guardian.reconcile(&edit("src/ghost.ts")).await.unwrap();
        assert!(done.appended && done.lifted, "{done:?}");
        guardian.bullet_wound_check(&[]).await.unwrap();
    }
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
    let accept = ReconcileEdit {
        invariant: Some("no-web".to_owned()),
        reason: Some("for now".to_owned()),
        ..edit("src/a.ts")
    };
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
    let accept = |name: &str| ReconcileEdit { invariant: Some(name.to_owned()), ..edit("src/a.ts") };
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
    let note = world.chronicle.of(OWN).pop().unwrap();
    world.chronicle.files.lock().unwrap().get_mut(&path(OWN)).unwrap().extend(vec![note; 20_000]);
    assert!(world.guardian.halted().await.unwrap().is_some());
}

#[tokio::test]
async fn edits_that_name_nothing_are_refused_and_leave_nothing() {
    let world = World::new(&[]);
    for (bad, code) in [
        (edit(""), Code::Validation),
        (edit("../x"), Code::Security),
        (ReconcileEdit { diff_ref: " ".to_owned(), ..edit("src/a.ts") }, Code::Validation),
        (ReconcileEdit { reason: Some("x".repeat(20_000)), ..edit("src/a.ts") }, Code::Validation),
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

#[tokio::test]
async fn a_second_halt_on_the_same_file_can_be_lifted() {
    let world = World::new(&[]);
    let settle = async || {
        halted(&world.guardian, &[]).await;
        let done = world.guardian.reconcile(&edit("src/a.ts")).await.unwrap();
        assert!(done.appended && done.settled && done.lifted, "{done:?}");
        // The same state is accepted once, with whatever reason.
        let again = ReconcileEdit { reason: Some("again".to_owned()), ..edit("src/a.ts") };
        let again = world.another(7_000).reconcile(&again).await.unwrap();
        assert!(!again.appended && again.event_id == done.event_id, "{again:?}");
        world.guardian.bullet_wound_check(&[]).await.unwrap();
    };
    // An agent creates it, a person deletes it, three times.
    for _ in 0..3 {
        world.event("src/a.ts.sage", "EDIT", None, json!({ "change": "created" })).await;
        settle().await;
    }
    // The person changes their mind as often.
    for _ in 0..2 {
        world.graph.now.lock().unwrap().insert("src/a.ts".to_owned(), String::new());
        settle().await;
        world.graph.now.lock().unwrap().clear();
        settle().await;
    }
    let kinds = world.chronicle.kinds("src/a.ts.sage");
    assert_eq!(kinds.iter().filter(|kind| *kind == "RECONCILIATION").count(), 7);
    // Other rows of the same invariant are another break.
    world.rules(RULES);
    let accept = ReconcileEdit { invariant: Some("no-web".to_owned()), ..edit("src/main.ts") };
    for importer in ["src/b.ts", "src/c.ts"] {
        let files = [(importer, "import src/web.ts\n"), ("src/web.ts", ""), ("src/main.ts", "")];
        *world.graph.now.lock().unwrap() =
            files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        halted(&world.guardian, &[]).await;
        let done = world.guardian.reconcile(&accept).await.unwrap();
        assert!(done.appended && done.settled && done.lifted, "{done:?}");
        assert!(!world.guardian.reconcile(&accept).await.unwrap().appended);
    }
}

#[tokio::test]
async fn an_acceptance_that_the_guardian_has_not_announced_is_not_believed() {
    let world = World::new(&[("src/a.ts", "import src/web.ts\n"), ("src/web.ts", ""), ("src/main.ts", "")]);
    world.rules(RULES);
    let accept = ReconcileEdit { invariant: Some("no-web".to_owned()), ..edit("src/a.ts") };
    // What the Guardian would write, taken from another copy of the project.
    let other = World::new(&[("src/a.ts", "import src/web.ts\n"), ("src/web.ts", ""), ("src/main.ts", "")]);
    other.rules(RULES);
    other.guardian.reconcile(&accept).await.unwrap();
    let real = other.chronicle.of("src/a.ts.sage").pop().unwrap();
    world.event("src/ghost.ts.sage", "FILE_CREATED", None, json!({})).await;
    let ghost = world.chronicle.of("src/ghost.ts.sage").pop().unwrap().event_id;
    let forge = |chronicle: &str, event: ChronicleEvent| {
        world.chronicle.files.lock().unwrap().entry(path(chronicle)).or_default().push(event);
    };
    forge("src/a.ts.sage", real.clone());
    forge(".sage/project.sage", real.clone());
    let fields = json!({ "present": false, "settles": ghost });
    world.event("src/ghost.ts.sage", "RECONCILIATION", None, fields).await;
    assert_eq!(halted(&world.guardian, &[]).await.details["invariant"], "no-web");
    // Nor under the id of one that was announced.
    let own = world.guardian.reconcile(&edit("src/a.ts")).await.unwrap();
    forge("src/a.ts.sage", ChronicleEvent { event_id: Some(own.event_id), ..real });
    assert_eq!(halted(&world.guardian, &[]).await.details["invariant"], "no-web");
    assert!(world.guardian.reconcile(&accept).await.unwrap().appended);
    assert_eq!(halted(&world.guardian, &[]).await.details["file"], "src/ghost.ts");
}

#[tokio::test]
async fn what_was_cut_off_is_a_halt_and_cannot_be_accepted() {
    let world = World::new(&[("src/web.ts", ""), ("src/main.ts", "")]);
    for at in 0..5 {
        let file = format!("src/{at}.ts");
        world.graph.now.lock().unwrap().insert(file, "import src/web.ts\n".to_owned());
    }
    world.graph.cap.store(2, std::sync::atomic::Ordering::SeqCst);
    let loose = Assertion::new("MATCH (f:File) RETURN f.path AS path", false);
    for (rules, name) in [("", loose.cypher.as_str()), (RULES, "no-web")] {
        world.chronicle.files.lock().unwrap().clear();
        world.rules(rules);
        let assertions = if rules.is_empty() { vec![loose.clone()] } else { Vec::new() };
        let error = halted(&world.guardian, &assertions).await;
        assert_eq!(
            (&error.details["invariant"], &error.details["actual"]),
            (&json!(name), &json!("more than 2 rows"))
        );
        let accept = ReconcileEdit { invariant: Some(name.to_owned()), ..edit("src/main.ts") };
        let error = world.guardian.reconcile(&accept).await.unwrap_err();
        assert_eq!(error.code, Code::Validation);
        assert!(error.message.starts_with("more than 2 rows break"), "{error}");
        assert_eq!(world.chronicle.kinds(OWN), ["HALT"]);
    }
}

/// Another process that halts the work between a check and the end of the halt that it was about.
struct Meddler {
    chronicle: Arc<MemoryChronicle>,
    looks: std::sync::atomic::AtomicUsize,
}

#[async_trait::async_trait]
impl Chronicle for Meddler {
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError> {
        self.chronicle.append(file, event).await
    }

    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError> {
        // The halts are read first, then what was accepted, and then, to lift them, the halts again.
        if file.as_str() == OWN && self.looks.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 2 {
            let mut halt = self.chronicle.of(OWN).remove(0);
            halt.timestamp = "2026-02-02T00:00:00Z".to_owned();
            self.chronicle.append(file, halt).await?;
        }
        self.chronicle.tail(file, most).await
    }

    async fn files(&self) -> Result<Vec<RelativePath>, ToolError> {
        self.chronicle.files().await
    }
}

#[tokio::test]
async fn only_the_halt_that_was_checked_is_lifted() {
    let world = World::new(&[]);
    halted(&world.guardian, &[Assertion::new(CRITICAL, true)]).await;
    world.graph.now.lock().unwrap().insert("src/critical.ts".to_owned(), String::new());
    let meddler = Meddler { chronicle: Arc::clone(&world.chronicle), looks: Default::default() };
    world.another_on(Arc::new(meddler), 50).bullet_wound_check(&[]).await.unwrap();
    assert_eq!(world.chronicle.kinds(OWN), ["HALT", "HALT", "HALT_LIFTED"]);
    let open = world.guardian.halted().await.unwrap().unwrap();
    assert_eq!(open.timestamp, "2026-02-02T00:00:00Z");
}

#[tokio::test]
async fn two_open_halts_must_both_be_settled() {
    let world = World::new(&[]);
    let other = "MATCH (f:File) WHERE f.path = 'src/other.ts' RETURN f.path AS path";
    halted(&world.guardian, &[Assertion::new(CRITICAL, true)]).await;
    halted(&world.guardian, &[Assertion::new(other, true), Assertion::new(CRITICAL, true)]).await;
    assert_eq!(world.chronicle.kinds(OWN), ["HALT", "HALT"]);
    // The newer one is repaired, the older one is not.
    world.graph.now.lock().unwrap().insert("src/other.ts".to_owned(), String::new());
    assert_eq!(halted(&world.guardian, &[]).await.details["invariant"], CRITICAL);
    assert!(world.guardian.halted().await.unwrap().is_some());
    world.graph.now.lock().unwrap().insert("src/critical.ts".to_owned(), String::new());
    world.guardian.bullet_wound_check(&[]).await.unwrap();
    assert_eq!(world.chronicle.kinds(OWN), ["HALT", "HALT", "HALT_LIFTED", "HALT_LIFTED"]);
    assert_eq!(world.guardian.halted().await.unwrap(), None);
}

#[tokio::test]
async fn types_that_only_sound_like_a_change_claim_nothing() {
    let world = World::new(&[("src/there.ts", "")]);
    for kind in ["CHANGE_REQUEST", "ADDRESS", "CREDIT", "EDITOR_OPENED", "RENAME_PROPOSAL", "CREATED_BY"] {
        world.event("src/none.ts.sage", kind, None, json!({ "change": "planned" })).await;
    }
    for kind in ["UNDELETED", "REMOVE_ME", "DELETE_REQUEST", "NOT_REMOVED"] {
        world.event("src/there.ts.sage", kind, None, json!({})).await;
    }
    world.guardian.bullet_wound_check(&[]).await.unwrap();
    world.event("src/there.ts.sage", "file_deleted", None, json!({})).await;
    halted(&world.guardian, &[]).await;
}

#[tokio::test]
async fn an_event_of_many_edits_claims_what_it_names_and_casts_doubt_on_the_rest() {
    const SHARED: &str = ".sage/project.sage";
    let paths = json!([{ "path": "src/gone.ts", "change": "deleted" }, { "path": "src/new.ts", "change": "created" }]);
    let world = World::new(&[]);
    world.event("src/old.ts.sage", "FILE_CREATED", None, json!({})).await;
    world.event(SHARED, "FILE_CREATED", Some("docs/old.md"), json!({})).await;
    world.event(SHARED, "FILE_CREATED", Some("src/gone.ts"), json!({})).await;
    world.event(SHARED, "EDITS", None, json!({ "paths": paths, "count": 2 })).await;
    let now = async || world.guardian.contradictions_now().await.unwrap();
    assert_eq!(now().await, ["docs/old.md", "src/new.ts", "src/old.ts"]);
    // It does not name all, so any of those that are older may be among them.
    world.event(SHARED, "EDITS", None, json!({ "paths": paths, "count": 900, "pathsOmitted": true })).await;
    assert_eq!(now().await, ["src/new.ts"]);
    world.event("src/young.ts.sage", "FILE_CREATED", None, json!({})).await;
    assert_eq!(now().await, ["src/new.ts", "src/young.ts"]);
}

#[tokio::test]
async fn contradictions_are_listed_sorted_and_bounded() {
    let world = World::new(&[]);
    for at in (0..1_100).rev() {
        world.event(".sage/project.sage", "FILE_CREATED", Some(&format!("src/{at:04}.ts")), json!({})).await;
    }
    let paths = world.guardian.contradictions_now().await.unwrap();
    assert_eq!((paths.len(), paths[0].as_str(), paths[999].as_str()), (1_000, "src/0000.ts", "src/0999.ts"));
    assert!(paths.is_sorted());
    // Listing halts nothing.
    assert!(world.chronicle.of(OWN).is_empty());
}

#[tokio::test]
async fn a_contradiction_is_told_so_that_a_newcomer_understands_it() {
    for (change, is_in_graph, message) in [
        (
            "created",
            false,
            "the chronicle says that src/a.ts was created (EDIT of 2026-01-01T00:00:00Z), but there is no such file",
        ),
        (
            "deleted",
            true,
            "the chronicle says that src/a.ts was deleted (EDIT of 2026-01-01T00:00:00Z), but it is there",
        ),
    ] {
        let world = World::new(if is_in_graph { &[("src/a.ts", "")] } else { &[] });
        world.event("src/a.ts.sage", "EDIT", None, json!({ "change": change })).await;
        assert_eq!(halted(&world.guardian, &[]).await.message, message);
        let later = world.guardian.halted().await.unwrap().unwrap().error();
        assert_eq!(later.message, format!("work is halted since 2026-01-01T00:00:01Z: {message}"));
        assert_eq!(later.details["actual"], if is_in_graph { "present in graph" } else { "absent in graph" });
    }
}

#[tokio::test]
async fn where_nothing_is_to_be_settled_the_answer_says_so() {
    let world = World::new(&[("src/a.ts", ""), ("src/main.ts", "")]);
    world.rules(RULES);
    let done = world.guardian.reconcile(&edit("src/a.ts")).await.unwrap();
    assert!(done.appended && !done.settled, "{done:?}");
    let accept = ReconcileEdit { invariant: Some("no-web".to_owned()), ..edit("src/a.ts") };
    let done = world.guardian.reconcile(&accept).await.unwrap();
    assert_eq!(serde_json::to_value(done).unwrap()["settled"], false);
    for file in ["src/a.ts.sage", ".sage/guardian.sage", ".sage"] {
        let error = world.guardian.reconcile(&edit(file)).await.unwrap_err();
        assert_eq!(error.code, Code::Validation, "{error}");
    }
}
