//! A pattern as a graph: nodes, the links between them, and the paths that have a name.

use open_cypher::Span;
use open_cypher::ast::{
    self, Expr, ExprKind, LabelExpression, LabelExpressionKind, MapEntry, Name, NodePattern, PathFactorKind,
    QuantifierKind, RelationshipDirection, RelationshipPattern,
};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;

use super::scope::{HIDDEN, Kind, Scope, Variable};
use super::vocabulary::{Sort, said};
use super::{Compiler, aggregates};

/// The most relationships of one pattern: SQLite joins 64 tables, and each relationship needs two.
const MAX_LINKS: usize = 24;

pub(super) struct Node<'a> {
    /// Its name, or one that only the compiler uses.
    pub key: String,
    pub bound: Option<Variable>,
    pub labels: Vec<&'a LabelExpression>,
    pub properties: Vec<&'a MapEntry>,
    pub wheres: Vec<&'a Expr>,
}

impl Node<'_> {
    /// Labels of which it has one: the pattern's, or those that it was bound with.
    pub fn said(&self) -> Vec<String> {
        let labels: Vec<String> = self.labels.iter().filter_map(|labels| said(labels)).flatten().collect();
        match &self.bound {
            Some(bound) if labels.is_empty() => bound.labels.clone(),
            _ => labels,
        }
    }
}

impl Link<'_> {
    /// Types of which it has one.
    pub fn said(&self) -> Vec<String> {
        match (&self.types, &self.bound) {
            (Some(types), _) => types.clone(),
            (None, Some(bound)) => bound.labels.clone(),
            (None, None) => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Right,
    Left,
    Either,
}

#[derive(Clone, Copy)]
pub(super) struct Length {
    pub least: u32,
    pub most: Option<u32>,
}

/// Which of the paths between two nodes are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortest {
    One,
    All,
}

pub(super) struct Link<'a> {
    pub span: Span,
    pub key: String,
    pub bound: Option<Variable>,
    /// The types that it may have; any when there is nothing.
    pub types: Option<Vec<String>>,
    pub direction: Direction,
    pub left: usize,
    pub right: usize,
    pub length: Option<Length>,
    /// Of a link of variable length: whether only the shortest paths count.
    pub shortest: Option<Shortest>,
    pub properties: Vec<&'a MapEntry>,
    pub wheres: Vec<&'a Expr>,
}

pub(super) struct Path {
    pub name: String,
    pub first: usize,
    pub links: Vec<usize>,
}

#[derive(Default)]
pub(super) struct Graph<'a> {
    pub nodes: Vec<Node<'a>>,
    pub links: Vec<Link<'a>>,
    pub paths: Vec<Path>,
}

/// Whether a pattern may bind new names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    New,
    /// A pattern that is a condition names only what there is.
    Known,
}

impl Graph<'_> {
    /// Whether one of its elements has this name.
    pub fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node.key == name)
            || self.links.iter().any(|link| link.key == name)
            || self.paths.iter().any(|path| path.name == name)
    }
}

