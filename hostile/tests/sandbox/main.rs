//! The TypeScript corpus at a kernel in this process: whatever a tool does, its run ends with a typed error, and the
//! kernel answers the next call.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../support/kernel_project.rs"]
mod kernel_project;

use std::time::{Duration, Instant};

use kernel_project::{Project, exec, good_call_works};
use serde_json::{Value, json};
use tgp::contract::ToolResult;
use tgp_hostile::corpus::{self, Case};

/// No case may take longer than this, however busy the machine is: limits are 200 ms of CPU and 5 s of wall clock.
const OUTER_BOUND: Duration = Duration::from_secs(60);

/// Milliseconds of CPU time a run of the corpus may take.
const CPU_MS: u32 = 200;

fn ending(answer: &ToolResult) -> &str {
    match answer {
        ToolResult::Done(_) => "OK",
        ToolResult::Failed(error) => error.code.as_str(),
    }
}

/// What is wrong with this end, if anything.
fn judge(case: &Case, answer: &ToolResult, took: Duration) -> Option<String> {
    let ending = ending(answer);
    let details = match answer {
        ToolResult::Done(data) => data.to_string(),
        ToolResult::Failed(error) => error.message.clone(),
    };
    let details: String = details.chars().take(300).collect();
    if !case.expected.iter().any(|expected| expected == ending) {
        let expected = case.expected.join(" | ");
        return Some(format!("{}: expected {expected}, got {ending}: {details}", case.name));
    }
    if took > OUTER_BOUND {
        return Some(format!("{}: took {took:?}", case.name));
    }
    let stats = match answer {
        ToolResult::Done(data) => &data["stats"],
        ToolResult::Failed(error) => error.details.get("stats").unwrap_or(&Value::Null),
    };
    if let Some(cpu) = stats["cpu_ms"].as_f64()
        && cpu > f64::from(CPU_MS) * 10.0
        && !case.roomy
    {
        return Some(format!("{}: burnt {cpu} ms of CPU time", case.name));
    }
    match (&case.result, answer) {
        (Some(expected), ToolResult::Done(data)) if data["result"] != *expected => {
            Some(format!("{}: expected {expected}, got {}", case.name, data["result"]))
        }
        _ => None,
    }
}

/// A failed run is explained and small, whatever it tried to say.
fn is_explained(answer: &ToolResult) -> bool {
    let ToolResult::Failed(error) = answer else { return true };
    error.message.len() < 100_000 && error.help_of().is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_ends_with_its_code_and_the_next_call_works() {
    let project = Project::new();
    let kernel =
        project.kernel(&json!({ "sandbox": { "cpuMs": CPU_MS, "wallMs": 5_000 } }), |options| options).await;
    let roomy = project
        .kernel(&json!({ "sandbox": { "pool": 1, "cpuMs": 5_000, "wallMs": 30_000 } }), |options| options)
        .await;
    good_call_works(&kernel, "boot").await;
    let cases = corpus::all().unwrap();
    assert!(cases.len() >= 140, "the corpus has {} cases only", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        project.install(case);
        let kernel = if case.roomy { &roomy } else { &kernel };
        let started = Instant::now();
        let mut answer = exec(kernel, &case.path(), case.args.clone()).await;
        if case.was_too_slow(ending(&answer)) {
            answer = exec(&roomy, &case.path(), case.args.clone()).await;
        }
        wrong.extend(judge(case, &answer, started.elapsed()));
        if !is_explained(&answer) {
            wrong.push(format!("{}: the error is too long or has no next step", case.name));
        }
        good_call_works(kernel, &case.name).await;
    }
    assert!(wrong.is_empty(), "{} of {} cases went wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    kernel.shutdown().await;
    roomy.shutdown().await;
}
