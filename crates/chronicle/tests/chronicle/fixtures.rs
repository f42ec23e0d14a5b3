//! The normative fixtures of `relay/fixtures`, and the rules of an event that they pin.

use std::path::PathBuf;

use serde_json::Value;
use tgp_chronicle::MAX_LINE_BYTES;
use tgp_contract::{ChronicleEvent, Code};

use crate::support::{Project, assert_code, at, event, event_with};

const FILE: &str = "src/a.ts.sage";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../relay/fixtures/chronicle-events")
}

fn events(input: Value) -> Vec<ChronicleEvent> {
    let list = if input.is_array() { input } else { Value::Array(vec![input]) };
    serde_json::from_value(list).unwrap()
}

#[test]
fn every_fixture_gives_its_file_and_reads_back() {
    let mut cases = 0;
    for file in std::fs::read_dir(folder()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some(case) = name.strip_suffix(".input.json") else { continue };
        let input = serde_json::from_slice(&std::fs::read(folder().join(&name)).unwrap()).unwrap();
        let output = std::fs::read(folder().join(format!("{case}.output.ndjson"))).unwrap();
        let project = Project::new();
        for event in events(input) {
            project.append(FILE, event).unwrap();
        }
        assert_eq!(
            String::from_utf8_lossy(&project.bytes(FILE)),
            String::from_utf8_lossy(&output),
            "{case} is written otherwise"
        );
        let report = project.chronicle.verify(&at(FILE)).unwrap();
        assert!(report.is_intact(), "{case}: {report:?}");
        // What is read is what was written: appending it elsewhere gives the same bytes.
        for event in project.events(FILE).unwrap() {
            project.append("src/copy.sage", event).unwrap();
        }
        assert_eq!(project.bytes("src/copy.sage"), output, "{case} is read otherwise");
        cases += 1;
    }
    assert!(cases >= 7, "only {cases} fixtures were found");
}

#[test]
fn every_refused_fixture_is_refused_and_leaves_no_file() {
    let text = std::fs::read(folder().join("refused.json")).unwrap();
    let list: Value = serde_json::from_slice(&text).unwrap();
    let list = list["events"].as_array().unwrap();
    assert!(list.len() >= 11);
    let project = Project::new();
    for case in list {
        // What is not an event at all is refused by the parser.
        if let Ok(event) = serde_json::from_value::<ChronicleEvent>(case["event"].clone()) {
            let refused = project.chronicle.append_blocking(&at(FILE), event);
            assert!(refused.is_err(), "{} was taken", case["why"]);
            assert_code(refused, Code::Validation);
        }
    }
    assert!(!project.disk("src").exists());
}

#[test]
fn events_that_could_not_be_read_back_are_refused() {
    let project = Project::new();
    let refused = |event| assert_code(project.append(FILE, event), Code::Validation).message;
    let field = |name: &str, value: Value| event_with([(name.to_owned(), value)].into_iter().collect());

    let too_long = "x".repeat(MAX_LINE_BYTES);
    assert!(refused(field("text", Value::from(too_long))).contains("at most 1048576"));
    let deep = (0..70).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    assert!(refused(field("deep", deep)).contains("nested"));
    for name in ["eventId", "type", "timestamp", "actor", "filePath"] {
        assert!(refused(field(name, Value::from("x"))).contains(name));
    }
    assert!(!project.disk("src").exists());

    // The longest line that there can be is one.
    let mut event = event(0);
    let size = |event: &ChronicleEvent| {
        let with_id = ChronicleEvent { event_id: Some("0".repeat(64)), ..event.clone() };
        tgp_contract::canonical::to_string(&serde_json::to_value(with_id).unwrap()).unwrap().len() + 1
    };
    event.fields.insert("text".to_owned(), Value::from(""));
    let room = MAX_LINE_BYTES - size(&event);
    event.fields.insert("text".to_owned(), Value::from("x".repeat(room)));
    assert_eq!(project.append(FILE, event.clone()), Ok(true));
    assert_eq!(project.bytes(FILE).len(), MAX_LINE_BYTES);
    assert_eq!(project.append(FILE, event.clone()), Ok(false));
    assert_eq!(project.events(FILE).unwrap().len(), 1);
    event.fields.insert("text".to_owned(), Value::from("x".repeat(room + 1)));
    assert_code(project.append(FILE, event), Code::Validation);
}
