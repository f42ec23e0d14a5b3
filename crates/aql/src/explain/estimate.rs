//! How much a step may use. Calls are counted; tokens are guessed from the lengths of what is written.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::Estimate;
use crate::QueryType;
use crate::check::constant;
use crate::plan::{Agent, Expression, ExpressionForm, Kind, PlanBlock, QueryPlan, Step};

/// English and code have about four bytes a token.
const BYTES_PER_TOKEN: u64 = 4;

/// The shortest answer that says something.
const SHORT_ANSWER: u64 = 20;

/// A turn of an agent at work: what it says, and what a tool answers.
const LONG_TURN: u64 = 1_000;

/// A value that is not known yet.
const VALUE: u64 = 500;

/// How often an answer that does not fit its type may be corrected.
const CORRECTIONS: u64 = 2;

/// Calls of a run whose budget says nothing of them.
const DEFAULT_CALLS: u64 = 1_000;

impl Estimate {
    pub(super) fn exactly(number: u64) -> Self {
        Self { least: number, most: Some(number) }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.zip(other.most).map(|(one, other)| one.saturating_add(other)),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        let most = match (self.most, other.most) {
            // Nothing stays nothing, however often it is done.
            (Some(0), _) | (_, Some(0)) => Some(0),
            (Some(one), Some(other)) => Some(one.saturating_mul(other)),
            _ => None,
        };
        Self { least: self.least.saturating_mul(other.least), most }
    }

    fn at_most(self, bound: u64) -> Self {
        Self { least: self.least.min(bound), most: Some(self.most.unwrap_or(bound).min(bound)) }
    }
}

/// What something uses, done once, and how many waves it takes.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub calls: Estimate,
    pub tokens: Estimate,
    pub waves: usize,
}

impl Cost {
    const NOTHING: Cost = Cost {
        calls: Estimate { least: 0, most: Some(0) },
        tokens: Estimate { least: 0, most: Some(0) },
        waves: 1,
    };
}

/// How many items a `map` has.
pub(super) fn items_of(list: &Expression) -> Estimate {
    match &list.form {
        ExpressionForm::Value(Value::Array(items)) => Estimate::exactly(items.len() as u64),
        ExpressionForm::List(items) => Estimate::exactly(items.len() as u64),
        _ => Estimate { least: 0, most: None },
    }
}

/// Costs of queries and steps, each reckoned once: queries share parts, and blocks are deep. They are known by where
/// they are in memory, so one of these lives no longer than the plan it is asked about.
#[derive(Default)]
pub(super) struct Costs {
    queries: HashMap<*const QueryPlan, Cost>,
    steps: HashMap<*const Step, Cost>,
}

impl Costs {
    pub fn plan(&mut self, plan: &QueryPlan) -> Cost {
        let mut cost = self.block(&plan.body);
        cost.calls = cost.calls.at_most(plan.budget.calls.unwrap_or(DEFAULT_CALLS));
        if let Some(tokens) = plan.budget.tokens {
            cost.tokens = cost.tokens.at_most(tokens);
        }
        cost
    }

    fn shared(&mut self, plan: &Arc<QueryPlan>) -> Cost {
        let key = Arc::as_ptr(plan);
        if let Some(cost) = self.queries.get(&key) {
            return *cost;
        }
        let cost = self.plan(plan);
        self.queries.insert(key, cost);
        cost
    }

    fn block(&mut self, block: &PlanBlock) -> Cost {
        let stages = self.stages(block);
        let mut whole = Cost::NOTHING;
        for (step, stage) in block.steps.iter().zip(stages) {
            let cost = self.step(step);
            whole.calls = whole.calls.plus(cost.calls);
            whole.tokens = whole.tokens.plus(cost.tokens);
            whole.waves = whole.waves.max(stage.saturating_add(cost.waves));
        }
        whole
    }

