//! Chronicles in the tree: what the valve sees of them, and of other files with such names.

use serde_json::json;
use tgp_contract::{ChronicleEvent, EventActor};

use crate::support::{EVERYTHING, World, at};

fn line() -> String {
    let mut event = ChronicleEvent {
        event_id: None,
        kind: "NOTE".to_owned(),
        timestamp: "2026-01-01T00:00:00Z".to_owned(),
        actor: EventActor { agent: "person".to_owned(), id: "ann".to_owned() },
        file_path: None,
        fields: json!({}).as_object().unwrap().clone(),
    };
    event.event_id = Some(event.compute_id().unwrap());
    format!("{}\n", event.to_canonical().unwrap())
}

#[tokio::test]
async fn a_source_of_sagemath_is_told_of_and_an_old_chronicle_is_not() {
    let world = World::in_tree(EVERYTHING);
    world.write("src/a.ts", "1");
    world.scan().await;
    world.write("src/a.ts", "2");
    world.write("src/a.ts.sage", line());
    world.write("src/curve.sage", "R.<x> = QQ[]\n");
    let report = world.scan().await;
    assert_eq!((report.triggered, report.pending), (2, 0), "{report:#?}");
    assert_eq!(world.events("src/a.ts.sage").await.len(), 1);
    assert_eq!(world.events("src/curve.sage.sage").await[0].fields["change"], "created");
    assert!(world.disk(".sage/files/src/curve.sage.sage").is_file());
    // A person has migrated it.
    std::fs::remove_file(world.disk("src/a.ts.sage")).unwrap();
    world.write("src/curve.sage", "R.<y> = QQ[]\n");
    let report = world.scan().await;
    assert_eq!((report.triggered, report.pending), (1, 0), "{report:#?}");
    assert_eq!(world.events("src/curve.sage.sage").await[1].fields["change"], "changed");
}

#[tokio::test]
async fn a_folder_that_is_gone_with_its_files_keeps_their_stories() {
    let world = World::in_tree(EVERYTHING);
    world.write("src/deep/a.ts", "1");
    world.scan().await;
    std::fs::remove_dir_all(world.disk("src/deep")).unwrap();
    let report = world.scan().await;
    assert_eq!((report.triggered, report.pending), (1, 0), "{report:#?}");
    let told = world.chronicle.tail(&at("src/deep/a.ts.sage"), 5).await.unwrap();
    assert_eq!(told[0].fields["change"], "deleted");
    assert!(!world.disk("src/deep").exists(), "no folder is made for it");
}
