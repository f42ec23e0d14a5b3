//! Parts with one mistake each: the row that is about it fails, and says what is wrong.

use tgp_relay::{PartKind, SuiteOutcome};

use crate::support::{PATIENCE, externals, python, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mistake_is_found_by_the_case_that_is_about_it() {
    use PartKind::{Chronicle, Graph, Llm, Tools};
    for (part, mistake, case, expected) in [
        (
            Chronicle,
            "chronicle-writes-twice",
            "fixtures.chronicle-events",
            "whether a known event is appended again",
        ),
        (
            Chronicle,
            "chronicle-writes-twice",
            "t3.reconcile-once",
            "how many of twelve say that they have appended",
        ),
        (
            Chronicle,
            "chronicle-knows-no-scope",
            "fixtures.refused-events",
            "EPERMISSION for the chronicle `a.sage`",
        ),
        (Chronicle, "chronicle-knows-no-scope", "t6.scope-guard", "no file outside of .sage to be made"),
        (Chronicle, "chronicle-forgets-the-newest", "t6.trigger", "one event about src/core/secrets.txt"),
        (Chronicle, "chronicle-forgets-the-newest", "t3.reconcile", "one event beside src/modified.ts"),
        (Chronicle, "chronicle-unsorted", "fixtures.canonical-json", "the eventId of"),
        (Graph, "graph-forgets-the-commit", "t2.files-at-commit", "files at the first commit to be"),
        (
            Graph,
            "graph-forgets-the-commit",
            "t2.add-then-remove",
            "in the commit in which it was removed to be 0",
        ),
        (Graph, "graph-counts-twice", "t2.idempotent-ingest", "no row twice in the answer"),
        (Graph, "graph-knows-no-renames", "t2.rename-chain", "[\"B.ts\", \"A.ts\"]"),
        (Graph, "graph-sees-no-imports", "t3.plan-denied", "src/user.ts, which imports it"),
        (Tools, "tools-check-nothing", "t1.malformed-arguments", "EVALIDATION for Write"),
        (Tools, "tools-run-dry", "t1.dry-run-mutators", "Write"),
        (Llm, "llm-reorders", "t1.backpressure", "the pieces of text in their order"),
        (Llm, "llm-calls-nothing", "t1.loop", "a tool_call of Echo, which was offered"),
    ] {
        let command = python("tests/relay/peers/wrong.py", mistake);
        let report = run(externals(part, command), &[case], PATIENCE).await;
        let [row] = report.rows.as_slice() else { panic!("{mistake}: {report:?}") };
        assert_eq!(row.result, SuiteOutcome::Failed, "{mistake} was not found by {case}");
        assert_eq!(row.external, [part.as_str()]);
        let fault = row.fault.as_ref().unwrap();
        assert!(fault.expected.contains(expected), "{mistake}: {fault}");
    }
}
