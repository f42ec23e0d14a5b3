//! Queries, each after those that it uses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::declarations::{Declarations, Id};
use super::expression::constant;
use super::order::ordered;
use super::scope::CheckContext;
use serde_json::Value;

use crate::plan::{Input, QueryPlan};
use crate::problem::Findings;
use crate::syntax::Unit;
use crate::syntax::text::Span;
use crate::syntax::tree::{Body, Expr, ExprForm, Item, ParseCompleteness, PlanBlock, Query, Step};
use crate::{QueryCatalogue, QueryType};

/// Queries inside of each other. It bounds the stack of all code that walks plans.
const MAX_DEPTH: usize = 32;

/// The plans of all queries of all files. Those in a circle have none.
pub(super) fn all(
    units: &[Unit],
    declarations: &Declarations<'_>,
    catalogue: &dyn QueryCatalogue,
    findings: &mut Findings,
) -> HashMap<Id, Arc<QueryPlan>> {
    let mut queries: Vec<(Id, &Query)> = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        for (at, item) in unit.file.items.iter().enumerate() {
            if let Item::Query(query) = item {
                queries.push(((number, at), query));
            }
        }
    }
    let numbers: HashMap<Id, usize> =
        queries.iter().enumerate().map(|(number, (id, _))| (*id, number)).collect();
    let calls: Vec<BTreeMap<usize, Span>> = queries
        .iter()
        .map(|(id, query)| {
            let mut found = Vec::new();
            called(&query.body, &mut found);
            let mut calls = BTreeMap::new();
            for (name, span) in found {
                if let Some(number) = declarations.query(id.0, name).and_then(|id| numbers.get(&id)) {
                    calls.entry(*number).or_insert(span);
                }
            }
            calls
        })
        .collect();
    let needs: Vec<BTreeSet<usize>> = calls.iter().map(|calls| calls.keys().copied().collect()).collect();
    let order = ordered(&needs);
    for circle in &order.circles {
        tell_circle(units, &queries, &calls, circle, findings);
    }
    let mut plans: HashMap<Id, Arc<QueryPlan>> = HashMap::new();
    let mut nesting: HashMap<Id, usize> = HashMap::new();
    let mut depths: Vec<usize> = vec![1; queries.len()];
    for number in order.order {
        let Some((id, query)) = queries.get(number) else { continue };
        let below = needs.get(number).into_iter().flatten().filter_map(|need| depths.get(*need)).max();
        let depth = below.map_or(1, |below| below + 1);
        if let Some(slot) = depths.get_mut(number) {
            *slot = depth;
        }
        if depth == MAX_DEPTH + 1
            && let Some(unit) = units.get(id.0)
        {
            let message = format!("queries are inside of each other more than {MAX_DEPTH} deep");
            findings.add(
                unit.text
                    .problem(query.name.span, "too-deep", message)
                    .help("call some of them side by side"),
            );
        }
        let in_circle = order.circles.iter().any(|circle| circle.contains(&number));
        let Some(mut scope) =
            CheckContext::new(units, *id, declarations, catalogue, &plans, &nesting, findings)
        else {
            continue;
        };
        let plan = scope.plan(query);
        let deepest = scope.deepest;
        nesting.insert(*id, deepest);
        if !in_circle && query.whole == ParseCompleteness::Yes {
            plans.insert(*id, Arc::new(plan));
        }
    }
    plans
}

/// The queries that are called in a block.
fn called<'t>(block: &'t PlanBlock, found: &mut Vec<(&'t str, Span)>) {
    for step in &block.steps {
        found.extend(callee(step));
        if let Some(Body::Block(inner)) = &step.body {
            called(inner, found);
        }
        if let Some(inner) = &step.otherwise {
            called(inner, found);
        }
    }
}

fn callee(step: &Step) -> Option<(&str, Span)> {
    if step.kind.text != "query" {
        return None;
    }
    let argument = step.arguments.as_ref()?.items.iter().find(|argument| argument.name.is_none())?;
    match &argument.value.form {
        ExprForm::Name(name) => Some((name, argument.value.span)),
        _ => None,
    }
}

fn tell_circle(
    units: &[Unit],
    queries: &[(Id, &Query)],
    calls: &[BTreeMap<usize, Span>],
    circle: &[usize],
    findings: &mut Findings,
) {
    let members: Vec<_> = circle
        .iter()
        .zip(circle.iter().cycle().skip(1))
        .filter_map(|(from, to)| {
            let ((id, query), (_, next)) = (queries.get(*from)?, queries.get(*to)?);
            Some((&units.get(id.0)?.text, *query, *next, *calls.get(*from)?.get(to)?))
        })
        .collect();
    let Some((text, first, _, span)) = members.first() else { return };
    let message = match members.len() {
        1 => format!("the query `{}` calls itself", first.name.text),
        _ => format!("the query `{}` calls itself through others", first.name.text),
    };
    let mut problem = text.problem(*span, "query-cycle", message);
    for (text, query, next, span) in &members {
        let said = format!("`{}` calls `{}`", query.name.text, next.name.text);
        problem = problem.label(text.range(*span), said);
    }
    findings.add(problem.help("use `map` to do something for many values"));
}

/// The first thing in an expression that is known only when a query runs.
fn reference_in(expr: &Expr) -> Option<Span> {
    match expr.form {
        ExprForm::Name(_) | ExprForm::Input(_) => Some(expr.span),
        _ => expr.children().into_iter().find_map(reference_in),
    }
}

impl CheckContext<'_> {
    /// A value that is there before anything runs.
    fn default_of(&mut self, name: &str, expr: &Expr, ty: &QueryType) -> Value {
        let reference = reference_in(expr);
        let value = match reference {
            Some(_) => None,
            None => constant(&self.fitting(expr, ty, &format!("the default of `${name}`")).expression),
        };
        value.unwrap_or_else(|| {
            let span = reference.unwrap_or(expr.span);
            self.tell(
                span,
                "default-not-constant",
                "the default of an input is a constant",
                "write the value out",
            );
            Value::Null
        })
    }

    fn plan(&mut self, query: &Query) -> QueryPlan {
        self.inputs_lost = query.whole == ParseCompleteness::Inputs;
        for input in &query.inputs {
            if self.inputs.iter().any(|known| known.name == input.name.text) {
                let message = format!("the input `${}` is there twice", input.name.text);
                self.tell(input.name.span, "duplicate-name", message, "give one of them another name");
                continue;
            }
            let ty = self.declarations.resolve(self.unit, &input.ty, self.findings);
            let mut default = ty.may_be_null().then_some(Value::Null);
            if let Some(expr) = &input.default {
                default = Some(self.default_of(&input.name.text, expr, &ty));
            }
            let place = self.text.place(input.name.span.start);
            self.inputs.push(Input { name: input.name.text.clone(), ty, default, place });
        }
        let budget = self.budget(query.budget.as_ref());
        let body = self.block(&query.body, None);
        let ty: QueryType = body.ty.clone();
        QueryPlan {
            name: query.name.text.clone(),
            inputs: std::mem::take(&mut self.inputs),
            budget,
            body,
            ty,
        }
    }
}
