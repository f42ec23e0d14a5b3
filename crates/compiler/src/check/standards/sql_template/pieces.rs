//! The text of a statement as the source puts it together.

use std::collections::HashSet;

use oxc::ast::AstKind;
use oxc::ast::ast::{
    Argument, ArrayExpressionElement, BinaryOperator, CallExpression, Expression, IdentifierReference,
};
use oxc::semantic::SymbolId;
use oxc::span::{GetSpan, Span};

use super::super::super::tree::{Tree, peel, static_call};
use super::constants::{
    callback_list, doubles_quotes, is_constant_list, is_constant_table, looped_list, own_result,
};

/// Statements are short; what goes beyond this is not looked at.
const MAX_PIECES: usize = 512;
/// Names that are made of names double with every step, so the steps of a statement are bounded, not only their depth.
const MAX_STEPS: usize = 4096;
pub(super) const MAX_DEPTH: usize = 24;

/// One part of a statement.
pub(super) enum Piece {
    /// Text that the source decides.
    Text(String),
    /// A value that the source does not decide.
    Hole(Span),
    /// What follows was put together elsewhere.
    Break,
}

/// The parts of a statement, in the order of the source.
pub(super) struct Pieces {
    list: Vec<Piece>,
    seen: HashSet<SymbolId>,
    steps_left: usize,
}

/// Expressions that the source compares with a list or a pattern: `TABLES.includes(args.table)`.
pub(super) struct Guards<'a> {
    texts: HashSet<&'a str>,
}

impl<'a> Guards<'a> {
    pub(super) fn of(tree: &Tree<'_, 'a>) -> Self {
        let source = tree.program().source_text;
        let text = |span: Span| source.get(span.start as usize..span.end as usize);
        let mut texts = HashSet::new();
        for (_, kind) in tree.each() {
            match kind {
                AstKind::CallExpression(call) => {
                    let name = match peel(&call.callee) {
                        AstKind::StaticMemberExpression(member) => member.property.name.as_str(),
                        _ => continue,
                    };
                    if matches!(name, "includes" | "has" | "hasOwn" | "test" | "indexOf" | "hasOwnProperty") {
                        texts.extend(call.arguments.iter().filter_map(|argument| text(argument.span())));
                    }
                }
                AstKind::BinaryExpression(binary) if binary.operator == BinaryOperator::In => {
                    texts.extend(text(binary.left.span()));
                }
                _ => {}
            }
        }
        Self { texts }
    }

    fn has(&self, tree: &Tree<'_, 'a>, span: Span) -> bool {
        let text = tree.program().source_text.get(span.start as usize..span.end as usize);
        text.is_some_and(|text| self.texts.contains(text))
    }
}

