//! Blocks: their steps in an order, what each waits for, and what comes of them; and the kinds that hold blocks.

use std::collections::{BTreeSet, HashMap};

use super::expression::{Typed, object_form};
use super::options::AROUND;
use super::order::{FreeNames, ordered};
use super::scope::{CheckContext, Frame};
use super::step_kinds::LoweredStep;
use crate::plan::{ExpressionForm, Kind, PlanBlock, Step};
use crate::syntax::text::Span;
use crate::syntax::tree::{self, Body};
use crate::types::union;
use crate::{QueryType, Record};

/// Items of a `map` at the same time, where it says nothing of it.
const DEFAULT_CONCURRENCY: usize = 4;

/// Words that are not references.
const RESERVED: [&str; 4] = ["true", "false", "null", "not"];

impl CheckContext<'_> {
    /// A block with its item, where it is the body of a `map`.
    pub fn block(&mut self, block: &tree::PlanBlock, item: Option<(String, QueryType)>) -> PlanBlock {
        let mut frame = Frame {
            item,
            lost: block.lost.names.iter().cloned().collect(),
            any_lost: block.lost.any,
            ..Frame::default()
        };
        self.names(block, &mut frame);
        let (waits, used) = self.needs(block, &frame.names);
        let order = ordered(&waits);
        for circle in &order.circles {
            self.circle(block, circle);
        }
        self.frames.push(frame);
        self.deepest = self.deepest.max(self.frames.len());
        let mut steps: Vec<Option<Step>> = block.steps.iter().map(|_| None).collect();
        for at in order.order {
            let Some(tree) = block.steps.get(at) else { continue };
            let needs = waits.get(at).into_iter().flatten().copied().collect();
            if let Some(frame) = self.frames.last_mut() {
                frame.current = Some(at);
            }
            let step = self.step(tree, needs);
            if let (Some(frame), Some(step)) = (self.frames.last_mut(), &step)
                && let Some(ty) = frame.types.get_mut(at)
            {
                *ty = Some(step.ty.clone());
            }
            if let Some(slot) = steps.get_mut(at) {
                *slot = step;
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.current = None;
        }
        let mut value = match &block.returned {
            Some(returned) if returned.broken => self.wrong(returned.span),
            Some(returned) => self.infer(&returned.value),
            None => self.unused(block, &used),
        };
        if block.returned.is_none() && (block.broken || block.steps.iter().any(|step| step.broken)) {
            value.ty = QueryType::Any;
        }
        self.frames.pop();
        // A missing step has reported a problem, so these numbers are never used.
        PlanBlock { steps: steps.into_iter().flatten().collect(), value: value.expression, ty: value.ty }
    }

    fn names(&mut self, block: &tree::PlanBlock, frame: &mut Frame) {
        for (at, step) in block.steps.iter().enumerate() {
            let name = &step.name;
            frame.types.push(None);
            self.reserved(name);
            if frame.item.as_ref().is_some_and(|(item, _)| *item == name.text) {
                let message = format!("`{}` is the item of this `map`", name.text);
                self.tell(name.span, "duplicate-name", message, "give the step another name");
            }
            let Some(first) = frame.names.insert(name.text.clone(), at) else { continue };
            frame.names.insert(name.text.clone(), first);
            let first = block.steps.get(first).map_or(name.span, |step| step.name.span);
            let problem =
                self.problem(name.span, "duplicate-name", format!("the step `{}` is there twice", name.text));
            let first = self.text.range(first);
            self.findings.add(problem.label(first, "the first one").help("give one of them another name"));
        }
    }

    /// Reports a name that has another meaning wherever it is used.
    fn reserved(&mut self, name: &tree::Name) {
        if RESERVED.contains(&name.text.as_str()) {
            let message = format!("`{}` is not a name: it means something else in an expression", name.text);
            self.tell(name.span, "reserved-name", message, "choose another name");
        }
    }

    /// What each step waits for, and which steps are used by another.
    fn needs(
        &self,
        block: &tree::PlanBlock,
        names: &HashMap<String, usize>,
    ) -> (Vec<BTreeSet<usize>>, BTreeSet<usize>) {
        let mut used = BTreeSet::new();
        let mut waits = Vec::new();
        for step in &block.steps {
            let uses = FreeNames::of(step);
            let numbers = |names_used: &std::collections::BTreeMap<String, Span>| {
                names_used.keys().filter_map(|name| names.get(name)).copied().collect::<BTreeSet<usize>>()
            };
            let values = numbers(&uses.values);
            let mut all = numbers(&uses.waits);
            all.extend(&values);
            used.extend(values);
            waits.push(all);
        }
        (waits, used)
    }

    fn circle(&mut self, block: &tree::PlanBlock, circle: &[usize]) {
        let steps: Vec<&tree::Step> = circle.iter().filter_map(|at| block.steps.get(*at)).collect();
        let Some(first) = steps.first() else { return };
        let mut names: Vec<String> = steps.iter().map(|step| format!("`{}`", step.name.text)).collect();
        names.push(format!("`{}`", first.name.text));
        let message = match steps.len() {
            1 => format!("the step {} uses itself", names.first().map_or("", String::as_str)),
            _ => format!("these steps wait for each other: {}", names.join(" → ")),
        };
        let mut problem = self.problem(first.name.span, "step-cycle", message);
        for (step, next) in steps.iter().zip(steps.iter().cycle().skip(1)) {
            let uses = FreeNames::of(step);
            let span = uses.values.get(&next.name.text).or(uses.waits.get(&next.name.text));
            let said = format!("`{}` waits for `{}`", step.name.text, next.name.text);
            problem = problem.label(self.text.range(span.copied().unwrap_or(step.name.span)), said);
        }
        self.findings.add(problem.help("one of them has to do without the value of the next"));
    }

    /// An object of the steps that no other step uses.
    fn unused(&mut self, block: &tree::PlanBlock, used: &BTreeSet<usize>) -> Typed {
        let mut entries = Vec::new();
        for (at, step) in block.steps.iter().enumerate().filter(|(at, _)| !used.contains(at)) {
            let span = step.name.span;
            let ty = self.find(&step.name.text).map_or(QueryType::Any, |found| found.ty);
            entries.push((
                step.name.text.clone(),
                self.typed(ExpressionForm::Step { up: 0, index: at }, span, ty),
            ));
        }
        let span = Span::new(block.span.start, block.span.start + 1);
        if entries.is_empty() {
            let record = QueryType::Record(Record::default());
            return self.typed(object_form(Vec::new()), span, record);
        }
        self.record(entries, span)
    }

    /// Looks through what is left of a step that could not be parsed as a whole.
    fn rest_of(&mut self, step: &tree::Step) {
        let items = step.arguments.iter().flat_map(|arguments| &arguments.items);
        let item = items.filter_map(|argument| argument.item.as_ref()).next();
        match &step.body {
            Some(Body::Object(object)) => {
                self.free(object);
            }
            // Without its item the steps of a `map` have no meaning.
            Some(Body::Block(_)) if step.kind.text == "map" && item.is_none() => {}
            Some(Body::Block(block)) => {
                self.block(block, item.map(|item| (item.text.clone(), QueryType::Any)));
            }
            None => {}
        }
        if let Some(block) = &step.otherwise {
            self.block(block, None);
        }
    }

    fn step(&mut self, step: &tree::Step, needs: Vec<usize>) -> Option<Step> {
        if step.broken {
            self.rest_of(step);
            return None;
        }
        let kind = step.kind.text.as_str();
        let effect = matches!(kind, "agent" | "tool" | "exec" | "graph" | "sql");
        let checked = step.ty.as_ref().map(|ty| {
            let resolved = self.declarations.resolve(self.unit, ty, self.findings);
            if !effect {
                let message = format!("`{kind}` takes no `as`: its type follows from what is inside of it");
                self.tell(
                    ty.span,
                    "unexpected-as",
                    message,
                    "say it of the steps with an effect: `agent`, `tool`, `exec`, `graph` and `sql`",
                );
            }
            resolved
        });
        let made = match kind {
            "agent" => self.agent(step),
            "tool" => self.tool(step),
            "exec" => self.exec(step),
            "graph" => self.graph(step),
            "sql" => self.sql(step),
            "merge" => self.merge(step),
            "map" => self.map(step),
            "when" => self.when(step),
            _ => self.query(step),
        };
        let LoweredStep { kind, ty, given, changes } = made?;
        self.after(&given);
        let ty = checked.clone().unwrap_or(ty);
        let (options, ty) = self.options(&given, ty, changes);
        let ty = self.bounded(ty);
        let place = self.text.place(step.name.span.start);
        Some(Step { name: step.name.text.clone(), place, kind, options, checked, ty, needs })
    }

    fn map<'t>(&mut self, step: &'t tree::Step) -> Option<LoweredStep<'t>> {
        let allowed: Vec<&str> = ["concurrency"].into_iter().chain(AROUND).collect();
        let given = self.given(step, &allowed, false);
        let help = "write `map(item in list) { … }`";
        let argument = self.only(&given, "`item in list`", help);
        let concurrency = self.concurrency(&given).unwrap_or(DEFAULT_CONCURRENCY);
        let list = argument.map(|argument| {
            (
                argument,
                self.fitting(&argument.value, &QueryType::list(QueryType::Any), "what `map` goes through"),
            )
        });
        let item_type = match list.as_ref().map(|(_, typed)| &typed.ty) {
            Some(QueryType::List(item)) => (**item).clone(),
            _ => QueryType::Any,
        };
        let item = argument.and_then(|argument| argument.item.as_ref());
        if let Some(item) = item {
            self.reserved(item);
        }
        if let (Some(argument), None) = (argument, item) {
            self.tell(argument.span, "wrong-arguments", "the item has no name", help);
        }
        let Some(Body::Block(body)) = &step.body else {
            self.tell(step.kind.span, "missing-block", "`map` needs steps in braces", help);
            return None;
        };
        let body = self.block(body, item.map(|name| (name.text.clone(), item_type)));
        let ty = QueryType::list(body.ty.clone());
        let list = list?.1.expression;
        item?;
        Some(LoweredStep { kind: Kind::Map { list, concurrency, body }, ty, given, changes: None })
    }

    fn when<'t>(&mut self, step: &'t tree::Step) -> Option<LoweredStep<'t>> {
        let given = self.given(step, &AROUND, false);
        let help = "write `when(condition) { … } else { … }`";
        let condition = self.only(&given, "a condition", help);
        let condition =
            condition.map(|argument| self.fitting(&argument.value, &QueryType::Bool, "the condition"));
        let Some(Body::Block(then)) = &step.body else {
            self.tell(step.kind.span, "missing-block", "`when` needs steps in braces", help);
            return None;
        };
        let then = self.block(then, None);
        let otherwise = step.otherwise.as_ref().map(|block| self.block(block, None));
        let other = otherwise.as_ref().map_or(QueryType::Null, |block| block.ty.clone());
        let ty = union([then.ty.clone(), other]);
        let condition = condition?.expression;
        Some(LoweredStep { kind: Kind::When { condition, then, otherwise }, ty, given, changes: None })
    }
}
