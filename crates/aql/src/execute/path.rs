//! The names of steps in a run: `note`, `each[3].note`, `choice[else].note`, `sub.final`.

use std::collections::HashMap;

use super::bounds::MAX_ITEMS;
use super::scope::Position;
use crate::plan::MAX_NESTING;
use crate::{Kind, PlanBlock, QueryPlan, Step};

/// The number of a `when`'s block in a position; those of steps and items count from 0 as well.
const THEN: u32 = 0;
const OTHERWISE: u32 = 1;

/// The position of a block: what the names of its steps begin with, and the numbers on the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    name: String,
    position: Position,
}

/// One step of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepInstance {
    pub(super) path: String,
    pub(super) position: Position,
}

impl Prefix {
    pub(super) fn step(&self, index: usize, name: &str) -> StepInstance {
        let path = if self.name.is_empty() { name.to_owned() } else { format!("{}.{name}", self.name) };
        StepInstance { path, position: further(&self.position, index) }
    }

    /// What belongs to the block itself comes after all of its steps.
    pub(super) fn end(&self) -> Position {
        further(&self.position, usize::MAX)
    }

    /// The step that the block belongs to, if it is not a whole run's.
    pub(super) fn owner(&self) -> Option<&str> {
        let name = self.name.strip_suffix("[else]").unwrap_or(&self.name);
        Some(name).filter(|name| !name.is_empty())
    }
}

impl StepInstance {
    pub(super) fn item(&self, index: usize) -> Prefix {
        Prefix { name: format!("{}[{index}]", self.path), position: further(&self.position, index) }
    }

    pub(super) fn then(&self) -> Prefix {
        Prefix { name: self.path.clone(), position: further(&self.position, THEN as usize) }
    }

    pub(super) fn otherwise(&self) -> Prefix {
        Prefix { name: format!("{}[else]", self.path), position: further(&self.position, OTHERWISE as usize) }
    }

    pub(super) fn query(&self) -> Prefix {
        Prefix { name: self.path.clone(), position: further(&self.position, 0) }
    }
}

fn further(position: &[u32], index: usize) -> Position {
    let mut longer = Vec::with_capacity(position.len() + 1);
    longer.extend_from_slice(position);
    longer.push(u32::try_from(index).unwrap_or(u32::MAX));
    longer
}

/// The step of a plan that a path names.
pub(super) fn locate<'p>(plan: &'p QueryPlan, path: &str) -> Option<(&'p Step, StepInstance)> {
    let mut block = &plan.body;
    let mut prefix = Prefix::default();
    let mut rest = path;
    // A path longer than the deepest block names nothing.
    for _ in 0..=MAX_NESTING {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at_checked(end)?;
        let (index, step) = block.steps.iter().enumerate().find(|(_, step)| step.name == name)?;
        let here = prefix.step(index, name);
        if behind.is_empty() {
            return Some((step, here));
        }
        (block, prefix, rest) = match &step.kind {
            Kind::Map { body, .. } => {
                let (number, inner) = behind.strip_prefix('[')?.split_once("].")?;
                let index: usize = number.parse().ok()?;
                (
                    body,
                    Some(here.item(index)).filter(|_| index < MAX_ITEMS && index.to_string() == number)?,
                    inner,
                )
            }
            Kind::When { then, otherwise, .. } => match behind.strip_prefix("[else].") {
                Some(inner) => (otherwise.as_ref()?, here.otherwise(), inner),
                None => (then, here.then(), behind.strip_prefix('.')?),
            },
            Kind::Query { query, .. } => (&query.body, here.query(), behind.strip_prefix('.')?),
            _ => return None,
        };
    }
    None
}

/// How many steps are written in a plan, and how deeply blocks are nested.
pub(super) struct Extent {
    pub(super) steps: u64,
    pub(super) nesting: usize,
}

pub(super) fn extent(plan: &QueryPlan) -> Extent {
    // Queries that use queries form a graph, which has many more ways through it than parts.
    let mut known = HashMap::new();
    of_plan(plan, &mut known)
}

fn of_plan(plan: &QueryPlan, known: &mut HashMap<*const QueryPlan, (u64, usize)>) -> Extent {
    let key: *const QueryPlan = plan;
    if let Some(&(steps, nesting)) = known.get(&key) {
        return Extent { steps, nesting };
    }
    let all = of_block(&plan.body, known);
    known.insert(key, (all.steps, all.nesting));
    all
}

fn of_block(block: &PlanBlock, known: &mut HashMap<*const QueryPlan, (u64, usize)>) -> Extent {
    let mut all = Extent { steps: 0, nesting: 1 };
    let add = |all: &mut Extent, inner: Extent| {
        all.steps = all.steps.saturating_add(inner.steps);
        all.nesting = all.nesting.max(inner.nesting.saturating_add(1));
    };
    for step in &block.steps {
        all.steps = all.steps.saturating_add(1);
        match &step.kind {
            Kind::Map { body, .. } => add(&mut all, of_block(body, known)),
            Kind::When { then, otherwise, .. } => {
                add(&mut all, of_block(then, known));
                if let Some(otherwise) = otherwise {
                    add(&mut all, of_block(otherwise, known));
                }
            }
            Kind::Query { query, .. } => add(&mut all, of_plan(query, known)),
            _ => {}
        }
    }
    all
}

/// Whether a step does something outside of the run; the journal has lines of these alone.
pub(super) fn has_effect(kind: &Kind) -> bool {
    !matches!(kind, Kind::Merge { .. } | Kind::Map { .. } | Kind::When { .. } | Kind::Query { .. })
}
