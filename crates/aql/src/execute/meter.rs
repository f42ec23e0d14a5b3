//! What a run has used of its budget, and what is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tgp_contract::{Code, ToolError};

use super::scope::Scope;
use crate::Budget;

/// Counts for one query that has a budget, and for all around it.
pub(super) struct Meter {
    outer: Option<Arc<Meter>>,
    query: String,
    /// What stops when the budget is used up.
    scope: Arc<Scope>,
    calls: Option<u64>,
    tokens: Option<u64>,
    used_calls: AtomicU64,
    used_tokens: AtomicU64,
}

/// A budget that is used up: whose it is, and what to say.
pub(super) struct Exhausted {
    pub(super) scope: Arc<Scope>,
    pub(super) error: ToolError,
}

/// What was used before, by a run that is gone on with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) tokens: u64,
    pub(super) calls: u64,
}

impl Meter {
    pub(super) fn new(
        query: &str,
        budget: &Budget,
        used: Used,
        scope: &Arc<Scope>,
        outer: Option<Arc<Meter>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            outer,
            query: query.to_owned(),
            scope: Arc::clone(scope),
            calls: budget.calls,
            tokens: budget.tokens,
            used_calls: AtomicU64::new(used.calls),
            used_tokens: AtomicU64::new(used.tokens),
        })
    }

    fn chain(&self) -> impl Iterator<Item = &Meter> {
        std::iter::successors(Some(self), |meter| meter.outer.as_deref())
    }

    pub(super) fn used(&self) -> Used {
        Used {
            tokens: self.used_tokens.load(Ordering::Relaxed),
            calls: self.used_calls.load(Ordering::Relaxed),
        }
    }

    /// Counts one call that is about to be made.
    pub(super) fn reserve_call(&self) -> Result<(), Exhausted> {
        for meter in self.chain() {
            if let Some(most) = meter.calls
                && meter.used().calls >= most
            {
                return Err(meter.exhausted("calls", most, meter.used().calls));
            }
        }
        self.count(Used { tokens: 0, calls: 1 });
        Ok(())
    }

    /// What an agent may use; `None` without a bound.
    pub(super) fn tokens_left(&self) -> Result<Option<u64>, Exhausted> {
        let mut left: Option<u64> = None;
        for meter in self.chain() {
            let Some(most) = meter.tokens else { continue };
            let used = meter.used().tokens;
            if used >= most {
                return Err(meter.exhausted("tokens", most, used));
            }
            left = Some(left.map_or(most - used, |known| known.min(most - used)));
        }
        Ok(left)
    }

    /// The calls that an agent may make; `None` without a bound.
    pub(super) fn calls_left(&self) -> Option<u64> {
        self.chain().filter_map(|meter| meter.calls.map(|most| most.saturating_sub(meter.used().calls))).min()
    }

    pub(super) fn count(&self, used: Used) {
        // A run is one task, so nobody else counts between the load and the store.
        let add = |counter: &AtomicU64, more: u64| {
            counter.store(counter.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
        };
        for meter in self.chain() {
            add(&meter.used_calls, used.calls);
            add(&meter.used_tokens, used.tokens);
        }
    }

    fn exhausted(&self, what: &str, most: u64, used: u64) -> Exhausted {
        let query = &self.query;
        let message =
            format!("the budget of `{query}` is used up: {used} of {most} {what}; no further step has begun");
        let error = ToolError::new(Code::Budget, message)
            .detail("budget", what)
            .detail("limit", most)
            .detail("used", used)
            .help(format!("give `{query}` a larger `budget({what}: …)`, or let it do less"));
        Exhausted { scope: Arc::clone(&self.scope), error }
    }
}
