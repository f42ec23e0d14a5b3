//! A plan against the graph, the chronicle and the invariants, before any of it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{Change, Code, Decision, Plan, RelativePath, Root, Severity, ToolError, Visibility};

use crate::Guardian;
use crate::claims::Memory;
use crate::judge::Broken;
use crate::messages::count;
use crate::planned_actions::{MAX_STEPS, PlannedAction};
use crate::questions::Row;
use crate::tree::{MAX_PLAN_BYTES, Tree};
use crate::undecided::UndecidedInvariant;

/// Findings that a reason names; the others are counted, and are in the review.
const MAX_REASONS: usize = 5;
/// Files that a sentence names.
const MAX_NAMED: usize = 20;
/// Rows of one invariant that become findings.
const MAX_ROWS: usize = 50;

/// What is to be said about a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct StepFinding {
    /// Counted from 1; none where the plan as a whole is meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What is true.
    pub fact: String,
    /// Why the step conflicts with it.
    pub reason: String,
    pub severity: Severity,
}

/// What the Guardian says of a plan. The same plan on the same facts has the same review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Review {
    pub decision: Decision,
    /// By step.
    pub findings: Vec<StepFinding>,
    /// Invariants that are undecided before and after the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<UndecidedInvariant>,
}

impl Review {
    #[must_use]
    pub fn is_approved(&self) -> bool {
        matches!(self.decision, Decision::Approve { .. })
    }
}

/// A step with what is known of its file.
#[derive(Clone, Debug)]
pub(crate) struct Assessed {
    pub(crate) act: PlannedAction,
    /// SHA-256 of the file as the step will find it, where that is known.
    pub(crate) expected: Option<String>,
}

impl Guardian {
    /// Checks every step of a plan, and its whole against the invariants. Files that `visible` does not show are as if
    /// they were not there, but for the invariants: those judge everything, and what is said of them names nothing that
    /// is hidden.
    ///
    /// # Errors
    /// When graph, chronicle, invariants or files cannot be read. A plan that cannot be approved is not an error but
    /// denied.
    pub async fn review_plan(&self, plan: &Plan, visible: &Visibility) -> Result<Review, ToolError> {
        Ok(self.assess(plan, visible).await?.0)
    }

    pub(crate) async fn assess(
        &self,
        plan: &Plan,
        visible: &Visibility,
    ) -> Result<(Review, Vec<Assessed>), ToolError> {
        let mut findings = Findings::default();
        if plan.steps.len() > MAX_STEPS {
            let fact = format!("the plan has {} steps", plan.steps.len());
            findings.deny(None, None, fact, format!("a plan has at most {MAX_STEPS} steps"));
            return Ok((findings.into_review(plan, 0, 0), Vec::new()));
        }
        let mut acts = Vec::new();
        for (number, step) in (1..).zip(&plan.steps) {
            match PlannedAction::of(step) {
                Ok(act) => acts.push((number, act)),
                Err(problem) => {
                    let reason = "the effect of the step is unknown".to_owned();
                    findings.deny(Some(number), step.file_path.clone(), problem, reason);
                }
            }
        }
        if acts.iter().map(|(_, act)| act.bytes()).sum::<usize>() > MAX_PLAN_BYTES {
            return Err(ToolError::new(
                Code::Budget,
                format!("the plan has more than {MAX_PLAN_BYTES} bytes"),
            )
            .help("make several plans of it"));
        }
        let touched: BTreeSet<RelativePath> = acts.iter().flat_map(|(_, act)| act.paths()).cloned().collect();
        let mut known = self.known(&touched).await?;
        known.retain(|path| visible.shows_named(path));
        let files = Arc::clone(&self.parts.files);
        let mut tree = Tree::read(files, touched.clone(), known.clone(), visible.clone()).await?;
        let mut assessed = Vec::new();
        let mut made: BTreeSet<&RelativePath> = BTreeSet::new();
        for (number, act) in &acts {
            if let PlannedAction::Edit { path, .. } = act
                && !known.contains(path.as_str())
                && !made.contains(path)
            {
                let fact = format!("{path} is not in graph, and no earlier step makes it");
                let reason = "it cannot be edited, because its callers are unknown".to_owned();
                findings.deny(Some(*number), Some(path.as_str().to_owned()), fact, reason);
                continue;
            }
            made.extend(act.makes());
            let expected = act.paths().first().and_then(|path| tree.hash(path));
            assessed.push(Assessed { act: act.clone(), expected });
            if let Err(obstacle) = tree.take(*number, act) {
                let file = Some(obstacle.path.as_str().to_owned());
                findings.deny(Some(*number), file, obstacle.fact, obstacle.reason);
            }
        }
        let changes = tree.changes();
        self.check_removals(&acts, &known, &changes, visible, &mut findings).await?;
        let memory = self.remember_seen_by(visible).await?;
        let shown: BTreeSet<RelativePath> =
            touched.into_iter().filter(|path| visible.shows(Root::Project, path)).collect();
        self.check_chronicle(&acts, &shown, &memory, &mut findings).await?;
        let invariants = self.invariants()?;
        let count = invariants.len();
        // Also where a step has a finding already: who repairs the plan sees everything at once. A step that cannot be
        // taken is left out of the tree.
        let answers = self.newly_broken_seen_by(&changes, &invariants, visible).await?;
        for broken in &answers.broken {
            findings.add_broken(&acts, broken);
        }
        findings.undecided = answers.undecided;
        let chronicles = memory.files.iter().filter(|file| visible.shows(Root::Project, file)).count();
        Ok((findings.into_review(plan, chronicles, count), assessed))
    }

