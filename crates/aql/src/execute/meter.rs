//! The budgets of the queries of a run: what is shared by all that works at the same time, and what stops without it.

use std::sync::Arc;

use tgp_contract::{BudgetLimits, BudgetUsage, SharedBudget, ToolError};

use super::scope::RunScope;
use crate::Budget;

/// The budget of one query, inside those of the queries around it.
pub(super) struct Meter {
    outer: Option<Arc<Meter>>,
    allowance: SharedBudget,
    /// What stops when the budget is used up.
    scope: Arc<RunScope>,
}

/// A budget that is used up: what stops with it, and what to say.
pub(super) struct Exhausted {
    pub(super) scope: Arc<RunScope>,
    pub(super) error: ToolError,
}

impl Meter {
    /// `used` was used before, by the run that is resumed. What is inside a query counts for those around it as well.
    pub(super) fn new(
        query: &str,
        budget: &Budget,
        used: BudgetUsage,
        scope: &Arc<RunScope>,
        outer: Option<Arc<Meter>>,
    ) -> Arc<Self> {
        let ceiling = BudgetLimits { calls: budget.calls, tokens: budget.tokens };
        let allowance = match &outer {
            Some(outer) => outer.allowance.part(query, ceiling, used),
            None => SharedBudget::new(query, ceiling, used),
        };
        Arc::new(Self { outer, allowance, scope: Arc::clone(scope) })
    }

    pub(super) fn used(&self) -> BudgetUsage {
        self.allowance.spent()
    }

    /// The part of one attempt at a step, which has no bounds itself. It reports what the attempt has used, and whether
    /// it wanted more than there was.
    pub(super) fn part(&self, step: &str) -> SharedBudget {
        self.allowance.part(step, BudgetLimits::default(), BudgetUsage::default())
    }

    /// The budget that was used up when an attempt was refused something.
    pub(super) fn refused(&self, part: &SharedBudget) -> Option<Exhausted> {
        let refusal = part.refusal()?;
        let mut chain = std::iter::successors(Some(self), |meter| meter.outer.as_deref());
        // The part itself is the first level, and refuses nothing.
        let whose = chain.nth(refusal.levels_up.saturating_sub(1)).unwrap_or(self);
        Some(Exhausted { scope: Arc::clone(&whose.scope), error: refusal.error })
    }
}
