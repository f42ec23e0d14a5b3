//! Every seed, and a bounded number of random inputs that are the same in every run.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use tgp_fuzz::mutate::Inputs;
use tgp_fuzz::run::{Runner, quiet_panics};
use tgp_fuzz::{KNOWN, KnownFailure, TARGETS, Target};

const SEED: u64 = 1;
const BATCH: usize = 64;

fn check(name: &str) {
    let target = Target::named(name).unwrap();
    let seeds = target.seeds().unwrap();
    let mut runner = Runner::new(target.oracle);
    quiet_panics();
    for (name, input) in &seeds {
        if let Err(message) = runner.run(input) {
            panic!("the seed seeds/{}/{name} fails: {message}", target.name);
        }
    }
    let mut inputs = Inputs::new(target, &seeds, SEED);
    let mut number = 0;
    while number < target.iterations {
        let batch: Vec<Vec<u8>> = (0..BATCH.min(target.iterations - number)).map(|_| inputs.make()).collect();
        let mut rest = batch.as_slice();
        while let Err(failure) = runner.run_all(rest) {
            if !KnownFailure::covers(target.name, &failure.message) {
                let shown = String::from_utf8_lossy(&rest[failure.index]).into_owned();
                let hint = format!("`tgp-fuzz {} --seed {SEED}` makes it smaller", target.name);
                panic!("{}: {}\n{shown:?}\n{hint}", target.name, failure.message);
            }
            rest = &rest[failure.index + 1..];
        }
        number += batch.len();
    }
}

/// One test for each target, so that a failure names it.
macro_rules! bounded {
    ($($test:ident: $target:literal,)*) => {
        $(#[test]
        fn $test() {
            check($target);
        })*

        #[test]
        fn every_target_has_a_test() {
            let tested = [$($target),*];
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(tested.as_slice(), names);
        }
    };
}

bounded! {
    worker_frames: "worker-frames",
    socket_frames: "socket-frames",
    policy: "policy",
    aql: "aql",
    cypher: "cypher",
    sql_sqlite: "sql-sqlite",
    sql_postgresql: "sql-postgresql",
    sql_mysql: "sql-mysql",
    sse: "sse",
    chronicle: "chronicle",
    patch: "patch",
    database_url: "database-url",
    fetch_url: "fetch-url",
    path: "path",
    source: "source",
}

#[test]
fn known_failures_have_their_seeds() {
    for known in KNOWN {
        let target = Target::named(known.target).unwrap();
        let seed = target.seeds_folder().join(known.seed);
        assert!(known.seed.starts_with("known/") && seed.is_file(), "{} does not exist", seed.display());
    }
}

#[test]
fn the_same_number_makes_the_same_inputs() {
    for target in TARGETS {
        let seeds = target.seeds().unwrap();
        let make = |seed| {
            let mut inputs = Inputs::new(target, &seeds, seed);
            (0..50).map(|_| inputs.make()).collect::<Vec<_>>()
        };
        assert_eq!(make(7), make(7), "{}", target.name);
        assert_ne!(make(7), make(8), "{}", target.name);
    }
}

/// Each runner of cargo-fuzz is its own file, and only this test reads them: they need a nightly compiler.
#[test]
fn cargo_fuzz_has_every_target() {
    let folder = tgp_fuzz::folder().join("cargo-fuzz");
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let file = format!("fuzz_targets/{}.rs", target.name.replace('-', "_"));
        let source = std::fs::read_to_string(folder.join(&file)).unwrap();
        assert!(source.contains(&format!("\"{}\"", target.name)), "{file}");
        assert!(manifest.contains(&file), "{file} is not in the manifest");
    }
}
