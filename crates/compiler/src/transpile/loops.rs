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
    /// itself in a loop or where no loop follows, otherwise the loop that follows. A function in which nothing was noted
    /// yet has the place of the words before it on its line.
    #[must_use]
    pub fn busy_place(&self, line: u32, column: u32) -> (u32, u32) {
        let place = Point(line, column);
        let around = self.function_of(place);
        if self.loops_of(around).any(|region| region.contains(place)) {
            return (line, column);
        }
        let follows = |function| self.loops_of(function).find(|region| region.start > place);
        let begins = |region: &Region| {
            region.kind == RegionKind::Function && region.start.0 == line && region.start > place
        };
        let of_line = || self.0.iter().position(begins).and_then(|function| follows(Some(function)));
        let found = match around {
            Some(_) => follows(around).or_else(of_line),
            None => of_line().or_else(|| follows(None)),
        };
        found.map_or((line, column), |region| (region.start.0, region.start.1))
    }

    /// The loops that are in a function and in no other inside it, or outside all of them.
    fn loops_of(&self, function: Option<usize>) -> impl Iterator<Item = &Region> {
        let is_loop = |region: &&Region| region.kind == RegionKind::Loop;
        self.0.iter().filter(is_loop).filter(move |region| self.function_of(region.start) == function)
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
