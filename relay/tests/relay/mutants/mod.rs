//! The mutant corpus: parts with one fault each, made of the fakes, and the cases that have to find it.
//!
//! A fault is one variant of an enum and one line of a table, with what it breaks and who finds it. Every part here is
//! in this process; programs with faults are in `wrong.rs` and `hostility.rs`.

mod chronicle;
mod graph;
mod model;
mod tools;
mod valve;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tgp_relay::{Against, Kit, KitOptions, RelayReport, Substitutes, SuiteOutcome};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::support::PATIENCE;

/// The fewest mutants that the corpus has.
const LEAST: usize = 100;
/// Mutants that are tried at the same time: more than there are processors, because some wait for an event that never comes.
const AT_ONCE: usize = 6;
/// For one case of a mutant. A part that never does what is waited for uses up half of it.
const SHORT: Duration = Duration::from_secs(12);
/// Cases about parts that no mutant can replace, each with the reason.
const NOT_MUTATED: [(&str, &str); 5] = [
    ("t4.unknown-field", "the compiler of queries is under test, and always ours"),
    ("t5.streamed-line", "the command line is another process"),
    ("t5.mutator-approval", "the command line is another process"),
    ("t5.deterministic-snapshot", "the command line is another process"),
    ("t5.safe-defaults", "the command line is another process"),
];

/// A part with a fault.
pub(super) struct Mutant {
    pub(super) name: String,
    /// What the contract says that it does not do.
    pub(super) breaks: &'static str,
    /// The cases that find it. Each of them has to.
    pub(super) killed_by: &'static [&'static str],
    pub(super) part: Substitutes,
}

/// A fault, its name, what it breaks, and the cases that find it.
pub(super) type Line<F> = (F, &'static str, &'static str, &'static [&'static str]);

/// The mutants of a table, one for each line.
pub(super) fn corpus<F: Copy>(kind: &str, table: &[Line<F>], part: fn(F) -> Substitutes) -> Vec<Mutant> {
    let mutant = |(fault, name, breaks, killed_by): &Line<F>| Mutant {
        name: format!("{kind}-{name}"),
        breaks,
        killed_by,
        part: part(*fault),
    };
    table.iter().map(mutant).collect()
}

fn all() -> Vec<Mutant> {
    [chronicle::mutants(), graph::mutants(), tools::mutants(), model::mutants(), valve::mutants()]
        .into_iter()
        .flatten()
        .collect()
}

async fn tried(part: Substitutes, cases: &[&str], timeout: Duration) -> RelayReport {
    let kit = Kit::new(KitOptions {
        substitutes: part,
        suites: cases.iter().map(|case| (*case).to_owned()).collect(),
        against: Against::Fakes,
        timeout,
        ..KitOptions::new("/nonexistent/tgp")
    });
    kit.unwrap().run(|_| {}).await
}

/// The cases that have passed although they should have found the fault.
async fn survived(mutant: &Mutant) -> Vec<String> {
    let report = tried(mutant.part.clone(), mutant.killed_by, SHORT).await;
    let passed = |case: &&&str| {
        let mut rows = report.rows.iter().filter(|row| row.case == ***case);
        !rows.any(|row| row.result == SuiteOutcome::Failed)
    };
    mutant.killed_by.iter().filter(passed).map(|case| (*case).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mutant_is_killed_by_the_cases_that_are_about_it() {
    let begun = Instant::now();
    let mutants = all();
    let count = mutants.len();
    assert!(count >= LEAST, "the corpus has shrunk to {count}");
    let names: BTreeSet<&String> = mutants.iter().map(|mutant| &mutant.name).collect();
    assert_eq!(names.len(), count, "two mutants have one name");
    let room = Arc::new(Semaphore::new(AT_ONCE));
    let mut tries = JoinSet::new();
    for mutant in mutants {
        let room = Arc::clone(&room);
        tries.spawn(async move {
            let _permit = room.acquire_owned().await.unwrap();
            let survived = survived(&mutant).await;
            (mutant, survived)
        });
    }
    let mut problems = Vec::new();
    while let Some(tried) = tries.join_next().await {
        let (mutant, survived) = tried.unwrap();
        if !survived.is_empty() {
            problems.push(format!("{} ({}) survives {}", mutant.name, mutant.breaks, survived.join(", ")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    println!("{count} mutants killed in {:.1} s", begun.elapsed().as_secs_f64());
}

/// The same parts without a fault pass everything that they are part of: what kills a mutant is its fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_without_a_fault_pass() {
    let [model, runner] = model::sound();
    for part in [chronicle::sound(), graph::sound(), tools::sound(), model, runner, valve::sound()] {
        let report = tried(part.clone(), &[], PATIENCE).await;
        let failed: Vec<_> = report.rows.iter().filter(|row| row.result != SuiteOutcome::Passed).collect();
        assert!(failed.is_empty(), "{part:?}: {failed:#?}");
        assert!(report.rows.iter().all(|row| !row.external.is_empty()), "{part:?} has taken no role");
    }
}

/// A case that no mutant fails may be one that cannot fail.
#[test]
fn every_case_kills_a_mutant() {
    let killers: BTreeSet<&str> = all().iter().flat_map(|mutant| mutant.killed_by).copied().collect();
    let cases: BTreeSet<&str> = Kit::list().iter().map(|listed| listed.case).collect();
    let unknown: Vec<&&str> = killers.difference(&cases).collect();
    assert!(unknown.is_empty(), "there is no case {unknown:?}");
    let spared: BTreeSet<&str> = NOT_MUTATED.iter().map(|(case, _)| *case).collect();
    let idle: Vec<&str> =
        cases.iter().filter(|case| !killers.contains(**case) && !spared.contains(**case)).copied().collect();
    assert!(idle.is_empty(), "no mutant is killed by {idle:?}");
    assert!(spared.is_disjoint(&killers), "a case that is said to find nothing finds something");
}
