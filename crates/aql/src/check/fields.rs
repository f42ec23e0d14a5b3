//! Where a value meets a type: fields that are taken, and values that have to fit.

use tgp_text::nearest;

use super::expression::Typed;
use super::scope::CheckContext;
use crate::plan::ExpressionForm;
use crate::suggest::hint;
use crate::syntax::text::Span;
use crate::syntax::tree::{Expr, ExprForm, Name, Object};
use crate::types::{FieldMismatch, TypeMismatch, fits, union};
use crate::{QueryType, Record};

/// What fields are called in messages and in problem kinds, depending on where they are.
#[derive(Clone, Copy)]
pub(super) struct FieldLabels {
    pub one: &'static str,
    pub unknown: &'static str,
    pub missing: &'static str,
}

pub(super) const FIELDS: FieldLabels =
    FieldLabels { one: "field", unknown: "unknown-field", missing: "missing-field" };
pub(super) const ARGUMENTS: FieldLabels =
    FieldLabels { one: "argument", unknown: "unknown-argument", missing: "missing-argument" };
pub(super) const INPUTS: FieldLabels =
    FieldLabels { one: "input", unknown: "unknown-input", missing: "missing-input" };

impl CheckContext<'_> {
    /// `of.name`
    pub fn field(&mut self, of: Typed, name: &Name, span: Span) -> Typed {
        let ty = self.field_type(&of.ty, name);
        self.typed(ExpressionForm::Field(Box::new(of.expression), name.text.clone()), span, ty)
    }

    fn field_type(&mut self, of: &QueryType, name: &Name) -> QueryType {
        match of {
            QueryType::Any => QueryType::Any,
            QueryType::Record(record) => match taken(record, &name.text) {
                Some(ty) => ty,
                None => {
                    let problem = self.problem(
                        name.span,
                        "unknown-field",
                        format!("there is no field `{}` in `{}`", name.text, of.shown()),
                    );
                    let problem =
                        problem.maybe_help(hint(&name.text, record.fields.keys().map(String::as_str)));
                    self.findings.add(problem);
                    QueryType::Any
                }
            },
            // What null has inside is null.
            QueryType::OneOf(members) if members.contains(&QueryType::Null) => {
                self.field_type(&of.without_null(), name).nullable()
            }
            QueryType::OneOf(members) => {
                let types: Option<Vec<QueryType>> = members
                    .iter()
                    .map(|member| match member {
                        QueryType::Record(record) => taken(record, &name.text),
                        _ => None,
                    })
                    .collect();
                let Some(types) = types else {
                    let message = format!("not every one of `{}` has a field `{}`", of.shown(), name.text);
                    self.tell(
                        name.span,
                        "unknown-field",
                        message,
                        "give all of them the field, or use one that all of them have",
                    );
                    return QueryType::Any;
                };
                union(types)
            }
            _ => {
                let help = match of {
                    QueryType::String | QueryType::Choice(_) => {
                        "a step whose answer has fields says so with `as { field: Type }`"
                    }
                    QueryType::List(_) => {
                        "take one of its elements, `list[0]`, or all of them with `map(item in list) { … }`"
                    }
                    _ => "only objects have fields",
                };
                self.tell(name.span, "unknown-field", format!("`{}` has no fields", of.shown()), help);
                QueryType::Any
            }
        }
    }

    /// An expression that has to have a type. Where it is written as an object or a list, its parts are checked one
    /// by one, so that a problem is reported where it is.
    pub fn fitting(&mut self, expr: &Expr, wanted: &QueryType, what: &str) -> Typed {
        match (&expr.form, wanted) {
            (ExprForm::Object(object), _) => {
                let records: Vec<&Record> = members(wanted)
                    .iter()
                    .filter_map(|ty| match ty {
                        QueryType::Record(record) => Some(record),
                        _ => None,
                    })
                    .collect();
                if let [record] = records.as_slice() {
                    return self.object(object, record, what, FIELDS);
                }
            }
            (ExprForm::List(items), _) => {
                let lists: Vec<&QueryType> = members(wanted)
                    .iter()
                    .filter_map(|ty| match ty {
                        QueryType::List(item) => Some(&**item),
                        _ => None,
                    })
                    .collect();
                if let [item] = lists.as_slice() {
                    let what = format!("each of {what}");
                    let items: Vec<Typed> =
                        items.iter().map(|value| self.fitting(value, item, &what)).collect();
                    return self.list(items, expr.span);
                }
            }
            _ => {}
        }
        let typed = self.infer(expr);
        self.compare_types(&typed.ty, wanted, expr.span, what);
        typed
    }

    /// An object whose fields are wanted.
    pub fn object(&mut self, object: &Object, wanted: &Record, what: &str, words: FieldLabels) -> Typed {
        let mut meant: Vec<&str> = Vec::new();
        let entries = self.entries(object, |scope, name, value| match wanted.fields.get(&name.text) {
            Some(field) => scope.fitting(value, &field.ty, &format!("`{}`", name.text)),
            None => {
                if !wanted.open {
                    let message = format!("{what} has no {} `{}`", words.one, name.text);
                    let problem = scope.problem(name.span, words.unknown, message);
                    let names = wanted.fields.keys().map(String::as_str);
                    meant.extend(nearest(&name.text, names.clone()));
                    scope.findings.add(problem.maybe_help(hint(&name.text, names)));
                }
                scope.infer(value)
            }
        });
        let span = object.span;
        let given: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).chain(meant).collect();
        self.missing(&given, span, wanted, what, words);
        self.record(entries, span)
    }

    /// Reports which fields are missing. A misspelled field counts as given; it was already reported.
    fn missing(&mut self, given: &[&str], span: Span, wanted: &Record, what: &str, words: FieldLabels) {
        let missing: Vec<(&String, &QueryType)> = wanted
            .fields
            .iter()
            .filter(|(name, field)| !field.optional && !given.contains(&name.as_str()))
            .map(|(name, field)| (name, &field.ty))
            .collect();
        let Some((first, ty)) = missing.first() else { return };
        let names = missing.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let plural = if missing.len() > 1 { "s" } else { "" };
        let message = format!("{what} needs the {}{plural} {names}", words.one);
        let help = format!("add `{first}: …`, of type `{}`", ty.shown());
        self.tell(span, words.missing, message, &help);
    }

    /// Reports where a type does not fit.
    pub fn compare_types(&mut self, found: &QueryType, wanted: &QueryType, span: Span, what: &str) {
        let Err(misfit) = fits(found, wanted) else { return };
        if found.may_be_null() && *found != QueryType::Null && fits(&found.without_null(), wanted).is_ok() {
            self.may_be_null(span, what, found);
            return;
        }
        let (message, help) = describe(&misfit, what, found, wanted);
        let problem = self.problem(span, "wrong-type", message).maybe_help(help);
        self.findings.add(problem);
    }
}

