//! Where the loops of a tool are.
//!
//! The engine notes places only for what can throw, so a loop that only counts has none of its own, and a stack names what
//! was noted before it. The tables here lead from there to the loop.

use oxc::ast::ast::*;
use oxc::ast_visit::{Visit, walk};
use oxc::semantic::ScopeFlags;
use oxc::span::Span;
use serde::{Deserialize, Serialize};

use crate::places::LineTable;

/// Functions and loops of one source that are kept.
const MAX_REGIONS: usize = 2_000;

/// The functions and loops of a source, in the order in which they begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopTable(Vec<Region>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Region {
    kind: RegionKind,
    start: Point,
    end: Point,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum RegionKind {
    Function,
    Loop,
}

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Point(u32, u32);

impl Region {
    fn contains(&self, point: Point) -> bool {
        self.start <= point && point < self.end
    }
}

impl LoopTable {
    pub(super) fn new(program: &Program<'_>, table: &LineTable<'_>) -> Self {
        let mut found = Regions::default();
        found.visit_program(program);
        let point = |offset| {
            let place = table.place(offset);
            Point(place.line, place.column)
        };
        let regions = found.0.into_iter().map(|(kind, span)| Region {
            kind,
            start: point(span.start),
            end: point(span.end),
        });
        Self(regions.collect())
    }

    /// Where code runs that does not end, when the last place that the engine has noted in it is this one: the place
    /// itself in a loop or a function without loops, otherwise the loop that follows.
    #[must_use]
    pub fn busy_place(&self, line: u32, column: u32) -> (u32, u32) {
        let place = Point(line, column);
        let function = self.function_of(place);
        let mut loops = self
            .0
            .iter()
            .filter(|region| region.kind == RegionKind::Loop && self.function_of(region.start) == function);
        let is_in_loop = loops.clone().any(|region| region.contains(place));
        match loops.find(|region| region.start > place) {
            Some(region) if !is_in_loop => (region.start.0, region.start.1),
            _ => (line, column),
        }
    }

    /// The innermost function around a place.
    fn function_of(&self, place: Point) -> Option<usize> {
        let is_around = |region: &Region| region.kind == RegionKind::Function && region.contains(place);
        self.0.iter().rposition(is_around)
    }
}

#[derive(Default)]
struct Regions(Vec<(RegionKind, Span)>);

impl Regions {
    fn add(&mut self, kind: RegionKind, span: Span) {
        if self.0.len() < MAX_REGIONS {
            self.0.push((kind, span));
        }
    }
}

impl<'a> Visit<'a> for Regions {
    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.add(RegionKind::Function, function.span);
        walk::walk_function(self, function, flags);
    }

    fn visit_arrow_function_expression(&mut self, arrow: &ArrowFunctionExpression<'a>) {
        self.add(RegionKind::Function, arrow.span);
        walk::walk_arrow_function_expression(self, arrow);
    }

    fn visit_for_statement(&mut self, statement: &ForStatement<'a>) {
        self.add(RegionKind::Loop, statement.span);
        walk::walk_for_statement(self, statement);
    }

    fn visit_for_of_statement(&mut self, statement: &ForOfStatement<'a>) {
        self.add(RegionKind::Loop, statement.span);
        walk::walk_for_of_statement(self, statement);
    }

    fn visit_for_in_statement(&mut self, statement: &ForInStatement<'a>) {
        self.add(RegionKind::Loop, statement.span);
        walk::walk_for_in_statement(self, statement);
    }

    fn visit_while_statement(&mut self, statement: &WhileStatement<'a>) {
        self.add(RegionKind::Loop, statement.span);
        walk::walk_while_statement(self, statement);
    }

    fn visit_do_while_statement(&mut self, statement: &DoWhileStatement<'a>) {
        self.add(RegionKind::Loop, statement.span);
        walk::walk_do_while_statement(self, statement);
    }
}
