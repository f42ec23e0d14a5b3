//! Programs that break the protocol in every way: each is a clear fault, and none holds up the kit or outlives it.

use std::time::{Duration, Instant};

use tgp_relay::{PartKind, RelayReport, SuiteOutcome};

use crate::support::{PATIENCE, externals, python, run};

/// For programs that answer wrongly; those that do not answer at all use it up.
const SHORT: Duration = Duration::from_secs(20);

async fn meet(part: PartKind, mode: &str, case: &str, timeout: Duration) -> RelayReport {
    run(externals(part, python("tests/relay/peers/hostile.py", mode)), &[case], timeout).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_breaks_the_protocol_is_told_so() {
    for (mode, told) in [
        ("garbage", "wrote no JSON object"),
        ("not-text", "a line that is not UTF-8"),
        ("flood", "a line of more than 8388608 bytes"),
        ("half-a-line", "a line that was not finished: `{\"id\":2"),
        ("wrong-id", "answered request 1002, which was not asked or was answered before"),
        ("twice", "which was not asked or was answered before"),
        ("no-id", "an object whose `id` is not the number of a request"),
        ("both", "not exactly one of `result`, `error` and `event`"),
        ("event", "an event, where one result was expected"),
        ("bad-error", "an `error` that has not code, message and details"),
        ("bad-result", "something else than the contract says"),
        ("bad-hello", "answered `hello` with no name and version"),
        ("refused-hello", "I speak something else"),
        ("exit-at-once", "has ended (exit status: 0)"),
        ("exit-later", "has ended (exit status: 3)"),
        ("killed", "has ended (signal: 9"),
    ] {
        let report = meet(PartKind::Chronicle, mode, "fixtures.canonical-json", SHORT).await;
        let [row] = report.rows.as_slice() else { panic!("{mode}: {report:?}") };
        assert_eq!(row.result, SuiteOutcome::Failed, "{mode}");
        let fault = row.fault.as_ref().unwrap();
        assert!(fault.came.contains(told), "{mode}: {fault}");
        if mode != "refused-hello" {
            assert!(fault.came.contains("hostile.py"), "the program is not named: {fault}");
        }
        if mode == "exit-later" {
            assert!(fault.came.contains("I have had enough"), "standard error is not shown: {fault}");
            assert!(fault.came.len() < 10_000, "all of standard error is shown");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_not_waited_for_long() {
    for mode in ["silent", "deaf", "silent-hello"] {
        let started = Instant::now();
        let report =
            meet(PartKind::Chronicle, mode, "fixtures.chronicle-events", Duration::from_secs(2)).await;
        let fault = report.rows[0].fault.as_ref().unwrap();
        assert!(fault.came.contains("was silent for 1 s"), "{mode}: {fault}");
        assert!(started.elapsed() < PATIENCE, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_breaks_the_protocol_is_told_so() {
    for (mode, case, told) in [
        ("chat-result", "t1.loop", "a result, where events with an end were expected"),
        ("chat-no-event", "t1.loop", "no stream event"),
        ("chat-after-end", "t1.loop", "which was not asked or was answered before"),
        ("chat-endless", "t1.loop", "10000 events and no end"),
        ("chat-error", "t1.loop", "the model is tired"),
    ] {
        let report = meet(PartKind::Llm, mode, case, SHORT).await;
        let [row] = report.rows.as_slice() else { panic!("{mode}: {report:?}") };
        let fault = row.fault.as_ref().unwrap_or_else(|| panic!("{mode} has passed"));
        assert!(fault.came.contains(told), "{mode}: {fault}");
    }
}

/// A program may write its lines in as many pieces as it likes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_of_lines_are_lines() {
    let report = meet(PartKind::Chronicle, "pieces", "fixtures.chronicle-events", PATIENCE).await;
    assert!(report.is_green(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_program_has_started_outlives_the_kit() {
    let folder = tempfile::tempdir().unwrap();
    for mode in ["silent", "pieces", "stubborn"] {
        let pids = folder.path().join(mode);
        let program = python("tests/relay/peers/hostile.py", mode);
        let program = program.strip_prefix("exec ").unwrap();
        // Two processes that would live for an hour, one of them the child of a child.
        let command = format!(
            "sleep 3600 & echo $! >> '{0}'; sh -c 'sleep 3600 & echo $! >> \"{0}\"; wait' & echo $$ >> '{0}'; {program}",
            pids.display()
        );
        run(externals(PartKind::Chronicle, command), &["fixtures.canonical-json"], Duration::from_secs(4))
            .await;
        let pids = std::fs::read_to_string(pids).unwrap();
        assert_eq!(pids.lines().count(), 3, "{pids}");
        let until = Instant::now() + PATIENCE;
        for pid in pids.lines() {
            // A killed process may exist a moment longer until the system's first process reaps it.
            while is_alive(pid) {
                assert!(Instant::now() < until, "{mode}: process {pid} is still there");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

fn is_alive(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state != Some("Z")
}
