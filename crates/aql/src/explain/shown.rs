//! What a step does, in a few words.

use tgp_text::truncate;

use crate::plan::{Comparison, Expression, ExpressionForm, Kind, Merge, PlanBlock, QueryPlan};

/// Where a few words end.
const LONGEST: usize = 60;

/// The names that plans do without, for people.
pub(super) struct Names {
    inputs: Vec<String>,
    /// Of the steps of each block around, the innermost last.
    blocks: Vec<Vec<String>>,
}

impl Names {
    pub fn of(plan: &QueryPlan) -> Self {
        Self { inputs: plan.inputs.iter().map(|input| input.name.clone()).collect(), blocks: Vec::new() }
    }

    pub fn enter(&mut self, block: &PlanBlock) {
        self.blocks.push(block.steps.iter().map(|step| step.name.clone()).collect());
    }

    pub fn leave(&mut self) {
        self.blocks.pop();
    }

    pub fn what(&self, kind: &Kind) -> String {
        let what = match kind {
            Kind::Agent(agent) => agent.model.clone().unwrap_or_else(|| "the configured model".to_owned()),
            Kind::Tool { tool, .. } => tool.clone(),
            Kind::Exec { path, .. } => path.clone(),
            Kind::Graph { cypher, .. } => first_line(cypher),
            Kind::Sql { sql, .. } => first_line(sql),
            Kind::Merge { how, parts } => {
                let parts: Vec<String> = parts.iter().map(|part| self.shown(&part.value)).collect();
                let how = match how {
                    Merge::Same | Merge::Record => "",
                    Merge::Text => "text of ",
                    Merge::List => "list of ",
                    Merge::Object => "object of ",
                };
                format!("{how}{}", parts.join(", "))
            }
            Kind::Map { list, concurrency, .. } => {
                format!("each of {}, {concurrency} at a time", self.shown(list))
            }
            Kind::When { condition, .. } => format!("if {}", self.shown(condition)),
            Kind::Query { query, .. } => query.name.clone(),
        };
        cut(what.lines().next().unwrap_or_default())
    }

    fn shown(&self, expression: &Expression) -> String {
        let each = |parts: &[Expression], word: &str| {
            parts.iter().map(|part| self.shown(part)).collect::<Vec<_>>().join(word)
        };
        let shown = match &expression.form {
            ExpressionForm::Value(value) => value.to_string(),
            ExpressionForm::Input(at) => format!("${}", self.inputs.get(*at).map_or("?", String::as_str)),
            ExpressionForm::Step { up, index } => {
                let block = self.blocks.iter().rev().nth(*up);
                block.and_then(|block| block.get(*index)).cloned().unwrap_or_default()
            }
            ExpressionForm::Item { .. } => "item".to_owned(),
            ExpressionForm::Field(of, name) => format!("{}.{name}", self.shown(of)),
            ExpressionForm::Element(of, index) => format!("{}[{}]", self.shown(of), self.shown(index)),
            ExpressionForm::Text(_) => "a text".to_owned(),
            ExpressionForm::List(items) => format!("[{}]", each(items, ", ")),
            ExpressionForm::Object(_) => "an object".to_owned(),
            ExpressionForm::Or(one, other) => format!("{} ?? {}", self.shown(one), self.shown(other)),
            ExpressionForm::Compare(comparison, one, other) => {
                let sign = match comparison {
                    Comparison::Equal => "==",
                    Comparison::Different => "!=",
                    Comparison::Less => "<",
                    Comparison::LessOrEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterOrEqual => ">=",
                    Comparison::In => "in",
                };
                format!("{} {sign} {}", self.shown(one), self.shown(other))
            }
            ExpressionForm::All(parts) => each(parts, " and "),
            ExpressionForm::Some(parts) => each(parts, " or "),
            ExpressionForm::Not(inner) => format!("not {}", self.shown(inner)),
            ExpressionForm::Length(of) => format!("length({})", self.shown(of)),
            ExpressionForm::Join(list, between) => {
                format!("join({}, {})", self.shown(list), self.shown(between))
            }
            ExpressionForm::Contains(of, wanted) => {
                format!("contains({}, {})", self.shown(of), self.shown(wanted))
            }
        };
        cut(&shown)
    }
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Control characters would reach the reader's terminal.
fn cut(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    truncate(text, LONGEST).chars().map(plain).collect()
}
