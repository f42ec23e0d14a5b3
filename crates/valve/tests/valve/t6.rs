//! Suite T6 of the relay and its stretch invariants, with the real chronicle and with one in memory.

use std::sync::Arc;

use serde_json::json;
use tgp_contract::Code;
use tgp_valve::{PROJECT_CHRONICLE, TRIGGER_EVENT, ValveEvent};

use crate::memory::MemoryChronicle;
use crate::support::{World, hash};

const GUARDIAN: &str = "personas:\n  - name: TestGuardian\n    filters: [secrets]\n";

fn worlds() -> [World; 2] {
    let memory = Arc::new(MemoryChronicle::default());
    [World::scoped(GUARDIAN), World::with(tempfile::tempdir().unwrap(), memory, GUARDIAN)]
}

#[tokio::test]
async fn t6_writes_a_persona_trigger_event_on_a_matching_change() {
    for world in worlds() {
        world.write("src/core/other.txt", "nothing");
        assert!(world.scan().await.baseline);
        world.write("src/core/secrets.txt", "SUPER_SECRET_KEY=123");
        world.write("src/core/other.txt", "still nothing");
        let report = world.scan().await;
        assert_eq!((report.changes, report.triggered, report.pending), (2, 1, 0), "{report:?}");

        let events = world.events("src/core/secrets.txt.sage").await;
        let event = serde_json::to_value(&events).unwrap();
        let first = &events[0];
        let id = first.compute_id().unwrap();
        let expected = json!([{
            "eventId": id,
            "type": "VALVE_PERSONA_TRIGGER",
            "timestamp": "2027-01-15T08:00:00Z",
            "actor": { "agent": "valve", "id": "watcher" },
            "filePath": "src/core/secrets.txt",
            "persona": "TestGuardian",
            "change": "created",
            "after": hash("SUPER_SECRET_KEY=123"),
            "trigger": { "type": "filter", "details": "secrets" },
            "sequence": 1,
        }]);
        assert_eq!(event, expected);
        assert_eq!(world.chronicle.files().await.unwrap().len(), 1, "only one file was told of");
    }
}

#[tokio::test]
async fn t6_downtime_backfill() {
    for world in worlds() {
        for name in ["a", "b", "c"] {
            world.write(&format!("src/{name}.secrets"), name);
        }
        world.scan().await;
        // An outage: edits, a deletion, a rename and a new file, some of them several times.
        world.write("src/a.secrets", "first");
        world.write("src/a.secrets", "second");
        world.remove("src/b.secrets");
        world.rename("src/c.secrets", "src/deep/d.secrets");
        world.write("src/e.secrets", "new");
        world.remove("src/e.secrets");

        let mut watch = world.watch();
        let started = watch.started().await;
        assert!(matches!(started, ValveEvent::Started { baseline: false, backfilled: 3, .. }), "{started:?}");
        watch.told("TestGuardian: changed src/a.secrets").await;
        watch.end().await;
        let told = world.told().await;
        assert_eq!(told[0], "TestGuardian: deleted src/b.secrets", "deletions come first");
        let mut rest = told[1..].to_vec();
        rest.sort();
        assert_eq!(
            rest,
            [
                "TestGuardian: changed src/a.secrets",
                "TestGuardian: renamed src/deep/d.secrets < src/c.secrets"
            ]
        );
        let edited = world.events("src/a.secrets.sage").await;
        assert_eq!(edited[0].fields["before"], hash("a"));
        assert_eq!(edited[0].fields["after"], hash("second"));
        // What was reported is not reported again.
        assert_eq!(world.scan().await.changes, 0);
        assert_eq!(world.told().await.len(), 3);
    }
}

#[tokio::test]
async fn t6_append_only_guarantee() {
    let world = World::scoped(GUARDIAN);
    world.write("src/secrets", "0");
    world.scan().await;
    let mut watch = world.watch();
    watch.started().await;
    let file = world.disk("src/secrets.sage");
    let mut past = Vec::new();
    for round in 1..=5 {
        // Rapid changes of one round may be reported as one, but never out of order and never by touching the
        // past.
        for step in 0..20 {
            world.write("src/secrets", format!("{round} {step}"));
        }
        let last = hash(format!("{round} 19"));
        watch
            .until(
                "the last change of the round",
                |event| matches!(event, ValveEvent::Triggered { event, .. } if event.fields["after"] == last),
            )
            .await;
        let now = std::fs::read(&file).unwrap();
        assert!(now.starts_with(&past) && now.len() > past.len(), "the past was touched");
        past = now;
    }
    watch.end().await;
    let events = world.events("src/secrets.sage").await;
    let mut content = hash("0");
    let mut sequence = 0;
    for event in &events {
        assert_eq!(event.kind, TRIGGER_EVENT);
        assert_eq!(event.fields["before"], content, "the chain is broken");
        content = event.fields["after"].as_str().unwrap().to_owned();
        let next = event.fields["sequence"].as_u64().unwrap();
        assert!(next > sequence, "the order is broken");
        sequence = next;
    }
    assert_eq!(content, hash("5 19"));
}

#[tokio::test]
async fn t6_scope_guard() {
    for world in worlds() {
        world.scan().await;
        world.write("docs/secrets.md", "outside of the scope of chronicles");
        world.write("src/secrets.md", "inside");
        let report = world.scan().await;
        assert_eq!((report.triggered, report.skipped), (2, 0));
        let outside = world.events(PROJECT_CHRONICLE).await;
        assert_eq!(outside.len(), 1);
        assert_eq!(outside[0].file_path.as_deref(), Some("docs/secrets.md"));
        assert_eq!(world.events("src/secrets.md.sage").await.len(), 1);
        assert!(!world.disk("docs/secrets.md.sage").exists());
        let beside = crate::support::at("docs/secrets.md.sage");
        let refused = world.chronicle.append(&beside, outside[0].clone()).await;
        assert_eq!(refused.unwrap_err().code, Code::Permission);
    }
}

#[tokio::test]
async fn t6_scope_guard_logs_a_skip_where_nothing_may_be_written() {
    let memory = Arc::new(MemoryChronicle::default());
    let world = World::with(tempfile::tempdir().unwrap(), memory.clone(), GUARDIAN);
    world.scan().await;
    *memory.is_closed.lock().unwrap() = true;
    world.write("src/secrets.md", "told to nobody");
    let report = world.scan().await;
    assert_eq!((report.triggered, report.skipped, report.pending), (0, 1, 0));
    let status = world.status();
    assert_eq!((status.skipped, status.skips.len()), (1, 1));
    assert!(status.skips[0].reason.contains("outside the scope"), "{:?}", status.skips);
    *memory.is_closed.lock().unwrap() = false;
    assert_eq!(world.scan().await.triggered, 0, "a skip is for good");
    world.write("src/secrets.md", "told again");
    assert_eq!(world.scan().await.triggered, 1);
    assert!(world.status().last_sequence == 2 && world.all_events().await[0].fields["sequence"] == 2);
}
