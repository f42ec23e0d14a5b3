//! Tests of the engine in real workers. The binary is also the worker, so it has no test harness of its own:
//! `cargo test -p tgp-sandbox --test sandbox -- golden` runs the tests whose names contain `golden`, and
//! `… -- eval 'expression'` prints what an expression gives.
#![allow(clippy::print_stdout, clippy::indexing_slicing)]

mod crypto;
mod csv;
mod errors;
mod golden;
mod limits;
mod platform;
mod refused_lock;
mod starts;
mod template;
mod worker;

use std::process::ExitCode;

use worker::{Tested, Workers};

type Test = (&'static str, fn(&Workers) -> Tested);

fn main() -> ExitCode {
    if let Some(code) = refused_lock::launched() {
        return code;
    }
    if let Some(code) = tgp_sandbox::worker_main(&worker::ScriptFrontend) {
        return code;
    }
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let workers = match Workers::start() {
        Ok(workers) => workers,
        Err(error) => return failed("workers", &error.to_string()),
    };
    match arguments.split_first() {
        Some((command, rest)) if command == "eval" => evaluate(&workers, rest),
        Some((command, _)) if command == "starts" => starts::measure(&workers),
        first => run_tests(&workers, first.map(|(filter, _)| filter.as_str())),
    }
}

fn evaluate(workers: &Workers, expressions: &[String]) -> ExitCode {
    for expression in expressions {
        let report = workers.evaluate(expression);
        for line in &report.logs {
            println!("[{:?}] {}", line.level, line.text);
        }
        match report.result {
            Ok(value) => println!("{value}"),
            Err(error) => println!("{error:?}"),
        }
        println!("{:.2} ms CPU, {} KB", report.stats.cpu_ms, report.stats.heap_peak_bytes >> 10);
    }
    ExitCode::SUCCESS
}

fn run_tests(workers: &Workers, filter: Option<&str>) -> ExitCode {
    let all: Vec<Test> = [
        crypto::TESTS,
        csv::TESTS,
        errors::TESTS,
        golden::TESTS,
        limits::TESTS,
        platform::TESTS,
        refused_lock::TESTS,
        template::TESTS,
    ]
    .concat();
    let chosen: Vec<Test> =
        all.into_iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))).collect();
    println!("running {} tests", chosen.len());
    let mut failures = 0;
    for (name, test) in &chosen {
        match test(workers) {
            Ok(()) => println!("test {name} ... ok"),
            Err(error) => {
                failures += 1;
                failed(name, &error.to_string());
            }
        }
    }
    println!("test result: {} passed; {failures} failed", chosen.len() - failures);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn failed(name: &str, text: &str) -> ExitCode {
    println!("test {name} ... FAILED\n{text}");
    ExitCode::FAILURE
}