impl Pieces {
    /// Reads a statement, at the cost of steps that all statements of a tool share.
    pub(super) fn of<'a>(
        tree: &Tree<'_, 'a>,
        guards: &Guards<'a>,
        statement: &'a Expression<'a>,
        steps_left: &mut usize,
    ) -> Self {
        let granted = MAX_STEPS.min(*steps_left);
        let mut pieces = Self { list: Vec::new(), seen: HashSet::new(), steps_left: granted };
        pieces.add(tree, guards, statement, MAX_DEPTH);
        *steps_left -= granted - pieces.steps_left;
        pieces
    }

    /// Takes one step, unless they are used up.
    fn step(&mut self, depth: usize) -> Option<usize> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        depth.checked_sub(1)
    }

    pub(super) fn list(&self) -> &[Piece] {
        &self.list
    }

    /// A statement that comes in as a whole is the business of the caller.
    pub(super) fn has_sql(&self) -> bool {
        self.list
            .iter()
            .any(|piece| matches!(piece, Piece::Text(text) if text.chars().any(char::is_alphabetic)))
    }

    fn push(&mut self, piece: Piece) {
        if self.list.len() < MAX_PIECES {
            self.list.push(piece);
        }
    }

    fn text(&mut self, text: &str) {
        self.push(Piece::Text(text.to_owned()));
    }

    fn add<'a>(&mut self, tree: &Tree<'_, 'a>, guards: &Guards<'a>, value: &'a Expression<'a>, depth: usize) {
        let Some(depth) = self.step(depth) else { return };
        if guards.has(tree, value.span()) {
            return self.text("name");
        }
        match peel(value) {
            AstKind::StringLiteral(literal) => self.text(&literal.value),
            // A number cannot end a statement.
            AstKind::NumericLiteral(_)
            | AstKind::BooleanLiteral(_)
            | AstKind::UnaryExpression(_)
            | AstKind::UpdateExpression(_)
            | AstKind::NullLiteral(_) => self.text("0"),
            AstKind::TemplateLiteral(template) => {
                let mut expressions = template.expressions.iter();
                for quasi in &template.quasis {
                    self.text(quasi.value.cooked.as_ref().unwrap_or(&quasi.value.raw));
                    if let Some(expression) = expressions.next() {
                        self.add(tree, guards, expression, depth);
                    }
                }
            }
            AstKind::BinaryExpression(binary) if binary.operator == BinaryOperator::Addition => {
                self.add(tree, guards, &binary.left, depth);
                self.add(tree, guards, &binary.right, depth);
            }
            AstKind::BinaryExpression(_) => self.text("0"),
            AstKind::ConditionalExpression(condition) => {
                self.add(tree, guards, &condition.consequent, depth);
                self.add(tree, guards, &condition.alternate, depth);
            }
            AstKind::LogicalExpression(logical) => {
                self.add(tree, guards, &logical.left, depth);
                self.add(tree, guards, &logical.right, depth);
            }
            AstKind::AwaitExpression(waiting) => self.add(tree, guards, &waiting.argument, depth),
            AstKind::IdentifierReference(reference) => self.add_name(tree, guards, reference, depth),
            AstKind::StaticMemberExpression(member) => {
                if is_constant_table(tree, &member.object) || member.property.name == "length" {
                    self.text("name");
                } else {
                    self.push(Piece::Hole(value.span()));
                }
            }
            AstKind::ComputedMemberExpression(member) => {
                if is_constant_table(tree, &member.object) {
                    self.text("name");
                } else {
                    self.push(Piece::Hole(value.span()));
                }
            }
            AstKind::CallExpression(call) => self.add_call(tree, guards, value, call, depth),
            // A function of this file or of a package may know what it does.
            _ => self.text("name"),
        }
    }

    /// A name has its constant value, or everything that is added to it.
    fn add_name<'a>(
        &mut self,
        tree: &Tree<'_, 'a>,
        guards: &Guards<'a>,
        reference: &'a IdentifierReference<'a>,
        depth: usize,
    ) {
        let Some(symbol) = tree.symbol(reference) else {
            return self.push(Piece::Hole(reference.span));
        };
        let declaration = tree.scoping().symbol_declaration(symbol);
        match tree.kind(declaration) {
            AstKind::VariableDeclarator(declarator) if declarator.id.is_binding_identifier() => {
                if let Some(list) = looped_list(tree, declaration) {
                    let piece = if is_constant_list(tree, list) {
                        Piece::Text("name".to_owned())
                    } else {
                        Piece::Hole(reference.span)
                    };
                    return self.push(piece);
                }
                if !self.seen.insert(symbol) {
                    return self.text("name");
                }
                if let Some(init) = &declarator.init {
                    self.add(tree, guards, init, depth);
                }
                self.add_assigned(tree, guards, symbol, depth);
                self.seen.remove(&symbol);
            }
            AstKind::FormalParameter(_) => {
                let is_constant =
                    callback_list(tree, declaration).is_some_and(|list| is_constant_list(tree, list));
                let piece =
                    if is_constant { Piece::Text("name".to_owned()) } else { Piece::Hole(reference.span) };
                self.push(piece);
            }
            kind if kind.is_declaration()
                || matches!(kind, AstKind::ImportSpecifier(_) | AstKind::ImportDefaultSpecifier(_)) =>
            {
                if matches!(kind, AstKind::VariableDeclarator(_)) {
                    self.push(Piece::Hole(reference.span));
                } else {
                    self.text("name");
                }
            }
            _ => self.push(Piece::Hole(reference.span)),
        }
    }

    /// `sql += …` and `sql = …`, each read on its own.
    fn add_assigned<'a>(&mut self, tree: &Tree<'_, 'a>, guards: &Guards<'a>, symbol: SymbolId, depth: usize) {
        for reference in tree.scoping().get_resolved_references(symbol).take(MAX_PIECES) {
            if let Some((_, AstKind::AssignmentExpression(assignment))) = tree.parent(reference.node_id())
                && reference.is_write()
            {
                self.push(Piece::Break);
                self.add(tree, guards, &assignment.right, depth);
            }
        }
    }

    fn add_call<'a>(
        &mut self,
        tree: &Tree<'_, 'a>,
        guards: &Guards<'a>,
        value: &'a Expression<'a>,
        call: &'a CallExpression<'a>,
        depth: usize,
    ) {
        let first = call.arguments.first().and_then(Argument::as_expression);
        let AstKind::StaticMemberExpression(member) = peel(&call.callee) else {
            // `String(x)` is still `x`; `Number(x)` and functions of packages give something else.
            return match (tree.global_expression(&call.callee), first, own_result(tree, call)) {
                (Some("String"), Some(first), _) => self.add(tree, guards, first, depth),
                (None, _, Some(result)) => self.add(tree, guards, result, depth),
                _ => self.text("0"),
            };
        };
        if tree.global_expression(&member.object).is_some() {
            return match (static_call(tree, &call.callee), first) {
                (Some(("JSON", "stringify")), Some(_)) => self.push(Piece::Hole(value.span())),
                _ => self.text("0"),
            };
        }
        match member.property.name.as_str() {
            "join" => self.add_list(tree, guards, &member.object, depth),
            // `name.replaceAll('"', '""')` is how a name is quoted.
            "replace" | "replaceAll" if doubles_quotes(call) => self.text("name"),
            "repeat" | "trim" | "toString" | "toUpperCase" | "toLowerCase" | "slice" | "substring"
            | "replace" | "replaceAll" | "toISOString" | "trimEnd" | "trimStart" | "padStart" | "padEnd" => {
                self.add(tree, guards, &member.object, depth);
            }
            "concat" => {
                self.add(tree, guards, &member.object, depth);
                for argument in call.arguments.iter().filter_map(Argument::as_expression) {
                    self.add(tree, guards, argument, depth);
                }
            }
            _ => self.text("0"),
        }
    }

    /// The items of a list that is joined, each read on its own.
    fn add_list<'a>(
        &mut self,
        tree: &Tree<'_, 'a>,
        guards: &Guards<'a>,
        list: &'a Expression<'a>,
        depth: usize,
    ) {
        let Some(depth) = self.step(depth) else { return };
        match peel(list) {
            AstKind::ArrayExpression(literal) => {
                for element in &literal.elements {
                    match element {
                        ArrayExpressionElement::SpreadElement(spread) => {
                            self.add_list(tree, guards, &spread.argument, depth);
                        }
                        other => {
                            if let Some(item) = other.as_expression() {
                                self.item(tree, guards, item, depth);
                            }
                        }
                    }
                }
            }
            AstKind::CallExpression(call) => self.add_made_list(tree, guards, call, depth),
            AstKind::IdentifierReference(reference) => {
                let declarator =
                    tree.symbol(reference).and_then(|symbol| Some((symbol, tree.declarator(symbol)?)));
                let Some((symbol, declarator)) = declarator else {
                    return self.push(Piece::Hole(list.span()));
                };
                if let Some(init) = declarator.init.as_ref().filter(|_| self.seen.insert(symbol)) {
                    self.add_list(tree, guards, init, depth);
                    self.add_pushed(tree, guards, symbol, depth);
                    self.seen.remove(&symbol);
                }
            }
            AstKind::ConditionalExpression(condition) => {
                self.add_list(tree, guards, &condition.consequent, depth);
                self.add_list(tree, guards, &condition.alternate, depth);
            }
            AstKind::StaticMemberExpression(_) | AstKind::ComputedMemberExpression(_) => {
                self.push(Piece::Hole(list.span()));
            }
            _ => {}
        }
    }

    fn item<'a>(&mut self, tree: &Tree<'_, 'a>, guards: &Guards<'a>, item: &'a Expression<'a>, depth: usize) {
        self.push(Piece::Break);
        self.add(tree, guards, item, depth);
    }

    /// `list.map((item) => …)`, `Array(n).fill('?')`, `list.filter(…)`.
    fn add_made_list<'a>(
        &mut self,
        tree: &Tree<'_, 'a>,
        guards: &Guards<'a>,
        call: &'a CallExpression<'a>,
        depth: usize,
    ) {
        let AstKind::StaticMemberExpression(member) = peel(&call.callee) else { return };
        let callback = |position: usize| call.arguments.get(position).and_then(Argument::as_expression);
        let made = match (member.property.name.as_str(), tree.global_expression(&member.object)) {
            ("map" | "flatMap", _) => callback(0),
            ("from", Some("Array")) => callback(1),
            // The names of an object's fields come from the caller, as their values do.
            ("keys" | "values" | "entries", Some("Object")) => {
                return match callback(0) {
                    Some(object) if !is_constant_table(tree, object) => self.push(Piece::Hole(call.span)),
                    _ => {}
                };
            }
            ("fill", _) => {
                if let Some(item) = callback(0) {
                    self.item(tree, guards, item, depth);
                }
                return;
            }
            ("filter" | "slice" | "toSorted" | "sort" | "reverse" | "toReversed" | "concat", _) => {
                return self.add_list(tree, guards, &member.object, depth);
            }
            _ => return,
        };
        if let Some(AstKind::ArrowFunctionExpression(arrow)) = made.map(peel)
            && let Some(item) = arrow.get_expression()
        {
            self.item(tree, guards, item, depth);
        }
    }

    /// `conditions.push('name = ?')`.
    fn add_pushed<'a>(&mut self, tree: &Tree<'_, 'a>, guards: &Guards<'a>, symbol: SymbolId, depth: usize) {
        for reference in tree.scoping().get_resolved_references(symbol).take(MAX_PIECES) {
            let Some((member_node, AstKind::StaticMemberExpression(member))) =
                tree.parent(reference.node_id())
            else {
                continue;
            };
            let Some((_, AstKind::CallExpression(call))) = tree.parent(member_node) else { continue };
            if matches!(member.property.name.as_str(), "push" | "unshift") {
                for argument in call.arguments.iter().filter_map(Argument::as_expression) {
                    self.item(tree, guards, argument, depth);
                }
            }
        }
    }
}
