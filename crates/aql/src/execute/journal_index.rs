//! What the journal says of a run that is resumed.

use std::collections::BTreeMap;

use serde_json::Value;
use tgp_contract::{BudgetUsage, Code, ToolError};

use super::JournalLine;
use super::path::{has_effect, locate};
use super::scope::Position;
use crate::{QueryPlan, QueryType, Step};

/// The detail of an error that says that a value did not fit its type.
pub(super) const MISMATCH: &str = "mismatch";

/// All that is known, by the path of the step.
pub(super) struct JournalIndex<'p> {
    steps: BTreeMap<String, StepHistory<'p>>,
    worked_ms: u64,
}

/// What is known of one step.
pub(super) struct StepHistory<'p> {
    step: &'p Step,
    pub(super) position: Position,
    /// Attempts that were begun.
    pub(super) attempts: u32,
    /// The call of the last attempt; for an agent its session.
    pub(super) call: Option<String>,
    /// Whether the end of that attempt is unknown.
    is_open: bool,
    /// Whether that attempt has begun to take effect.
    is_effecting: bool,
    /// Why its value cannot be used, though it was carried out.
    unusable: Option<ToolError>,
    /// Whether it ended with a value that did not fit, after all corrections.
    pub(super) has_misfit: bool,
    value: Option<Value>,
    is_excused: bool,
    used: BudgetUsage,
}

/// A step that has begun to take effect, and of which the journal has no end.
pub(super) struct UnfinishedStep<'a> {
    pub(super) path: &'a str,
    pub(super) step: &'a Step,
    pub(super) position: &'a Position,
    pub(super) call: &'a str,
}

impl<'p> JournalIndex<'p> {
    /// # Errors
    /// `EINTEGRITY` when a line speaks of a step that the plan does not have.
    pub(super) fn read(plan: &'p QueryPlan, lines: &[JournalLine]) -> Result<Self, ToolError> {
        let mut history = Self { steps: BTreeMap::new(), worked_ms: 0 };
        for (index, line) in lines.iter().enumerate() {
            let foreign = |path: &str| {
                let line = index + 1;
                let message = format!(
                    "line {line} of the run's journal speaks of the step `{path}`, which `{}` does not have",
                    plan.name
                );
                ToolError::new(Code::Integrity, message)
                    .detail("step", path)
                    .detail("line", line)
                    .help("go on with the sources that the run began with, or begin a new run")
            };
            let path = match line {
                JournalLine::Begun { step, .. }
                | JournalLine::Effecting { step, .. }
                | JournalLine::Failed { step, .. }
                | JournalLine::Excused { step, .. } => step,
                JournalLine::Done { step, worked_ms, .. } => {
                    history.worked_ms = history.worked_ms.max(*worked_ms);
                    step
                }
                JournalLine::Worked { ms } => {
                    history.worked_ms = history.worked_ms.max(*ms);
                    continue;
                }
            };
            if !history.steps.contains_key(path) {
                let (step, here) = locate(plan, path).ok_or_else(|| foreign(path))?;
                history.steps.insert(path.clone(), StepHistory::new(step, here.position));
            }
            let Some(earlier) = history.steps.get_mut(path) else { continue };
            if !has_effect(&earlier.step.kind) && !matches!(line, JournalLine::Excused { .. }) {
                return Err(foreign(path));
            }
            earlier.learn(line);
        }
        Ok(history)
    }

    /// How long the run has worked before, as far as that is known.
    pub(super) fn worked_ms(&self) -> u64 {
        self.worked_ms
    }

