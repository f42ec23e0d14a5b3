//! The names that an expression can use, and where in the SQL their values are.

use open_cypher::Span;

use crate::cypher::types::Type;
use crate::cypher::value::kind;

use super::visible::PropertyRow;

/// What a variable is known to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Node,
    Relationship,
    Value(Type),
}

/// A name and its place. `value` is a row number for nodes and relationships, whose id and properties are in columns
/// beside it.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub name: String,
    pub kind: Kind,
    pub value: String,
    pub id: String,
    /// Of a node or a relationship.
    pub props: Option<PropertyRow>,
    /// Labels or types of which it has one, where the pattern says so.
    pub labels: Vec<String>,
    /// Whether it belongs to a query around this one, and so needs no column in it.
    pub outer: bool,
}

impl Variable {
    pub fn value(name: &str, kind: Type, sql: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            kind: Kind::Value(kind),
            value: sql.into(),
            id: String::new(),
            props: None,
            labels: Vec::new(),
            outer: false,
        }
    }

    /// Its static type.
    pub fn type_of(&self) -> Type {
        match &self.kind {
            Kind::Node => Type::Node,
            Kind::Relationship => Type::Relationship,
            Kind::Value(known) => known.clone(),
        }
    }

    /// The same as a node or a relationship, where it is only known as a value that may be one.
    pub fn into_kind(self, wanted: &Kind) -> Self {
        let number = match wanted {
            Kind::Node => kind::NODE,
            Kind::Relationship => kind::RELATIONSHIP,
            Kind::Value(_) => return self,
        };
        if self.is_entity() {
            return self;
        }
        let id = format!("cy_id({}, {number})", self.value);
        let value = format!("cy_row({}, {number})", self.value);
        Self { kind: wanted.clone(), props: row(wanted, &value), value, id, ..self }
    }

    fn is_entity(&self) -> bool {
        !matches!(self.kind, Kind::Value(_))
    }

    /// What a SELECT says to hand it on under the name of a column.
    pub fn columns(&self, column: &str) -> Vec<String> {
        let mut columns = vec![format!("{} AS {column}", self.value)];
        if self.is_entity() {
            columns.push(format!("{} AS {column}i", self.id));
        }
        columns
    }

    /// As [`Self::columns`], for a row that has no value for it.
    pub fn nulls(&self) -> Vec<String> {
        vec!["NULL".to_owned(); if self.is_entity() { 2 } else { 1 }]
    }

    /// The variable as those see it who select from `table`.
    pub fn moved(&self, table: &str, column: &str) -> Self {
        let value = format!("{table}.{column}");
        let props = row(&self.kind, &value);
        let id = if self.is_entity() { format!("{table}.{column}i") } else { String::new() };
        let (name, kind, labels) = (self.name.clone(), self.kind.clone(), self.labels.clone());
        Self { name, kind, value, id, props, labels, outer: false }
    }

    /// What makes two of its values one, for GROUP BY.
    pub fn group(&self) -> String {
        match self.kind {
            Kind::Value(Type::Int) => self.value.clone(),
            Kind::Value(_) => format!("cy_key({})", self.value),
            _ => self.value.clone(),
        }
    }
}

/// The row of a node or a relationship, by its number.
fn row(kind: &Kind, number: &str) -> Option<PropertyRow> {
    match kind {
        Kind::Node => Some(PropertyRow::Node(number.to_owned())),
        Kind::Relationship => Some(PropertyRow::Relationship(number.to_owned())),
        Kind::Value(_) => None,
    }
}

/// Names that begin so are the compiler's own; no query can write them.
pub(super) const HIDDEN: char = '\u{1}';

#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub variables: Vec<Variable>,
    /// Expressions that were computed already: aggregates, by their place.
    pub spans: Vec<(Span, Variable)>,
    /// The same, by how they are spelled: what ORDER BY may say again.
    pub spellings: Vec<(String, Variable)>,
    /// Whether a pattern may mean "there is one".
    pub predicate: bool,
    /// Whether this is the beginning of a query inside an expression.
    pub inside: bool,
    /// Whether that expression is EXISTS.
    pub exists: bool,
    /// Whether this is the beginning of a subquery that takes the variables of its first WITH, and no others.
    pub imports: bool,
    /// Variables of a subquery that it has whatever its WITH say.
    pub lasting: Vec<Variable>,
}

impl Scope {
    pub fn find(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().rev().find(|variable| variable.name == name)
    }

    /// The names that a query can write.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| variable.name.as_str()).filter(|name| !name.starts_with(HIDDEN))
    }

    /// The same with one more, which hides what had its name.
    pub fn with(&self, variable: Variable) -> Self {
        let mut scope = self.clone();
        scope.set(variable);
        scope
    }

    pub fn set(&mut self, variable: Variable) {
        self.variables.retain(|known| known.name != variable.name);
        self.variables.push(variable);
    }

    /// For a query inside this one: everything is outside of it.
    pub fn as_outer(&self) -> Self {
        let mut scope = self.clone();
        scope.inside = true;
        scope.exists = false;
        scope.imports = false;
        scope.lasting.clear();
        for variable in &mut scope.variables {
            variable.outer = true;
        }
        scope
    }

    pub fn predicates(&self, allowed: bool) -> Self {
        let mut scope = self.clone();
        scope.predicate = allowed;
        scope
    }
}

/// SQLite takes tables over tables for one join, and joins 64. One pattern has up to 49; these are what may precede it.
const MAX_JOINED: usize = 12;

/// Whether a table is computed as a whole before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Passing,
    Kept,
}

/// The query up to some clause: its tables, the last of which has the rows, and the names of their columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Chain {
    pub tables: Vec<String>,
    pub from: Option<String>,
    /// How many tables were joined since one was computed as a whole.
    pub joined: usize,
    pub scope: Scope,
}

impl Chain {
    /// The last table as the beginning of a FROM.
    pub fn sources(&self) -> Vec<String> {
        self.from.iter().cloned().collect()
    }

    /// Counts tables that are joined, and says whether the next one has to be computed as a whole.
    pub fn join(&mut self, tables: usize) -> Stage {
        self.joined += tables;
        if self.joined <= MAX_JOINED {
            return Stage::Passing;
        }
        self.joined = 0;
        Stage::Kept
    }

    /// Puts the tables before a SELECT.
    pub fn close(&self, select: &str) -> String {
        if self.tables.is_empty() {
            return select.to_owned();
        }
        format!("WITH RECURSIVE {} {select}", self.tables.join(", "))
    }
}

/// The FROM and WHERE of a SELECT.
pub(super) fn from_where(sources: &[String], conditions: &[String]) -> String {
    let mut sql = String::new();
    if !sources.is_empty() {
        sql.push_str(" FROM ");
        sql.push_str(&sources.join(" CROSS JOIN "));
    }
    if !conditions.is_empty() {
        sql.push_str(" WHERE ");
        sql.push_str(
            &conditions.iter().map(|condition| format!("({condition})")).collect::<Vec<_>>().join(" AND "),
        );
    }
    sql
}
