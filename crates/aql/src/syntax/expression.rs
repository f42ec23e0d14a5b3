//! Expressions and types, from words.

use super::parser::{ErrorReported, MAX_DEPTH, Parsed, Parser};
use super::text::Span;
use super::token::{Literal, Piece, TokenKind};
use super::tree::{Entry, Expr, ExprForm, Name, Object, Text, TextPiece, TypeExpr, TypeField, TypeForm};
use crate::plan::Comparison;

impl Parser<'_> {
    /// An expression whose parts are whole. Chains such as `a.b.c` are deep though nothing is nested.
    fn made(&mut self, form: ExprForm, span: Span) -> Parsed<Expr> {
        let mut expr = Expr { form, span, depth: 1 };
        expr.depth = 1 + expr.children().iter().map(|child| child.depth).max().unwrap_or(0);
        if expr.depth <= MAX_DEPTH {
            return Ok(expr);
        }
        let message = format!("this is more than {MAX_DEPTH} levels deep");
        let problem = self.source.problem(span, "too-deep", message);
        Err(self.tell(problem.help("give the inner part a step of its own")))
    }

    pub fn expression(&mut self) -> Parsed<Expr> {
        self.deeper(|parser| {
            let mut left = parser.some()?;
            while parser.eat("??") {
                let right = parser.some()?;
                let span = left.span.to(right.span);
                left = parser.made(ExprForm::Or(Box::new(left), Box::new(right)), span)?;
            }
            Ok(left)
        })
    }

    /// Whether the word is an operator here: `{ a: b\n in: c }` has a field of that name.
    fn operator(&self, word: &str) -> bool {
        self.is_word(word) && !self.is_at(1, ":")
    }

    fn some(&mut self) -> Parsed<Expr> {
        self.chain("or", Self::all, ExprForm::Some)
    }

    fn all(&mut self) -> Parsed<Expr> {
        self.chain("and", Self::not, ExprForm::All)
    }

    fn chain(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Parsed<Expr>,
        form: fn(Vec<Expr>) -> ExprForm,
    ) -> Parsed<Expr> {
        let first = part(self)?;
        if !self.operator(word) {
            return Ok(first);
        }
        let start = first.span;
        let mut parts = vec![first];
        while self.operator(word) {
            self.advance();
            parts.push(part(self)?);
        }
        let span = start.to(self.behind());
        self.made(form(parts), span)
    }

    fn not(&mut self) -> Parsed<Expr> {
        if !self.is_word("not") {
            return self.compare();
        }
        let start = self.span();
        self.advance();
        let inner = self.compare()?;
        let span = start.to(inner.span);
        self.made(ExprForm::Not(Box::new(inner)), span)
    }

    fn comparison(&self) -> Option<Comparison> {
        if self.operator("in") {
            return Some(Comparison::In);
        }
        let TokenKind::Symbol(symbol) = self.kind() else { return None };
        match *symbol {
            "==" => Some(Comparison::Equal),
            "!=" => Some(Comparison::Different),
            "<" => Some(Comparison::Less),
            "<=" => Some(Comparison::LessOrEqual),
            ">" => Some(Comparison::Greater),
            ">=" => Some(Comparison::GreaterOrEqual),
            _ => None,
        }
    }

    fn compare(&mut self) -> Parsed<Expr> {
        let left = self.access()?;
        let Some(comparison) = self.comparison() else {
            return Ok(left);
        };
        self.advance();
        let right = self.access()?;
        let span = left.span.to(right.span);
        let compared = self.made(ExprForm::Compare(comparison, Box::new(left), Box::new(right)), span)?;
        if self.comparison().is_some() {
            let problem = self.source.problem(self.span(), "chained-comparison", "comparisons do not chain");
            return Err(self.tell(problem.help("write `a < b and b < c`")));
        }
        Ok(compared)
    }

    fn access(&mut self) -> Parsed<Expr> {
        let mut of = self.primary()?;
        loop {
            if self.eat(".") {
                let name = self
                    .name("the name of a field", "write `step.field`, or `step[\"a b\"]` for other names")?;
                let span = of.span.to(name.span);
                of = self.made(ExprForm::Field(Box::new(of), name), span)?;
            } else if self.is("[") && !self.begins_line() {
                self.advance();
                let index = self.expression()?;
                let end = self.expect("]", "")?;
                let span = of.span.to(end);
                of = self.made(ExprForm::Element(Box::new(of), Box::new(index)), span)?;
            } else {
                return Ok(of);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        if self.begins_item() {
            return Err(self.expected("a value", ""));
        }
        let span = self.span();
        let form = match self.kind().clone() {
            TokenKind::Text(literal) => {
                let text = self.text(literal)?;
                return self.made(ExprForm::Text(text), span);
            }
            TokenKind::Int(value) => ExprForm::Int(value),
            TokenKind::Float(value) => ExprForm::Float(value),
            TokenKind::Duration(value) => ExprForm::Duration(value),
            TokenKind::Input(name) => ExprForm::Input(name),
            TokenKind::Name(name) if name == "true" => ExprForm::Bool(true),
            TokenKind::Name(name) if name == "false" => ExprForm::Bool(false),
            TokenKind::Name(name) if name == "null" => ExprForm::Null,
            TokenKind::Name(name) if self.is_at(1, "(") && !self.begins_line_at(1) => {
                let named = span;
                self.advance();
                self.advance();
                let mut arguments = Vec::new();
                self.separated(")", |parser| {
                    arguments.push(parser.expression()?);
                    Ok(())
                })?;
                let span = span.to(self.behind());
                return self.made(ExprForm::Call(Name { text: name, span: named }, arguments), span);
            }
            TokenKind::Name(name) => ExprForm::Name(name),
            TokenKind::Symbol("[") => {
                self.advance();
                let mut items = Vec::new();
                self.separated("]", |parser| {
                    items.push(parser.expression()?);
                    Ok(())
                })?;
                let span = span.to(self.behind());
                return self.made(ExprForm::List(items), span);
            }
            TokenKind::Symbol("{") => {
                let object = self.object()?;
                let span = object.span;
                return self.made(ExprForm::Object(object), span);
            }
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")", "")?;
                return Ok(inner);
            }
            TokenKind::Symbol("-") => {
                let help = "`-` is allowed only before a number";
                return Err(self.expected("a value", help));
            }
            TokenKind::Symbol("!") => return Err(self.expected("a value", "write `not` for the opposite")),
            _ => return Err(self.expected("a value", "")),
        };
        self.advance();
        self.made(form, span)
    }

    /// Fields in braces, a comma between them or not.
    pub fn object(&mut self) -> Parsed<Object> {
        let start = self.expect("{", "")?;
        self.deeper(|parser| {
            let mut entries = Vec::new();
            while !parser.is("}") && !parser.at_end() && !parser.begins_item() {
                let before = parser.at;
                match parser.entry() {
                    Ok(entry) => entries.push(entry),
                    Err(ErrorReported) => {
                        if parser.at == before {
                            parser.advance();
                        }
                        parser.skip(|parser| parser.is(",") || parser.begins_line());
                        while parser.is(")") || parser.is("]") {
                            parser.advance();
                        }
                    }
                }
                parser.eat(",");
            }
            parser.close(start, "these fields are never closed")?;
            Ok(Object { entries, span: start.to(parser.behind()) })
        })
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let key = self.key("write `name: value`")?;
        self.expect(":", "a field is written `name: value`")?;
        let value = self.expression()?;
        Ok(Entry { span: key.span.to(value.span), key, value })
    }

    /// The name of a field, in quotes or not.
    fn key(&mut self, help: &str) -> Parsed<Name> {
        let span = self.span();
        let text = match self.kind().clone() {
            TokenKind::Name(text) => text,
            TokenKind::Text(literal) => {
                self.told += usize::from(literal.wrong);
                let found = match literal.pieces.as_slice() {
                    [] => Some(String::new()),
                    [Piece::Text(cooked)] => Some(cooked.text.clone()),
                    _ => None,
                };
                let Some(text) = found else {
                    let problem =
                        self.source.problem(span, "hole-in-name", "the name of a field holds no `{{…}}`");
                    return Err(self.tell(problem.help("write the name out")));
                };
                text
            }
            _ => return Err(self.expected("a field", help)),
        };
        self.advance();
        Ok(Name { text, span })
    }

    /// A text, whose holes are parsed now. Its token is the current one.
    pub fn text(&mut self, literal: Literal) -> Parsed<Text> {
        self.advance();
        self.told += usize::from(literal.wrong);
        let (long, span) = (literal.long, literal.span);
        let mut pieces = Vec::new();
        for piece in literal.pieces {
            match piece {
                Piece::Text(cooked) => pieces.push(TextPiece::Text(cooked)),
                Piece::Hole { tokens, span } => {
                    let mut inner = Parser {
                        source: self.source,
                        tokens: &tokens,
                        at: 0,
                        depth: self.depth,
                        steps: self.steps,
                        told: 0,
                        findings: self.findings,
                    };
                    let parsed = if inner.at_end() {
                        let problem =
                            inner.source.problem(span, "empty-hole", "there is nothing in this `{{}}`");
                        Err(inner.tell(
                            problem.help("write an expression, or `\\{` for a brace that is only a brace"),
                        ))
                    } else {
                        inner.expression().and_then(|expr| {
                            if inner.at_end() { Ok(expr) } else { Err(inner.expected("`}}`", "")) }
                        })
                    };
                    let told = inner.told;
                    self.told += told;
                    // One hole that is wrong does not hide what is wrong in the others.
                    let expr = parsed.unwrap_or(Expr { form: ExprForm::Wrong, span, depth: 1 });
                    pieces.push(TextPiece::Hole(expr, span));
                }
            }
        }
        Ok(Text { pieces, long, span })
    }

    pub fn type_expr(&mut self) -> Parsed<TypeExpr> {
        self.deeper(|parser| {
            let start = parser.span();
            let mut types = vec![parser.type_term()?];
            while parser.eat("|") {
                types.push(parser.type_term()?);
            }
            let span = start.to(parser.behind());
            if types.len() > 1 {
                return Ok(TypeExpr { form: TypeForm::OneOf(types), span });
            }
            types.pop().ok_or(ErrorReported)
        })
    }

    fn type_term(&mut self) -> Parsed<TypeExpr> {
        if self.begins_item() {
            return Err(self.expected("a type", ""));
        }
        let span = self.span();
        let mut ty = match self.kind().clone() {
            TokenKind::Name(name) => {
                self.advance();
                TypeExpr { form: TypeForm::Name(name), span }
            }
            TokenKind::Text(literal) => {
                let text = self.text(literal)?;
                let Some(cooked) = text.constant() else {
                    let span = text.hole().unwrap_or(span);
                    let problem =
                        self.source.problem(span, "hole-in-type", "a text in a type holds no `{{…}}`");
                    return Err(self.tell(problem.help("write the text out")));
                };
                TypeExpr { form: TypeForm::Choice(cooked.text), span }
            }
            TokenKind::Symbol("[") => {
                self.advance();
                let item = self.type_expr()?;
                let end = self.expect("]", "a list is written `[Type]`")?;
                TypeExpr { form: TypeForm::List(Box::new(item)), span: span.to(end) }
            }
            TokenKind::Symbol("(") => {
                self.advance();
                let inner = self.type_expr()?;
                self.expect(")", "")?;
                inner
            }
            TokenKind::Symbol("{") => self.record()?,
            _ => return Err(self.expected("a type", "such as `String`, `[Int]` or `{ name: String }`")),
        };
        let mut optional = false;
        while self.is("?") || self.is("??") {
            optional = true;
            self.advance();
        }
        if optional {
            let span = span.to(self.behind());
            ty = TypeExpr { form: TypeForm::Optional(Box::new(ty)), span };
        }
        Ok(ty)
    }

    fn record(&mut self) -> Parsed<TypeExpr> {
        let start = self.expect("{", "")?;
        let mut fields = Vec::new();
        while !self.is("}") && !self.at_end() && !self.begins_item() {
            let span = self.span();
            let name = self.key("write `name: Type`")?;
            let optional = self.eat("?");
            self.expect(":", "a field is written `name: Type`")?;
            let ty = self.type_expr()?;
            let span = span.to(self.behind());
            fields.push(TypeField { name, optional, ty, span });
            self.eat(",");
        }
        self.close(start, "this type is never closed")?;
        Ok(TypeExpr { form: TypeForm::Record(fields), span: start.to(self.behind()) })
    }
}
