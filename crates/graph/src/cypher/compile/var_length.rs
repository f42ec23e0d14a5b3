//! Relationships of variable length: a recursive table that walks trails, on which no relationship is twice.

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;

use super::joins::{Building, Hop, apart, hop};
use super::pattern::{Direction, Length, Link, is_constant};
use super::scope::{HIDDEN, Kind, Variable};
use super::visible::{self, PropertyRow, Tombstones};
use super::{Compiler, Rows};

impl Compiler<'_> {
    /// Walks from an end that is placed. Middle nodes are seen as the ends are.
    pub(super) fn place_walk(
        &mut self,
        building: &mut Building<'_, '_>,
        at: usize,
        link: &Link<'_>,
        from: usize,
        length: Length,
    ) -> CypherResult<()> {
        if let Some(filter) = link.wheres.first() {
            return Err(CypherError::unsupported(
                filter.span,
                "WHERE inside a relationship of variable length",
            ));
        }
        let rows = if only_reach(building, at, link, length) { self.rows } else { Rows::Bag };
        let to = if from == link.left { link.right } else { link.left };
        let shown = self.shown_link(building.graph, link, from);
        let is_searched = link.direction != Direction::Either
            && link.properties.iter().all(|entry| is_constant(&entry.value));
        if rows == Rows::Set && is_searched && building.is_placed(to) {
            return self.place_reach(building, link, (from, to), length, &shown);
        }
        self.step_of(if rows == Rows::Set { "Reach" } else { "Walk" }, shown);
        // Who comes back to where it began never leaves the nodes that reach each other.
        let mut within = None;
        if from == to && is_searched && length.least > 0 {
            if let Some((_, node)) = building.node_at(from) {
                let graph = self.adjacency(link)?;
                building.filters.push(format!("cy_cyclic({graph}, {}, NULL)", node.id));
            }
            within = Some(self.adjacency(link)?);
        }
        building.stage(self);
        // Nothing joins a table that walks into the tables around it.
        building.chain.joined = 1;
        let Some((start_node, start)) = building.node_at(from) else { return Ok(()) };
        let ghost = building.ghost_column(&start_node.key, &start);
        let walk = self.name("w");
        let mut names = Vec::new();
        let mut seed = Vec::new();
        let mut moved = Vec::new();
        for variable in &building.chain.scope.variables {
            if variable.outer {
                moved.push(variable.clone());
                continue;
            }
            let column = self.name("c");
            let after = variable.moved(&walk, &column);
            names.push(column.clone());
            seed.push(variable.value.clone());
            if !after.id.is_empty() {
                names.push(format!("{column}i"));
                seed.push(variable.id.clone());
            }
            moved.push(after);
        }
        let carried: Vec<String> = names.iter().map(|name| format!("{walk}.{name}")).collect();
        // What is only reached has no trail; without an upper end it has no depth either, so that each node comes once.
        let trail = if rows == Rows::Set { "NULL" } else { "x''" };
        seed.extend([start.id.clone(), start.value.clone(), ghost, trail.to_owned(), "0".to_owned()]);
        let source = building.chain.from.clone().map(|from| format!(" FROM {from}")).unwrap_or_default();
        building.chain.scope.variables = moved;
        let step = self.step(building, link, from, length, &walk, carried, rows, within)?;
        names.extend(["at", "row", "ghost", "trail", "depth"].map(str::to_owned));
        building.chain.tables.push(format!(
            "{walk}({}) AS (SELECT {}{source} {} {step})",
            names.join(", "),
            seed.join(", "),
            if rows == Rows::Set { "UNION" } else { "UNION ALL" }
        ));
        building.chain.from = Some(walk.clone());
        building.sources = vec![walk.clone()];
        building.filters = vec![format!("{walk}.depth >= {}", length.least)];
        self.arrive(building, at, link, (from, to), &walk)
    }

    /// The recursive part: one more relationship from where the trail has come to.
    #[expect(clippy::too_many_arguments, reason = "a step is known by all of them")]
    fn step(
        &mut self,
        building: &mut Building<'_, '_>,
        link: &Link<'_>,
        from: usize,
        length: Length,
        walk: &str,
        mut columns: Vec<String>,
        rows: Rows,
        within: Option<String>,
    ) -> CypherResult<String> {
        let (edge, node) = (self.name("e"), self.name("n"));
        let ghost = if visible::may_be_rename(link.types.as_deref()) {
            Tombstones::Allowed
        } else {
            Tombstones::Never
        };
        let sight = self.sight();
        let (seen_edge, seen_node) = (visible::edge(&edge, &sight), visible::node(&node, ghost, &sight));
        let Hop { found, next } = hop(link, from, &format!("{walk}.at"), &edge, None);
        let mut filters = vec![found];
        filters.extend(self.type_test(link, &edge));
        filters.extend([seen_edge.condition, format!("{node}.id = {next}"), seen_node.condition]);
        filters.extend([
            visible::end(&format!("{walk}.ghost"), &edge),
            visible::end(&format!("{node}.ghost"), &edge),
        ]);
        for entry in &link.properties {
            let scope = building.chain.scope.clone();
            let property = self.property_of(&PropertyRow::Alias(edge.clone()), &entry.key.kind.text);
            let value = self.value_of(&entry.value, &scope)?;
            filters.push(format!("cy_eq({property}, {value})"));
        }
        if let Some(graph) = within {
            filters.push(format!("cy_together({graph}, {walk}.at, {node}.id)"));
        }
        let cap = self.hops;
        let mut trail = format!("cy_push({walk}.trail, {edge}.row_id, {edge}.id, {node}.row_id, {node}.id)");
        let mut depth = format!("{walk}.depth + 1");
        match length.most {
            Some(most) if rows == Rows::Set => {
                filters.push(format!("{walk}.depth < {most}"));
                "NULL".clone_into(&mut trail);
            }
            None if rows == Rows::Set => {
                "NULL".clone_into(&mut trail);
                "1".clone_into(&mut depth);
            }
            Some(most) if most <= cap => {
                filters.push(format!("{walk}.depth < {most}"));
                filters.push(format!("NOT cy_seen({walk}.trail, {edge}.row_id)"));
            }
            // Asked last, of a relationship that would be taken: only a path that really continues is too
            // long.
            _ => filters.push(format!(
                "CASE WHEN cy_seen({walk}.trail, {edge}.row_id) THEN 0 WHEN {walk}.depth >= {cap} AND {node}.id IS NOT NULL THEN cy_too_far({cap}) ELSE 1 END"
            )),
        }
        columns.extend([
            format!("{node}.id"),
            format!("{node}.row_id"),
            format!("{node}.ghost"),
            trail,
            depth,
        ]);
        let filters: Vec<String> = filters.iter().map(|filter| format!("({filter})")).collect();
        Ok(format!(
            "SELECT {} FROM {walk} CROSS JOIN {} CROSS JOIN {} WHERE {}",
            columns.join(", "),
            seen_edge.source,
            seen_node.source,
            filters.join(" AND ")
        ))
    }

    /// The end of the walk, and the relationships of the pattern that it must not have taken.
    fn arrive(
        &mut self,
        building: &mut Building<'_, '_>,
        at: usize,
        link: &Link<'_>,
        (from, to): (usize, usize),
        walk: &str,
    ) -> CypherResult<()> {
        let name = self.name(&HIDDEN.to_string());
        let trail = format!("{walk}.trail");
        let others: Vec<_> = building.graph.links.iter().enumerate().collect();
        for (other_at, other) in others {
            let placed = building.placed_links.get(other_at).copied().unwrap_or(false);
            if other_at == at || !placed || apart(link, other) {
                continue;
            }
            let filter = match building.trails.get(other_at).and_then(Option::as_ref) {
                Some((name, _)) => building
                    .chain
                    .scope
                    .find(name)
                    .map(|other| format!("NOT cy_meet({trail}, {})", other.value)),
                None => building
                    .chain
                    .scope
                    .find(&other.key)
                    .map(|other| format!("NOT cy_seen({trail}, {})", other.value)),
            };
            building.filters.extend(filter);
        }
        building.chain.scope.set(Variable::value(&name, Type::Any, trail));
        if let Some(slot) = building.trails.get_mut(at) {
            *slot = Some((name, from != link.left));
        }
        if let Some(bound) = &link.bound {
            let list = match bound.kind {
                Kind::Value(_) => building.chain.scope.find(&link.key).map(|list| list.value.clone()),
                _ => None,
            };
            let walked = building.walked(at);
            building.filters.extend(list.map(|list| format!("cy_eq({walked}, {list})")));
        }
        if building.is_placed(to) {
            if let Some((_, node)) = building.node_at(to) {
                building.filters.push(format!("{walk}.at = {}", node.id));
            }
            return self.settle(building, false);
        }
        let alias = self.name("n");
        self.add_node(building, to, &alias, format!("{alias}.row_id = {walk}.row"), None)
    }
}

/// Whether nothing asks for the way of a link, only for its ends. A walk along arrows from one node to another has a
/// trail in it that is as short or shorter, so the same nodes are reached; without direction it could go back on the
/// relationship it came by. `*2..` asks for ways that are long, which this does not compute.
fn only_reach(building: &Building<'_, '_>, at: usize, link: &Link<'_>, length: Length) -> bool {
    let named =
        !link.key.starts_with(HIDDEN) || building.graph.paths.iter().any(|path| path.links.contains(&at));
    let others = building.graph.links.iter().enumerate().filter(|(other, _)| *other != at);
    !named
        && length.least <= 1
        && link.direction != Direction::Either
        && others.map(|(_, other)| other).all(|other| apart(link, other))
}
