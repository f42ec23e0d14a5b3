//! Random appends against a list in memory.

use proptest::prelude::*;
use serde_json::{Map, Value};
use tgp_chronicle::{ChronicleSync, DEFAULT_TAIL, Start};
use tgp_contract::{Chronicle, ChronicleEvent, EventActor};

use crate::support::{Project, at, beside, event, number};

const FILES: [&str; 3] = [".sage/project.sage", "src/a.ts.sage", "src/deep/er/b.rs.sage"];

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no such number", |number| number.is_finite())
            .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(".{0,6}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

prop_compose! {
    fn any_event()(
        kind in "[A-Z_]{1,8}",
        id in ".{1,8}",
        // Few different ones, so that many events come more than once.
        second in 0..3_u8,
        file_path in prop::option::of("[a-z]{1,5}"),
        fields in prop_oneof![
            4 => Just(Map::new()),
            1 => prop::collection::hash_map("x.{0,4}", any_value(), 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>()),
        ],
    ) -> ChronicleEvent {
        ChronicleEvent {
            event_id: None,
            kind,
            timestamp: format!("2026-01-01T00:00:0{second}Z"),
            actor: EventActor { agent: "a".to_owned(), id },
            file_path,
            fields,
        }
    }
}

fn ids(events: &[ChronicleEvent]) -> Vec<String> {
    events.iter().map(|event| event.event_id.clone().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_and_the_tail_agree_with_a_list(
        pool in prop::collection::vec(any_event(), 1..12),
        steps in prop::collection::vec((0..FILES.len(), any::<prop::sample::Index>(), any::<bool>()), 0..40),
        most in 0..12_usize,
    ) {
        let project = Project::new();
        // The second one learns of what the first has written from the file alone.
        let chronicles = [project.chronicle.clone(), project.again()];
        let mut model: [Vec<String>; FILES.len()] = Default::default();
        for (file, pick, is_second) in steps {
            let event = pick.get(&pool).clone();
            let id = event.compute_id().unwrap();
            let appended = chronicles[usize::from(is_second)].append_blocking(&at(FILES[file]), event).unwrap().appended;
            prop_assert_eq!(&appended.event_id, &id);
            prop_assert_eq!(appended.appended, !model[file].contains(&id));
            if appended.appended {
                model[file].push(id);
            }
        }
        let mut there: Vec<_> = FILES.iter().zip(&model).filter(|(_, ids)| !ids.is_empty()).map(|(file, _)| at(file)).collect();
        there.sort();
        prop_assert_eq!(project.chronicle.files_blocking().unwrap(), there);
        for (file, expected) in FILES.iter().zip(&model) {
            let events = project.events(file).unwrap();
            prop_assert_eq!(&ids(&events), expected);
            let tail = project.chronicle.tail_blocking(&at(file), most).unwrap();
            prop_assert_eq!(&tail[..], &events[events.len().saturating_sub(most)..]);
            // Every line can be begun at, by its number and by its place.
            let entries: Vec<_> = project.chronicle.read(&at(file), Start::Beginning).unwrap().map(Result::unwrap).collect();
            for (index, entry) in entries.iter().enumerate() {
                let line = Start::Line(index as u64 + 1);
                for start in [line, Start::Offset(entry.offset)] {
                    let from = project.chronicle.read(&at(file), start).unwrap().map(Result::unwrap).collect::<Vec<_>>();
                    prop_assert_eq!(&from[..], &entries[index..]);
                }
                let after = project.chronicle.read(&at(file), Start::Offset(entry.next)).unwrap();
                prop_assert_eq!(after.count(), entries.len() - index - 1);
            }
            if !expected.is_empty() {
                let report = project.chronicle.verify(&at(file)).unwrap();
                prop_assert!(report.is_intact() && report.torn.is_none());
                prop_assert_eq!(report.events, expected.len() as u64);
                prop_assert_eq!(report.first_id.as_ref(), expected.first());
                prop_assert_eq!(report.last_id.as_ref(), expected.last());
            }
        }
    }
}

#[tokio::test]
async fn the_trait_keeps_an_event_once_and_gives_the_last_ones() {
    let project = Project::new();
    let chronicle: &dyn Chronicle = &project.chronicle;
    let file = at("src/a.ts.sage");
    assert_eq!(chronicle.tail(&file, DEFAULT_TAIL).await.unwrap(), []);
    for number in 0..60 {
        assert!(chronicle.append(&file, event(number)).await.unwrap().appended);
    }
    let again = chronicle.append(&file, event(7)).await.unwrap();
    assert!(!again.appended);
    assert_eq!(again.event_id, event(7).compute_id().unwrap());
    let tail = chronicle.tail(&file, DEFAULT_TAIL).await.unwrap();
    assert_eq!(tail.iter().map(number).collect::<Vec<_>>(), (10..60).collect::<Vec<_>>());
    assert_eq!(chronicle.files().await.unwrap(), [file]);
}

#[test]
fn every_durability_keeps_the_same_file() {
    let batched = Project::new();
    let options =
        tgp_chronicle::ChronicleOptions { durability: ChronicleSync::Event, ..beside(batched.folder.path()) };
    let synced = tgp_chronicle::FileChronicle::open(&options).unwrap();
    for number in 0..200 {
        batched.append("src/batched.sage", event(number)).unwrap();
        if number % 20 == 0 {
            synced.append_blocking(&at("src/synced.sage"), event(number)).unwrap();
            assert!(
                !synced.append_blocking(&at("src/batched.sage"), event(number)).unwrap().appended.appended
            );
        }
    }
    batched.chronicle.sync().unwrap();
    assert_eq!(batched.events("src/batched.sage").unwrap().len(), 200);
    assert_eq!(batched.events("src/synced.sage").unwrap().len(), 10);
}
