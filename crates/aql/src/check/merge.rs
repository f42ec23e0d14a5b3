//! `merge`: its parts, the way they are put together, and the type that comes of them.

use tgp_text::nearest;

use super::expression::Typed;
use super::scope::CheckContext;
use super::step_kinds::LoweredStep;
use crate::plan::{Kind, Merge, Part};
use crate::suggest::hint;
use crate::syntax::text::Span;
use crate::syntax::tree::{self, Body, Expr, ExprForm};
use crate::types::union;
use crate::{QueryType, Record};

const HOW: [&str; 4] = ["record", "text", "list", "object"];

/// What a `merge` takes in addition to its parts.
const MERGE: [&str; 2] = ["how", "after"];

impl CheckContext<'_> {
    pub fn merge<'t>(&mut self, step: &'t tree::Step) -> Option<LoweredStep<'t>> {
        let mut given = self.given(step, &MERGE, true);
        // Every other name is that of a part, also where it is an option elsewhere.
        given.named.retain(|(name, _)| MERGE.contains(&name.text.as_str()));
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
        let told = self.nearly_options(step);
        let how = given.get("how").map(|expr| (self.how(expr), expr.span));
        let items = step.arguments.iter().flat_map(|arguments| &arguments.items);
        let parts: Vec<&tree::Argument> = items
            .filter(|argument| {
                let part = argument.name.as_ref().is_none_or(|name| !MERGE.contains(&name.text.as_str()));
                part && !told.contains(&argument.span)
            })
            .collect();
        let how = match (&how, parts.as_slice()) {
            (Some((how, _)), _) => (*how)?,
            (None, []) if !told.is_empty() => return None,
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
        Some(LoweredStep { kind: Kind::Merge { how, parts }, ty, given, changes: None })
    }

    /// Parts that look like an option of other kinds, or like one of these with a letter wrong. Every name is good for a
    /// part, so the value has to look like it too.
    fn nearly_options(&mut self, step: &tree::Step) -> Vec<Span> {
        let mut told = Vec::new();
        for argument in step.arguments.iter().flat_map(|arguments| &arguments.items) {
            let Some(name) = argument.name.as_ref().filter(|name| !MERGE.contains(&name.text.as_str()))
            else {
                continue;
            };
            let elsewhere = match (name.text.as_str(), &argument.value.form) {
                ("retry", ExprForm::Int(_))
                | ("timeout", ExprForm::Duration(_))
                | ("cache", ExprForm::Bool(_)) => true,
                ("on_error", ExprForm::Name(word)) => {
                    matches!(word.as_str(), "fail" | "skip" | "default") && self.find(word).is_none()
                }
                _ => false,
            };
            if elsewhere {
                let message = format!("`merge` has no option `{}`", name.text);
                self.tell(
                    name.span,
                    "unknown-option",
                    message,
                    "`merge` takes `how` and `after`; all else are parts",
                );
                told.push(argument.span);
                continue;
            }
            let near = nearest(&name.text, MERGE);
            let alike = match (near, &argument.value.form) {
                (Some("how"), ExprForm::Text(text)) => {
                    text.constant().is_some_and(|way| HOW.contains(&way.text.as_str()))
                }
                (Some("after"), ExprForm::List(items)) => {
                    let is_step =
                        |item: &Expr| matches!(&item.form, ExprForm::Name(name) if self.find(name).is_some());
                    !items.is_empty() && items.iter().all(is_step)
                }
                _ => false,
            };
            if let (true, Some(near)) = (alike, near) {
                let message = format!("`merge` has no option `{}`", name.text);
                let help = format!("did you mean `{near}`? A part has to have another name");
                self.tell(name.span, "unknown-option", message, &help);
                told.push(argument.span);
            }
        }
        told
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
            Merge::Text => QueryType::String,
            Merge::List => QueryType::list(QueryType::Any),
            Merge::Object => QueryType::Record(Record { open: true, ..Record::default() }),
        };
        self.fitting(expr, &wanted.nullable(), "every part")
    }
}

/// The last name of a reference.
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
fn merged(how: Merge, parts: &[(String, Typed)]) -> QueryType {
    let present = parts.iter().filter(|(_, typed)| typed.ty != QueryType::Null);
    match how {
        Merge::Same => parts.first().map_or(QueryType::Any, |(_, typed)| typed.ty.clone()),
        Merge::Text => QueryType::String,
        Merge::Record => {
            QueryType::record(parts.iter().map(|(name, typed)| (name.clone(), typed.ty.clone())))
        }
        Merge::List => {
            let items = present.map(|(_, typed)| match typed.ty.without_null() {
                QueryType::List(item) => *item,
                _ => QueryType::Any,
            });
            QueryType::list(union(items))
        }
        Merge::Object => {
            let mut whole = Record::default();
            for (_, typed) in present {
                let QueryType::Record(record) = typed.ty.without_null() else {
                    return QueryType::Record(Record { open: true, ..Record::default() });
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
                // The unknown fields of an open record can override known ones.
                if record.open {
                    return QueryType::Record(Record { open: true, ..Record::default() });
                }
            }
            QueryType::Record(whole)
        }
    }
}
