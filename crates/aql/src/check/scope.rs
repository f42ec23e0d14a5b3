//! What can be referred to at a place: inputs, steps of the blocks around, and items of `map`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::declarations::{Declarations, Id};
use crate::plan::{ExpressionForm, Input};
use crate::problem::Findings;
use crate::syntax::Unit;
use crate::syntax::text::{Span, Text};
use crate::types::MAX_SIZE;
use crate::{Expression, QueryCatalogue, QueryPlan, QueryProblem, QueryType};

/// Types that are copied while one query is checked, in nodes; beyond it types are `Any`. Only a source that was made
/// to be slow gets there.
const MAX_WORK: usize = 500_000;

/// One block, or the body of a query.
#[derive(Default)]
pub(super) struct Frame {
    pub names: HashMap<String, usize>,
    /// Of the steps; `None` while it is not known.
    pub types: Vec<Option<QueryType>>,
    pub item: Option<(String, QueryType)>,
    /// Names that may be those of steps which could not be parsed.
    pub lost: HashSet<String>,
    /// Whether there may be any other.
    pub any_lost: bool,
    /// The step that is being checked, which cannot use itself.
    pub current: Option<usize>,
}

/// What one query is checked with.
pub(super) struct CheckContext<'a> {
    pub text: &'a Text,
    pub unit: usize,
    pub declarations: &'a Declarations<'a>,
    pub catalogue: &'a dyn QueryCatalogue,
    pub findings: &'a mut Findings,
    /// Queries that were checked before this one.
    pub plans: &'a HashMap<Id, Arc<QueryPlan>>,
    pub inputs: Vec<Input>,
    /// Whether some of them could not be parsed.
    pub inputs_lost: bool,
    /// The innermost last.
    pub frames: Vec<Frame>,
    /// How deeply blocks are nested in the queries that were checked before.
    pub nesting: &'a HashMap<Id, usize>,
    /// And in this one, as far as it was checked.
    pub deepest: usize,
    pub work: usize,
}

/// What a name refers to.
pub(super) struct Resolved {
    pub form: ExpressionForm,
    pub ty: QueryType,
}

impl<'a> CheckContext<'a> {
    pub fn new(
        units: &'a [Unit],
        id: Id,
        declarations: &'a Declarations<'a>,
        catalogue: &'a dyn QueryCatalogue,
        plans: &'a HashMap<Id, Arc<QueryPlan>>,
        nesting: &'a HashMap<Id, usize>,
        findings: &'a mut Findings,
    ) -> Option<Self> {
        let text = &units.get(id.0)?.text;
        let (unit, inputs, frames) = (id.0, Vec::new(), Vec::new());
        Some(Self {
            text,
            unit,
            declarations,
            catalogue,
            findings,
            plans,
            inputs,
            inputs_lost: false,
            frames,
            nesting,
            deepest: 1,
            work: 0,
        })
    }

    pub fn problem(&self, span: Span, kind: &'static str, message: impl Into<String>) -> QueryProblem {
        self.text.problem(span, kind, message)
    }

    pub fn tell(&mut self, span: Span, kind: &'static str, message: impl Into<String>, help: &str) {
        self.findings.add(self.text.problem(span, kind, message).help(help));
    }

    pub fn expression(&self, form: ExpressionForm, span: Span) -> Expression {
        Expression { form, place: self.text.place(span.start) }
    }

    /// A type that was put together, unless it has become too large to be of use.
    pub fn bounded(&self, ty: QueryType) -> QueryType {
        if ty.size() > MAX_SIZE { QueryType::Any } else { ty }
    }

    /// The innermost thing of this name.
    pub fn find(&mut self, name: &str) -> Option<Resolved> {
        for (up, frame) in self.frames.iter().rev().enumerate() {
            let (form, ty) = match (frame.names.get(name), &frame.item) {
                (Some(index), _) => {
                    let ty = frame.types.get(*index).and_then(Option::as_ref);
                    (ExpressionForm::Step { up, index: *index }, ty.unwrap_or(&QueryType::Any))
                }
                (None, Some((item, ty))) if item == name => (ExpressionForm::Item { up }, ty),
                // The number is never used, since there is no plan.
                _ if frame.any_lost || frame.lost.contains(name) => {
                    (ExpressionForm::Step { up, index: usize::MAX }, &QueryType::Any)
                }
                _ => continue,
            };
            self.work += ty.size();
            let ty = if self.work > MAX_WORK { QueryType::Any } else { ty.clone() };
            return Some(Resolved { form, ty });
        }
        None
    }

    /// Every name that could be referred to.
    pub fn visible(&self) -> Vec<String> {
        let mut names = Vec::new();
        for frame in self.frames.iter().rev() {
            let mut own: Vec<(&String, &usize)> =
                frame.names.iter().filter(|(_, index)| Some(**index) != frame.current).collect();
            own.sort_by_key(|(_, index)| **index);
            names.extend(own.into_iter().map(|(name, _)| name.clone()));
            names.extend(frame.item.iter().map(|(name, _)| name.clone()));
        }
        names
    }
}
