//! Many processes on one chronicle, and processes that are killed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_chronicle::{ChronicleOptions, ChronicleSync, FileChronicle};
use tgp_contract::ChronicleEvent;

use crate::support::{Project, at, beside, child, event_with};

const FILE: &str = "src/a.ts.sage";
const FOLDER: &str = "TGP_CHRONICLE_FOLDER";
const NAME: &str = "TGP_CHRONICLE_NAME";
const PROCESSES: usize = 4;
const EVENTS: usize = 150;
const KILLS: u64 = 40;

fn opened(durability: ChronicleSync) -> Option<(FileChronicle, String)> {
    let folder = std::env::var_os(FOLDER)?;
    let options = ChronicleOptions { durability, ..beside(Path::new(&folder)) };
    Some((FileChronicle::open(&options).unwrap(), std::env::var(NAME).unwrap()))
}

/// Events of very different lengths: the kernel looks for a kill between the pages of a long write.
fn sized(name: &str, number: usize) -> ChronicleEvent {
    let length = [10, 300, 5000, 70_000, 400_000][number % 5];
    let fields = json!({ "name": name, "number": number, "text": "y".repeat(length) });
    event_with(fields.as_object().unwrap().clone())
}

fn names(project: &Project) -> Vec<(String, u64)> {
    let name = |event: &ChronicleEvent| {
        let text = event.fields["name"].as_str().map(str::to_owned);
        (text.unwrap(), event.fields["number"].as_u64().unwrap())
    };
    project.events(FILE).unwrap().iter().map(name).collect()
}

#[test]
fn four_processes_append_every_event_once_and_whole() {
    if let Some((chronicle, name)) = opened(ChronicleSync::Batch) {
        for number in 0..EVENTS {
            // Every third is one that all of them try to append.
            let own = if number % 3 == 0 { "all" } else { &name };
            let fields = json!({ "name": own, "number": number, "text": "z".repeat(number * 40) });
            chronicle.append_blocking(&at(FILE), event_with(fields.as_object().unwrap().clone())).unwrap();
        }
        return;
    }
    let project = Project::new();
    // All of them meet a folder that does not exist yet.
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            child("processes::four_processes_append_every_event_once_and_whole")
                .env(FOLDER, project.folder.path())
                .env(NAME, number.to_string())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let report = project.chronicle.verify(&at(FILE)).unwrap();
    assert!(report.is_intact() && report.torn.is_none() && report.set_aside.is_empty(), "{report:?}");
    let mut by_name: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (name, number) in names(&project) {
        by_name.entry(name).or_default().push(number);
    }
    assert_eq!(by_name.len(), PROCESSES + 1);
    for (name, numbers) in by_name {
        let expected: Vec<u64> =
            (0..EVENTS as u64).filter(|number| (number % 3 == 0) == (name == "all")).collect();
        assert_eq!(numbers, expected, "`{name}` in its own order, and once");
    }
}

#[test]
fn kill_9_loses_no_acknowledged_event_and_breaks_no_line() {
    if let Some((chronicle, name)) = opened(ChronicleSync::Batch) {
        for number in 0.. {
            chronicle.append_blocking(&at(FILE), sized(&name, number)).unwrap();
            std::io::stdout().write_all(format!("\nkept {name} {number}\n").as_bytes()).unwrap();
        }
    }
    let random = |below: u64| RandomState::new().build_hasher().finish() % below;
    let project = Project::new();
    let mut kept = BTreeSet::new();
    for round in 0..KILLS / 2 {
        // Two at a time, so that one dies while the other waits for its lock.
        let mut processes: Vec<_> = (0..2)
            .map(|second| {
                child("processes::kill_9_loses_no_acknowledged_event_and_breaks_no_line")
                    .env(FOLDER, project.folder.path())
                    .env(NAME, format!("{round}.{second}"))
                    .spawn()
                    .unwrap()
            })
            .collect();
        for process in &mut processes {
            let mut output = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
            let mut wanted = random(8);
            let mut lines = Vec::new();
            while wanted > 0 {
                let Some(line) = output.next() else { break };
                wanted -= u64::from(line.starts_with("kept "));
                lines.push(line);
            }
            std::thread::sleep(Duration::from_micros(random(8000)));
            let ended = process.try_wait().unwrap();
            process.kill().unwrap();
            lines.extend(output);
            process.wait().unwrap();
            assert!(ended.is_none(), "a process of round {round} failed by itself");
            kept.extend(lines.iter().filter_map(|line| {
                let (name, number) = line.strip_prefix("kept ")?.split_once(' ')?;
                Some((name.to_owned(), number.parse::<u64>().unwrap()))
            }));
        }
    }
    // A last one continues where they were.
    project.append(FILE, sized("last", 0)).unwrap();
    let report = project.chronicle.verify(&at(FILE)).unwrap();
    assert!(report.is_intact() && report.torn.is_none(), "{report:?}");
    let found = names(&project);
    let set: BTreeSet<_> = found.iter().cloned().collect();
    assert_eq!(set.len(), found.len(), "no event is there twice");
    let lost: Vec<_> = kept.difference(&set).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(kept.len() as u64 > KILLS, "{} is too few to say anything", kept.len());
    // What was torn is the beginning of an event that was not reported.
    for torn in report.set_aside {
        let text = project.bytes(torn.as_str());
        assert!(text.starts_with(b"{\"actor\":") && serde_json::from_slice::<Value>(&text).is_err());
    }
}
