//! What the Guardian finds when it looks at everything.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tgp_agent::{Assertion, AuditIndex, Finding, Gravity, InquirySources, Inspect};
use tgp_contract::{Code, ToolError};

use crate::guardian_world::{World, path};

struct Registry(Vec<Finding>);

#[async_trait]
impl Inspect for Registry {
    fn area(&self) -> &str {
        "registry"
    }

    async fn inspect(&self) -> Vec<Finding> {
        self.0.clone()
    }
}

struct Audit(Vec<&'static str>);

#[async_trait]
impl AuditIndex for Audit {
    async fn missing(&self, references: &[String]) -> Result<Vec<String>, ToolError> {
        Ok(references.iter().filter(|one| !self.0.contains(&one.as_str())).cloned().collect())
    }
}

fn sources(findings: Vec<Finding>) -> InquirySources {
    InquirySources { inspectors: vec![Arc::new(Registry(findings))], audit: Some(Arc::new(Audit(vec!["7"]))) }
}

#[tokio::test]
async fn where_all_is_well_it_says_what_was_looked_at() {
    let world = World::new(&[("src/a.ts", "")]);
    world.event("src/a.ts.sage", "EDIT", None, json!({ "change": "changed", "audit": "7" })).await;
    let findings = world.guardian.self_inquiry(&sources(Vec::new())).await.unwrap();
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding.severity, Gravity::Info);
    assert_eq!(
        finding.evidence["looked"],
        json!(["graph", "worktree", "chronicle (1 files)", "audit", "invariants", "registry"])
    );
}

#[tokio::test]
async fn every_inconsistency_is_a_finding_with_evidence_and_remedy() {
    let world = World::new(&[("src/a.ts", ""), ("src/odd.ts", "broken\n"), ("src/gone.ts", "")]);
    *world.graph.behind.lock().unwrap() = true;
    world.files.remove(&path("src/gone.ts")).unwrap();
    world
        .guardian
        .bullet_wound_check(&[Assertion::new("MATCH (f:Symbol) RETURN f.name AS name", true)])
        .await
        .unwrap_err();
    world.event("src/a.ts.sage", "FILE_DELETED", None, json!({})).await;
    world.event("src/odd.ts.sage", "EDIT", None, json!({ "change": "changed", "audit": "8" })).await;
    world.event("src/odd.ts.sage", "EDIT", None, json!({ "change": "changed" })).await;
    world.chronicle.torn.lock().unwrap().insert("src/torn.ts.sage".to_owned());
    world.rules(
        "version: 1\ninvariants:\n  - name: few\n    query: MATCH (f:File) RETURN f.path AS path\n    expect: none\n    severity: warning\n    message: Few files.\n",
    );
    let own = Finding::new("registry", Gravity::Warning, "a tool has no metadata").remedy("run `tgp sync`");
    let findings = world.guardian.self_inquiry(&sources(vec![own])).await.unwrap();
    let found: Vec<String> =
        findings.iter().map(|one| format!("{:?} {}: {}", one.severity, one.area, one.message)).collect();
    assert_eq!(
        found,
        [
            "Error audit: the audit has no entry for an edit of the chronicle",
            "Error chronicle: `src/torn.ts.sage` is broken: `src/torn.ts.sage` cannot be understood",
            "Error chronicle: chronicle and graph disagree on `src/a.ts`",
            "Error guardian: work is halted by `MATCH (f:Symbol) RETURN f.name AS name`",
            "Error worktree: the graph has 1 files that the work tree has not",
            "Warning audit: an edit in `src/odd.ts.sage` names no audit entry",
            "Warning graph: the repository has moved on since the last ingest",
            "Warning invariants: `few` does not hold: Few files.",
            "Warning registry: a tool has no metadata",
            "Info graph: 1 files do not parse whole",
        ]
    );
    assert!(findings.iter().all(|one| !one.remedy.is_empty()), "{findings:?}");
    assert!(
        findings.iter().filter(|one| one.area != "registry").all(|one| !one.evidence.is_null()),
        "{findings:?}"
    );
    // It looks, and changes nothing.
    assert_eq!(world.chronicle.kinds(".sage/guardian.sage"), ["HALT"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_a_finding_and_no_error() {
    let world = World::new(&[("src/a.ts", "")]);
    world.event("src/a.ts.sage", "FILE_CREATED", None, json!({})).await;
    world.rules("version: 7");
    *world.graph.failure.lock().unwrap() =
        Some(ToolError::new(Code::Git, "no repository").help("run `git init`"));
    let findings = world.guardian.self_inquiry(&InquirySources::default()).await.unwrap();
    let areas: Vec<&str> = findings.iter().map(|one| one.area.as_str()).collect();
    assert_eq!(areas, ["chronicle", "graph", "graph", "invariants"]);
    assert!(findings.iter().all(|one| one.severity == Gravity::Error));
    assert_eq!(findings[0].remedy, "run `git init`");
}
