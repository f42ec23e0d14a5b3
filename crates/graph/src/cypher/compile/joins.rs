//! How the elements of a pattern are found one after the other: each is a table that is joined to those before it.
//!
//! The order is forced by CROSS JOIN. It begins with what is bound or can be looked up, and follows relationships from
//! there; SQLite, which knows nothing of graphs, would guess.

use crate::cypher::error::CypherResult;
use crate::cypher::value::kind;
use crate::tables::schema::RENAME;

use super::Compiler;
use super::anchors::{next_anchor, next_link};
use super::expression::Sql;
use super::matching::{Condition, Lookup, What};
use super::pattern::{Direction, Graph, Link, Node, Path};
use super::scope::{Chain, Kind, Variable, from_where};
use super::visible::{self, PropertyRow, Tombstones};

/// A pattern that is being turned into joins.
pub(super) struct Building<'c, 'a> {
    pub chain: &'c mut Chain,
    pub graph: &'c Graph<'a>,
    pub(super) sources: Vec<String>,
    pub(super) filters: Vec<String>,
    conditions: Vec<Condition<'a>>,
    pub(super) lookups: Vec<Lookup<'a>>,
    pub(super) placed_nodes: Vec<bool>,
    pub(super) placed_links: Vec<bool>,
    /// The variable that has the trail of a link of variable length, and whether it was walked against the pattern.
    pub(super) trails: Vec<Option<(String, bool)>>,
    /// Nodes whose table is in the SELECT that is being made, with its alias.
    pub(super) local: Vec<(String, String)>,
}

impl<'c, 'a> Building<'c, 'a> {
    pub fn new(
        chain: &'c mut Chain,
        graph: &'c Graph<'a>,
        conditions: Vec<Condition<'a>>,
        lookups: Vec<Lookup<'a>>,
    ) -> Self {
        let sources = chain.sources();
        Self {
            chain,
            graph,
            sources,
            filters: Vec::new(),
            conditions,
            lookups,
            placed_nodes: vec![false; graph.nodes.len()],
            placed_links: vec![false; graph.links.len()],
            trails: vec![None; graph.links.len()],
            local: Vec::new(),
        }
    }

    /// Ends the SELECT that is being made.
    pub fn stage(&mut self, compiler: &mut Compiler<'_>) {
        let rest = from_where(&self.sources, &self.filters);
        let stage = self.chain.join(self.sources.len());
        compiler.stage(self.chain, &rest, stage);
        self.sources = self.chain.sources();
        self.filters.clear();
        self.local.clear();
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.chain.scope.find(key).is_some()
    }

    pub(super) fn node_at(&self, at: usize) -> Option<(&'c Node<'a>, Variable)> {
        let node = self.graph.nodes.get(at)?;
        Some((node, self.chain.scope.find(&node.key)?.clone()))
    }

    pub(super) fn is_placed(&self, node: usize) -> bool {
        self.placed_nodes.get(node).copied().unwrap_or(false)
    }

    /// Whether a node of the pattern may be one that was renamed away: all its relationships have to allow it.
    fn ghost_of(&self, at: usize) -> Tombstones {
        let Some(node) = self.graph.nodes.get(at) else { return Tombstones::Never };
        if node.bound.is_some() {
            return Tombstones::Bound;
        }
        let mut links = self.graph.links.iter().filter(|link| link.left == at || link.right == at).peekable();
        if links.peek().is_some() && links.all(|link| visible::may_be_rename(link.types.as_deref())) {
            return Tombstones::Allowed;
        }
        Tombstones::Never
    }

    /// The column that says whether a placed node is one that was renamed away.
    pub(super) fn ghost_column(&self, key: &str, variable: &Variable) -> String {
        match self.local.iter().find(|(name, _)| name == key) {
            Some((_, alias)) => format!("{alias}.ghost"),
            None => visible::node_ghost(&variable.value),
        }
    }

    /// What an edge asks of a placed end.
    fn end(&mut self, at: usize, edge: &str, link: &Link<'_>) {
        let only_renames = link.types.as_ref().is_some_and(|types| types.iter().all(|name| name == RENAME));
        if only_renames || self.ghost_of(at) == Tombstones::Never {
            return;
        }
        if let Some((node, variable)) = self.node_at(at) {
            let ghost = self.ghost_column(&node.key, &variable);
            self.filters.push(visible::end(&ghost, edge));
        }
    }

