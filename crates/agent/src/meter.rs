//! What a session has used, and which bound it has reached.

use tgp_contract::{Code, ToolError, Usage};

use crate::options::MILLION;
use crate::{Budgets, Prices};

/// From so few steps on, the model is informed how many are left.
const LAST_STEPS: u64 = 3;

/// So many tokens every model can answer with. Where the user has set no limit, a larger one could be more than the
/// model has, and its provider would refuse the request.
const SAFE_OUTPUT_TOKENS: u64 = 4096;

/// When a budget is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetCheckpoint {
    BeforeTurn,
    BeforeCalls,
}

/// What a session has used so far, all its runs together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    pub(crate) steps: u64,
    pub(crate) usage: Usage,
    /// Whether some of it was not reported but estimated.
    pub(crate) is_estimated: bool,
    /// Time of the runs before this one. What lies between two runs does not count.
    earlier_ms: u64,
    began_ms: u64,
    last_ms: u64,
}

impl Meter {
    /// A run begins.
    pub(crate) fn begin(&mut self, at_ms: u64) {
        self.earlier_ms = self.elapsed_ms();
        (self.began_ms, self.last_ms) = (at_ms, at_ms);
    }

    /// The clock has reached this line.
    pub(crate) fn reach(&mut self, at_ms: u64) {
        self.last_ms = self.last_ms.max(at_ms);
    }

    pub(crate) fn last_ms(&self) -> u64 {
        self.last_ms
    }

    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.earlier_ms.saturating_add(self.last_ms.saturating_sub(self.began_ms))
    }

    pub(crate) fn add(&mut self, usage: Usage) {
        self.usage = self.usage.saturating_add(usage);
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.usage.input_tokens.saturating_add(self.usage.output_tokens)
    }

    pub(crate) fn cost(&self, prices: Option<Prices>) -> Option<f64> {
        prices.map(|prices| prices.cost(self.usage))
    }

    /// What is left of the time, where it has a bound.
    pub(crate) fn left_ms(&self, budgets: &Budgets) -> Option<u64> {
        budgets.max_seconds.map(|most| most.saturating_mul(1000).saturating_sub(self.elapsed_ms()))
    }

    /// How long the next answer may be: no longer than the user has set, and than what is left of the budgets. What a
    /// turn reads is not known before it is asked, so a session may go over a bound by as much.
    pub(crate) fn output_tokens(
        &self,
        budgets: &Budgets,
        prices: Option<Prices>,
        configured: Option<u64>,
    ) -> Option<u64> {
        let tokens = budgets.max_tokens.map(|most| most.saturating_sub(self.tokens()));
        let left = [tokens, self.affordable(budgets, prices)].into_iter().flatten().min();
        let left = left.map(|left| left.max(1));
        match (configured, left) {
            (Some(configured), Some(left)) => Some(configured.min(left)),
            (None, Some(left)) => Some(left).filter(|left| *left <= SAFE_OUTPUT_TOKENS),
            (configured, None) => configured,
        }
    }

    /// Tokens of output that can be paid with what is left.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates, and so many tokens nobody writes"
    )]
    fn affordable(&self, budgets: &Budgets, prices: Option<Prices>) -> Option<u64> {
        let price = prices.map(|prices| prices.output).filter(|price| *price > 0.0)?;
        let left = budgets.max_cost? - self.cost(prices)?;
        Some((left / price * MILLION) as u64)
    }

    /// The bounds that were passed by what has happened since they were last checked.
    pub(crate) fn overrun(&self, budgets: &Budgets, prices: Option<Prices>) -> Option<String> {
        let over = |name: &str, used: u64, most: Option<u64>| {
            most.filter(|most| used > *most).map(|most| format!("{used} of {most} {name}"))
        };
        let cost = self.cost(prices).zip(budgets.max_cost).filter(|(cost, most)| cost > most);
        let passed = [
            over("tokens", self.tokens(), budgets.max_tokens),
            over("seconds", self.elapsed_ms() / 1000, budgets.max_seconds),
            cost.map(|(cost, most)| format!("{cost:.4} of {most:.4} in cost")),
        ];
        let passed: Vec<String> = passed.into_iter().flatten().collect();
        (!passed.is_empty())
            .then(|| format!("the session is done, but it went over its bounds: {}", passed.join(", ")))
    }

    /// The message to the model when its steps run out.
    pub(crate) fn last_steps(&self, budgets: &Budgets) -> Option<String> {
        let left = budgets.max_steps.saturating_sub(self.steps);
        match left {
            1 => Some(
                "[this is the last step: say what is done and what is left, and make no call]".to_owned(),
            ),
            2..=LAST_STEPS => Some(format!("[{left} steps are left, this one included; come to an end]")),
            _ => None,
        }
    }

    /// The bound that is reached, if one is.
    pub(crate) fn reached(
        &self,
        budgets: &Budgets,
        prices: Option<Prices>,
        moment: BudgetCheckpoint,
        session: &str,
    ) -> Option<ToolError> {
        if moment == BudgetCheckpoint::BeforeTurn && self.steps >= budgets.max_steps {
            return Some(self.out_of("steps", self.steps, budgets.max_steps, session));
        }
        if let Some(most) = budgets.max_tokens.filter(|most| self.tokens() >= *most) {
            return Some(self.out_of("tokens", self.tokens(), most, session));
        }
        if budgets.max_seconds.is_some() && self.left_ms(budgets) == Some(0) {
            return self.out_of_time(budgets, session);
        }
        let (cost, most) = (self.cost(prices)?, budgets.max_cost?);
        (cost >= most).then(|| {
            budget_error("cost", format!("the session has cost {cost:.4} of {most:.4}"), session, most * 2.0)
                .detail("used", cost)
                .detail("limit", most)
        })
    }

    /// The time is used up, or a turn has taken all that was left of it.
    pub(crate) fn out_of_time(&self, budgets: &Budgets, session: &str) -> Option<ToolError> {
        let most = budgets.max_seconds?;
        Some(self.out_of("seconds", self.elapsed_ms() / 1000, most, session))
    }

    fn out_of(&self, bound: &str, used: u64, limit: u64, session: &str) -> ToolError {
        let next = limit.max(used).max(1).saturating_mul(2);
        budget_error(bound, format!("the session has used {used} of {limit} {bound}"), session, next)
            .detail("used", used)
            .detail("limit", limit)
    }
}

fn budget_error(bound: &str, message: String, session: &str, next: impl std::fmt::Display) -> ToolError {
    ToolError::new(Code::Budget, message)
        .detail("bound", bound)
        .help(format!("go on with `tgp run --resume {session} --max-{bound} {next}`"))
}
