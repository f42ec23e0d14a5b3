//! Plans by hand, as the checker would make them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tgp_aql::{
    Agent, Budget, Expression, ExpressionForm, Kind, Merge, OnError, Options, Part, PlanBlock, QueryPlan,
    QueryType, Step,
};
use tgp_contract::SourceLocation;

pub fn place(line: u32) -> SourceLocation {
    SourceLocation { file: "test.aql".to_owned(), line, column: 1 }
}

pub fn expr(form: ExpressionForm) -> Expression {
    Expression { form, place: place(99) }
}

pub fn value(value: Value) -> Expression {
    expr(ExpressionForm::Value(value))
}

pub fn reference(index: usize) -> Expression {
    outer(0, index)
}

pub fn outer(up: usize, index: usize) -> Expression {
    expr(ExpressionForm::Step { up, index })
}

pub fn item(up: usize) -> Expression {
    expr(ExpressionForm::Item { up })
}

pub fn field(of: Expression, name: &str) -> Expression {
    expr(ExpressionForm::Field(Box::new(of), name.to_owned()))
}

pub fn object<const N: usize>(fields: [(&str, Expression); N]) -> Expression {
    expr(ExpressionForm::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

pub fn list(parts: Vec<Expression>) -> Expression {
    expr(ExpressionForm::List(parts))
}

pub fn step(name: &str, kind: Kind, needs: &[usize]) -> Step {
    let options = Options { retry: 0, timeout: None, on_error: OnError::Fail, cache: false };
    Step {
        name: name.to_owned(),
        place: place(1),
        kind,
        options,
        checked: None,
        ty: QueryType::Any,
        needs: needs.to_vec(),
    }
}

pub fn tool(name: &str, tool: &str, arguments: Expression, needs: &[usize]) -> Step {
    step(name, Kind::Tool { tool: tool.to_owned(), arguments }, needs)
}

pub fn read(name: &str, arguments: Expression, needs: &[usize]) -> Step {
    tool(name, "fs_read", arguments, needs)
}

pub fn agent(name: &str, prompt: Expression, needs: &[usize]) -> Step {
    let agent = Agent {
        model: None,
        tools: vec!["fs_read".to_owned()],
        system: None,
        temperature: None,
        max_steps: 4,
        prompt,
    };
    let mut step = step(name, Kind::Agent(agent), needs);
    step.ty = QueryType::String;
    step
}

pub fn map(name: &str, over: Expression, concurrency: usize, body: PlanBlock, needs: &[usize]) -> Step {
    step(name, Kind::Map { list: over, concurrency, body }, needs)
}

pub fn merge(name: &str, parts: Vec<(&str, Expression)>, needs: &[usize]) -> Step {
    let parts = parts.into_iter().map(|(name, value)| Part { name: name.to_owned(), value }).collect();
    step(name, Kind::Merge { how: Merge::Record, parts }, needs)
}

pub fn query(name: &str, plan: QueryPlan, inputs: Vec<(&str, Expression)>, needs: &[usize]) -> Step {
    let inputs = inputs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    step(name, Kind::Query { query: Arc::new(plan), inputs }, needs)
}

/// Ways to say the options of a step.
pub trait With: Sized {
    fn edit(self, change: impl FnOnce(&mut Step)) -> Self;

    fn retry(self, times: u32) -> Self {
        self.edit(|step| step.options.retry = times)
    }
    fn timeout(self, milliseconds: u64) -> Self {
        self.edit(|step| step.options.timeout = Some(Duration::from_millis(milliseconds)))
    }
    fn skip(self) -> Self {
        self.edit(|step| step.options.on_error = OnError::Skip)
    }
    fn or_else(self, value: Expression) -> Self {
        self.edit(|step| step.options.on_error = OnError::Default(value))
    }
    fn cached(self) -> Self {
        self.edit(|step| step.options.cache = true)
    }
    fn typed(self, ty: QueryType) -> Self {
        self.edit(|step| {
            step.checked = Some(ty.clone());
            step.ty = ty;
        })
    }
    fn at(self, line: u32) -> Self {
        self.edit(|step| step.place = place(line))
    }
}

impl With for Step {
    fn edit(mut self, change: impl FnOnce(&mut Step)) -> Self {
        change(&mut self);
        self
    }
}

pub fn block(steps: Vec<Step>, value: Expression) -> PlanBlock {
    PlanBlock { steps, value, ty: QueryType::Any }
}

pub fn plan(steps: Vec<Step>, value: Expression) -> QueryPlan {
    QueryPlan {
        name: "Test".to_owned(),
        inputs: Vec::new(),
        budget: Budget::default(),
        body: block(steps, value),
        ty: QueryType::Any,
    }
}

pub fn empty() -> Expression {
    value(json!({}))
}