    /// Files that the graph knows, that others may import, and that would be gone.
    async fn check_removals(
        &self,
        acts: &[(usize, PlannedAction)],
        known: &BTreeSet<String>,
        changes: &[Change],
        visible: &Visibility,
        findings: &mut Findings,
    ) -> Result<(), ToolError> {
        let removed = |act: &PlannedAction| match act {
            PlannedAction::Delete { path, .. } | PlannedAction::Rename { path, .. }
                if known.contains(path.as_str()) =>
            {
                Some(path.clone())
            }
            _ => None,
        };
        let gone: BTreeSet<RelativePath> = acts.iter().filter_map(|(_, act)| removed(act)).collect();
        if gone.is_empty() {
            return Ok(());
        }
        // With the files still there, the graph can answer who would import them after all other changes.
        let (writes, removes): (Vec<Change>, Vec<Change>) =
            changes.iter().cloned().partition(|change| matches!(change, Change::Write { .. }));
        let mut importers = self.importers(&writes, &gone, visible).await?;
        for importers in importers.values_mut() {
            for change in &removes {
                importers.remove(change.path().as_str());
            }
        }
        for (number, act) in acts {
            let Some(path) = removed(act) else { continue };
            let is_gone = removes.iter().any(|change| change.path() == &path);
            let users = importers.get(path.as_str()).filter(|users| is_gone && !users.is_empty());
            let fact = match users {
                Some(users) => format!("{path} exists in graph, imported by {}", named(users)),
                None => format!("{path} exists in graph"),
            };
            let reason = match (act, users) {
                (PlannedAction::Rename { to, .. }, Some(_)) => {
                    format!("the plan renames it to {to} and leaves these imports as they are")
                }
                (PlannedAction::Delete { .. }, Some(_)) => {
                    "they would import what is not there any more".to_owned()
                }
                (PlannedAction::Delete { acknowledged: false, .. }, None) => {
                    "nothing would import it any more, so the step may say `\"acknowledged\": true`"
                        .to_owned()
                }
                _ => continue,
            };
            findings.deny(Some(*number), Some(path.as_str().to_owned()), fact, reason);
        }
        Ok(())
    }

