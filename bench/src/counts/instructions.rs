//! Instructions of the kernel process, counted with valgrind's callgrind.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::calls::CallPlan;
use super::{Counts, EXEC_TOOL, FS_READ, per_call, tracer};

/// Within the pause the pool is full again and the record of the call is in the database: without it, how many records are
/// written together would depend on the speed of the threads.
const PLAN: CallPlan = CallPlan { warm_up: 5, counted: 20, pause: Duration::from_millis(80) };

/// Counts the instructions of the kernel process; workers are other processes and do not count.
pub fn count(counts: &mut Counts) -> Result<()> {
    for what in [EXEC_TOOL, FS_READ] {
        let total = between_marks(what)?;
        counts.counts.insert(format!("instructions.{what}"), per_call(total, PLAN.counted));
    }
    Ok(())
}

/// The instructions between the marks of one process.
fn between_marks(what: &str) -> Result<u64> {
    let own = std::env::current_exe().context("this program's own path is not known")?;
    let folder = tempfile::tempdir().context("no temporary folder")?;
    let output = tracer("valgrind")
        .args(["--tool=callgrind", "--quiet", "--compress-strings=no", "--dump-before=*mark_of_count*"])
        .arg(format!("--callgrind-out-file={}", folder.path().join("out").display()))
        .arg(own)
        .args(PLAN.arguments(what))
        .output()
        .context("valgrind cannot be started")?;
    ensure!(
        output.status.success(),
        "the calls of {what} failed under valgrind: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    // One part ends at each mark: the first has boot and warm-up, the second what counts.
    total(&folder.path().join("out.2")).with_context(|| format!("callgrind wrote no part for {what}"))
}

/// The line `totals: 123` of a part; `summary: 123` in some versions.
fn total(file: &Path) -> Result<u64> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let number = text.lines().find_map(|line| {
        line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: "))?.trim().parse().ok()
    });
    number.context("it has no total")
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_of_a_part_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.2");
        std::fs::write(&file, "# callgrind format\npart: 2\nevents: Ir\nfn=main\n1 5\ntotals: 1234\n")
            .unwrap();
        assert_eq!(total(&file).unwrap(), 1234);
        std::fs::write(&file, "events: Ir\n").unwrap();
        assert!(total(&file).is_err());
    }
}