impl Compiler<'_> {
    /// Reads a pattern. Refuses names that are something else already.
    pub(super) fn graph<'a>(
        &mut self,
        pattern: &'a ast::Pattern,
        scope: &Scope,
        names: Names,
    ) -> CypherResult<Graph<'a>> {
        let mut graph = Graph::default();
        for part in &pattern.parts {
            if let Some(selector) = &part.kind.selector {
                return Err(CypherError::unsupported(selector.span, "a path selector such as ANY SHORTEST"));
            }
            let (first, links) = self.part(&mut graph, &part.kind.path, scope, names)?;
            if let Some(binding) = &part.kind.binding {
                let name = &binding.kind.text;
                if scope.find(name).is_some() || graph.has(name) {
                    return Err(taken("VariableAlreadyBound", binding));
                }
                graph.paths.push(Path { name: name.clone(), first, links });
            }
        }
        if graph.links.len() > MAX_LINKS {
            let message =
                format!("the pattern has {} relationships, {MAX_LINKS} are allowed", graph.links.len());
            return Err(CypherError::too_much(message, "split it into several MATCH with WITH between them"));
        }
        self.check_ends(&graph)?;
        Ok(graph)
    }

    fn part<'a>(
        &mut self,
        graph: &mut Graph<'a>,
        path: &'a ast::PathPattern,
        scope: &Scope,
        names: Names,
    ) -> CypherResult<(usize, Vec<usize>)> {
        let mut first = None;
        let mut last: Option<usize> = None;
        let mut open: Option<(&'a RelationshipPattern, Span)> = None;
        let mut links = Vec::new();
        for factor in &path.kind.factors {
            match &factor.kind {
                PathFactorKind::Node(node) => {
                    let at = self.node(graph, node, factor.span, scope, names)?;
                    if let (Some(left), Some((relationship, span))) = (last, open.take()) {
                        links.push(self.link(graph, relationship, span, left, at, scope, names)?);
                    }
                    first.get_or_insert(at);
                    last = Some(at);
                }
                PathFactorKind::Relationship(relationship) => open = Some((relationship, factor.span)),
                PathFactorKind::LegacyShortest { all, pattern } => {
                    let found = self.part(graph, pattern, scope, names)?;
                    shortest(graph, &found.1, if *all { Shortest::All } else { Shortest::One }, factor.span)?;
                    return Ok(found);
                }
                PathFactorKind::QuantifiedNode { .. }
                | PathFactorKind::Parenthesized { .. }
                | PathFactorKind::Subpath { .. } => {
                    return Err(CypherError::unsupported(
                        factor.span,
                        "a quantified or parenthesised path pattern",
                    ));
                }
                _ => return Err(CypherError::unsupported(factor.span, "this part of a pattern")),
            }
        }
        match first {
            Some(first) => Ok((first, links)),
            None => Err(CypherError::new("UnexpectedSyntax", path.span, "a pattern needs a node")),
        }
    }

    fn hidden(&mut self) -> String {
        self.name(&HIDDEN.to_string())
    }

    fn node<'a>(
        &mut self,
        graph: &mut Graph<'a>,
        pattern: &'a NodePattern,
        span: Span,
        scope: &Scope,
        names: Names,
    ) -> CypherResult<usize> {
        let mut bound = None;
        let key = match &pattern.variable {
            None => self.hidden(),
            Some(name) => {
                let text = &name.kind.text;
                if graph.links.iter().any(|link| &link.key == text) {
                    return Err(taken("VariableTypeConflict", name));
                }
                if graph.paths.iter().any(|path| &path.name == text) {
                    return Err(taken("VariableTypeConflict", name));
                }
                bound = scope.find(text).cloned();
                match &bound {
                    Some(variable) if !may_be(variable, &Type::Node) => {
                        return Err(conflict(name, variable, "a node"));
                    }
                    None if names == Names::Known => return Err(self.undefined(text, name.span, scope)),
                    _ => {}
                }
                text.clone()
            }
        };
        let at = match graph.nodes.iter().position(|node| node.key == key) {
            Some(at) => at,
            None => {
                graph.nodes.push(Node { key, bound, labels: vec![], properties: vec![], wheres: vec![] });
                graph.nodes.len() - 1
            }
        };
        if let Some(node) = graph.nodes.get_mut(at) {
            node.labels.extend(&pattern.labels);
            node.properties.extend(entries(pattern.properties.as_deref(), span)?);
            node.wheres.extend(pattern.where_clause.as_deref());
            if let Some(labels) = &pattern.labels {
                self.check_labels(labels, Sort::Node)?;
            } else if let Some(name) = &pattern.variable {
                self.check_colon(name, Sort::Node)?;
            }
            self.check_entries(&node.properties, &node.said(), Sort::Node)?;
        }
        Ok(at)
    }

    #[expect(clippy::too_many_arguments, reason = "a relationship is known by all of them")]
    fn link<'a>(
        &mut self,
        graph: &mut Graph<'a>,
        pattern: &'a RelationshipPattern,
        span: Span,
        left: usize,
        right: usize,
        scope: &Scope,
        names: Names,
    ) -> CypherResult<usize> {
        if let Some(quantifier) = &pattern.graph_quantifier {
            return Err(CypherError::unsupported(quantifier.span, "a quantifier behind a relationship")
                .help("write the length inside: -[:TYPE*1..3]->"));
        }
        let length = pattern.legacy_quantifier.as_ref().map(length).transpose()?;
        let mut bound = None;
        let key = match &pattern.variable {
            None => self.hidden(),
            Some(name) => {
                if pattern.labels.is_none() {
                    self.check_colon(name, Sort::Relationship)?;
                }
                let text = &name.kind.text;
                if graph.nodes.iter().any(|node| &node.key == text) {
                    return Err(taken("VariableTypeConflict", name));
                }
                if graph.paths.iter().any(|path| &path.name == text) {
                    return Err(taken("VariableTypeConflict", name));
                }
                if graph.links.iter().any(|link| &link.key == text) {
                    return Err(taken("RelationshipUniquenessViolation", name));
                }
                bound = scope.find(text).cloned();
                let (wanted, noun) = match length {
                    None => (Type::Relationship, "a relationship"),
                    Some(_) => (Type::list(Type::Relationship), "a list of relationships"),
                };
                match &bound {
                    Some(variable) if !may_be(variable, &wanted) => {
                        return Err(conflict(name, variable, noun));
                    }
                    None if names == Names::Known => return Err(self.undefined(text, name.span, scope)),
                    _ => {}
                }
                text.clone()
            }
        };
        if let Some(types) = &pattern.labels {
            self.check_labels(types, Sort::Relationship)?;
        }
        let link = Link {
            span,
            key,
            bound,
            types: pattern.labels.as_ref().map(types).transpose()?,
            direction: match pattern.direction.kind {
                RelationshipDirection::Right => Direction::Right,
                RelationshipDirection::Left => Direction::Left,
                _ => Direction::Either,
            },
            left,
            right,
            length,
            shortest: None,
            properties: entries(pattern.properties.as_deref(), span)?,
            wheres: pattern.where_clause.as_deref().into_iter().collect(),
        };
        self.check_entries(&link.properties, &link.said(), Sort::Relationship)?;
        graph.links.push(link);
        Ok(graph.links.len() - 1)
    }
}

