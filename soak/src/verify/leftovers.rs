//! What must not be left: processes, sockets, locks and temporary files.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use tgp_hostile::baseline::{children, command_of, left_behind, marked};
use tgp_hostile::suite::reaped;

use super::Check;
use crate::load::Soak;

/// How long what is left may take to end.
const SETTLE: Duration = Duration::from_secs(10);

/// Processes of the projects that are still there, though every program that the soak has started has ended. A lock
/// on a file ends with the process that holds it.
pub fn processes(soak: &Soak, mark: &str) {
    let started = Instant::now();
    loop {
        let mut left: BTreeMap<u32, String> = marked(mark).into_iter().collect();
        left.extend(children(std::process::id()).into_iter().map(|pid| (pid, command_of(pid))));
        left.retain(|&pid, _| pid != std::process::id() && !reaped(pid));
        if left.is_empty() {
            return;
        }
        if started.elapsed() > SETTLE {
            for (pid, command) in left {
                soak.report.find(format!("process {pid} is left: {command}"));
            }
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Files that a process should have removed, or the next one after a kill.
pub(super) fn files(check: &Check<'_>) -> Result<()> {
    let site = check.site;
    for name in left_behind(site.project.root()) {
        check.find(format!("a file is left: {name}"));
    }
    if site.server.socket().exists() {
        check.find("the socket is left");
    }
    Ok(())
}
