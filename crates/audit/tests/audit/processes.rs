//! Many processes on one chain, and processes that are killed.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tgp_audit::{Audit, AuditFilter, AuditOptions, AuditSync, ExportFormat, FileAnchor};
use tgp_contract::Recorder;

use crate::support::{Place, bodies, child, options, record};

const FOLDER: &str = "TGP_AUDIT_FOLDER";
const NAME: &str = "TGP_AUDIT_NAME";
const PROCESSES: usize = 4;
const ENTRIES: usize = 200;
/// Enough to hit a start, a batch, an anchoring and the log's rewriting many times.
const KILLS: u64 = 60;

fn opened(durability: AuditSync) -> Option<(Audit, String)> {
    let folder = PathBuf::from(std::env::var_os(FOLDER)?);
    let options = AuditOptions {
        durability,
        anchor_every: Duration::from_millis(20),
        ..options(&folder.join("audit.db"))
    };
    let anchor = Arc::new(FileAnchor::new(folder.join("anchor")));
    Some((Audit::open(options, anchor).expect("it opens by itself"), std::env::var(NAME).unwrap()))
}

fn say(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}

fn ids(place: &Place) -> Vec<String> {
    let export = place.export(&AuditFilter::default(), ExportFormat::Jsonl).unwrap();
    bodies(&export).iter().map(|body| body["callId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_write_one_chain() {
    if let Some((audit, name)) = opened(AuditSync::Batched) {
        for number in 0..ENTRIES {
            audit.record(record(&format!("{name}-{number}"))).await.expect("it records");
            if number % 16 == 0 {
                audit.flush().await.expect("it flushes");
            }
        }
        audit.close().await.expect("it closes");
        return;
    }
    let place = Place::new();
    // All of them meet a file that does not exist yet.
    let children: Vec<_> = (0..PROCESSES)
        .map(|number| {
            child("processes::four_processes_write_one_chain")
                .env(FOLDER, place.folder.path())
                .env(NAME, number.to_string())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    place.assert_intact((PROCESSES * ENTRIES) as u64);
    assert_eq!(place.head().sequence, (PROCESSES * ENTRIES) as u64);
    let ids = ids(&place);
    for process in 0..PROCESSES {
        let expected: Vec<String> = (0..ENTRIES).map(|number| format!("{process}-{number}")).collect();
        let own: Vec<String> =
            ids.iter().filter(|id| id.starts_with(&format!("{process}-"))).cloned().collect();
        assert_eq!(own, expected, "each in its own order");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_survives_kill_9() {
    if let Some((audit, name)) = opened(AuditSync::Call) {
        let audit = Arc::new(audit);
        // Four callers share each sync.
        let callers = (0..4).map(|caller| {
            let (audit, name) = (Arc::clone(&audit), name.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    let id = format!("{name}-{caller}-{number}");
                    audit.record(record(&id)).await.expect("it records");
                    say(&format!("kept {id}"));
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
        unreachable!("somebody kills us");
    }
    let random = |below: u64| RandomState::new().build_hasher().finish() % below;
    let place = Place::new();
    let mut kept = BTreeSet::new();
    for round in 0..KILLS {
        let mut process = child("processes::what_was_acknowledged_survives_kill_9")
            .env(FOLDER, place.folder.path())
            .env(NAME, round.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        // Some are killed while they start, the others after some entries; always at an odd moment.
        let mut wanted = random(12);
        let mut lines = Vec::new();
        while wanted > 0 {
            let Some(line) = output.next() else { break };
            wanted -= u64::from(line.starts_with("kept "));
            lines.push(line);
        }
        std::thread::sleep(Duration::from_micros(random(30_000)));
        let ended = process.try_wait().unwrap();
        process.kill().unwrap();
        lines.extend(output);
        let stderr = process.wait_with_output().unwrap().stderr;
        assert!(ended.is_none(), "round {round} failed: {}", String::from_utf8_lossy(&stderr));
        kept.extend(lines.iter().filter_map(|line| line.strip_prefix("kept ")).map(str::to_owned));
    }
    // A last kernel continues where they were.
    let audit = place.open().unwrap();
    audit.record(record("last")).await.unwrap();
    audit.close().await.unwrap();
    place.verify().unwrap();
    let ids = ids(&place);
    let found: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(found.len(), ids.len(), "no entry is there twice");
    let lost: Vec<&String> = kept.difference(&found).collect();
    assert_eq!(lost, [] as [&String; 0]);
    assert!(kept.len() as u64 > KILLS, "{} is too few to say anything", kept.len());
}
