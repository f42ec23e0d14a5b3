//! The inquiry: whether graph, chronicle, registry, audit and work tree agree.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tgp_contract::{Code, GraphQuery, RelativePath, Severity, ToolError};

use crate::Guardian;
use crate::claims::Scope;
use crate::halt::unaccepted;
use crate::judge::{Broken, InvariantAnswers};
use crate::messages::count;
use crate::questions::{Asked, rows};
use crate::undecided::UndecidedInvariant;

/// Findings of one kind that are reported one by one.
pub(super) const MAX_OF_A_KIND: usize = 20;
/// The field of an edit event that names its entry in the audit.
pub const AUDIT_FIELD: &str = "audit";

/// How serious a finding of the Guardian is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    Error,
    Warning,
    Info,
}

/// One thing that an inquiry found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardianFinding {
    /// `graph`, `chronicle`, `registry`, `audit`, `worktree`, `invariants`, `guardian`.
    pub area: String,
    pub severity: FindingSeverity,
    pub message: String,
    pub evidence: Value,
    /// What to do about it.
    pub remedy: String,
}

impl GuardianFinding {
    #[must_use]
    pub fn new(area: &str, severity: FindingSeverity, message: impl Into<String>) -> Self {
        Self {
            area: area.to_owned(),
            severity,
            message: message.into(),
            evidence: Value::Null,
            remedy: "nothing to do".to_owned(),
        }
    }

    #[must_use]
    pub fn evidence(self, evidence: Value) -> Self {
        Self { evidence, ..self }
    }

    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: remedy.into(), ..self }
    }

    pub(super) fn of_error(area: &str, what: &str, error: &ToolError) -> Self {
        Self::new(area, FindingSeverity::Error, format!("{what}: {}", error.message))
            .evidence(json!({ "code": error.code, "details": error.details }))
            .remedy(error.help_of().unwrap_or("make it readable, and ask again").to_owned())
    }
}

/// Checks what this crate cannot see: the registry, the audit, the tool repository.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// What it checks, for an inquiry that finds nothing.
    fn area(&self) -> &str;
    async fn inspect(&self) -> Vec<GuardianFinding>;
}

/// Knows which entries the audit has.
#[async_trait]
pub trait AuditIndex: Send + Sync {
    /// Those of the references that the audit has no entry for.
    ///
    /// # Errors
    /// When the audit cannot be read.
    async fn missing(&self, references: &[String]) -> Result<Vec<String>, ToolError>;
}

/// What an inquiry reads in addition to graph and chronicle.
#[derive(Clone, Default)]
pub struct InquirySources {
    pub inspectors: Vec<Arc<dyn Inspect>>,
    pub audit: Option<Arc<dyn AuditIndex>>,
}

impl Guardian {
    /// Compares everything with everything. What cannot be read is a finding, too. Where all is well, one finding says
    /// what was checked.
    ///
    /// # Errors
    /// None at present; the signature leaves room for sources that have to answer.
    pub async fn self_inquiry(&self, sources: &InquirySources) -> Result<Vec<GuardianFinding>, ToolError> {
        let mut findings = Vec::new();
        let mut looked = vec!["graph".to_owned(), "worktree".to_owned()];
        self.inquire_graph(&mut findings).await;
        let chronicles = self.inquire_chronicle(sources, &mut findings).await;
        looked.push(format!("chronicle ({})", count(chronicles, "file")));
        if sources.audit.is_some() {
            looked.push("audit".to_owned());
        }
        self.inquire_invariants(&mut findings).await;
        self.inquire_idle(&mut findings).await;
        let are_defined = self.invariants().is_ok_and(|invariants| !invariants.is_empty());
        looked.push(if are_defined { "invariants" } else { "no invariants are defined" }.to_owned());
        for inspector in &sources.inspectors {
            // Two inspectors may check the same area from two sides.
            if !looked.iter().any(|area| area == inspector.area()) {
                looked.push(inspector.area().to_owned());
            }
            findings.extend(inspector.inspect().await);
        }
        if findings.is_empty() {
            let message = format!("consistent: {}", looked.join(", "));
            findings.push(
                GuardianFinding::new("guardian", FindingSeverity::Info, message)
                    .evidence(json!({ "looked": looked })),
            );
        }
        findings.sort_by(|one, other| {
            (one.severity, &one.area, &one.message).cmp(&(other.severity, &other.area, &other.message))
        });
        Ok(findings)
    }

