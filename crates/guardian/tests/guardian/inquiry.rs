//! What the Guardian finds when it checks everything.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tgp_contract::{Code, ToolError};
use tgp_guardian::{Assertion, AuditIndex, FindingSeverity, GuardianFinding, InquirySources, Inspect};

use crate::world::{World, path};

struct Registry(Vec<GuardianFinding>);

#[async_trait]
impl Inspect for Registry {
    fn area(&self) -> &str {
        "registry"
    }

    async fn inspect(&self) -> Vec<GuardianFinding> {
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

fn sources(findings: Vec<GuardianFinding>) -> InquirySources {
    InquirySources { inspectors: vec![Arc::new(Registry(findings))], audit: Some(Arc::new(Audit(vec!["7"]))) }
}

#[tokio::test]
async fn where_all_is_well_it_says_what_was_looked_at() {
    let world = World::new(&[("src/a.ts", "")]);
    world.event("src/a.ts.sage", "EDIT", None, json!({ "change": "changed", "audit": "7" })).await;
    let findings = world.guardian.self_inquiry(&sources(Vec::new())).await.unwrap();
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(finding.severity, FindingSeverity::Info);
    assert_eq!(
        finding.evidence["looked"],
        json!(["graph", "worktree", "chronicle (1 file)", "audit", "no invariants are defined", "registry"])
    );
}

#[tokio::test]
async fn every_inconsistency_is_a_finding_with_evidence_and_remedy() {
    let world = World::new(&[("src/a.ts", ""), ("src/odd.ts", "broken\n"), ("src/gone.ts", "")]);
    *world.graph.behind.lock().unwrap() = true;
    world.files.remove(&path("src/gone.ts")).unwrap();
    world
        .guardian
        .bullet_wound_check(&[Assertion::new("MATCH (t:Tool) RETURN t.name AS name", true)])
        .await
        .unwrap_err();
    world.event("src/a.ts.sage", "FILE_DELETED", None, json!({})).await;
    world.event("src/odd.ts.sage", "EDIT", None, json!({ "change": "changed", "audit": "8" })).await;
    world.event("src/odd.ts.sage", "EDIT", None, json!({ "change": "changed" })).await;
    world.chronicle.torn.lock().unwrap().insert("src/torn.ts.sage".to_owned());
    world.rules(
        "version: 1\ninvariants:\n  - name: few\n    query: MATCH (f:File) RETURN f.path AS path\n    expect: none\n    severity: warning\n    message: Few files.\n",
    );
    let own = GuardianFinding::new("registry", FindingSeverity::Warning, "a tool has no metadata")
        .remedy("run `tgp sync`");
    let findings = world.guardian.self_inquiry(&sources(vec![own])).await.unwrap();
    let found: Vec<String> =
        findings.iter().map(|one| format!("{:?} {}: {}", one.severity, one.area, one.message)).collect();
    let events = world.chronicle.of("src/odd.ts.sage");
    let ids: Vec<String> = events.into_iter().map(|event| event.event_id.unwrap()).collect();
    assert_eq!(
        found,
        [
            &format!(
                "Error audit: the audit has no entry for the edit of src/odd.ts (event {})",
                &ids[0][..12]
            ),
            "Error chronicle: `src/torn.ts.sage` is broken: `src/torn.ts.sage` cannot be understood",
            "Error chronicle: the chronicle says that src/a.ts was deleted (FILE_DELETED of 2026-01-01T00:00:01Z), but it is there",
            "Error guardian: work is halted by `MATCH (t:Tool) RETURN t.name AS name`",
            "Error worktree: the graph has 1 file that the work tree has not",
            &format!("Warning audit: the edit of src/odd.ts (event {}) names no audit entry", &ids[1][..12]),
            "Warning graph: the repository has moved on since the last ingest",
            "Warning invariants: `few` does not hold: Few files.",
            "Warning registry: a tool has no metadata",
            "Info graph: 1 file does not parse whole",
        ]
    );
    assert!(findings.iter().all(|one| !one.remedy.is_empty()), "{findings:?}");
    assert!(
        findings.iter().filter(|one| one.area != "registry").all(|one| !one.evidence.is_null()),
        "{findings:?}"
    );
    // It reads, and changes nothing.
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
    assert!(findings.iter().all(|one| one.severity == FindingSeverity::Error));
    assert_eq!(findings[0].remedy, "run `git init`");
}

#[tokio::test]
async fn what_is_looked_at_from_two_sides_is_named_once() {
    struct Chain;
    #[async_trait]
    impl Inspect for Chain {
        fn area(&self) -> &str {
            "audit"
        }
        async fn inspect(&self) -> Vec<GuardianFinding> {
            Vec::new()
        }
    }
    let world = World::new(&[]);
    let mut sources = sources(Vec::new());
    sources.inspectors.push(Arc::new(Chain));
    let findings = world.guardian.self_inquiry(&sources).await.unwrap();
    assert_eq!(
        findings[0].message,
        "consistent: graph, worktree, chronicle (0 files), audit, no invariants are defined, registry"
    );
}

#[tokio::test]
async fn in_a_clone_the_sessions_of_others_are_one_finding() {
    let world = World::new(&[("src/a.ts", "")]);
    let entry = |session: &str, call: usize| json!({ "change": "changed", "audit": { "callId": call, "session": session } });
    for call in 0..30 {
        world.event("src/a.ts.sage", "EDIT", None, entry(if call < 10 { "one" } else { "two" }, call)).await;
    }
    for call in [1, 2] {
        world.event("src/a.ts.sage", "EDIT", None, entry("own", call)).await;
    }
    let audit = Audit(vec![r#"{"callId":1,"session":"own"}"#]);
    let sources = InquirySources { inspectors: Vec::new(), audit: Some(Arc::new(audit)) };
    let findings = world.guardian.self_inquiry(&sources).await.unwrap();
    let found: Vec<(FindingSeverity, &str)> =
        findings.iter().map(|one| (one.severity, one.message.as_str())).collect();
    let last = world.chronicle.of("src/a.ts.sage").pop().unwrap().event_id.unwrap();
    let lost = format!("the audit has no entry for the edit of src/a.ts (event {})", &last[..12]);
    assert_eq!(
        found,
        [
            (FindingSeverity::Error, lost.as_str()),
            (
                FindingSeverity::Info,
                "the audit knows nothing of 2 sessions with 30 edits: they were made in another clone, or before this audit began"
            ),
        ]
    );
    assert_eq!(
        (&findings[0].evidence["file"], &findings[0].evidence["event"]),
        (&json!("src/a.ts"), &json!(last))
    );
}

#[tokio::test]
async fn a_file_that_somebody_else_has_changed_since_is_told() {
    let world = World::new(&[("src/a.ts", "mine"), ("src/b.ts", "mine")]);
    for file in ["src/a.ts", "src/b.ts"] {
        let after = tgp_contract::canonical::sha256_hex(b"mine");
        let fields = json!({ "change": "changed", "after": after });
        world.event(&format!("{file}.sage"), "EDIT", Some(file), fields).await;
    }
    let inquire = async || world.guardian.self_inquiry(&InquirySources::default()).await.unwrap();
    assert!(inquire().await[0].message.starts_with("consistent"));
    world.graph.cap.store(1, std::sync::atomic::Ordering::SeqCst);
    assert!(
        inquire()
            .await
            .iter()
            .any(|one| one.message == "the work tree was compared with 1 file of the graph only")
    );
    world.graph.cap.store(0, std::sync::atomic::Ordering::SeqCst);
    world.files.write(&path("src/b.ts"), b"theirs").unwrap();
    let findings = inquire().await;
    let [finding] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((finding.severity, finding.area.as_str()), (FindingSeverity::Info, "worktree"));
    assert!(finding.message.starts_with("1 file was changed since without an event"), "{finding:?}");
    assert_eq!(finding.evidence["files"][0]["file"], "src/b.ts");
}
