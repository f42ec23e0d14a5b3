//! The Guardian as a gate of the router.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Actor, ApprovalOrigin, ApprovalReason, Change, Code, Effect, Gate, GateRequest, RelativePath,
    Root, Severity, Stage, Target, ToolError, Verdict, Visibility,
};

use crate::claims::{Claim, Scope};
use crate::halt::BrokenInvariant;
use crate::{GUARDIAN_CHRONICLE, Guardian, Judgement, Violation};

/// Tools that work while everything else is halted, because they end a halt.
pub const EXEMPT_TOOLS: &[&str] = &["reconcile"];

/// The detail of an error that has all invariants a change would break.
const VIOLATIONS: &str = "violations";

const BROKEN_HELP: &str =
    "make the change so that the invariant holds; people change the rules in `.sage/invariants.yml`";
const UNREAD_HELP: &str = "write the file so that it can be read completely: correct its syntax, or split it into smaller files; a \
                           person can name files that are known to be unreadable in `.sage/invariants.yml`: \
                           `unread: {ignore: ['vendor/**']}`";

/// Whether a call is halted by what the chronicle says of the files it touches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChronicleCheck {
    /// Only a check that was asked for halts: people delete and restore files by hand, and the chronicle does not
    /// record it.
    #[default]
    Checks,
    /// Every write compares its files with their chronicles first.
    Touched,
}

/// Lets no call through that would act on what is not true, or make an invariant untrue.
pub struct GuardianGate {
    guardian: Arc<Guardian>,
    vigilance: ChronicleCheck,
}

impl GuardianGate {
    #[must_use]
    pub fn new(guardian: Arc<Guardian>, vigilance: ChronicleCheck) -> Self {
        Self { guardian, vigilance }
    }

    /// Nothing against it, or the rule that is broken.
    async fn judged(&self, request: GateRequest<'_>) -> Result<(), Verdict> {
        if EXEMPT_TOOLS.contains(&request.definition.name.as_str()) {
            return objection(&request.context.actor).map_or(Ok(()), Err);
        }
        if writes(request).any(|path| path.as_str() == GUARDIAN_CHRONICLE) {
            let message = format!("`{GUARDIAN_CHRONICLE}` holds the Guardian's own events only");
            let error = ToolError::new(Code::Permission, message)
                .help("append to another chronicle; a halt is ended by `tgp guardian reconcile`");
            return Err(deny("guardian/own-chronicle", error));
        }
        let halt = self.guardian.halted().await.map_err(|error| deny("guardian/halt", error))?;
        if let Some(halt) = halt {
            return Err(deny("guardian/halt", halt.error()));
        }
        if self.vigilance == ChronicleCheck::Checks {
            return Ok(());
        }
        let broken = self.contradiction(request).await;
        match broken.map_err(|error| deny("guardian/chronicle", error))? {
            Some(broken) => Err(deny("guardian/chronicle", broken.error())),
            None => Ok(()),
        }
    }

    /// A file that is about to change, and of which the chronicle says something that is not true.
    async fn contradiction(&self, request: GateRequest<'_>) -> Result<Option<BrokenInvariant>, ToolError> {
        let paths: BTreeSet<RelativePath> = changed(request).cloned().collect();
        if paths.is_empty() {
            return Ok(None);
        }
        let mut claims = self.guardian.remember(Scope::Files(&paths)).await?.claims;
        // The graph is brought up to date with the files before it answers. So where these agree with the chronicle,
        // the graph does, and need not be asked before every write.
        let doubtful = |path: &RelativePath, claim: &Claim| {
            paths.contains(path) && claim.present != self.guardian.is_on_disk(path)
        };
        claims.retain(|path, claim| doubtful(path, claim));
        Ok(self.guardian.contradictions(&claims).await?.first().map(BrokenInvariant::of_contradiction))
    }

    async fn judged_contents(&self, changes: &[Change], visible: &Visibility) -> Result<Verdict, ToolError> {
        let Judgement { violations, undecided } = self.guardian.judge_changes(changes, visible).await?;
        let (errors, warnings): (Vec<Violation>, Vec<Violation>) =
            violations.into_iter().partition(|violation| violation.severity == Severity::Error);
        let Some(first) = errors.first() else {
            let mut rule = "guardian/invariants".to_owned();
            if let Some(warning) = warnings.first() {
                rule = format!("{rule}: warning: {}", warning.invariant);
            }
            if let Some(first) = undecided.first() {
                rule = format!("{rule}: undecided: {}", first.invariant);
                if let Some(more) = undecided.len().checked_sub(1).filter(|more| *more > 0) {
                    rule = format!("{rule} and {more} more");
                }
            }
            return Ok(Verdict::Allow { rule });
        };
        let others = match errors.len() {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        let (message, help) = if first.undecided {
            (
                format!(
                    "`{}` would be undecided: {}{others}. {}",
                    first.invariant, first.actual, first.message
                ),
                UNREAD_HELP,
            )
        } else {
            let Violation { invariant, expected, actual, message, .. } = first;
            (
                format!(
                    "`{invariant}` would not hold any more: expected {expected}, found {actual}{others}. {message}"
                ),
                BROKEN_HELP,
            )
        };
        let error = ToolError::new(Code::Policy, message)
            .detail("invariant", first.invariant.as_str())
            .detail("expected", first.expected.as_str())
            .detail("actual", first.actual.as_str())
            .detail("rows", first.rows.clone())
            .detail("undecided", first.undecided)
            .detail(VIOLATIONS, json!(errors))
            .help(help);
        Ok(deny(&format!("guardian/{}", first.invariant), error))
    }
}

#[async_trait]
impl Gate for GuardianGate {
    fn stage(&self) -> Stage {
        Stage::Guardian
    }