    /// The relationships of a link of variable length, as a list.
    pub fn walked(&self, link: usize) -> String {
        match self.trails.get(link).and_then(Option::as_ref) {
            Some((name, reversed)) => {
                let trail = self.chain.scope.find(name).map(|trail| trail.value.clone()).unwrap_or_default();
                format!("cy_walked({trail}, {})", u8::from(*reversed))
            }
            None => "NULL".to_owned(),
        }
    }

    /// A named path as a value.
    pub fn path(&self, path: &Path) -> String {
        let value = |at: usize| {
            self.node_at(at)
                .map_or("NULL".to_owned(), |(_, node)| format!("cy_node({}, {})", node.value, node.id))
        };
        let mut parts = vec![value(path.first)];
        let mut here = path.first;
        for at in &path.links {
            let Some(link) = self.graph.links.get(*at) else { continue };
            let there = if link.left == here { link.right } else { link.left };
            match self.trails.get(*at).and_then(Option::as_ref) {
                Some((name, reversed)) => {
                    let trail =
                        self.chain.scope.find(name).map(|trail| trail.value.clone()).unwrap_or_default();
                    let start = value(if *reversed { link.right } else { link.left });
                    parts.push(format!("cy_trail({start}, {trail}, {})", u8::from(*reversed)));
                }
                None => {
                    if let Some(relationship) = self.chain.scope.find(&link.key) {
                        parts.push(format!("cy_rel({}, {})", relationship.value, relationship.id));
                    }
                    parts.push(value(there));
                }
            }
            here = there;
        }
        format!("cy_path({})", parts.join(", "))
    }
}

