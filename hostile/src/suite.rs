//! Running cases: two at a time, family by family, with a check of the machine after each family.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::baseline::{Finding, children, command_of, left_behind, marked};
use crate::case::Case;
use crate::endurance::Endurance;
use crate::entry::{self, Entry};
use crate::families::{by_family, is_critical};
use crate::judge::{self, Before, Wrong};
use crate::project::{ConfigTrust, Project};
use crate::report::{Failure, Family, Summary};

/// Cases that run at the same time.
const THREADS: usize = 2;

/// How long a process that an attack has left may take to end.
const SETTLE: Duration = Duration::from_secs(30);

/// Which runs are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// No family means all.
    pub families: Vec<String>,
    pub case: Option<String>,
    pub entry: Option<Entry>,
    /// The part of the test command: cases that are not long, each through one entry point. In critical families it
    /// changes from case to case, so that the family goes through all.
    pub bounded: bool,
}

impl Selection {
    fn has(&self, case: &Case) -> bool {
        let family = self.families.is_empty() || self.families.contains(&case.family);
        let name = self.case.as_ref().is_none_or(|name| *name == case.name);
        family && name && !(self.bounded && case.file.long)
    }

    /// The entry points of the case at this place in its family.
    fn entries(&self, case: &Case, place: usize) -> Vec<Entry> {
        let all = &case.file.entries;
        let due = all.get(if is_critical(&case.family) { place % all.len().max(1) } else { 0 });
        let is_due = |entry: &Entry| !self.bounded || due == Some(entry);
        let is_wanted = |entry: &Entry| self.entry.is_none_or(|wanted| wanted == *entry);
        all.iter().copied().filter(|entry| is_due(entry) && is_wanted(entry)).collect()
    }
}

/// A run of the suite.
pub struct Suite {
    binary: PathBuf,
    folder: tempfile::TempDir,
    /// Every process of a case has it in its environment.
    mark: String,
    /// Held by cases that use a database server, which all of them share.
    shared: Mutex<()>,
}

/// One case through one entry point.
struct Job<'a> {
    case: &'a Case,
    entry: Entry,
}

