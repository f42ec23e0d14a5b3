//! Socket clients: each makes some calls at `tgp serve`, and some go away without waiting for the answer.

use std::io;
use std::time::Duration;

use anyhow::{Error, Result};
use fastrand::Rng;
use serde_json::{Value, json};
use tgp_hostile::case::Frame;
use tgp_hostile::entry::Client;

use super::{Place, kind, wait_ms};
use crate::ledger::Reported;

/// Connects, makes some calls, and connects again.
pub(super) fn clients(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, .. } = place;
    while !soak.is_over() {
        let Ok(mut client) = site.server.connect(site) else {
            soak.sleep(Duration::from_millis(50));
            continue;
        };
        for _ in 0..rng.u32(1..20) {
            if soak.is_over() || !one(place, &mut client, &mut rng) {
                break;
            }
            soak.sleep(Duration::from_millis(rng.u64(0..20)));
        }
    }
    Ok(())
}

/// Makes one run; false when the connection is gone.
fn one(place: &Place<'_>, client: &mut Client, rng: &mut Rng) -> bool {
    let Place { soak, site, .. } = place;
    let kind = kind(rng);
    let number = site.ledger.begin(kind, "the socket");
    let arguments = json!({
        "path": format!("tools/{}.ts", kind.tool()),
        "args": { "n": number, "ms": wait_ms(rng) },
    });
    soak.report.count("calls through the socket");
    if rng.u8(0..100) < 4 {
        leave(client, &arguments, rng);
        soak.settle(site, number, Reported::Nothing, &Value::Null);
        return false;
    }
    let answer = call(place, client, "exec_tool", &arguments);
    let told = answer.clone().unwrap_or_default();
    soak.settle(site, number, Reported::of(&told), &told);
    answer.is_some()
}

/// Makes a call; nothing when the connection has ended. No answer at all is a finding.
pub(super) fn call(place: &Place<'_>, client: &mut Client, tool: &str, arguments: &Value) -> Option<Value> {
    match client.call(tool, arguments, false) {
        Ok(answer) => Some(answer),
        Err(error) => {
            if is_timeout(&error) {
                place.soak.report.find(format!("the server did not answer a call of {tool}: {arguments}"));
            }
            None
        }
    }
}

fn is_timeout(error: &Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut))
}

/// Sends a call and goes away, at whichever moment of the run that is.
fn leave(client: &mut Client, arguments: &Value, rng: &mut Rng) {
    let request = json!({ "method": "call", "id": "1", "tool": "exec_tool", "arguments": arguments });
    let frame = Frame { text: request.to_string(), repeat: None, around: None, length: None };
    // A server that was killed reads nothing.
    let _ = client.frame(&frame);
    std::thread::sleep(Duration::from_millis(rng.u64(0..60)));
}
