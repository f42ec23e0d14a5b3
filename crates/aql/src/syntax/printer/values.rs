//! Expressions and types as text.

use super::{BRACES, Printer, SQUARE};
use crate::plan::Comparison;
use crate::syntax::literal::{Dedent, Part, is_blank};
use crate::syntax::text::Span;
use crate::syntax::tree::{
    Entry, Expr, ExprForm, Name, Object, Text, TextPiece, TypeExpr, TypeField, TypeForm,
};
use crate::types::is_name;

/// How tight something binds; what is looser than its surroundings is put in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    Some,
    All,
    Not,
    Compare,
    Access,
}

impl Printer<'_> {
    pub(super) fn expression(&mut self, expr: &Expr) {
        self.bound(expr, Binding::Or);
    }

    fn bound(&mut self, expr: &Expr, least: Binding) {
        let binding = match &expr.form {
            ExprForm::Or(..) => Binding::Or,
            ExprForm::Some(_) => Binding::Some,
            ExprForm::All(_) => Binding::All,
            ExprForm::Not(_) => Binding::Not,
            ExprForm::Compare(..) => Binding::Compare,
            _ => Binding::Access,
        };
        if binding < least {
            self.put("(");
            self.form(expr);
            self.put(")");
        } else {
            self.form(expr);
        }
    }

    fn form(&mut self, expr: &Expr) {
        match &expr.form {
            ExprForm::Null => self.put("null"),
            ExprForm::Bool(value) => self.put(if *value { "true" } else { "false" }),
            ExprForm::Int(_) | ExprForm::Float(_) | ExprForm::Duration(_) | ExprForm::Wrong => {
                self.raw(expr.span)
            }
            ExprForm::Text(text) => self.text(text),
            ExprForm::Input(name) => {
                self.put("$");
                self.put(name);
            }
            ExprForm::Name(name) => self.put(name),
            ExprForm::Field(of, name) => {
                self.bound(of, Binding::Access);
                self.put(".");
                self.put(&name.text);
            }
            ExprForm::Element(of, index) => {
                self.bound(of, Binding::Access);
                self.put("[");
                self.expression(index);
                self.put("]");
            }
            ExprForm::List(items) => {
                self.bracketed(&SQUARE, expr.span, items, |item| item.span, Printer::expression);
            }
            ExprForm::Object(object) => self.object(object),
            ExprForm::Or(one, other) => {
                self.bound(one, Binding::Or);
                self.put(" ?? ");
                self.bound(other, Binding::Some);
            }
            ExprForm::Compare(comparison, one, other) => {
                self.bound(one, Binding::Access);
                self.put(match comparison {
                    Comparison::Equal => " == ",
                    Comparison::Different => " != ",
                    Comparison::Less => " < ",
                    Comparison::LessOrEqual => " <= ",
                    Comparison::Greater => " > ",
                    Comparison::GreaterOrEqual => " >= ",
                    Comparison::In => " in ",
                });
                self.bound(other, Binding::Access);
            }
            ExprForm::All(parts) => self.joined(parts, " and ", Binding::Not),
            ExprForm::Some(parts) => self.joined(parts, " or ", Binding::All),
            ExprForm::Not(inner) => {
                self.put("not ");
                self.bound(inner, Binding::Compare);
            }
            ExprForm::Call(name, arguments) => {
                self.put(&name.text);
                self.call(arguments);
            }
        }
    }

    /// The arguments of a call, which stay in one line whatever their length.
    fn call(&mut self, arguments: &[Expr]) {
        self.put("(");
        for (at, argument) in arguments.iter().enumerate() {
            if at > 0 {
                self.put(", ");
            }
            self.expression(argument);
        }
        self.put(")");
    }

    fn joined(&mut self, parts: &[Expr], word: &str, least: Binding) {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.put(word);
            }
            self.bound(part, least);
        }
    }

    pub(super) fn object(&mut self, object: &Object) {
        self.bracketed(&BRACES, object.span, &object.entries, |entry| entry.span, Printer::entry);
    }

    fn entry(&mut self, entry: &Entry) {
        self.key(&entry.key);
        self.put(": ");
        self.expression(&entry.value);
    }

    /// The name of a field, in quotes where it needs them.
    fn key(&mut self, name: &Name) {
        if is_name(&name.text) {
            self.put(&name.text);
        } else {
            self.raw(name.span);
        }
    }

    /// A text as it was written; a long one moves with the lines around it.
    fn text(&mut self, text: &Text) {
        let Some(lines) = self.lines_of(text) else {
            self.raw(text.span);
            return;
        };
        if self.flat {
            self.written.push('\n');
            return;
        }
        self.put("\"\"\"");
        self.level += 1;
        for line in lines {
            if line.is_empty() {
                self.written.push('\n');
            } else {
                self.line();
                self.put(&line);
            }
        }
        self.level -= 1;
        self.line();
        self.put("\"\"\"");
    }

    /// The lines of a long text without their indentation, if it is alone between its quotes.
    fn lines_of(&self, text: &Text) -> Option<Vec<String>> {
        if !text.long {
            return None;
        }
        let mut parts = Vec::new();
        let mut from = text.span.start + 3;
        for piece in &text.pieces {
            if let TextPiece::Hole(_, span) = piece {
                if self.source.slice(*span).contains('\n') {
                    return None;
                }
                parts.push(Part::Raw(Span::new(from, span.start)));
                parts.push(Part::Hole { tokens: Vec::new(), span: *span });
                from = span.end;
            }
        }
        parts.push(Part::Raw(Span::new(from, text.span.end.saturating_sub(3))));
        let layout = Dedent::of(self.source, &parts);
        if !layout.first_line || layout.end == usize::MAX || layout.start >= layout.end {
            return None;
        }
        let content = self.source.slice(Span::new(layout.start, layout.end));
        let lines = content.split('\n').map(|line| {
            let line = line.trim_end_matches('\r');
            if is_blank(line) {
                return String::new();
            }
            line.strip_prefix(layout.indentation.as_str()).unwrap_or(line).to_owned()
        });
        Some(lines.collect())
    }

    pub(super) fn type_expr(&mut self, ty: &TypeExpr) {
        match &ty.form {
            TypeForm::Name(name) => self.put(name),
            TypeForm::Choice(_) => self.raw(ty.span),
            TypeForm::List(item) => {
                self.put("[");
                self.type_expr(item);
                self.put("]");
            }
            TypeForm::Optional(inner) => match &inner.form {
                // A type that is optional twice is optional.
                TypeForm::Optional(_) => self.type_expr(inner),
                _ => {
                    self.type_term(inner);
                    self.put("?");
                }
            },
            TypeForm::OneOf(types) => {
                for (at, ty) in types.iter().enumerate() {
                    if at > 0 {
                        self.put(" | ");
                    }
                    self.type_term(ty);
                }
            }
            TypeForm::Record(fields) => {
                self.bracketed(&BRACES, ty.span, fields, |field| field.span, Printer::field);
            }
        }
    }

    fn type_term(&mut self, ty: &TypeExpr) {
        let several = matches!(ty.form, TypeForm::OneOf(_));
        if several {
            self.put("(");
        }
        self.type_expr(ty);
        if several {
            self.put(")");
        }
    }

    fn field(&mut self, field: &TypeField) {
        self.key(&field.name);
        self.put(if field.optional { "?: " } else { ": " });
        self.type_expr(&field.ty);
    }
}