    async fn check_chronicle(
        &self,
        acts: &[(usize, PlannedAction)],
        touched: &BTreeSet<RelativePath>,
        memory: &Memory,
        findings: &mut Findings,
    ) -> Result<(), ToolError> {
        let claims = memory.claims.iter().filter(|(path, _)| touched.contains(path));
        let claims: BTreeMap<_, _> = claims.map(|(path, claim)| (path.clone(), claim.clone())).collect();
        for contradiction in self.contradictions(&claims).await? {
            let path = &contradiction.path;
            let first = acts.iter().find(|(_, act)| act.paths().contains(&path));
            let reason = "reconcile it before building on it".to_owned();
            let file = Some(path.as_str().to_owned());
            findings.deny(first.map(|(step, _)| *step), file, contradiction.sentence(), reason);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Findings {
    found: Vec<StepFinding>,
    undecided: Vec<UndecidedInvariant>,
    deny: bool,
}

impl Findings {
    fn deny(&mut self, step: Option<usize>, file: Option<String>, fact: String, reason: String) {
        self.deny = true;
        self.found.push(StepFinding { step, file, fact, reason, severity: Severity::Error });
    }

    fn add_broken(&mut self, acts: &[(usize, PlannedAction)], broken: &Broken) {
        let invariant = &broken.invariant;
        let message = &invariant.message;
        let mut add = |culprit: Option<(usize, String)>, fact: String| {
            let verb = if broken.undecided { "leaves undecided" } else { "breaks" };
            let reason = format!("{verb} `{}`: {message}", invariant.name);
            let (step, file) = culprit.unzip();
            self.found.push(StepFinding { step, file, fact, reason, severity: invariant.severity });
        };
        for row in broken.rows.iter().take(MAX_ROWS) {
            add(culprit(acts, row), broken.about_row(row));
        }
        for file in broken.unread.iter().take(MAX_ROWS) {
            let toucher = acts
                .iter()
                .rev()
                .find(|(_, act)| act.paths().into_iter().any(|path| path.as_str() == file.path));
            add(toucher.map(|(step, _)| (*step, file.path.clone())), file.sentence());
        }
        if broken.rows.is_empty() && broken.unread.is_empty() {
            add(None, format!("expected {}, found {}", broken.expected(), broken.actual()));
        }
        if let Some(more) = broken.rows.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
            add(None, format!("expected {}, found {} more", broken.expected(), count(more, "row")));
        }
        self.deny |= invariant.severity == Severity::Error;
    }

    fn into_review(mut self, plan: &Plan, chronicles: usize, invariants: usize) -> Review {
        // What is about the whole plan comes last.
        self.found.sort_by_key(|finding| (finding.step.is_none(), finding.clone()));
        self.found.dedup();
        let errors: Vec<&StepFinding> =
            self.found.iter().filter(|finding| finding.severity == Severity::Error).collect();
        let decision = if errors.is_empty() {
            let steps = match plan.steps.len() {
                0 => "no step, so nothing can break".to_owned(),
                steps => count(steps, "step"),
            };
            let warnings = match self.found.len() {
                0 => "no objections".to_owned(),
                warnings => count(warnings, "warning"),
            };
            let chronicles = count(chronicles, "chronicle");
            let invariants = match (invariants, self.undecided.len()) {
                (0, _) => "; no invariants are defined".to_owned(),
                (all, 0) => format!(" and {}", count(all, "invariant")),
                (all, undecided) => format!(" and {} ({undecided} undecided)", count(all, "invariant")),
            };
            let checked = format!("checked against graph, {chronicles}{invariants}");
            Decision::Approve { justification: format!("{steps}; {checked}: {warnings}") }
        } else {
            let said = errors.iter().take(MAX_REASONS).map(|finding| match finding.step {
                Some(step) => format!("step {step}: {}: {}", finding.fact, finding.reason),
                None => format!("plan: {}: {}", finding.fact, finding.reason),
            });
            let mut reason = said.collect::<Vec<_>>().join("; ");
            if let Some(more) = errors.len().checked_sub(MAX_REASONS).filter(|more| *more > 0) {
                reason = format!("{reason}; and {more} more");
            }
            Decision::Deny { reason }
        };
        Review { decision, findings: self.found, undecided: self.undecided }
    }
}

/// The last step on a file that the row names.
fn culprit(acts: &[(usize, PlannedAction)], row: &Row) -> Option<(usize, String)> {
    acts.iter().rev().find_map(|(step, act)| {
        let path = act.paths().into_iter().find(|path| names(&row.value, path.as_str()))?;
        Some((*step, path.as_str().to_owned()))
    })
}

fn names(value: &Value, path: &str) -> bool {
    match value {
        Value::String(text) => text == path,
        Value::Array(items) => items.iter().any(|item| names(item, path)),
        Value::Object(fields) => fields.values().any(|item| names(item, path)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `src/b.ts, src/c.ts`
fn named(files: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = files.iter().take(MAX_NAMED).map(String::as_str).collect();
    match files.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", shown.join(", ")),
        None => shown.join(", "),
    }
}
