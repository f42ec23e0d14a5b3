//! Which thing waits for which: an order, and the circles that make one impossible.

use std::collections::{BTreeMap, BTreeSet};

use crate::syntax::text::Span;
use crate::syntax::tree::{Arguments, Body, Expr, ExprForm, PlanBlock, Step};

/// An order in which everything comes after what it needs, and circles. Members of a circle are in the order as well.
pub(super) struct Ordered {
    pub order: Vec<usize>,
    /// Each member needs the next, and the last one the first.
    pub circles: Vec<Vec<usize>>,
}

/// Orders things by what each needs. Of several that are ready the first comes first.
pub(super) fn ordered(needs: &[BTreeSet<usize>]) -> Ordered {
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
    let mut missing: Vec<usize> = vec![0; needs.len()];
    for (thing, needed) in needs.iter().enumerate() {
        for need in needed {
            if let Some(users) = users.get_mut(*need) {
                users.push(thing);
                if let Some(missing) = missing.get_mut(thing) {
                    *missing += 1;
                }
            }
        }
    }
    let mut ready: BTreeSet<usize> =
        missing.iter().enumerate().filter(|(_, missing)| **missing == 0).map(|(thing, _)| thing).collect();
    let mut left: BTreeSet<usize> = (0..needs.len()).collect();
    let mut found = Ordered { order: Vec::with_capacity(needs.len()), circles: Vec::new() };
    while !left.is_empty() {
        let Some(thing) = ready.pop_first() else {
            // All that is left waits for something that is left, so there is a cycle. It is reported, and then
            // broken.
            let circle = circle(needs, &left);
            ready.extend(circle.iter().copied());
            found.circles.push(circle);
            continue;
        };
        if !left.remove(&thing) {
            continue;
        }
        found.order.push(thing);
        for user in users.get(thing).into_iter().flatten() {
            if let Some(missing) = missing.get_mut(*user) {
                *missing = missing.saturating_sub(1);
                if *missing == 0 {
                    ready.insert(*user);
                }
            }
        }
    }
    found
}

/// A circle among things of which each needs another of them; it begins with its first member.
fn circle(needs: &[BTreeSet<usize>], left: &BTreeSet<usize>) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    let mut at = left.first().copied();
    let mut seen = BTreeMap::new();
    while let Some(thing) = at {
        if let Some(from) = seen.get(&thing) {
            let mut circle: Vec<usize> = path.split_off(*from);
            let first = circle.iter().enumerate().min_by_key(|(_, thing)| **thing).map_or(0, |(at, _)| at);
            circle.rotate_left(first);
            return circle;
        }
        seen.insert(thing, path.len());
        path.push(thing);
        at = needs.get(thing).and_then(|needed| needed.iter().find(|need| left.contains(need))).copied();
    }
    // It cannot end without a circle; everything is one then, so that the caller gets on.
    left.iter().copied().collect()
}

/// Names of a step that are not of something inside it, each with where it is used first.
#[derive(Default)]
pub(super) struct FreeNames {
    /// By their values.
    pub values: BTreeMap<String, Span>,
    /// Only waited for, by `after`.
    pub waits: BTreeMap<String, Span>,
}

impl FreeNames {
    pub fn of(step: &Step) -> Self {
        let mut uses = FreeNames::default();
        uses.step(step);
        uses
    }

    fn step(&mut self, step: &Step) {
        if let Some(arguments) = &step.arguments {
            self.arguments(&step.kind.text, arguments);
        }
        match &step.body {
            Some(Body::Object(object)) => {
                object.entries.iter().for_each(|entry| self.expression(&entry.value))
            }
            Some(Body::Block(block)) => {
                let items = step.arguments.iter().flat_map(|arguments| &arguments.items);
                let items =
                    items.filter_map(|argument| argument.item.as_ref()).map(|name| name.text.as_str());
                self.block(block, items.collect());
            }
            None => {}
        }
        if let Some(block) = &step.otherwise {
            self.block(block, Vec::new());
        }
    }

    fn arguments(&mut self, kind: &str, arguments: &Arguments) {
        for argument in &arguments.items {
            match argument.name.as_ref().map(|name| name.text.as_str()) {
                // These are words, not references.
                Some("on_error") if kind != "merge" => {}
                Some("tools") if kind == "agent" => {}
                None if matches!(kind, "tool" | "query") => {}
                Some("after") => {
                    let mut inner = FreeNames::default();
                    inner.expression(&argument.value);
                    for (name, span) in inner.values {
                        self.waits.entry(name).or_insert(span);
                    }
                }
                _ => self.expression(&argument.value),
            }
        }
    }

    fn block(&mut self, block: &PlanBlock, items: Vec<&str>) {
        let mut inner = FreeNames::default();
        block.steps.iter().for_each(|step| inner.step(step));
        if let Some(returned) = &block.returned {
            inner.expression(&returned.value);
        }
        let own: BTreeSet<&str> =
            block.steps.iter().map(|step| step.name.text.as_str()).chain(items).collect();
        for (name, span) in inner.values.into_iter().filter(|(name, _)| !own.contains(name.as_str())) {
            self.values.entry(name).or_insert(span);
        }
        for (name, span) in inner.waits.into_iter().filter(|(name, _)| !own.contains(name.as_str())) {
            self.waits.entry(name).or_insert(span);
        }
    }

    pub fn expression(&mut self, expr: &Expr) {
        if let ExprForm::Name(name) = &expr.form {
            self.values.entry(name.clone()).or_insert(expr.span);
        }
        expr.children().into_iter().for_each(|child| self.expression(child));
    }
}