/// Makes a link one of which only the shortest paths count.
fn shortest(graph: &mut Graph<'_>, links: &[usize], which: Shortest, span: Span) -> CypherResult<()> {
    let refused = |message: &str| {
        CypherError::new("InvalidRelationshipPattern", span, message.to_owned())
            .help("write shortestPath((a)-[:TYPE*]->(b))")
    };
    let [at] = links else { return Err(refused("a shortest path has one relationship between two nodes")) };
    let Some(link) = graph.links.get_mut(*at) else { return Ok(()) };
    let length = link.length.unwrap_or(Length { least: 1, most: Some(1) });
    if length.least > 1 {
        return Err(refused("a shortest path has a length from 0 or from 1"));
    }
    if link.bound.is_some() {
        return Err(refused("the relationships of a shortest path cannot be bound before"));
    }
    if let Some(entry) = link.properties.iter().find(|entry| !is_constant(&entry.value)) {
        let message = "a property in a shortest path cannot depend on a row";
        return Err(CypherError::new("NonConstantExpression", entry.span, message));
    }
    if let Some(filter) = link.wheres.first() {
        return Err(CypherError::unsupported(filter.span, "WHERE inside a relationship of variable length"));
    }
    link.length = Some(length);
    link.shortest = Some(which);
    Ok(())
}

/// Whether an expression is the same for every row.
pub(super) fn is_constant(expression: &Expr) -> bool {
    aggregates::variables(expression).is_empty()
}

fn taken(kind: &'static str, name: &Name) -> Box<CypherError> {
    CypherError::new(kind, name.span, format!("`{}` is bound to something else already", name.kind.text))
        .help("take another name")
}

fn conflict(name: &Name, variable: &Variable, wanted: &str) -> Box<CypherError> {
    let message = format!("`{}` is {}, here it would be {wanted}", name.kind.text, variable.type_of().noun());
    CypherError::new("VariableTypeConflict", name.span, message)
}

/// Whether a variable may hold what a pattern needs.
fn may_be(variable: &Variable, wanted: &Type) -> bool {
    match (&variable.kind, wanted) {
        (Kind::Node, Type::Node) | (Kind::Relationship, Type::Relationship) => true,
        (Kind::Value(Type::Any | Type::Null), _) => true,
        (Kind::Value(Type::List(item)), Type::List(_)) => {
            matches!(**item, Type::Relationship | Type::Any | Type::Null)
        }
        (Kind::Value(known), wanted) => known == wanted,
        _ => false,
    }
}

/// The entries of a property map in a pattern.
fn entries(properties: Option<&Expr>, span: Span) -> CypherResult<Vec<&MapEntry>> {
    match properties.map(|properties| (&properties.kind, properties.span)) {
        None => Ok(Vec::new()),
        Some((ExprKind::Map(entries), _)) => Ok(entries.iter().collect()),
        Some((ExprKind::Parameter(_), at)) => Err(CypherError::new(
            "InvalidParameterUse",
            at,
            "a parameter cannot be the properties of a pattern",
        )
        .help("name the properties: {path: $path}")),
        Some(_) => Err(CypherError::new(
            "UnexpectedSyntax",
            span,
            "the properties of a pattern are written as a map",
        )),
    }
}

/// The types of a relationship: one or several with `|` between.
fn types(labels: &LabelExpression) -> CypherResult<Vec<String>> {
    match &labels.kind {
        LabelExpressionKind::Name(name) => Ok(vec![name.kind.text.clone()]),
        LabelExpressionKind::Parenthesized(inner) => types(inner),
        LabelExpressionKind::Or(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(types(part)?);
            }
            Ok(all)
        }
        _ => Err(CypherError::unsupported(labels.span, "a type other than names with `|` between them")),
    }
}

fn length(quantifier: &ast::Quantifier) -> CypherResult<Length> {
    let number = |text: &String| {
        text.parse::<u32>().map_err(|_| {
            CypherError::new(
                "InvalidRelationshipPattern",
                quantifier.span,
                format!("`{text}` is not a length"),
            )
        })
    };
    Ok(match &quantifier.kind {
        QuantifierKind::ZeroOrMore => Length { least: 1, most: None },
        QuantifierKind::Fixed(text) => Length { least: number(text)?, most: Some(number(text)?) },
        QuantifierKind::Range { lower, upper } => Length {
            least: lower.as_ref().map(number).transpose()?.unwrap_or(1),
            most: upper.as_ref().map(number).transpose()?,
        },
        _ => return Err(CypherError::unsupported(quantifier.span, "this quantifier")),
    })
}
