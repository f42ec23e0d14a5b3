//! The tree of a source: what was written, and where.

use std::time::Duration;

use super::text::Span;
use super::token::Unescaped;
use crate::plan::Comparison;

#[derive(Debug, Default)]
pub(crate) struct File {
    pub items: Vec<Item>,
    /// Names of types and queries that are there and could not be parsed.
    pub lost: Vec<String>,
    /// Whether an import was lost, so that not all names of this file are known.
    pub blind: bool,
}

#[derive(Debug)]
pub(crate) enum Item {
    Import(Import),
    Type(TypeItem),
    Query(Box<Query>),
}

impl Item {
    pub fn span(&self) -> Span {
        match self {
            Item::Import(import) => import.span,
            Item::Type(item) => item.span,
            Item::Query(query) => query.span,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Import {
    pub path: Text,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct TypeItem {
    pub name: Name,
    pub ty: TypeExpr,
    /// Whether it was written with `=`.
    pub equals: bool,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Query {
    pub name: Name,
    pub inputs: Vec<Input>,
    pub inputs_span: Option<Span>,
    pub budget: Option<Arguments>,
    pub body: PlanBlock,
    pub whole: ParseCompleteness,
    pub span: Span,
}

/// How much of a query could be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParseCompleteness {
    Yes,
    /// Something inside its block is missing.
    Block,
    /// Something of its inputs is missing, perhaps more.
    Inputs,
}

#[derive(Debug)]
pub(crate) struct Input {
    pub name: Name,
    pub ty: TypeExpr,
    pub default: Option<Expr>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct PlanBlock {
    pub steps: Vec<Step>,
    pub returned: Option<Return>,
    /// What else may be there.
    pub lost: UnparsedNames,
    /// Whether a step or the `return` could not be parsed, so that its value is unknown.
    pub broken: bool,
    /// From brace to brace.
    pub span: Span,
}

/// Names in stretches of a block that could not be parsed; each of them can be that of a step.
#[derive(Debug, Default)]
pub(crate) struct UnparsedNames {
    pub names: Vec<String>,
    /// Whether a step has lost its name, so that it can be any.
    pub any: bool,
}

#[derive(Debug)]
pub(crate) struct Return {
    pub value: Expr,
    /// Whether a problem inside it was reported.
    pub broken: bool,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub name: Name,
    pub kind: Name,
    pub arguments: Option<Arguments>,
    pub ty: Option<TypeExpr>,
    pub body: Option<Body>,
    pub otherwise: Option<PlanBlock>,
    /// Whether a problem inside it, blocks excluded, was reported. Then only the complete parts are present.
    pub broken: bool,
    pub span: Span,
}

impl Step {
    /// Forgets what was parsed, because it was not all of it.
    pub fn lose(&mut self) {
        self.broken = true;
        (self.arguments, self.body, self.otherwise) = (None, None, None);
    }
}

#[derive(Debug)]
pub(crate) enum Body {
    Object(Object),
    Block(PlanBlock),
}

#[derive(Debug)]
pub(crate) struct Arguments {
    pub items: Vec<Argument>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Argument {
    pub name: Option<Name>,
    /// `item` of `item in list`.
    pub item: Option<Name>,
    pub value: Expr,
    pub span: Span,
}

/// A name and its position.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Object {
    pub entries: Vec<Entry>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// The text without quotes; its span holds the quotes, where there are some.
    pub key: Name,
    pub value: Expr,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Text {
    pub pieces: Vec<TextPiece>,
    pub long: bool,
    pub span: Span,
}

impl Text {
    /// The text, when it has no holes.
    pub fn constant(&self) -> Option<Unescaped> {
        match self.pieces.as_slice() {
            [] => Some(Unescaped { text: String::new(), origins: vec![(0, self.span.start)] }),
            [TextPiece::Text(cooked)] => Some(cooked.clone()),
            _ => None,
        }
    }

    /// Where its first hole is.
    pub fn hole(&self) -> Option<Span> {
        self.pieces.iter().find_map(|piece| match piece {
            TextPiece::Hole(_, span) => Some(*span),
            TextPiece::Text(_) => None,
        })
    }
}

#[derive(Debug)]
pub(crate) enum TextPiece {
    Text(Unescaped),
    Hole(Expr, Span),
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub form: ExprForm,
    pub span: Span,
    /// How many expressions are inside of each other, this one included.
    pub depth: usize,
}

#[derive(Debug)]
pub(crate) enum ExprForm {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Duration(Duration),
    Text(Text),
    Input(String),
    Name(String),
    Field(Box<Expr>, Name),
    Element(Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Object(Object),
    Or(Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    All(Vec<Expr>),
    Some(Vec<Expr>),
    Not(Box<Expr>),
    Call(Name, Vec<Expr>),
    /// Something whose problem was reported.
    Wrong,
}

impl Expr {
    /// Everything directly inside of it.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.form {
            ExprForm::Null
            | ExprForm::Bool(_)
            | ExprForm::Int(_)
            | ExprForm::Float(_)
            | ExprForm::Duration(_)
            | ExprForm::Input(_)
            | ExprForm::Name(_)
            | ExprForm::Wrong => Vec::new(),
            ExprForm::Text(text) => text
                .pieces
                .iter()
                .filter_map(|piece| match piece {
                    TextPiece::Hole(expr, _) => Some(expr),
                    TextPiece::Text(_) => None,
                })
                .collect(),
            ExprForm::Field(of, _) | ExprForm::Not(of) => vec![of],
            ExprForm::Element(one, other) | ExprForm::Or(one, other) | ExprForm::Compare(_, one, other) => {
                vec![one, other]
            }
            ExprForm::List(items)
            | ExprForm::All(items)
            | ExprForm::Some(items)
            | ExprForm::Call(_, items) => items.iter().collect(),
            ExprForm::Object(object) => object.entries.iter().map(|entry| &entry.value).collect(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct TypeExpr {
    pub form: TypeForm,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum TypeForm {
    Name(String),
    Choice(String),
    List(Box<TypeExpr>),
    Record(Vec<TypeField>),
    OneOf(Vec<TypeExpr>),
    Optional(Box<TypeExpr>),
}

#[derive(Debug)]
pub(crate) struct TypeField {
    pub name: Name,
    /// `name?: T`
    pub optional: bool,
    pub ty: TypeExpr,
    pub span: Span,
}