    fn name(&self) -> &str {
        "guardian"
    }

    async fn judge(&self, request: GateRequest<'_>) -> Verdict {
        if request.definition.effect == Effect::Read {
            return Verdict::Allow { rule: "guardian/read".to_owned() };
        }
        match self.judged(request).await {
            Ok(()) => Verdict::Allow { rule: "guardian".to_owned() },
            Err(verdict) => verdict,
        }
    }

    async fn needs_proposed_files(&self, request: GateRequest<'_>) -> bool {
        let is_write = request.definition.effect != Effect::Read && changed(request).next().is_some();
        // Invariants that cannot be read are not a reason to let a write pass unseen.
        is_write && self.guardian.invariants().map_or(true, |invariants| !invariants.is_empty())
    }

    async fn judge_changes(&self, request: GateRequest<'_>) -> Verdict {
        if let Err(verdict) = self.judged(request).await {
            return verdict;
        }
        let Some(changes) = request.proposed else {
            return Verdict::Allow { rule: "guardian".to_owned() };
        };
        let judged = self.judged_contents(changes, &Visibility::everything()).await;
        judged.unwrap_or_else(|error| deny("guardian/invariants", error))
    }

    async fn conceal(&self, request: GateRequest<'_>, error: ToolError, visible: &Visibility) -> ToolError {
        if visible.is_everything() {
            return error;
        }
        if error.code == Code::Halt {
            return self.guardian.concealed_halt(error, visible).await;
        }
        let Some(changes) = request.proposed.filter(|_| error.details.contains_key(VIOLATIONS)) else {
            return error;
        };
        // The same verdict, with only what the caller may see.
        match self.judged_contents(changes, visible).await {
            Ok(Verdict::Deny { error, .. }) => error,
            // What was broken a moment ago is repaired, or cannot be queried any more: nothing is known of
            // it.
            _ => ToolError::new(Code::Policy, "an invariant would not hold any more").help(BROKEN_HELP),
        }
    }

    async fn blast_radius(&self, request: GateRequest<'_>, visible: &Visibility) -> Option<Value> {
        let proposed = request.proposed.unwrap_or_default().iter().map(Change::path);
        let paths: BTreeSet<String> =
            changed(request).chain(proposed).map(|path| path.as_str().to_owned()).collect();
        if paths.is_empty() {
            return None;
        }
        let paths: Vec<String> = paths.into_iter().collect();
        // An approval is still possible when the graph cannot answer.
        let radius = self.guardian.blast_radius(&paths, visible).await.ok()?;
        if radius.is_empty() { None } else { serde_json::to_value(radius).ok() }
    }
}

/// Files of the project that the call would write, delete or append to.
fn writes<'a>(request: GateRequest<'a>) -> impl Iterator<Item = &'a RelativePath> {
    request
        .targets
        .iter()
        .filter_map(Target::file)
        .filter_map(|(root, path, access)| (root == Root::Project && access != Access::Read).then_some(path))
}

/// Files of the project whose content would change.
fn changed<'a>(request: GateRequest<'a>) -> impl Iterator<Item = &'a RelativePath> {
    request.targets.iter().filter_map(Target::file).filter_map(|(root, path, access)| {
        (root == Root::Project && matches!(access, Access::Write | Access::Delete)).then_some(path)
    })
}

/// Who may end a halt: a person, and an agent that a person has allowed to. No rule of the policy can replace that, or
/// an agent whose writes are allowed would end its own halt; and for a forged tool no user can be asked.
fn objection(actor: &Actor) -> Option<Verdict> {
    const RULE: &str = "guardian/reconcile";
    match actor {
        Actor::Person(_) => None,
        Actor::Agent(_) => Some(Verdict::Ask(ApprovalReason {
            origin: ApprovalOrigin::Rule(RULE.to_owned()),
            reason: "it accepts what is broken as it is, and may end a halt".to_owned(),
        })),
        Actor::Tool(path) => {
            let message = format!("the forged tool `{path}` cannot accept what is broken");
            let error = ToolError::new(Code::Permission, message).help(
                "call `reconcile` directly, so that a person is asked, or run `tgp guardian reconcile`",
            );
            Some(deny(RULE, error))
        }
    }
}

fn deny(rule: &str, error: ToolError) -> Verdict {
    Verdict::Deny { rule: rule.to_owned(), error }
}
