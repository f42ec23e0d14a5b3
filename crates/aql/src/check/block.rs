//! Blocks: their steps in an order, what each waits for, and what comes of them; and the kinds that hold blocks.

use std::collections::{BTreeSet, HashMap};

use super::expression::{Typed, object_form};
use super::kinds::Made;
use super::options::AROUND;
use super::order::{Uses, ordered};
use super::scope::{Frame, Scope};
use crate::plan::{Block, Form, Kind, Merge, Part, Step};
use crate::suggest::hint;
use crate::syntax::text::Span;
use crate::syntax::tree::{self, Body, Expr, ExprForm};
use crate::types::union;
use crate::{Record, Type};

/// Items of a `map` at the same time, where it says nothing of it.
const DEFAULT_CONCURRENCY: usize = 4;

const HOW: [&str; 4] = ["record", "text", "list", "object"];

impl Scope<'_> {
    /// A block with its item, where it is the body of a `map`.
    pub fn block(&mut self, block: &tree::Block, item: Option<(String, Type)>) -> Block {
        let mut frame = Frame { item, ..Frame::default() };
        self.names(block, &mut frame);
        let (waits, used) = self.needs(block, &frame.names);
        let order = ordered(&waits);
        for circle in &order.circles {
            self.circle(block, circle);
        }
        self.frames.push(frame);
        let mut steps: Vec<Option<Step>> = block.steps.iter().map(|_| None).collect();
        for at in order.order {
            let Some(tree) = block.steps.get(at) else { continue };
            let needs = waits.get(at).into_iter().flatten().copied().collect();
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
        let value = match &block.returned {
            Some(returned) => self.infer(&returned.value),
            None => self.unused(block, &used),
        };
        self.frames.pop();
        // A step that is missing has told a problem, so nobody gets to see these numbers.
        Block { steps: steps.into_iter().flatten().collect(), value: value.expression, ty: value.ty }
    }

    fn names(&mut self, block: &tree::Block, frame: &mut Frame) {
        for (at, step) in block.steps.iter().enumerate() {
            let name = &step.name;
            frame.types.push(None);
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

    /// What each step waits for, and which steps are used by another.
    fn needs(
        &self,
        block: &tree::Block,
        names: &HashMap<String, usize>,
    ) -> (Vec<BTreeSet<usize>>, BTreeSet<usize>) {
        let mut used = BTreeSet::new();
        let mut waits = Vec::new();
        for step in &block.steps {
            let uses = Uses::of(step);
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

    fn circle(&mut self, block: &tree::Block, circle: &[usize]) {
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
            let uses = Uses::of(step);
            let span = uses.values.get(&next.name.text).or(uses.waits.get(&next.name.text));
            let said = format!("`{}` waits for `{}`", step.name.text, next.name.text);
            problem = problem.label(self.text.range(span.copied().unwrap_or(step.name.span)), said);
        }
        self.findings.add(problem.help("one of them has to do without the value of the next"));
    }

    /// An object of the steps that no other step uses.
    fn unused(&mut self, block: &tree::Block, used: &BTreeSet<usize>) -> Typed {
        let mut entries = Vec::new();
        for (at, step) in block.steps.iter().enumerate().filter(|(at, _)| !used.contains(at)) {
            let span = step.name.span;
            let ty = self.find(&step.name.text).map_or(Type::Any, |found| found.ty);
            entries.push((step.name.text.clone(), self.typed(Form::Step { up: 0, index: at }, span, ty)));
        }
        let span = Span::new(block.span.start, block.span.start + 1);
        if entries.is_empty() {
            let record = Type::Record(Record::default());
            return self.typed(object_form(Vec::new()), span, record);
        }
        self.record(entries, span)
    }

    fn step(&mut self, step: &tree::Step, needs: Vec<usize>) -> Option<Step> {
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
        let Made { kind, ty, given, changes } = made?;
        self.after(&given);
        let ty = checked.clone().unwrap_or(ty);
        let (options, ty) = self.options(&given, ty, changes);
        let ty = self.bounded(ty);
        let place = self.text.place(step.name.span.start);
        Some(Step { name: step.name.text.clone(), place, kind, options, checked, ty, needs })
    }

    fn map<'t>(&mut self, step: &'t tree::Step) -> Option<Made<'t>> {
        let allowed: Vec<&str> = ["concurrency"].into_iter().chain(AROUND).collect();
        let given = self.given(step, &allowed, false);
        let help = "write `map(item in list) { … }`";
        let argument = self.only(&given, "`item in list`", help);
        let concurrency = self.concurrency(&given).unwrap_or(DEFAULT_CONCURRENCY);
        let list = argument.map(|argument| {
            (argument, self.fitting(&argument.value, &Type::list(Type::Any), "what `map` goes through"))
        });
        let item_type = match list.as_ref().map(|(_, typed)| &typed.ty) {
            Some(Type::List(item)) => (**item).clone(),
            _ => Type::Any,
        };
        let item = argument.and_then(|argument| argument.item.as_ref());
        if let (Some(argument), None) = (argument, item) {
            self.tell(argument.span, "wrong-arguments", "the item has no name", help);
        }
        let Some(Body::Block(body)) = &step.body else {
            self.tell(step.kind.span, "missing-block", "`map` needs steps in braces", help);
            return None;
        };
        let body = self.block(body, item.map(|name| (name.text.clone(), item_type)));
        let ty = Type::list(body.ty.clone());
        let list = list?.1.expression;
        item?;
        Some(Made { kind: Kind::Map { list, concurrency, body }, ty, given, changes: None })
    }

    fn when<'t>(&mut self, step: &'t tree::Step) -> Option<Made<'t>> {
        let given = self.given(step, &AROUND, false);
        let help = "write `when(condition) { … } else { … }`";
        let condition = self.only(&given, "a condition", help);
        let condition = condition.map(|argument| self.fitting(&argument.value, &Type::Bool, "the condition"));
        let Some(Body::Block(then)) = &step.body else {
            self.tell(step.kind.span, "missing-block", "`when` needs steps in braces", help);
            return None;
        };
        let then = self.block(then, None);
        let otherwise = step.otherwise.as_ref().map(|block| self.block(block, None));
        let other = otherwise.as_ref().map_or(Type::Null, |block| block.ty.clone());
        let ty = union([then.ty.clone(), other]);
        let condition = condition?.expression;
        Some(Made { kind: Kind::When { condition, then, otherwise }, ty, given, changes: None })
    }

    fn merge<'t>(&mut self, step: &'t tree::Step) -> Option<Made<'t>> {
        let mut given = self.given(step, &["how", "after"], true);
        // Every other name is that of a part, also where it is an option elsewhere.
        given.named.retain(|(name, _)| name.text == "how" || name.text == "after");
        if let Some(body) = &step.body {
            let span = match body {
                Body::Object(object) => object.span,
                Body::Block(block) => block.span,
            };
            self.tell(
                span,
                "unexpected-body",
                "`merge` has no braces",
                "write `merge(a, b, name: expression)`",
            );
        }
        let how = given.get("how").map(|expr| (self.how(expr), expr.span));
        let items = step.arguments.iter().flat_map(|arguments| &arguments.items);
        let parts: Vec<&tree::Argument> = items
            .filter(|argument| {
                argument.name.as_ref().is_none_or(|name| name.text != "how" && name.text != "after")
            })
            .collect();
        let how = match (&how, parts.as_slice()) {
            (Some((how, _)), _) => (*how)?,
            (None, []) => {
                self.tell(
                    step.kind.span,
                    "wrong-arguments",
                    "`merge` needs something to put together",
                    "write `merge(a, b)`",
                );
                return None;
            }
            (None, [only]) if only.name.is_none() => Merge::Same,
            (None, _) => Merge::Record,
        };
        let mut typed: Vec<(String, Typed)> = Vec::new();
        for part in parts {
            let name = part.name.as_ref().map(|name| name.text.clone()).or_else(|| last_word(&part.value));
            let value = self.part(&part.value, how);
            let name = match (name, how) {
                (Some(name), Merge::Record) if typed.iter().any(|(other, _)| *other == name) => {
                    let help = format!(
                        "give one of them another: `other: {}`",
                        self.text.slice(part.value.span).lines().next().unwrap_or_default()
                    );
                    self.tell(
                        part.span,
                        "duplicate-name",
                        format!("two parts have the name `{name}`"),
                        &help,
                    );
                    continue;
                }
                (None, Merge::Record) => {
                    self.tell(
                        part.span,
                        "missing-name",
                        "this part has no name of its own",
                        "write `name: expression`",
                    );
                    continue;
                }
                (name, _) => name.unwrap_or_default(),
            };
            typed.push((name, value));
        }
        let ty = merged(how, &typed);
        let parts = typed.into_iter().map(|(name, typed)| Part { name, value: typed.expression }).collect();
        Some(Made { kind: Kind::Merge { how, parts }, ty, given, changes: None })
    }

    fn how(&mut self, expr: &Expr) -> Option<Merge> {
        let word = self.constant_text(expr, "`how`")?.text;
        match word.as_str() {
            "record" => Some(Merge::Record),
            "text" => Some(Merge::Text),
            "list" => Some(Merge::List),
            "object" => Some(Merge::Object),
            other => {
                let problem = self.problem(
                    expr.span,
                    "unknown-option",
                    format!("`merge` knows no way \"{}\"", other.escape_debug()),
                );
                self.findings.add(problem.maybe_help(hint(other, HOW)));
                None
            }
        }
    }

    /// A part of a merge; null is left out, so it may be.
    fn part(&mut self, expr: &Expr, how: Merge) -> Typed {
        let wanted = match how {
            Merge::Same | Merge::Record => return self.infer(expr),
            Merge::Text => Type::String,
            Merge::List => Type::list(Type::Any),
            Merge::Object => Type::Record(Record { open: true, ..Record::default() }),
        };
        self.fitting(expr, &wanted.nullable(), "every part")
    }
}