/// What a type can be.
fn members(ty: &QueryType) -> &[QueryType] {
    match ty {
        QueryType::OneOf(members) => members,
        ty => std::slice::from_ref(ty),
    }
}

/// The type of a field that is taken from a record.
fn taken(record: &Record, name: &str) -> Option<QueryType> {
    match record.fields.get(name) {
        Some(field) if field.optional => Some(field.ty.clone().nullable()),
        Some(field) => Some(field.ty.clone()),
        None => record.open.then_some(QueryType::Any),
    }
}

fn describe(
    misfit: &TypeMismatch,
    what: &str,
    found: &QueryType,
    wanted: &QueryType,
) -> (String, Option<String>) {
    let inside = match misfit.path.as_str() {
        "" => what.to_owned(),
        path => format!("`{path}` of {what}"),
    };
    if let Some((kind, field)) = &misfit.field {
        let message = match kind {
            FieldMismatch::Missing => format!("{inside} needs the field `{field}`"),
            FieldMismatch::MayBeMissing => {
                format!("{inside} needs the field `{field}`, which may be missing here")
            }
            FieldMismatch::Unknown => format!("{inside} has no field `{field}`"),
        };
        let help = format!("`{}` is wanted, this is `{}`", wanted.shown(), found.shown());
        return (message, Some(help));
    }
    let message = format!("{inside} has to be `{}`, not `{}`", misfit.wanted.shown(), misfit.found.shown());
    let help = match (&misfit.found, &misfit.wanted) {
        (QueryType::Choice(given), QueryType::Choice(all)) => match given.as_slice() {
            [only] => hint(only, all.iter().map(String::as_str)),
            _ => None,
        },
        (
            QueryType::List(_) | QueryType::Record(_) | QueryType::Int | QueryType::Float | QueryType::Bool,
            QueryType::String,
        ) => Some("put it into a text: \"{{…}}\"".to_owned()),
        (QueryType::Choice(given), QueryType::Int | QueryType::Float | QueryType::Bool)
            if given.len() == 1 =>
        {
            Some("write it without quotes".to_owned())
        }
        (QueryType::Float, QueryType::Int) => Some("a whole number is wanted".to_owned()),
        (QueryType::Null, _) => Some("give a value, or leave it out".to_owned()),
        (_, QueryType::List(_)) => Some("write a list: `[…]`".to_owned()),
        _ => None,
    };
    (message, help)
}
