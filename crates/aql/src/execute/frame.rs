//! What the expressions of a block can see: inputs, the item of a `map`, and steps that are done.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use tgp_contract::{Code, ToolError};

use crate::types::names;
use crate::{Expression, ExpressionForm, Field, PlanBlock, QueryPlan, QueryType, Record};

/// One block on its way. It ends with the block, and so do the values in it.
pub(super) struct Frame<'p> {
    pub(super) block: &'p PlanBlock,
    inputs: Arc<Inputs<'p>>,
    values: Vec<OnceLock<Value>>,
    item: Option<Item>,
    outer: Option<Arc<Frame<'p>>>,
}

/// An item of a `map`, with what is known of its type.
pub(super) struct Item {
    pub(super) value: Value,
    pub(super) ty: QueryType,
}

/// What a query was given.
pub(super) struct Inputs<'p> {
    plan: &'p QueryPlan,
    values: Vec<Value>,
}

impl<'p> Inputs<'p> {
    /// Puts the values into their places, with defaults where there are none.
    ///
    /// # Errors
    /// `EVALIDATION` with the field where one is missing, unknown or of another type.
    pub(super) fn new(plan: &'p QueryPlan, mut given: Map<String, Value>) -> Result<Arc<Self>, ToolError> {
        let query = &plan.name;
        let mut values = Vec::with_capacity(plan.inputs.len());
        for input in &plan.inputs {
            let name = &input.name;
            let value = match (given.remove(name), &input.default) {
                (Some(value), _) => value,
                (None, Some(default)) => default.clone(),
                (None, None) if input.ty.check(&Value::Null).is_ok() => Value::Null,
                (None, None) => {
                    let message = format!("`{query}` needs the input `{name}`");
                    let error = ToolError::new(Code::Validation, message).detail("field", name.clone());
                    return Err(error.help(format!("give a value for `{name}`")).place(&input.place));
                }
            };
            super::bounds::check(&value).map_err(|error| error.detail("field", name.clone()))?;
            let value = input.ty.admit(value).map_err(|mismatch| {
                let inner = &mismatch.path;
                let dot = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
                let field = format!("{name}{dot}{inner}");
                let (expected, found) = (mismatch.expected, mismatch.found);
                let message = format!("input `{field}` of `{query}`: expected {expected}, found {found}");
                let error = ToolError::new(Code::Validation, message).detail("field", field);
                error.help(format!("give `{name}` a value of its type")).place(&input.place)
            })?;
            values.push(value);
        }
        if let Some(stranger) = given.keys().next() {
            let known: Vec<String> = plan.inputs.iter().map(|input| input.name.clone()).collect();
            let help = if known.is_empty() {
                "it takes none".to_owned()
            } else {
                format!("it takes {}", names(known.iter()))
            };
            let message = format!("`{query}` has no input `{stranger}`");
            return Err(ToolError::new(Code::Validation, message)
                .detail("field", stranger.clone())
                .help(help));
        }
        Ok(Arc::new(Self { plan, values }))
    }
}

impl<'p> Frame<'p> {
    /// The outermost block of a query.
    pub(super) fn of_query(block: &'p PlanBlock, inputs: Arc<Inputs<'p>>) -> Arc<Self> {
        Arc::new(Self { block, inputs, values: limiters(block), item: None, outer: None })
    }

    /// A block inside `outer`.
    pub(super) fn of_block(block: &'p PlanBlock, outer: &Arc<Self>, item: Option<Item>) -> Arc<Self> {
        let inputs = Arc::clone(&outer.inputs);
        Arc::new(Self { block, inputs, values: limiters(block), item, outer: Some(Arc::clone(outer)) })
    }

    /// A step has its value. The first one stays.
    pub(super) fn set(&self, index: usize, value: Value) {
        if let Some(slot) = self.values.get(index) {
            let _ = slot.set(value);
        }
    }

    pub(super) fn input(&self, index: usize) -> Option<&Value> {
        self.inputs.values.get(index)
    }

    pub(super) fn step(&self, up: usize, index: usize) -> Option<&Value> {
        self.at(up)?.values.get(index)?.get()
    }

    pub(super) fn item(&self, up: usize) -> Option<&Value> {
        self.at(up)?.item.as_ref().map(|item| &item.value)
    }

    fn at(&self, up: usize) -> Option<&Frame<'p>> {
        let mut frame = self;
        for _ in 0..up {
            frame = frame.outer.as_deref()?;
        }
        Some(frame)
    }

    /// What is known of an expression's type without its value; `Any` where that is nothing.
    pub(super) fn type_of(&self, expression: &Expression) -> QueryType {
        let known = match &expression.form {
            ExpressionForm::Input(index) => self.inputs.plan.inputs.get(*index).map(|input| input.ty.clone()),
            ExpressionForm::Step { up, index } => {
                self.at(*up).and_then(|frame| frame.block.steps.get(*index)).map(|step| step.ty.clone())
            }
            ExpressionForm::Item { up } => {
                self.at(*up).and_then(|frame| frame.item.as_ref()).map(|item| item.ty.clone())
            }
            ExpressionForm::Field(of, name) => part_of(&self.type_of(of), &|ty| match ty {
                QueryType::Record(record) => record.fields.get(name).map(|field| field.ty.clone()),
                _ => None,
            }),
            ExpressionForm::Element(of, _) => Some(element_of(&self.type_of(of))),
            ExpressionForm::Or(first, second) => {
                Some(QueryType::OneOf(vec![self.type_of(first), self.type_of(second)]))
            }
            ExpressionForm::List(parts) => {
                let parts = parts.iter().map(|part| self.type_of(part)).collect();
                Some(QueryType::List(Box::new(QueryType::OneOf(parts))))
            }
            ExpressionForm::Object(parts) => {
                let field = |(name, part): &(String, Expression)| {
                    (name.clone(), Field { ty: self.type_of(part), optional: false })
                };
                Some(QueryType::Record(Record { fields: parts.iter().map(field).collect(), open: false }))
            }
            _ => None,
        };
        known.unwrap_or(QueryType::Any)
    }

    /// Whether the type of `subject` says that this field may be missing, or nothing at all.
    pub(super) fn may_miss(&self, subject: &Expression, field: &str) -> bool {
        fn allows(ty: &QueryType, name: &str) -> bool {
            match ty {
                QueryType::Record(record) => record.fields.get(name).is_some_and(|field| field.optional),
                QueryType::OneOf(types) => types.iter().any(|one| allows(one, name)),
                QueryType::Any => true,
                _ => false,
            }
        }
        allows(&self.type_of(subject), field)
    }
}

/// The type of a list's elements, `Any` where it is not known.
pub(super) fn element_of(list: &QueryType) -> QueryType {
    let element = |ty: &QueryType| match ty {
        QueryType::List(of) => Some(of.as_ref().clone()),
        _ => None,
    };
    part_of(list, &element).unwrap_or(QueryType::Any)
}

fn part_of(ty: &QueryType, part: &dyn Fn(&QueryType) -> Option<QueryType>) -> Option<QueryType> {
    match ty {
        QueryType::OneOf(types) => {
            let parts: Vec<QueryType> = types.iter().filter_map(|one| part_of(one, part)).collect();
            if parts.is_empty() { None } else { Some(QueryType::OneOf(parts)) }
        }
        _ => part(ty),
    }
}

fn limiters(block: &PlanBlock) -> Vec<OnceLock<Value>> {
    block.steps.iter().map(|_| OnceLock::new()).collect()
}
