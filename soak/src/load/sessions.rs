//! Agent sessions with a scripted model, resumed when they were killed.

use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use serde_json::{Value, json};

use super::{Place, Soak, kind, wait_ms};
use crate::ledger::Reported;
use crate::program::{Runner, documents};
use crate::site::Site;

/// How often a session is resumed while the load continues; what is left is resumed at the end.
const RESUMES: usize = 4;

/// One session after the other.
pub(super) fn sessions(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, runner } = place;
    while !soak.is_over() {
        let serial = site.ledger.number();
        let script = runner.file(&format!("model-{serial}.json"));
        std::fs::write(&script, turns(site, &mut rng).to_string())?;
        let provider = format!("script:{}", script.display());
        let task = format!("soak session {serial}");
        soak.report.count("sessions");
        let ran = runner.run(site.tgp(&["--json", "run", &task, "--provider", &provider, "--yes"]), "")?;
        let mut events = documents(&ran.stdout);
        read(soak, site, &events);
        let id = events.iter().find(|event| event["type"] == "session");
        let Some(id) = id.and_then(|event| event["id"].as_str()).map(str::to_owned) else { continue };
        for _ in 0..RESUMES {
            if is_done(&events) || soak.is_over() {
                break;
            }
            events = resume(soak, site, runner, &id)?;
        }
        soak.sleep(Duration::from_millis(rng.u64(0..100)));
    }
    Ok(())
}

/// The model's turns: calls of runs, then a text.
fn turns(site: &Site, rng: &mut Rng) -> Value {
    let mut turns = Vec::new();
    for _ in 0..rng.u32(2..6) {
        let calls: Vec<Value> = (0..rng.u32(1..4))
            .map(|_| {
                let kind = kind(rng);
                let number = site.ledger.begin(kind, "a session");
                let path = format!("tools/{}.ts", kind.tool());
                let arguments = json!({ "path": path, "args": { "n": number, "ms": wait_ms(rng) } });
                json!({ "type": "tool_call", "toolName": "exec_tool", "callId": call_id(number), "arguments": arguments })
            })
            .collect();
        turns.push(json!({ "delayMs": rng.u64(0..30), "events": calls }));
    }
    turns.push(json!([{ "type": "text", "value": "That is all." }]));
    Value::Array(turns)
}

fn call_id(number: u64) -> String {
    format!("run-{number}")
}

/// Resumes a session and gives its events.
///
/// # Errors
/// When `tgp` cannot be started.
pub fn resume(soak: &Soak, site: &Site, runner: &Runner<'_>, id: &str) -> Result<Vec<Value>> {
    soak.report.count("resumes of sessions");
    let ran = runner.run(site.tgp(&["--json", "run", "--resume", id, "--yes"]), "")?;
    let events = documents(&ran.stdout);
    read(soak, site, &events);
    Ok(events)
}

/// Whether these events end a session for good.
#[must_use]
pub fn is_done(events: &[Value]) -> bool {
    let last = events.last();
    last.is_some_and(|event| event.pointer("/summary/ending/kind").and_then(Value::as_str) == Some("done"))
}

/// Writes down what the events report.
fn read(soak: &Soak, site: &Site, events: &[Value]) {
    for event in events {
        if event["type"] == "session"
            && let Some(id) = event["id"].as_str()
        {
            site.ledger.session(id);
        }
        if event["type"] != "tool_result" {
            continue;
        }
        let number = event["callId"].as_str().and_then(|id| id.strip_prefix("run-")?.parse().ok());
        if let Some(number) = number {
            soak.report.count("calls in sessions");
            soak.settle(site, number, Reported::of(&event["result"]), &event["result"]);
        }
    }
}
