//! Expressions: what they refer to, and what type they have.

use serde_json::{Map, Value};
use tgp_text::nearest;

use super::scope::CheckContext;
use crate::plan::{Comparison, ExpressionForm};
use crate::suggest::hint;
use crate::syntax::text::Span;
use crate::syntax::tree::{Expr, ExprForm, Name, Object, Text, TextPiece};
use crate::types::union;
use crate::{Expression, QueryType};

/// Texts up to this length have their own literal type, so that one can be given where one of several is
/// expected.
const LONGEST_CHOICE: usize = 64;

const FUNCTIONS: [&str; 3] = ["length", "join", "contains"];

/// An expression and its type.
pub(super) struct Typed {
    pub expression: Expression,
    pub ty: QueryType,
}

impl CheckContext<'_> {
    pub fn typed(&self, form: ExpressionForm, span: Span, ty: QueryType) -> Typed {
        Typed { expression: self.expression(form, span), ty: self.bounded(ty) }
    }

    /// A placeholder for an expression whose problem was reported.
    pub fn wrong(&self, span: Span) -> Typed {
        self.typed(ExpressionForm::Value(Value::Null), span, QueryType::Any)
    }

    pub fn infer(&mut self, expr: &Expr) -> Typed {
        let span = expr.span;
        match &expr.form {
            ExprForm::Wrong => self.wrong(span),
            ExprForm::Null => self.typed(ExpressionForm::Value(Value::Null), span, QueryType::Null),
            ExprForm::Bool(value) => {
                self.typed(ExpressionForm::Value(Value::Bool(*value)), span, QueryType::Bool)
            }
            ExprForm::Int(value) => {
                self.typed(ExpressionForm::Value(Value::from(*value)), span, QueryType::Int)
            }
            ExprForm::Float(value) => {
                self.typed(ExpressionForm::Value(Value::from(*value)), span, QueryType::Float)
            }
            ExprForm::Duration(_) => {
                self.tell(
                    span,
                    "wrong-type",
                    "a duration is not a value",
                    "durations are allowed only after `timeout:` and `time:`",
                );
                self.wrong(span)
            }
            ExprForm::Text(text) => self.text_value(text),
            ExprForm::Input(name) => self.input(name, span),
            ExprForm::Name(name) => self.name(name, span),
            ExprForm::Field(of, name) => {
                let of = self.infer(of);
                self.field(of, name, span)
            }
            ExprForm::Element(of, index) => self.element(of, index, span),
            ExprForm::List(items) => {
                let items: Vec<Typed> = items.iter().map(|item| self.infer(item)).collect();
                self.list(items, span)
            }
            ExprForm::Object(object) => {
                let entries = self.entries(object, |scope, _, value| scope.infer(value));
                self.record(entries, span)
            }
            ExprForm::Or(one, other) => {
                let (one, other) = (self.infer(one), self.infer(other));
                let ty = match &one.ty {
                    QueryType::Null => other.ty,
                    ty => union([ty.without_null(), other.ty]),
                };
                self.typed(ExpressionForm::Or(Box::new(one.expression), Box::new(other.expression)), span, ty)
            }
            ExprForm::Compare(comparison, one, other) => self.comparison(*comparison, one, other, span),
            ExprForm::All(parts) => {
                let parts = self.conditions(parts, "and");
                self.typed(ExpressionForm::All(parts), span, QueryType::Bool)
            }
            ExprForm::Some(parts) => {
                let parts = self.conditions(parts, "or");
                self.typed(ExpressionForm::Some(parts), span, QueryType::Bool)
            }
            ExprForm::Not(inner) => {
                let inner = self.fitting(inner, &QueryType::Bool, "the value after `not`");
                self.typed(ExpressionForm::Not(Box::new(inner.expression)), span, QueryType::Bool)
            }
            ExprForm::Call(name, arguments) => self.call(name, arguments, span),
        }
    }

    /// Fields of an object, each once.
    pub fn entries(
        &mut self,
        object: &Object,
        mut value: impl FnMut(&mut Self, &Name, &Expr) -> Typed,
    ) -> Vec<(String, Typed)> {
        let mut entries: Vec<(String, Typed)> = Vec::new();
        let mut first: std::collections::HashMap<&str, Span> = std::collections::HashMap::new();
        for entry in &object.entries {
            if let Some(before) = first.get(entry.key.text.as_str()) {
                let problem = self.problem(
                    entry.key.span,
                    "duplicate-name",
                    format!("`{}` is there twice", entry.key.text),
                );
                let before = self.text.range(*before);
                self.findings.add(problem.label(before, "the first one").help("leave one of them out"));
                continue;
            }
            first.insert(&entry.key.text, entry.key.span);
            let typed = value(self, &entry.key, &entry.value);
            entries.push((entry.key.text.clone(), typed));
        }
        entries
    }

    /// An object of fields; a constant where all of them are.
    pub fn record(&self, entries: Vec<(String, Typed)>, span: Span) -> Typed {
        let mut left = crate::types::MAX_SIZE;
        let mut fields = Vec::new();
        let mut forms = Vec::new();
        for (name, typed) in entries {
            // Beyond the bound the whole is `Any`, so its parts need not be kept.
            left = left.saturating_sub(typed.ty.size());
            if left > 0 {
                fields.push((name.clone(), typed.ty));
            }
            forms.push((name, typed.expression));
        }
        let ty = if left > 0 { QueryType::record(fields) } else { QueryType::Any };
        self.typed(object_form(forms), span, ty)
    }

    pub fn list(&self, items: Vec<Typed>, span: Span) -> Typed {
        let mut left = crate::types::MAX_SIZE;
        let mut types = Vec::new();
        let mut forms = Vec::new();
        for item in items {
            left = left.saturating_sub(item.ty.size());
            if left > 0 && !types.contains(&item.ty) {
                types.push(item.ty);
            }
            forms.push(item.expression);
        }
        let ty = if left > 0 { union(types) } else { QueryType::Any };
        let constant: Option<Vec<Value>> = forms.iter().map(constant).collect();
        let form = constant
            .map_or(ExpressionForm::List(forms), |values| ExpressionForm::Value(Value::Array(values)));
        self.typed(form, span, QueryType::list(ty))
    }

    fn text_value(&mut self, text: &Text) -> Typed {
        if let Some(cooked) = text.constant() {
            let short = cooked.text.len() <= LONGEST_CHOICE;
            let ty = if short { QueryType::Choice(vec![cooked.text.clone()]) } else { QueryType::String };
            return self.typed(ExpressionForm::Value(Value::String(cooked.text)), text.span, ty);
        }
        let mut pieces = Vec::new();
        for piece in &text.pieces {
            pieces.push(match piece {
                TextPiece::Text(cooked) => {
                    let span = Span::new(cooked.origin(0), cooked.origin(0));
                    self.expression(ExpressionForm::Value(Value::String(cooked.text.clone())), span)
                }
                TextPiece::Hole(expr, _) => self.infer(expr).expression,
            });
        }
        self.typed(ExpressionForm::Text(pieces), text.span, QueryType::String)
    }

    fn input(&mut self, name: &str, span: Span) -> Typed {
        if let Some(at) = self.inputs.iter().position(|input| input.name == name) {
            let ty = self.inputs.get(at).map_or(QueryType::Any, |input| input.ty.clone());
            return self.typed(ExpressionForm::Input(at), span, ty);
        }
        if self.inputs_lost {
            // The number is never used, since there is no plan.
            return self.typed(ExpressionForm::Input(usize::MAX), span, QueryType::Any);
        }
        let names: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        let near = nearest(name, names.iter().copied()).map(|near| format!("did you mean `${near}`?"));
        let all = names.iter().map(|name| format!("`${name}`")).collect::<Vec<_>>().join(", ");
        let help = near.unwrap_or_else(|| match names.is_empty() {
            true => format!(
                "this query has no inputs; write `query Name(${name}: String) {{ … }}` to give it one"
            ),
            false => format!("there is {all}"),
        });
        self.tell(span, "unknown-input", format!("there is no input `${name}`"), &help);
        self.wrong(span)
    }

    fn name(&mut self, name: &str, span: Span) -> Typed {
        if let Some(found) = self.find(name) {
            return self.typed(found.form, span, found.ty);
        }
        let problem = self.unknown_step(name, span);
        self.findings.add(problem);
        self.wrong(span)
    }

    /// The problem for an unknown step name, with the name that was probably meant.
    pub fn unknown_step(&self, name: &str, span: Span) -> crate::QueryProblem {
        let problem = self.problem(span, "unknown-step", format!("there is no step `{name}` here"));
        let visible = self.visible();
        let names = visible.iter().map(String::as_str);
        if self.inputs.iter().any(|input| input.name == name) {
            return problem.help(format!("did you mean the input `${name}`?"));
        }
        if nearest(name, names.clone()).is_none() && self.declarations.query(self.unit, name).is_some() {
            return problem.help(format!("`{name}` is a query: give it a step, `name: query({name})`"));
        }
        problem.maybe_help(hint(name, names))
    }

    fn element(&mut self, of: &Expr, index: &Expr, span: Span) -> Typed {
        let of_span = of.span;
        let of = self.infer(of);
        if let ExprForm::Text(text) = &index.form
            && let Some(cooked) = text.constant()
            && !matches!(of.ty.without_null(), QueryType::List(_))
        {
            return self.field(of, &Name { text: cooked.text, span: index.span }, span);
        }
        // What null has inside is null.
        let may_be_null = of.ty.may_be_null();
        let (wanted, ty) = match &of.ty {
            QueryType::OneOf(_) if may_be_null => elements(&of.ty.without_null()),
            ty => elements(ty),
        };
        let (wanted, ty) = match wanted {
            Some(wanted) if may_be_null => (wanted, ty.nullable()),
            Some(wanted) => (wanted, ty),
            None => {
                let message = format!("`{}` has no elements", of.ty.shown());
                self.tell(
                    of_span,
                    "wrong-type",
                    message,
                    "`[…]` takes an element of a list or a field of an object",
                );
                return self.wrong(span);
            }
        };
        let index = self.fitting(index, &wanted, "the index");
        self.typed(ExpressionForm::Element(Box::new(of.expression), Box::new(index.expression)), span, ty)
    }

    /// Reports that something may be null where it must not be.
    pub fn may_be_null(&mut self, span: Span, what: &str, ty: &QueryType) {
        let written = self.text.slice(span);
        let written = if written.len() <= 40 && !written.contains('\n') { written } else { "…" };
        let help = format!("say what to use then: `{written} ?? …`");
        let message = format!("{what} may be null: it is `{}`", ty.shown());
        self.findings.add(self.problem(span, "may-be-null", message).help(help));
    }

    fn conditions(&mut self, parts: &[Expr], word: &str) -> Vec<Expression> {
        let what = format!("each side of `{word}`");
        parts.iter().map(|part| self.fitting(part, &QueryType::Bool, &what).expression).collect()
    }

    fn comparison(&mut self, comparison: Comparison, one: &Expr, other: &Expr, span: Span) -> Typed {
        let (one_span, other_span) = (one.span, other.span);
        let (one, other) = (self.infer(one), self.infer(other));
        match comparison {
            Comparison::Equal | Comparison::Different => {}
            Comparison::In => {
                let list = QueryType::list(QueryType::Any);
                self.compare_types(&other.ty, &list, other_span, "the value after `in`");
            }
            _ => {
                let sides = [(&one.ty, one_span), (&other.ty, other_span)];
                let null = sides.iter().find(|(ty, _)| ty.may_be_null());
                if let Some((ty, span)) = null {
                    let ty = (*ty).clone();
                    self.may_be_null(*span, "what is compared", &ty);
                } else if !ordered(&one.ty, &other.ty) {
                    let message = format!("`{}` and `{}` have no order", one.ty.shown(), other.ty.shown());
                    self.tell(
                        span,
                        "wrong-type",
                        message,
                        "numbers are compared with numbers, and texts with texts",
                    );
                }
            }
        }
        let form = ExpressionForm::Compare(comparison, Box::new(one.expression), Box::new(other.expression));
        self.typed(form, span, QueryType::Bool)
    }

    fn call(&mut self, name: &Name, arguments: &[Expr], span: Span) -> Typed {
        let wanted = match name.text.as_str() {
            "length" => 1,
            "join" | "contains" => 2,
            other => {
                let message = format!("there is no function `{other}`");
                let problem = self.problem(name.span, "unknown-function", message);
                self.findings.add(problem.maybe_help(hint(other, FUNCTIONS)));
                return self.wrong(span);
            }
        };
        if arguments.len() != wanted {
            let message = format!(
                "`{}` takes {wanted} argument{}, not {}",
                name.text,
                if wanted == 1 { "" } else { "s" },
                arguments.len()
            );
            let help = "there are `length(x)`, `join(list, \", \")` and `contains(text_or_list, x)`";
            self.tell(span, "wrong-arguments", message, help);
            return self.wrong(span);
        }
        let one = |scope: &mut Self, at: usize, wanted: &QueryType, what: &str| match arguments.get(at) {
            Some(argument) => Box::new(scope.fitting(argument, wanted, what).expression),
            None => Box::new(scope.wrong(span).expression),
        };
        let several = union([QueryType::String, QueryType::list(QueryType::Any)]);
        let (form, ty) = match wanted {
            1 => (ExpressionForm::Length(one(self, 0, &several, "what `length` counts")), QueryType::Int),
            _ if name.text == "join" => {
                let list = one(self, 0, &QueryType::list(QueryType::Any), "what `join` puts together");
                (
                    ExpressionForm::Join(list, one(self, 1, &QueryType::String, "the separator")),
                    QueryType::String,
                )
            }
            _ => {
                let of = one(self, 0, &several, "what `contains` looks into");
                (
                    ExpressionForm::Contains(of, one(self, 1, &QueryType::Any, "what it looks for")),
                    QueryType::Bool,
                )
            }
        };
        self.typed(form, span, ty)
    }
}

