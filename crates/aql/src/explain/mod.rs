//! What a plan would do, before it does it: steps, waves, and how much they may use.

mod diagram;
mod estimate;
mod shown;
mod text;

use serde::Serialize;
use serde_json::{Value, json};

use self::estimate::{Costs, items_of};
use self::shown::Names;
use crate::QueryPlan;
use crate::check::constant;
use crate::plan::{Expression, ExpressionForm, Kind, PlanBlock};

/// What one query would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryExplanation {
    pub query: String,
    /// In the order of the source, those inside a step after it.
    pub steps: Vec<PlannedStep>,
    /// Calls through the router, those of agents included.
    pub calls: Estimate,
    pub tokens: Estimate,
}

/// A step of a query, as `explain` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedStep {
    /// `each[].note` inside a `map`, `sub.final` inside a query, `check.a` and `check[else].b` inside a `when`.
    pub step: String,
    pub kind: String,
    /// The model, the tool, the path or the first line of what is asked.
    pub what: String,
    pub needs: Vec<String>,
    /// The earliest wave it can run in, from 1.
    pub stage: usize,
    /// How often it is done in one run.
    pub repeats: Estimate,
    /// All repetitions together, and what is inside of it.
    pub calls: Estimate,
    pub tokens: Estimate,
    pub planned: Vec<PlannedCall>,
}

/// A call that a step makes, or may make when it is an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlannedCall {
    pub tool: String,
    /// What is known of them before it runs; nothing for the calls of an agent.
    pub arguments: Option<Value>,
    /// Whether some of them are known when it runs only.
    pub partial: bool,
    /// What the gates would decide; filled in by a caller that can ask them.
    pub gates: Vec<PredictedVerdict>,
}

/// What the gates would say of a call, as far as that is known before it happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PredictedVerdict {
    pub gate: String,
    pub verdict: String,
    pub rule: String,
}

/// From `least` to `most`; without `most` the upper end is unknown before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Estimate {
    pub least: u64,
    pub most: Option<u64>,
}

/// Steps that are listed. Queries inside of queries multiply, and a longer list is not read; what is not listed is in
/// the numbers of the step it is inside of.
const MAX_LISTED: usize = 2_000;

/// Says what a plan would do.
#[must_use]
pub fn explain(plan: &QueryPlan) -> QueryExplanation {
    let mut list = List { steps: Vec::new(), costs: Costs::default() };
    list.block(&plan.body, "", 1, Estimate::exactly(1), &mut Names::of(plan));
    let cost = list.costs.plan(plan);
    let mut steps = list.steps;
    for step in &mut steps {
        step.planned.truncate(MAX_PLANNED);
    }
    QueryExplanation { query: plan.name.clone(), steps, calls: cost.calls, tokens: cost.tokens }
}

/// Calls that are named of one step: an agent may have any number of tools.
const MAX_PLANNED: usize = 100;

struct List {
    steps: Vec<PlannedStep>,
    costs: Costs,
}

impl List {
    fn block(&mut self, block: &PlanBlock, prefix: &str, stage: usize, repeats: Estimate, names: &mut Names) {
        names.enter(block);
        let stages = self.costs.stages(block);
        for (at, step) in block.steps.iter().enumerate() {
            if self.steps.len() >= MAX_LISTED {
                break;
            }
            let path = format!("{prefix}{}", step.name);
            let first = stage + stages.get(at).copied().unwrap_or(0);
            let cost = self.costs.step(step);
            let needs = step.needs.iter().filter_map(|need| block.steps.get(*need));
            self.steps.push(PlannedStep {
                step: path.clone(),
                kind: step.kind.name().to_owned(),
                what: names.what(&step.kind),
                needs: needs.map(|need| format!("{prefix}{}", need.name)).collect(),
                stage: first,
                repeats,
                calls: cost.calls.times(repeats),
                tokens: cost.tokens.times(repeats),
                planned: planned(&step.kind),
            });
            match &step.kind {
                Kind::Map { list, body, .. } => {
                    let repeats = repeats.times(items_of(list));
                    self.block(body, &format!("{path}[]."), first, repeats, names);
                }
                Kind::When { then, otherwise, .. } => {
                    let repeats = Estimate { least: 0, ..repeats };
                    self.block(then, &format!("{path}."), first, repeats, names);
                    if let Some(otherwise) = otherwise {
                        self.block(otherwise, &format!("{path}[else]."), first, repeats, names);
                    }
                }
                Kind::Query { query, .. } => {
                    self.block(&query.body, &format!("{path}."), first, repeats, &mut Names::of(query));
                }
                _ => {}
            }
        }
        names.leave();
    }
}

/// The calls that a step makes, as the router gets them.
fn planned(kind: &Kind) -> Vec<PlannedCall> {
    let call = |tool: &str, arguments: Vec<(&str, Known)>| {
        let partial = arguments.iter().any(|(_, known)| known.partial);
        let fields = arguments.into_iter().filter_map(|(name, known)| Some((name.to_owned(), known.value?)));
        let arguments = Some(Value::Object(fields.collect()));
        PlannedCall { tool: tool.to_owned(), arguments, partial, gates: Vec::new() }
    };
    let text = |text: &str| Known { value: Some(json!(text)), partial: false };
    match kind {
        Kind::Agent(agent) => {
            let unknown = |tool: &String| PlannedCall {
                tool: tool.clone(),
                arguments: None,
                partial: true,
                gates: Vec::new(),
            };
            agent.tools.iter().map(unknown).collect()
        }
        Kind::Tool { tool, arguments } => {
            let Known { value, partial } = known(arguments);
            vec![PlannedCall { tool: tool.clone(), arguments: value, partial, gates: Vec::new() }]
        }
        Kind::Exec { path, arguments } => {
            vec![call("exec_tool", vec![("path", text(path)), ("args", known(arguments))])]
        }
        Kind::Graph { cypher, commit, params } => {
            let mut arguments = vec![("query", text(cypher)), ("params", known(params))];
            arguments.extend(commit.iter().map(|commit| ("commit", known(commit))));
            vec![call("graph_query", arguments)]
        }
        Kind::Sql { sql, params } => {
            vec![call("exec_sql", vec![("sql", text(sql)), ("params", known(params))])]
        }
        Kind::Merge { .. } | Kind::Map { .. } | Kind::When { .. } | Kind::Query { .. } => Vec::new(),
    }
}

/// What is known of a value before anything runs.
struct Known {
    value: Option<Value>,
    partial: bool,
}

/// A constant, or an object of those fields that are constant.
fn known(expression: &Expression) -> Known {
    if let Some(value) = constant(expression) {
        return Known { value: Some(value), partial: false };
    }
    let ExpressionForm::Object(fields) = &expression.form else {
        return Known { value: None, partial: true };
    };
    let fields = fields.iter().filter_map(|(name, field)| Some((name.clone(), constant(field)?)));
    Known { value: Some(Value::Object(fields.collect())), partial: true }
}
