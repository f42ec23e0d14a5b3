//! Queries whose maps run tools at the same time, resumed when they were killed.

use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use serde_json::{Map, Value};

use super::{Place, Soak, wait_ms};
use crate::ledger::{Kind, Reported};
use crate::program::{Runner, documents};
use crate::site::Site;

/// How often a run is resumed while the load continues; what is left is resumed at the end.
const RESUMES: usize = 3;

/// The maps of `soak.aql`, in the order in which a run's numbers are written down: name, tool and items.
const MAPS: [(&str, Kind, usize); 3] =
    [("both", Kind::Both, 6), ("nested", Kind::Nested, 3), ("fails", Kind::Fails, 2)];

/// One query after the other.
pub(super) fn queries(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, runner } = place;
    while !soak.is_over() {
        let mut numbers = Vec::new();
        let mut inputs = Map::from_iter([("ms".to_owned(), wait_ms(&mut rng).into())]);
        for (name, kind, items) in MAPS {
            let of_map: Vec<u64> = (0..items).map(|_| site.ledger.begin(kind, "a query")).collect();
            inputs.insert(name.to_owned(), of_map.clone().into());
            numbers.extend(of_map);
        }
        soak.report.count("queries");
        let words =
            ["--json", "aql", "run", "soak.aql", "--yes", "--inputs", &Value::Object(inputs).to_string()];
        let mut events = documents(&runner.run(site.tgp(&words), "")?.stdout);
        let id = events.iter().find(|event| event["type"] == "run");
        let Some(id) = id.and_then(|event| event["id"].as_str()).map(str::to_owned) else { continue };
        site.ledger.query(&id, &numbers);
        read(soak, site, &events, &numbers);
        for _ in 0..RESUMES {
            if is_done(&events) || soak.is_over() {
                break;
            }
            events = resume(soak, site, runner, &id, &numbers, &[])?;
        }
        soak.sleep(Duration::from_millis(rng.u64(0..100)));
    }
    Ok(())
}

/// Resumes a run and gives its events. The steps of `again` are made once more, though their outcome is unknown.
///
/// # Errors
/// When `tgp` cannot be started.
pub fn resume(
    soak: &Soak,
    site: &Site,
    runner: &Runner<'_>,
    id: &str,
    numbers: &[u64],
    again: &[String],
) -> Result<Vec<Value>> {
    soak.report.count("resumes of queries");
    let mut words = vec!["--json", "aql", "run", "--resume", id, "--yes"];
    for step in again {
        words.extend(["--again", step]);
    }
    let events = documents(&runner.run(site.tgp(&words), "")?.stdout);
    read(soak, site, &events, numbers);
    for step in again {
        if let Some(number) = number_of(step, numbers) {
            soak.settle(site, number, Reported::Repeated, &Value::Null);
        }
    }
    Ok(events)
}

/// Whether these events end a run for good.
#[must_use]
pub fn is_done(events: &[Value]) -> bool {
    events.last().is_some_and(|event| event["type"] == "end")
}

/// Writes down what the events report.
fn read(soak: &Soak, site: &Site, events: &[Value], numbers: &[u64]) {
    for event in events {
        let step = event["step"].as_str().unwrap_or_default();
        let Some(number) = number_of(step, numbers) else { continue };
        let reported = match event["type"].as_str() {
            // What an earlier program did is reported as kept, also where it was a failure that the query
            // allows.
            Some("done") if event["how"] == "ran" => Reported::Success,
            Some("failed") => Reported::of_error(&event["error"]),
            _ => continue,
        };
        // A step that an earlier program has made is reported again.
        let known = site.ledger.run(number).map(|run| run.reported);
        if known != Some(reported) && known != Some(Reported::Repeated) {
            soak.report.count("calls in queries");
            soak.settle(site, number, reported, &event["error"]);
        }
    }
}

/// The number of the step `both[2].run`.
fn number_of(step: &str, numbers: &[u64]) -> Option<u64> {
    let (map, rest) = step.split_once('[')?;
    let (index, end) = rest.split_once(']')?;
    if end != ".run" {
        return None;
    }
    let mut before = 0;
    for (name, _, items) in MAPS {
        if name == map {
            return numbers.get(before + index.parse::<usize>().ok()?).copied();
        }
        before += items;
    }
    None
}