impl Compiler<'_> {
    /// Places every element of the pattern.
    pub(super) fn place_all(&mut self, building: &mut Building<'_, '_>) -> CypherResult<()> {
        self.settle(building, false)?;
        for at in 0..building.graph.nodes.len() {
            if building.graph.nodes.get(at).is_some_and(|node| node.bound.is_some()) {
                self.place_bound(building, at)?;
            }
        }
        for (at, link) in building.graph.links.iter().enumerate() {
            if link.bound.is_some() && link.length.is_none() {
                self.place_bound_link(building, at, link)?;
            }
        }
        loop {
            if let Some(at) = next_link(building) {
                let Some(link) = building.graph.links.get(at) else { return Ok(()) };
                let from = if building.is_placed(link.left) { link.left } else { link.right };
                if let Some(done) = building.placed_links.get_mut(at) {
                    *done = true;
                }
                match link.length {
                    Some(length) if link.shortest.is_some() => {
                        self.place_shortest(building, at, link, length)?;
                    }
                    None => self.place_link(building, at, link, from)?,
                    Some(length) => self.place_walk(building, at, link, from, length)?,
                }
            } else if let Some(at) = next_anchor(building) {
                self.place_anchor(building, at)?;
            } else {
                return Ok(());
            }
        }
    }

    /// Asks every condition whose names are all there.
    pub(super) fn settle(&mut self, building: &mut Building<'_, '_>, last: bool) -> CypherResult<()> {
        let mut conditions = std::mem::take(&mut building.conditions);
        for condition in conditions.iter_mut().filter(|condition| !condition.done) {
            if !last && !condition.needs.iter().all(|name| building.has(name)) {
                continue;
            }
            condition.done = true;
            let span = match &condition.what {
                What::Holds(expression) => expression.span,
                What::Property(_, entry) => entry.span,
            };
            self.step_of("Filter", self.words(span));
            let scope = building.chain.scope.predicates(true);
            let sql = match &condition.what {
                What::Holds(expression) => self.truth_of(expression, &scope)?,
                What::Property(key, entry) => {
                    let Some(variable) = scope.find(key).cloned() else { continue };
                    // A name of UNWIND is a value, and has no row.
                    let property =
                        self.property(Sql::variable(&variable), &entry.key.kind.text, entry.key.span)?;
                    let property = self.as_value(property);
                    let value = self.value_of(&entry.value, &scope)?;
                    format!("cy_eq({property}, {value})")
                }
            };
            building.filters.push(sql);
        }
        building.conditions = conditions;
        Ok(())
    }

    /// Puts a node into the SELECT, with what must hold of it. `found` says how its row is found.
    pub(super) fn add_node(
        &mut self,
        building: &mut Building<'_, '_>,
        at: usize,
        alias: &str,
        found: String,
        skipped: Option<&str>,
    ) -> CypherResult<()> {
        let Some(node) = building.graph.nodes.get(at) else { return Ok(()) };
        let seen = visible::node(alias, building.ghost_of(at), &self.sight());
        building.sources.push(seen.source);
        if !found.is_empty() {
            building.filters.push(found);
        }
        building.filters.push(seen.condition);
        building.chain.scope.set(Variable {
            name: node.key.clone(),
            kind: Kind::Node,
            value: format!("{alias}.row_id"),
            id: format!("{alias}.id"),
            props: Some(PropertyRow::Alias(alias.to_owned())),
            labels: node.said(),
            outer: false,
        });
        building.local.push((node.key.clone(), alias.to_owned()));
        if let Some(done) = building.placed_nodes.get_mut(at) {
            *done = true;
        }
        for labels in &node.labels {
            if let Some(test) = self.label_test(labels, &format!("{alias}.id"), skipped)? {
                building.filters.push(test);
            }
        }
        self.settle(building, false)
    }

    fn place_bound(&mut self, building: &mut Building<'_, '_>, at: usize) -> CypherResult<()> {
        let Some(bound) = building.graph.nodes.get(at).and_then(|node| node.bound.clone()) else {
            return Ok(());
        };
        let row = match bound.kind {
            Kind::Value(_) => format!("cy_row({}, {})", bound.value, kind::NODE),
            _ => bound.value,
        };
        let alias = self.name("n");
        self.add_node(building, at, &alias, format!("{alias}.row_id = {row}"), None)
    }

    /// A relationship that is bound: its ends follow from it.
    fn place_bound_link(
        &mut self,
        building: &mut Building<'_, '_>,
        at: usize,
        link: &Link<'_>,
    ) -> CypherResult<()> {
        let Some(bound) = link.bound.clone() else { return Ok(()) };
        let row = match bound.kind {
            Kind::Value(_) => format!("cy_row({}, {})", bound.value, kind::RELATIONSHIP),
            _ => bound.value,
        };
        let edge = self.name("e");
        self.add_edge(building, at, link, &edge, format!("{edge}.row_id = {row}"))?;
        for (end, other, column) in [(link.left, link.right, "source"), (link.right, link.left, "target")] {
            let column = match (link.direction, column) {
                (Direction::Left, "source") => "target",
                (Direction::Left, _) => "source",
                _ => column,
            };
            let condition = |id: &str, building: &Building<'_, '_>| match (
                link.direction,
                building.node_at(other),
            ) {
                (Direction::Either, Some((_, other))) if other.id != id => {
                    format!(
                        "{id} = CASE WHEN {edge}.source = {0} THEN {edge}.target WHEN {edge}.target = {0} THEN {edge}.source END",
                        other.id
                    )
                }
                (Direction::Either, _) => format!("{id} IN ({edge}.source, {edge}.target)"),
                _ => format!("{id} = {edge}.{column}"),
            };
            if building.is_placed(end) {
                if let Some((_, variable)) = building.node_at(end) {
                    let filter = condition(&variable.id, building);
                    building.filters.push(filter);
                }
            } else {
                let alias = self.name("n");
                let found = condition(&format!("{alias}.id"), building);
                self.add_node(building, end, &alias, found, None)?;
            }
            building.end(end, &edge, link);
        }
        Ok(())
    }

    fn add_edge(
        &mut self,
        building: &mut Building<'_, '_>,
        at: usize,
        link: &Link<'_>,
        edge: &str,
        found: String,
    ) -> CypherResult<()> {
        let seen = visible::edge(edge, &self.sight());
        building.sources.push(seen.source);
        building.filters.push(found);
        if let Some(types) = self.type_test(link, edge) {
            building.filters.push(types);
        }
        building.filters.push(seen.condition);
        self.keep_apart(building, at, link, &format!("{edge}.row_id"));
        building.chain.scope.set(Variable {
            name: link.key.clone(),
            kind: Kind::Relationship,
            value: format!("{edge}.row_id"),
            id: format!("{edge}.id"),
            props: Some(PropertyRow::Alias(edge.to_owned())),
            labels: link.said(),
            outer: false,
        });
        if let Some(done) = building.placed_links.get_mut(at) {
            *done = true;
        }
        self.settle(building, false)
    }

    /// A pattern uses no relationship twice.
    fn keep_apart(&mut self, building: &mut Building<'_, '_>, at: usize, link: &Link<'_>, row: &str) {
        for (other_at, other) in building.graph.links.iter().enumerate() {
            let placed = building.placed_links.get(other_at).copied().unwrap_or(false);
            if other_at == at || !placed || apart(link, other) {
                continue;
            }
            let filter = match building.trails.get(other_at).and_then(Option::as_ref) {
                Some((name, _)) => match building.chain.scope.find(name) {
                    Some(trail) => format!("NOT cy_seen({}, {row})", trail.value),
                    None => continue,
                },
                None => match building.chain.scope.find(&other.key) {
                    Some(other) => format!("{row} <> {}", other.value),
                    None => continue,
                },
            };
            building.filters.push(filter);
        }
    }

    /// A relationship of one hop, from an end that is placed.
    fn place_link(
        &mut self,
        building: &mut Building<'_, '_>,
        at: usize,
        link: &Link<'_>,
        from: usize,
    ) -> CypherResult<()> {
        let to = if from == link.left { link.right } else { link.left };
        let Some((_, start)) = building.node_at(from) else { return Ok(()) };
        let shown = self.shown_link(building.graph, link, from);
        self.step_of(if building.is_placed(to) { "ExpandInto" } else { "Expand" }, shown);
        let edge = self.name("e");
        let target = building.is_placed(to).then(|| building.node_at(to)).flatten().map(|(_, node)| node.id);
        let Hop { found, next } = hop(link, from, &start.id, &edge, target.as_deref());
        self.add_edge(building, at, link, &edge, found)?;
        building.end(from, &edge, link);
        if target.is_none() {
            let alias = self.name("n");
            self.add_node(building, to, &alias, format!("{alias}.id = {next}"), None)?;
        }
        if to != from {
            building.end(to, &edge, link);
        }
        Ok(())
    }

    /// The condition on the type of an edge.
    pub(super) fn type_test(&mut self, link: &Link<'_>, edge: &str) -> Option<String> {
        let types = link.types.as_ref()?;
        let mut names: Vec<String> = types.iter().map(|name| self.text(name)).collect();
        names.dedup();
        Some(match names.as_slice() {
            [only] => format!("{edge}.type = {only}"),
            names => format!("{edge}.type IN ({})", names.join(", ")),
        })
    }
}

