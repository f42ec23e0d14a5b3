//! The TypeScript corpus through the binary: `tgp exec`, a process per hostile tool.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use crate::corpus::{self, Case};
use crate::load::SANDBOX;
use crate::process::Ran;
use crate::project::Project;
use crate::report::{Failure, Family};
use crate::suite::{Selection, Suite};

/// One in so many is run in the bounded part; the tests run all of them at a kernel in their own process.
const BOUNDED_SHARE: usize = 10;

/// No case may take longer, however busy the machine is: the limits are 200 ms of CPU time and 5 s by the clock.
const LIMIT: Duration = Duration::from_secs(60);

const THREADS: usize = 2;

/// The limits of a case, and those of one that another limit than CPU time must stop.
const TIGHT: &str = "sandbox: { cpuMs: 200, wallMs: 5000 }, tdd: { mode: 'explore' },";
const ROOMY: &str = "sandbox: { cpuMs: 5000, wallMs: 30000 }, tdd: { mode: 'explore' },";

/// Runs the corpus, or the part of it that is wanted.
///
/// # Errors
/// When the corpus cannot be read or laid out.
pub fn run(suite: &Suite, wanted: &Selection) -> Result<Family> {
    let started = Instant::now();
    let is_wanted = |case: &Case| wanted.case.as_ref().is_none_or(|name| *name == case.name);
    let every = if wanted.bounded { BOUNDED_SHARE } else { 1 };
    let cases: Vec<Case> = corpus::all()?.into_iter().filter(is_wanted).step_by(every).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    let (tight, roomy) = (project(suite, TIGHT, &cases)?, project(suite, ROOMY, &cases)?);
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let fault = judge(&tight, &roomy, case)?;
                        let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                        failures.extend(fault.map(|what| failure(case, what)));
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => anyhow::bail!("a thread of the corpus panicked"),
        })
    })?;
    Ok(Family {
        name: SANDBOX.to_owned(),
        cases: cases.len(),
        runs: cases.len(),
        steps: cases.len(),
        failures: failures.into_inner().unwrap_or_else(PoisonError::into_inner),
        time: started.elapsed(),
        ..Family::default()
    })
}

fn project(suite: &Suite, config: &str, cases: &[Case]) -> Result<Project> {
    let project = suite.project()?;
    project.configure(config)?;
    project.prepare(&["trust", "--yes"])?;
    for (name, content) in cases.iter().flat_map(Case::files) {
        project.write(&format!(".tgp/tools/hostile/{name}"), content)?;
    }
    Ok(project)
}

/// What is wrong with how the run ended, if anything.
fn judge(tight: &Project, roomy: &Project, case: &Case) -> Result<Option<String>> {
    let mut ended = exec(if case.roomy { roomy } else { tight }, case)?;
    if case.was_too_slow(ended.code()) {
        ended = exec(roomy, case)?;
    }
    if ended.ran.timed_out {
        return Ok(Some(format!("no end within {} s", LIMIT.as_secs())));
    }
    if !case.expected.iter().any(|expected| expected == ended.code()) {
        let said: String = ended.ran.said().chars().take(300).collect();
        let expected = case.expected.join(" or ");
        return Ok(Some(format!("expected {expected}, got {}: {said}", ended.code())));
    }
    match (&case.result, ended.answer.pointer("/data/result")) {
        (Some(expected), Some(result)) if expected != result => {
            Ok(Some(format!("expected the result {expected}, got {result}")))
        }
        _ => Ok(None),
    }
}

/// A run of a hostile tool and its answer.
struct Ended {
    ran: Ran,
    answer: Value,
}

impl Ended {
    fn code(&self) -> &str {
        match self.answer.get("ok") {
            Some(Value::Bool(true)) => "OK",
            _ => self.answer.pointer("/error/code").and_then(Value::as_str).unwrap_or("no answer"),
        }
    }
}

fn exec(project: &Project, case: &Case) -> Result<Ended> {
    let args = case.args.to_string();
    let ran = project.tgp(&["exec", &case.path(), "--args", &args, "--json"], LIMIT)?;
    let answer = serde_json::from_str(&ran.stdout).unwrap_or_default();
    Ok(Ended { ran, answer })
}

fn failure(case: &Case, what: String) -> Failure {
    Failure {
        place: format!("hostile/cases/{SANDBOX}/{}.ts", case.name),
        entry: None,
        step: None,
        what,
        rerun: format!("cargo xtask hostile {SANDBOX} --case {}", case.name),
    }
}