    /// The earliest wave of each step of a block, from 0.
    pub fn stages(&mut self, block: &PlanBlock) -> Vec<usize> {
        let waves: Vec<usize> = block.steps.iter().map(|step| self.step(step).waves).collect();
        let mut stages: Vec<usize> = vec![0; block.steps.len()];
        // A step may be written before what it needs, so the longest way is found by going over all as often as it is
        // long.
        for _ in 0..block.steps.len() {
            let mut moved = false;
            for (at, step) in block.steps.iter().enumerate() {
                let ends = step.needs.iter().map(|need| {
                    let begins = stages.get(*need).copied().unwrap_or(0);
                    begins.saturating_add(waves.get(*need).copied().unwrap_or(1))
                });
                let stage = ends.max().unwrap_or(0);
                if let Some(known) = stages.get_mut(at).filter(|known| **known < stage) {
                    *known = stage;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        stages
    }

    /// A step done once, with what is inside of it.
    pub fn step(&mut self, step: &Step) -> Cost {
        let key: *const Step = step;
        if let Some(cost) = self.steps.get(&key) {
            return *cost;
        }
        let cost = self.reckoned(step);
        self.steps.insert(key, cost);
        cost
    }

    fn reckoned(&mut self, step: &Step) -> Cost {
        let attempts = u64::from(step.options.retry) + 1;
        let mut cost = match &step.kind {
            Kind::Agent(agent) => Cost {
                calls: Estimate { least: 0, most: agent.tools.is_empty().then_some(0) },
                tokens: agent_tokens(agent, step.checked.as_ref(), attempts),
                waves: 1,
            },
            Kind::Tool { .. } | Kind::Exec { .. } | Kind::Graph { .. } | Kind::Sql { .. } => {
                Cost { calls: Estimate { least: 1, most: Some(attempts) }, ..Cost::NOTHING }
            }
            Kind::Merge { .. } => Cost::NOTHING,
            Kind::Map { list, body, .. } => {
                let inner = self.block(body);
                let items = items_of(list);
                Cost {
                    calls: inner.calls.times(items),
                    tokens: inner.tokens.times(items),
                    waves: inner.waves,
                }
            }
            Kind::When { then, otherwise, .. } => {
                let (one, other) = (self.block(then), otherwise.as_ref().map(|block| self.block(block)));
                let other = other.unwrap_or(Cost::NOTHING);
                Cost {
                    calls: either(one.calls, other.calls),
                    tokens: either(one.tokens, other.tokens),
                    waves: one.waves.max(other.waves),
                }
            }
            Kind::Query { query, .. } => self.shared(query),
        };
        if step.options.cache {
            cost.calls.least = 0;
            cost.tokens.least = 0;
        }
        cost
    }
}

/// One of two things happens.
fn either(one: Estimate, other: Estimate) -> Estimate {
    Estimate {
        least: one.least.min(other.least),
        most: one.most.zip(other.most).map(|(one, other)| one.max(other)),
    }
}

fn agent_tokens(agent: &Agent, checked: Option<&QueryType>, attempts: u64) -> Estimate {
    let texts = [Some(&agent.prompt), agent.system.as_ref()];
    let (bytes, unknown) =
        texts.into_iter().flatten().map(written).fold((0, 0), |sum, text| (sum.0 + text.0, sum.1 + text.1));
    let typed = checked.filter(|ty| **ty != QueryType::String);
    // A schema is about twice as long as the type it says.
    let schema = typed.map_or(0, |ty| ty.to_string().len() as u64 * 2);
    let said = (bytes + schema).div_ceil(BYTES_PER_TOKEN);
    let turns = if agent.tools.is_empty() { 1 } else { agent.max_steps };
    let turns = turns.saturating_add(if typed.is_some() { CORRECTIONS } else { 0 });
    // Every turn reads all that was before it.
    let read = said.saturating_add(unknown.saturating_mul(VALUE)).saturating_mul(turns);
    let grown = turns.saturating_mul(turns.saturating_add(1)) / 2;
    let most = read.saturating_add(grown.saturating_mul(LONG_TURN)).saturating_mul(attempts);
    Estimate { least: said.saturating_add(SHORT_ANSWER), most: Some(most) }
}

/// The bytes of a text that are known, and how many values in it are not.
fn written(expression: &Expression) -> (u64, u64) {
    match &expression.form {
        ExpressionForm::Value(Value::String(text)) => (text.len() as u64, 0),
        ExpressionForm::Text(pieces) => {
            pieces.iter().fold((0, 0), |(bytes, unknown), piece| match constant(piece) {
                Some(Value::String(text)) => (bytes + text.len() as u64, unknown),
                Some(value) => (bytes + value.to_string().len() as u64, unknown),
                None => (bytes, unknown + 1),
            })
        }
        _ => (0, 1),
    }
}
