//! The example implementation in Python, which knows nothing of this product but the protocol.

use tgp_relay::{PartKind, SuiteOutcome};

use crate::support::{PATIENCE, externals, python, run};

async fn check(part: PartKind, program: &str, suites: &[&str]) {
    let command = python(&format!("examples/python/{program}"), "");
    let report = run(externals(part, command), &[], PATIENCE).await;
    let failed: Vec<_> = report.rows.iter().filter(|row| row.result != SuiteOutcome::Passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    for suite in suites {
        assert!(report.rows.iter().any(|row| row.suite == *suite), "{suite} was not run");
    }
    assert!(report.rows.iter().all(|row| row.external == [part.as_str()]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chronicle_in_python_keeps_the_contract() {
    check(PartKind::Chronicle, "chronicle.py", &["t3", "t6", "fixtures"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_in_python_keeps_the_contract() {
    check(PartKind::Llm, "llm.py", &["t1", "t4"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tools_in_python_keep_the_contract() {
    check(PartKind::Tools, "tools.py", &["t1", "t3", "t4"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_graph_in_python_keeps_the_contract() {
    check(PartKind::Graph, "graph.py", &["t2", "t3"]).await;
}
