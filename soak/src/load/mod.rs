//! The actors: each does one kind of work again and again until the load is over.

mod clients;
mod queries;
mod repository;
mod runs;
mod sessions;
mod watch;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use serde_json::Value;

pub use queries::{is_done as is_query_done, resume as resume_query};
pub use repository::{remove_stale_locks, socket_tools, source as tool_source};
pub use sessions::{is_done as is_session_done, resume as resume_session};

use crate::ledger::{Kind, Reported, change_stands};
use crate::program::{Programs, Runner};
use crate::report::{Report, lock};
use crate::site::{Database, Site};

/// What all actors share.
#[derive(Debug)]
pub struct Soak {
    pub programs: Programs,
    pub report: Report,
    deadline: Instant,
    stop: AtomicBool,
    disk_full: AtomicBool,
    /// When the disk had no room last.
    last_full: Mutex<Option<Instant>>,
}

/// How long after a full disk an error may still be about it.
const AFTER_FULL: Duration = Duration::from_secs(10);

impl Soak {
    /// A load that is over at `deadline`.
    #[must_use]
    pub fn new(report: Report, deadline: Instant) -> Self {
        Self {
            programs: Programs::default(),
            report,
            deadline,
            stop: AtomicBool::new(false),
            disk_full: AtomicBool::new(false),
            last_full: Mutex::new(None),
        }
    }

    /// Whether no more work may begin.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || Instant::now() >= self.deadline
    }

    /// Ends the load before its time.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the disk is kept full right now.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// The disk has become full, or has room again.
    pub fn set_disk_full(&self, full: bool) {
        self.disk_full.store(full, Ordering::Relaxed);
        *lock(&self.last_full) = Some(Instant::now());
    }

    /// Waits, but not beyond the end of the load.
    pub fn sleep(&self, length: Duration) {
        let until = (Instant::now() + length).min(self.deadline);
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep(
                until.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)),
            );
        }
    }

    /// Writes down what was reported of a run, and counts it.
    pub fn settle(&self, site: &Site, number: u64, reported: Reported, told: &Value) {
        site.ledger.settle(number, reported, told);
        let what = match reported {
            Reported::Success => "runs reported as successful",
            Reported::Stands => "runs reported as done and not recorded",
            Reported::Failure => "runs reported as failed",
            Reported::Nothing => "runs of which nothing was reported",
            Reported::Repeated => "runs that were repeated with --again",
        };
        self.report.count(what);
        self.look_at(told);
    }

    /// Counts the error of a result. An internal error is a finding, unless it names the full disk as its cause.
    pub fn look_at(&self, told: &Value) {
        let error = told.get("error").unwrap_or(told);
        let Some(code) = error.get("code").and_then(Value::as_str) else { return };
        let when = if self.is_disk_full() { " while the disk was full" } else { "" };
        self.report.count(&format!("error {code}{when}"));
        let was_full = lock(&self.last_full).is_some_and(|last| last.elapsed() < AFTER_FULL);
        let (causes, text) = (["No space left", "disk is full", "disk I/O error"], error.to_string());
        // What a resumed session reads from the audit is older.
        let is_of_disk = (was_full || error.pointer("/details/recovered").is_some())
            && causes.iter().any(|cause| text.contains(cause));
        if was_full && change_stands(error) {
            self.report.count("changes that stand without their event, since the disk was full");
        } else if code == "EINTEGRITY" || (code == "EINTERNAL" && !is_of_disk) {
            self.report.find(format!("{code}{when}: {told}"));
        }
    }
}

/// A run's tool, chosen so that most runs leave something.
fn kind(rng: &mut Rng) -> Kind {
    match rng.u8(0..100) {
        0..45 => Kind::Both,
        45..60 => Kind::Nested,
        60..75 => Kind::Fans,
        75..87 => Kind::Catches,
        _ => Kind::Fails,
    }
}

/// How long a run waits between its file and its row.
fn wait_ms(rng: &mut Rng) -> u64 {
    if rng.u8(..) < 128 { 0 } else { rng.u64(1..120) }
}

/// Where one actor works.
struct Place<'a> {
    soak: &'a Soak,
    site: &'a Site,
    runner: Runner<'a>,
}

type Actor = fn(&Place<'_>, Rng) -> Result<()>;

/// The actors of every project, and those of the one with the whole load.
const EVERYWHERE: [(&str, Actor); 4] = [
    ("client-1", clients::clients),
    ("client-2", clients::clients),
    ("runs", runs::runs),
    ("queries", queries::queries),
];
const WHOLE_LOAD: [(&str, Actor); 8] = [
    ("sessions-1", sessions::sessions),
    ("sessions-2", sessions::sessions),
    ("forge-socket", repository::through_the_socket),
    ("forge-process", repository::with_processes),
    ("other-agent", repository::other_agent),
    ("events", repository::events_and_sync),
    ("valve", watch::valve),
    ("changes", watch::changes),
];

/// Starts all actors of a project.
pub fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    soak: &'scope Soak,
    site: &'scope Site,
    rng: &mut Rng,
) {
    scope.spawn(|| site.server.supervise(soak, site));
    let more = if site.database == Database::Sqlite { &WHOLE_LOAD[..] } else { &[] };
    for &(name, actor) in EVERYWHERE.iter().chain(more) {
        let rng = rng.fork();
        scope.spawn(move || {
            let outcome = place(soak, site, &site.aside, name).and_then(|place| actor(&place, rng));
            if let Err(error) = outcome {
                soak.report.find(format!("{}: the actor {name} ended: {error:#}", site.database.name()));
            }
        });
    }
}

fn place<'a>(soak: &'a Soak, site: &'a Site, aside: &Path, name: &str) -> Result<Place<'a>> {
    Ok(Place { soak, site, runner: Runner::new(&soak.programs, &soak.report, aside, name)? })
}