    async fn inquire_graph(&self, findings: &mut Vec<GuardianFinding>) {
        let question = GraphQuery::new("MATCH (c:Commit) RETURN count(c) AS commits");
        match self.parts.graph.query(question).await {
            Ok(answer) if answer.standing.behind => findings.push(
                GuardianFinding::new(
                    "graph",
                    FindingSeverity::Warning,
                    "the repository has moved on since the last ingest",
                )
                .evidence(json!(answer.standing))
                .remedy("run `tgp graph ingest`"),
            ),
            Ok(_) => {}
            Err(error) if error.code == Code::NotFound => findings.push(
                GuardianFinding::new("graph", FindingSeverity::Warning, "no commit was ingested yet")
                    .evidence(json!({ "message": error.message }))
                    .remedy("run `tgp graph ingest`"),
            ),
            Err(error) => {
                findings.push(GuardianFinding::of_error("graph", "the graph cannot be asked", &error))
            }
        }
        let broken = "MATCH (f:File) WHERE f.broken = true RETURN f.path AS path";
        let files = "MATCH (f:File) RETURN f.path AS path";
        let asked = [broken, files].map(|query| Asked::new(query, GraphQuery::new(query)));
        let answers = match self.ask(&asked).await {
            Ok(answers) => answers,
            Err(error) => {
                findings.push(GuardianFinding::of_error(
                    "graph",
                    "the work tree cannot be read into the graph",
                    &error,
                ));
                return;
            }
        };
        let paths = |at: usize| -> Vec<String> {
            let rows = answers.get(at).map(rows).unwrap_or_default();
            let path = |row: crate::questions::Row| Some(row.value.get("path")?.as_str()?.to_owned());
            rows.into_values().filter_map(path).collect()
        };
        let broken = paths(0);
        if !broken.is_empty() {
            let shown: Vec<&String> = broken.iter().take(MAX_OF_A_KIND).collect();
            findings.push(
                GuardianFinding::new("graph", FindingSeverity::Info, broken_message(broken.len()))
                    .evidence(json!({ "files": shown, "total": broken.len() }))
                    .remedy("what is around the errors is known; correct the files where they are source"),
            );
        }
        if let Some(cut) = answers.get(1).filter(|answer| answer.truncated) {
            let message = format!(
                "the work tree was compared with {} of the graph only",
                count(cut.rows.len(), "file")
            );
            findings.push(
                GuardianFinding::new("worktree", FindingSeverity::Info, message)
                    .evidence(json!({ "compared": cut.rows.len() }))
                    .remedy("nothing to do; the others were not looked at"),
            );
        }
        let is_there = |path: &String| RelativePath::new(path).is_ok_and(|path| self.is_on_disk(&path));
        let gone: Vec<String> = paths(1).into_iter().filter(|path| !is_there(path)).collect();
        if !gone.is_empty() {
            let shown: Vec<&String> = gone.iter().take(MAX_OF_A_KIND).collect();
            findings.push(
                GuardianFinding::new(
                    "worktree",
                    FindingSeverity::Error,
                    format!("the graph has {} that the work tree has not", count(gone.len(), "file")),
                )
                .evidence(json!({ "files": shown, "total": gone.len() }))
                .remedy("run `tgp graph ingest --commit WORKTREE`"),
            );
        }
    }