    pub(super) fn of(&self, path: &str) -> Option<&StepHistory<'p>> {
        self.steps.get(path)
    }

    /// What all steps have used.
    pub(super) fn used(&self) -> BudgetUsage {
        sum(self.steps.values())
    }

    /// What the steps of one nested query have used.
    pub(super) fn used_inside(&self, path: &str) -> BudgetUsage {
        // `/` comes right after `.`, so this is everything whose name begins with the path and a point.
        sum(self.steps.range(format!("{path}.")..format!("{path}/")).map(|(_, earlier)| earlier))
    }

    /// Steps that have begun to take effect and whose end is unknown, in the order of the query. What is inside a step
    /// that was given up will not be needed any more.
    pub(super) fn open(&self) -> Vec<UnfinishedStep<'_>> {
        let is_given_up = |path: &str| {
            let ends = path.char_indices().filter(|(_, letter)| matches!(letter, '.' | '['));
            ends.filter_map(|(end, _)| self.steps.get(path.get(..end)?)).any(|outer| outer.is_excused)
        };
        let mut open: Vec<UnfinishedStep<'_>> = self
            .steps
            .iter()
            .filter(|(path, earlier)| earlier.is_open && earlier.is_effecting && !is_given_up(path))
            .filter_map(|(path, earlier)| {
                let call = earlier.call.as_deref()?;
                Some(UnfinishedStep { path, step: earlier.step, position: &earlier.position, call })
            })
            .collect();
        open.sort_by(|left, right| left.position.cmp(right.position));
        open
    }
}

impl<'p> StepHistory<'p> {
    fn new(step: &'p Step, position: Position) -> Self {
        Self {
            step,
            position,
            attempts: 0,
            call: None,
            is_open: false,
            is_effecting: false,
            unusable: None,
            has_misfit: false,
            value: None,
            is_excused: false,
            used: BudgetUsage::default(),
        }
    }

    fn learn(&mut self, line: &JournalLine) {
        match line {
            JournalLine::Begun { attempt, call, .. } => {
                self.attempts = self.attempts.max(*attempt);
                self.call = Some(call.clone());
                (self.is_open, self.has_misfit, self.value) = (true, false, None);
                (self.is_effecting, self.unusable) = (false, None);
            }
            JournalLine::Effecting { attempt, .. } => self.is_effecting |= *attempt == self.attempts,
            JournalLine::Done { value, tokens, calls, .. } => {
                (self.is_open, self.value) = (false, Some(value.clone()));
                self.count(*tokens, *calls);
            }
            JournalLine::Failed { error, tokens, calls, happened, .. } => {
                (self.is_open, self.has_misfit) = (false, error.details.contains_key(MISMATCH));
                self.unusable = happened.then(|| error.clone());
                self.count(*tokens, *calls);
            }
            JournalLine::Excused { value, .. } => {
                (self.is_open, self.is_excused, self.value) = (false, true, Some(value.clone()));
            }
            JournalLine::Worked { .. } => {}
        }
    }

    fn count(&mut self, tokens: u64, calls: u64) {
        self.used.tokens = self.used.tokens.saturating_add(tokens);
        self.used.calls = self.used.calls.saturating_add(calls);
    }

    /// Why the step has no value and is not made again: it was carried out.
    pub(super) fn unusable(&self) -> Option<&ToolError> {
        self.unusable.as_ref()
    }

    /// The value that the step has, if it still fits; the `on_error` value of a failed step always does.
    pub(super) fn value(&self, ty: Option<&QueryType>) -> Option<&Value> {
        let fits = |value: &&Value| self.is_excused || ty.is_none_or(|ty| ty.check(value).is_ok());
        self.value.as_ref().filter(fits)
    }
}

fn sum<'a, 'p: 'a>(steps: impl Iterator<Item = &'a StepHistory<'p>>) -> BudgetUsage {
    steps.fold(BudgetUsage::default(), |all, earlier| {
        // A call that was begun and has no end was made at least once.
        let open = u64::from(earlier.is_open && !matches!(earlier.step.kind, crate::Kind::Agent(_)));
        BudgetUsage {
            tokens: all.tokens.saturating_add(earlier.used.tokens),
            calls: all.calls.saturating_add(earlier.used.calls).saturating_add(open),
        }
    })
}
