//! A soak from its first project to its report.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use tgp_hostile::baseline::marked;
use tgp_hostile::binary;

use crate::disk::{self, SmallDisk};
use crate::load::{self, Soak};
use crate::plan::Plan;
use crate::program::pid;
use crate::report::Report;
use crate::site::{Database, Site};
use crate::{chaos, verify};

/// Runs a plan and gives its report; the projects are copied to `keep` when something does not agree. The program must have no other thread yet.
///
/// # Errors
/// When the soak cannot be started. What does not agree is in the report.
pub fn run(plan: &Plan, keep: Option<&Path>, tell: impl Fn(&str)) -> Result<Report> {
    let started = Instant::now();
    let report = Report::default();
    let binary = binary::find()?;
    // A short path: the system allows no long ones for sockets.
    let folder = tempfile::Builder::new().prefix("tgp-soak-").tempdir()?;
    let mark = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (place, aside) = (folder.path().join("disk"), folder.path().join("aside"));
    std::fs::create_dir(&place)?;
    std::fs::create_dir(&aside)?;
    let disk = match SmallDisk::mount(&place, plan.disk_bytes) {
        Ok(disk) => Some(disk),
        Err(why) => {
            report.note(format!("skipped: the small disk that fills up, since this machine has {why:#}"));
            None
        }
    };
    nix::sys::prctl::set_child_subreaper(true).context("orphans cannot be adopted")?;
    let (databases, missing) = Database::present();
    for variable in missing {
        report.note(format!("skipped: the project of {variable}, which is not set"));
    }
    tell(&format!(
        "seed {}, {} projects, load of {} seconds",
        plan.seed,
        databases.len(),
        plan.length.as_secs()
    ));
    let watchdog = Watchdog { until: plan.watchdog(started), mark: mark.clone() };
    watchdog.start()?;
    let mut sites = Vec::new();
    for database in databases {
        sites.push(Site::new(database, &place, &aside, &binary, &mark)?);
    }
    let soak = Soak::new(report, Instant::now() + plan.length);
    loaded(&soak, plan, &sites, disk.as_ref().map(|_| place.as_path()));
    tell(&format!("the load is over after {} seconds; checking", started.elapsed().as_secs()));
    for site in &sites {
        verify::stop(&soak, site);
    }
    verify::find_processes(&soak, &mark);
    for site in &sites {
        verify::project(&soak, site)?;
    }
    verify::find_processes(&soak, &mark);
    if let (Some(keep), false) = (keep, soak.report.is_clean()) {
        copy(folder.path(), keep)?;
        soak.report.note(format!("the projects are copied to {}", keep.display()));
    }
    for site in &sites {
        if let Err(error) = site.drop_tables() {
            soak.report.find(format!("{}: {error:#}", site.database.name()));
        }
    }
    soak.report.count_many("seconds in total", started.elapsed().as_secs());
    drop(sites);
    drop(disk);
    Ok(soak.report)
}

/// The load with all its actors, until it is over.
fn loaded(soak: &Soak, plan: &Plan, sites: &[Site], disk: Option<&Path>) {
    let mut rng = Rng::with_seed(plan.seed);
    std::thread::scope(|scope| {
        for site in sites {
            load::start(scope, soak, site, &mut rng);
        }
        let chaos = rng.fork();
        scope.spawn(|| chaos::signals(soak, plan, chaos));
        let filler = rng.fork();
        if let Some(disk) = disk {
            scope.spawn(|| disk::fill_and_free(soak, plan, disk, filler));
        }
    });
}

/// Ends the program when the soak hangs, or when it is interrupted.
struct Watchdog {
    until: Instant,
    mark: String,
}

impl Watchdog {
    /// Watches until the program ends.
    fn start(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::spawn(move || {
            let code = runtime.block_on(async {
                tokio::select! {
                    () = tokio::time::sleep_until(self.until.into()) => 1,
                    _ = tokio::signal::ctrl_c() => 130,
                }
            });
            // Every program of the soak is killed; their workers end with them.
            for (id, _) in marked(&self.mark) {
                let _ = kill(pid(id), Signal::SIGKILL);
            }
            end(code);
        });
        Ok(())
    }
}

#[expect(clippy::exit, clippy::print_stderr, reason = "a soak that hangs has no other way out")]
fn end(code: i32) {
    let why = if code == 1 { "it hangs: its time is over" } else { "interrupted" };
    eprintln!("soak: {why}; its programs were killed");
    std::process::exit(code);
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if !status.success() {
        anyhow::bail!("the projects cannot be copied to {}", to.display());
    }
    Ok(())
}
