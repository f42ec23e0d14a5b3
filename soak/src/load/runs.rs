//! Runs in their own processes: `tgp exec` of a person and `tgp call` of a program.

use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use serde_json::{Value, json};

use super::{Place, kind, wait_ms};
use crate::ledger::Reported;
use crate::program::documents;

/// One run after the other.
pub(super) fn runs(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, runner } = place;
    while !soak.is_over() {
        let kind = kind(&mut rng);
        let number = site.ledger.begin(kind, "a process");
        let path = format!("tools/{}.ts", kind.tool());
        let args = json!({ "n": number, "ms": wait_ms(&mut rng) });
        let command = if rng.bool() {
            soak.report.count("tgp exec");
            site.tgp(&["--json", "exec", &path, "--args", &args.to_string()])
        } else {
            soak.report.count("tgp call");
            site.tgp(&["call", "exec_tool", &json!({ "path": path, "args": args }).to_string(), "--yes"])
        };
        let ran = runner.run(command, "")?;
        let told = documents(&ran.stdout).pop().unwrap_or(Value::Null);
        soak.settle(site, number, Reported::of(&told), &told);
        soak.sleep(Duration::from_millis(rng.u64(0..50)));
    }
    Ok(())
}