impl Suite {
    /// Makes ready. Processes whose parent ends become children of this one, so that they can be found.
    ///
    /// # Errors
    /// When there is no place for the projects.
    pub fn new(binary: PathBuf) -> Result<Self> {
        nix::sys::prctl::set_child_subreaper(true).context("orphans cannot be adopted")?;
        // A short path: the system allows no long ones for sockets.
        let folder = tempfile::Builder::new().prefix("tgp-hostile-").tempdir()?;
        let mark = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { binary, folder, mark, shared: Mutex::new(()) })
    }

    /// Where the suite makes its projects.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A project whose processes are looked for after each family.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn project(&self) -> Result<Project> {
        Project::new(self.folder(), &self.binary, &self.mark)
    }

    /// Runs what is selected, and reports each family when it is done.
    ///
    /// # Errors
    /// When the kernel that lives through all of it cannot be started.
    pub fn run(&self, cases: &[Case], wanted: &Selection, mut tell: impl FnMut(&Family)) -> Result<Summary> {
        let living = format!("{}-living", self.mark);
        let endurance = Endurance::start(Project::new(self.folder(), &self.binary, &living)?)?;
        let mut summary = Summary::default();
        for (name, cases) in by_family(cases) {
            let cases: Vec<&Case> = cases.into_iter().filter(|case| wanted.has(case)).collect();
            let jobs: Vec<Job<'_>> = cases
                .iter()
                .enumerate()
                .flat_map(|(place, &case)| {
                    wanted.entries(case, place).into_iter().map(move |entry| Job { case, entry })
                })
                .collect();
            if jobs.is_empty() {
                continue;
            }
            let family = self.family(name, &cases, &jobs, &endurance);
            tell(&family);
            summary.families.push(family);
        }
        if let Some(finding) = endurance.stop()? {
            let family = Family { name: "the living kernel".to_owned(), ..Family::default() };
            let failures = vec![of_family(&family.name, finding)];
            summary.families.push(Family { failures, ..family });
        }
        Ok(summary)
    }

    fn family(&self, name: &str, cases: &[&Case], jobs: &[Job<'_>], endurance: &Endurance) -> Family {
        let started = Instant::now();
        let done = Mutex::new(Family { name: name.to_owned(), cases: cases.len(), ..Family::default() });
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = self.job(job);
                        let mut family = done.lock().unwrap_or_else(PoisonError::into_inner);
                        add(&mut family, job, result);
                    }
                });
            }
        });
        let mut family = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut findings = self.orphans(endurance.pid());
        findings.extend(endurance.family(cases));
        family.failures.extend(findings.into_iter().map(|finding| of_family(name, finding)));
        family.failures.sort_by(|one, other| (&one.place, one.entry).cmp(&(&other.place, other.entry)));
        family.time = started.elapsed();
        family
    }

    /// Runs one case through one entry point. What this machine lacks for it is reported in words.
    fn job(&self, job: &Job<'_>) -> JobResult {
        let needs = &job.case.file.needs;
        if let Some(missing) = needs.iter().find_map(|need| need.missing()) {
            return JobResult::Skipped(missing);
        }
        let _alone = needs
            .iter()
            .any(|need| need.is_shared())
            .then(|| self.shared.lock().unwrap_or_else(PoisonError::into_inner));
        let (codes, wrong) = self.attack(job).unwrap_or_else(|error| {
            let what = format!("the case could not be run: {error:#}");
            (Vec::new(), vec![Wrong { step: None, what }])
        });
        JobResult::Done { codes, wrong }
    }

    fn attack(&self, job: &Job<'_>) -> Result<(Vec<String>, Vec<Wrong>)> {
        let case = &job.case.for_one_run()?;
        let project = self.project()?;
        let trust = match job.case.family.starts_with("trust-") {
            true => ConfigTrust::Unconfirmed,
            false => ConfigTrust::Confirmed,
        };
        project.lay_out(case, trust)?;
        let before = Before::of(&project, case);
        let files = left_behind(project.root());
        let made = entry::attack(job.entry, &project, case)?;
        let codes = made.outcomes.iter().map(|outcome| outcome.code.clone()).collect();
        let mut wrong = judge::steps(case, job.entry, &made.outcomes);
        let whole = |what: String| Wrong { step: None, what };
        wrong.extend(made.findings.into_iter().map(|Finding(what)| whole(what)));
        for name in left_behind(project.root()).into_iter().filter(|name| !files.contains(name)) {
            wrong.push(whole(format!("a file is left behind: {name}")));
        }
        wrong.extend(judge::after(&project, case, &before)?);
        Ok((codes, wrong))
    }

    /// Processes of the cases that are still there, though every program that a case started has ended.
    fn orphans(&self, living: u32) -> Vec<Finding> {
        let started = Instant::now();
        loop {
            let mut left: BTreeMap<u32, String> = marked(&self.mark).into_iter().collect();
            let own = std::process::id();
            left.extend(
                children(own).into_iter().filter(|&pid| pid != living).map(|pid| (pid, command_of(pid))),
            );
            left.retain(|&pid, _| !reaped(pid));
            if left.is_empty() || started.elapsed() > SETTLE {
                let tell =
                    |(pid, command): (u32, String)| Finding(format!("process {pid} is left: {command}"));
                return left.into_iter().map(tell).collect();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

enum JobResult {
    Done { codes: Vec<String>, wrong: Vec<Wrong> },
    Skipped(&'static str),
}

fn add(family: &mut Family, job: &Job<'_>, result: JobResult) {
    let (codes, wrong) = match result {
        JobResult::Skipped(missing) => {
            *family.skipped.entry(missing.to_owned()).or_default() += 1;
            return;
        }
        JobResult::Done { codes, wrong } => (codes, wrong),
    };
    family.runs += 1;
    family.steps += job.case.file.steps.len();
    let (name, case, entry) = (&job.case.family, &job.case.name, job.entry);
    family.outcomes.push(format!("{name} {case} {entry}: {}", codes.join(", ")));
    family.failures.extend(wrong.into_iter().map(|wrong| Failure {
        place: job.case.path(),
        entry: Some(entry),
        step: wrong.step,
        what: wrong.what,
        rerun: format!("cargo xtask hostile {name} --case {case} --entry {entry}"),
    }));
}

fn of_family(name: &str, Finding(what): Finding) -> Failure {
    let rerun = format!("cargo xtask hostile {name}");
    Failure { place: format!("after the family {name}"), entry: None, step: None, what, rerun }
}

/// Whether this was an adopted process that has ended, and is now gone for good.
#[must_use]
pub fn reaped(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    match waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::StillAlive) => false,
        Ok(_) => true,
        // It is not ours: a descendant of something that lives.
        Err(_) => !Path::new(&format!("/proc/{pid}")).exists(),
    }
}