/// What an index into this has to be, and what comes of it; no index where there is nothing inside.
fn elements(of: &QueryType) -> (Option<QueryType>, QueryType) {
    match of {
        QueryType::List(item) => (Some(QueryType::Int), (**item).clone()),
        QueryType::Record(_) => (Some(QueryType::String), QueryType::Any),
        QueryType::Any => (Some(union([QueryType::Int, QueryType::String])), QueryType::Any),
        _ => (None, QueryType::Any),
    }
}

/// Whether `<` means something for these.
fn ordered(one: &QueryType, other: &QueryType) -> bool {
    let number = union([QueryType::Int, QueryType::Float]);
    let both = |wanted: &QueryType| {
        crate::types::fits(one, wanted).is_ok() && crate::types::fits(other, wanted).is_ok()
    };
    both(&number) || both(&QueryType::String)
}

/// The value of an expression that needs no run to have one.
pub(crate) fn constant(expression: &Expression) -> Option<Value> {
    match &expression.form {
        ExpressionForm::Value(value) => Some(value.clone()),
        _ => None,
    }
}

/// An object; a constant where all of it is.
pub(super) fn object_form(entries: Vec<(String, Expression)>) -> ExpressionForm {
    let values: Option<Map<String, Value>> =
        entries.iter().map(|(name, value)| Some((name.clone(), constant(value)?))).collect();
    values.map_or(ExpressionForm::Object(entries), |values| ExpressionForm::Value(Value::Object(values)))
}