/// The last word of a reference.
fn last_word(expr: &Expr) -> Option<String> {
    match &expr.form {
        ExprForm::Name(name) | ExprForm::Input(name) => Some(name.clone()),
        ExprForm::Field(_, name) => Some(name.text.clone()),
        ExprForm::Element(_, index) => match &index.form {
            ExprForm::Text(text) => text.constant().map(|cooked| cooked.text),
            _ => None,
        },
        _ => None,
    }
}

/// What parts come to.
fn merged(how: Merge, parts: &[(String, Typed)]) -> Type {
    let present = parts.iter().filter(|(_, typed)| typed.ty != Type::Null);
    match how {
        Merge::Same => parts.first().map_or(Type::Any, |(_, typed)| typed.ty.clone()),
        Merge::Text => Type::String,
        Merge::Record => Type::record(parts.iter().map(|(name, typed)| (name.clone(), typed.ty.clone()))),
        Merge::List => {
            let items = present.map(|(_, typed)| match typed.ty.without_null() {
                Type::List(item) => *item,
                _ => Type::Any,
            });
            Type::list(union(items))
        }
        Merge::Object => {
            let mut whole = Record::default();
            for (_, typed) in present {
                let Type::Record(record) = typed.ty.without_null() else {
                    return Type::Record(Record { open: true, ..Record::default() });
                };
                whole.open |= record.open;
                for (name, mut field) in record.fields {
                    // A part that may be left out, or has not the field, lets the one before show through.
                    let maybe = field.optional || typed.ty.may_be_null();
                    field.optional = maybe;
                    if let Some(before) = whole.fields.get(&name).filter(|_| maybe) {
                        field.optional = before.optional;
                        field.ty = union([before.ty.clone(), field.ty]);
                    }
                    whole.fields.insert(name, field);
                }
                // What an open one may hold besides can stand over what is known.
                if record.open {
                    return Type::Record(Record { open: true, ..Record::default() });
                }
            }
            Type::Record(whole)
        }
    }
}