/// How an edge is found from one end, and where it leads.
pub(super) struct Hop {
    pub found: String,
    pub next: String,
}

/// One hop along a link from one of its ends, to `target` if that is known.
pub(super) fn hop(link: &Link<'_>, from: usize, id: &str, edge: &str, target: Option<&str>) -> Hop {
    let forward = match link.direction {
        Direction::Either => {
            let found = match target {
                Some(target) => format!(
                    "({edge}.source = {id} AND {edge}.target = {target}) OR ({edge}.target = {id} AND {edge}.source = {target})"
                ),
                None => format!("{edge}.source = {id} OR {edge}.target = {id}"),
            };
            let next = format!("CASE WHEN {edge}.source = {id} THEN {edge}.target ELSE {edge}.source END");
            return Hop { found, next };
        }
        Direction::Right => from == link.left,
        Direction::Left => from != link.left,
    };
    let (here, there) = if forward { ("source", "target") } else { ("target", "source") };
    let mut found = format!("{edge}.{here} = {id}");
    if let Some(target) = target {
        found = format!("{found} AND {edge}.{there} = {target}");
    }
    Hop { found, next: format!("{edge}.{there}") }
}

/// Whether two links can never be the same relationship, or may be. A shortest path is found by itself: it may have
/// relationships that the rest of the pattern has.
pub(super) fn apart(one: &Link<'_>, other: &Link<'_>) -> bool {
    if one.shortest.is_some() || other.shortest.is_some() {
        return true;
    }
    match (&one.types, &other.types) {
        (Some(one), Some(other)) => !one.iter().any(|name| other.contains(name)),
        _ => false,
    }
}