    async fn inquire_chronicle(
        &self,
        sources: &InquirySources,
        findings: &mut Vec<GuardianFinding>,
    ) -> usize {
        match self.halted().await {
            Ok(None) => {}
            Ok(Some(halt)) => findings.push(
                GuardianFinding::new(
                    "guardian",
                    FindingSeverity::Error,
                    format!("work is halted by `{}`", halt.invariant),
                )
                .remedy(halt.error().help_of().unwrap_or_default().to_owned())
                .evidence(json!(halt)),
            ),
            Err(error) => {
                findings.push(GuardianFinding::of_error(
                    "guardian",
                    "whether work is halted is not known",
                    &error,
                ));
            }
        }
        let (memory, unreadable) = match self.remember_what_can_be_read(Scope::All).await {
            Ok(read) => read,
            Err(error) => {
                findings.push(GuardianFinding::of_error(
                    "chronicle",
                    "the chronicles cannot be listed",
                    &error,
                ));
                return 0;
            }
        };
        for (file, error) in unreadable.iter().take(MAX_OF_A_KIND) {
            findings.push(GuardianFinding::of_error("chronicle", &format!("`{file}` is broken"), error));
        }
        match self.contradictions(&memory.claims).await {
            Ok(contradictions) => {
                for contradiction in contradictions.iter().take(MAX_OF_A_KIND) {
                    let path = contradiction.path.as_str();
                    findings.push(
                        GuardianFinding::new("chronicle", FindingSeverity::Error, contradiction.sentence())
                            .evidence(json!({
                                "file": path,
                                "expected": contradiction.expected(),
                                "actual": contradiction.actual(),
                                "event": contradiction.claim.event_id,
                            }))
                            .remedy(format!(
                                "restore the file, or accept it with `tgp guardian reconcile {path}`"
                            )),
                    );
                }
                if let Some(more) = contradictions.len().checked_sub(MAX_OF_A_KIND).filter(|more| *more > 0) {
                    let message = format!("chronicle and graph disagree on {} more", count(more, "file"));
                    findings.push(
                        GuardianFinding::new("chronicle", FindingSeverity::Error, message)
                            .remedy("settle the others first"),
                    );
                }
            }
            Err(error) => {
                findings.push(GuardianFinding::of_error(
                    "chronicle",
                    "the chronicle cannot be compared",
                    &error,
                ));
            }
        }
        self.inquire_contents(&memory, findings).await;
        if let Some(audit) = &sources.audit {
            self.inquire_references(audit.as_ref(), findings).await;
        }
        memory.files.len()
    }

    async fn inquire_invariants(&self, findings: &mut Vec<GuardianFinding>) {
        let known = match self.invariants() {
            Ok(invariants) => invariants,
            Err(error) => {
                findings.push(GuardianFinding::of_error(
                    "invariants",
                    "the invariants cannot be read",
                    &error,
                ));
                return;
            }
        };
        // What cannot be read was reported with the chronicles; then nothing counts as accepted.
        let memory = self.remember_what_can_be_read(Scope::All).await.map(|(memory, _)| memory);
        let accepted = |broken: Broken| match &memory {
            Ok(memory) => unaccepted(broken, memory),
            Err(_) => Some(broken),
        };
        let invariants: Vec<_> = known.iter().cloned().collect();
        match self.broken_now(&invariants, &known).await {
            Ok(InvariantAnswers { broken, mut undecided }) => {
                for broken in broken.into_iter().filter_map(accepted) {
                    undecided.retain(|one| one.invariant != broken.invariant.name);
                    findings.push(broken_finding(&broken));
                }
                findings.extend(undecided.into_iter().map(|undecided| {
                    GuardianFinding::new("invariants", FindingSeverity::Warning, undecided.sentence())
                        .evidence(json!(undecided))
                        .remedy(UndecidedInvariant::HELP)
                }));
            }
            Err(error) => {
                findings.push(GuardianFinding::of_error(
                    "invariants",
                    "the invariants cannot be asked",
                    &error,
                ));
            }
        }
    }
}

impl Guardian {
    /// Invariants that are about nothing. What cannot be asked was reported with the invariants themselves.
    async fn inquire_idle(&self, findings: &mut Vec<GuardianFinding>) {
        for idle in self.idle_invariants().await.unwrap_or_default() {
            findings.push(
                GuardianFinding::new("invariants", FindingSeverity::Warning, idle.sentence())
                    .evidence(json!(idle))
                    .remedy("look for a mistyped name, or remove the rule; `tgp guardian test NAME` shows what it finds"),
            );
        }
    }
}

fn broken_finding(broken: &Broken) -> GuardianFinding {
    let gravity = match broken.invariant.severity {
        Severity::Error => FindingSeverity::Error,
        Severity::Warning => FindingSeverity::Warning,
    };
    let message = format!("`{}` does not hold: {}", broken.invariant.name, broken.invariant.message);
    GuardianFinding::new("invariants", gravity, message)
        .evidence(json!({
            "expected": broken.expected(),
            "actual": broken.actual(),
            "rows": broken.shown(),
        }))
        .remedy("repair the code, or change the rule in `.sage/invariants.yml`")
}

fn broken_message(files: usize) -> String {
    let verb = if files == 1 { "does" } else { "do" };
    format!("{} {verb} not parse whole", count(files, "file"))
}
