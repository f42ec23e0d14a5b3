//! A valve that watches, and changes of files for it to report.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;

use super::Place;
use crate::program::LIMIT;

/// Files that change again and again.
const FILES: u64 = 10;

/// How long a watch runs before it is ended in order and another one begins.
const WATCH: Duration = Duration::from_secs(25);

/// Keeps a `tgp valve watch` running.
pub(super) fn valve(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, runner } = place;
    while !soak.is_over() {
        soak.report.count("starts of tgp valve watch");
        // The bound is the end of the load or chaos, whichever comes first: `watch` itself never ends.
        let ran =
            runner.run_until(site.tgp(&["--json", "valve", "watch", "--yes"]), WATCH.min(LIMIT), soak)?;
        let triggered = ran.stdout.matches("\"type\":\"triggered\"").count();
        soak.report.count_many("events of the valve", u64::try_from(triggered)?);
        soak.sleep(Duration::from_millis(rng.u64(0..300)));
    }
    Ok(())
}

/// Creates, changes, renames and removes files. A full disk keeps it from some of that, which is not a failure.
pub(super) fn changes(place: &Place<'_>, mut rng: Rng) -> Result<()> {
    let Place { soak, site, .. } = place;
    let folder = site.project.file("src/watch");
    let file = |rng: &mut Rng| folder.join(format!("w{}.txt", rng.u64(0..FILES)));
    while !soak.is_over() {
        let done = match rng.u8(0..100) {
            0..75 => replace(&file(&mut rng), &format!("{}\n", site.ledger.number())),
            75..88 => fs::remove_file(file(&mut rng)),
            _ => fs::rename(file(&mut rng), file(&mut rng)),
        };
        if done.is_ok() {
            soak.report.count("changes of watched files");
        }
        soak.sleep(Duration::from_millis(rng.u64(100..800)));
    }
    Ok(())
}

/// Writes a file as editors do: another one first, which then takes its place.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let other = path.with_extension("swp");
    let written = fs::write(&other, text).and_then(|()| fs::rename(&other, path));
    if written.is_err() {
        let _ = fs::remove_file(&other);
    }
    written
}
