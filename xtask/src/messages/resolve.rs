//! From an expression to the texts it can be: literals, templates of `format!`, variables and constants, all branches.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit, LitStr, Token};

/// Methods that give the text they are called on.
const SAME_TEXT: [&str; 7] = ["to_owned", "to_string", "into", "clone", "as_str", "into_owned", "as_ref"];

/// Methods that colour their last argument.
const PAINTERS: [&str; 2] = ["paint_out", "paint_err"];

/// Functions that give the text they are called with.
const WRAPPERS: [&str; 5] = ["Some", "from", "Borrowed", "Owned", "Text"];

/// A text in a source.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: String,
    pub(super) line: usize,
}

/// What names mean at a place.
#[derive(Default)]
pub(super) struct Scopes {
    constants: HashMap<String, Vec<Text>>,
    /// The variables of each block around; a function begins with none.
    blocks: Vec<HashMap<String, Vec<Text>>>,
}

impl Scopes {
    pub(super) fn with_constants(file: &syn::File) -> Self {
        let mut scopes = Self::default();
        for item in &file.items {
            if let syn::Item::Const(constant) = item {
                let texts = scopes.texts(&constant.expr);
                scopes.constants.insert(constant.ident.to_string(), texts);
            }
        }
        scopes
    }

    /// Forgets the variables of the function around, and gives them back to be restored.
    pub(super) fn enter_function(&mut self) -> Vec<HashMap<String, Vec<Text>>> {
        std::mem::take(&mut self.blocks)
    }

    pub(super) fn leave_function(&mut self, outer: Vec<HashMap<String, Vec<Text>>>) {
        self.blocks = outer;
    }

    pub(super) fn enter_block(&mut self) {
        self.blocks.push(HashMap::new());
    }

    pub(super) fn leave_block(&mut self) {
        self.blocks.pop();
    }

    /// Remembers what a `let` with a plain name is.
    pub(super) fn bind(&mut self, local: &syn::Local) {
        let pattern = match &local.pat {
            syn::Pat::Type(typed) => &*typed.pat,
            pattern => pattern,
        };
        let (syn::Pat::Ident(pattern), Some(init)) = (pattern, &local.init) else { return };
        let texts = self.texts(&init.expr);
        if let Some(block) = self.blocks.last_mut() {
            block.insert(pattern.ident.to_string(), texts);
        }
    }

    /// Every text that an expression can be; empty when it is made elsewhere.
    pub(super) fn texts(&self, expression: &Expr) -> Vec<Text> {
        match expression {
            Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => vec![text(literal)],
            Expr::Macro(call) => template(&call.mac).into_iter().collect(),
            Expr::MethodCall(call) if SAME_TEXT.iter().any(|name| call.method == name) => {
                self.texts(&call.receiver)
            }
            Expr::MethodCall(call) if PAINTERS.iter().any(|name| call.method == name) => {
                call.args.last().map(|painted| self.texts(painted)).unwrap_or_default()
            }
            Expr::Call(call) => match (&*call.func, call.args.first()) {
                (Expr::Path(function), Some(argument)) if is_wrapper(&function.path) => self.texts(argument),
                _ => Vec::new(),
            },
            Expr::Reference(reference) => self.texts(&reference.expr),
            Expr::Paren(paren) => self.texts(&paren.expr),
            Expr::Group(group) => self.texts(&group.expr),
            Expr::Block(block) => self.of_block(&block.block),
            Expr::If(branches) => {
                let mut texts = self.of_block(&branches.then_branch);
                texts.extend(branches.else_branch.iter().flat_map(|(_, otherwise)| self.texts(otherwise)));
                texts
            }
            Expr::Match(branches) => branches.arms.iter().flat_map(|arm| self.texts(&arm.body)).collect(),
            Expr::Path(path) => self.named(&path.path),
            _ => Vec::new(),
        }
    }

    /// A block is the text of its last expression. Its own variables are not followed.
    fn of_block(&self, block: &syn::Block) -> Vec<Text> {
        match block.stmts.last() {
            Some(syn::Stmt::Expr(last, None)) => self.texts(last),
            Some(syn::Stmt::Macro(last)) if last.semi_token.is_none() => {
                template(&last.mac).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn named(&self, path: &syn::Path) -> Vec<Text> {
        let Some(name) = path.segments.last().map(|segment| segment.ident.to_string()) else {
            return Vec::new();
        };
        let variable = self.blocks.iter().rev().find_map(|block| block.get(&name));
        variable.or_else(|| self.constants.get(&name)).cloned().unwrap_or_default()
    }
}

/// An expression as the source has it, in one line.
pub(super) fn source(expression: &Expr) -> String {
    let text = expression.span().source_text().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The template of `format!`, or the texts of `concat!` in a row.
fn template(call: &syn::Macro) -> Option<Text> {
    let name = call.path.segments.last()?.ident.to_string();
    match name.as_str() {
        "format" | "format_args" | "bail" | "anyhow" => first_literal(call.tokens.clone()),
        "concat" => {
            let parts = Punctuated::<LitStr, Token![,]>::parse_terminated.parse2(call.tokens.clone()).ok()?;
            let line = parts.first()?.span().start().line;
            Some(Text { text: parts.iter().map(LitStr::value).collect(), line })
        }
        _ => None,
    }
}

/// The text that a macro begins with.
pub(super) fn first_literal(tokens: TokenStream) -> Option<Text> {
    let first = tokens.into_iter().next()?;
    syn::parse2::<LitStr>(first.into()).ok().map(|literal| text(&literal))
}

fn text(literal: &LitStr) -> Text {
    Text { text: literal.value(), line: literal.span().start().line }
}

fn is_wrapper(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|segment| WRAPPERS.iter().any(|name| segment.ident == name))
}
