//! Patterns that are answered by a search over relationships in memory, which visits each node once: shortest paths, and
//! whether one node reaches another.

use crate::cypher::error::CypherResult;
use crate::cypher::types::Type;

use super::Compiler;
use super::joins::Building;
use super::pattern::{Direction, Length, Link, Shortest};
use super::scope::{HIDDEN, Variable};
use super::visible::{self, PropertyRow, Tombstones};

impl Compiler<'_> {
    /// The relationships that a link may take, as the number of a graph in memory. It depends on no row, so SQLite loads
    /// it once for each place where it is.
    pub(super) fn adjacency(&mut self, link: &Link<'_>) -> CypherResult<String> {
        let (edge, from, to) = (self.name("e"), self.name("n"), self.name("n"));
        let ghost = if visible::may_be_rename(link.types.as_deref()) {
            Tombstones::Allowed
        } else {
            Tombstones::Never
        };
        let sight = self.sight();
        let relationships = visible::edge(&edge, &sight);
        let (source, target) = (visible::node(&from, ghost, &sight), visible::node(&to, ghost, &sight));
        let mut filters: Vec<String> = self.type_test(link, &edge).into_iter().collect();
        filters.push(relationships.condition);
        filters.extend([format!("{from}.id = {edge}.source"), source.condition]);
        filters.extend([format!("{to}.id = {edge}.target"), target.condition]);
        for end in [&from, &to] {
            filters.push(visible::end(&format!("{end}.ghost"), &edge));
        }
        for entry in &link.properties {
            let property = self.property_of(&PropertyRow::Alias(edge.clone()), &entry.key.kind.text);
            let value = self.value_of(&entry.value, &super::scope::Scope::default())?;
            filters.push(format!("cy_eq({property}, {value})"));
        }
        let filters: Vec<String> = filters.iter().map(|filter| format!("({filter})")).collect();
        Ok(format!(
            "(SELECT cy_graph({edge}.row_id, {edge}.id, {from}.id, {from}.row_id, {to}.id, {to}.row_id, {}) FROM {} CROSS JOIN {} CROSS JOIN {} WHERE {})",
            u8::from(link.direction == Direction::Either),
            relationships.source,
            source.source,
            target.source,
            filters.join(" AND ")
        ))
    }

    /// Whether a node that is placed reaches another that is placed; the way does not matter.
    pub(super) fn place_reach(
        &mut self,
        building: &mut Building<'_, '_>,
        link: &Link<'_>,
        (from, to): (usize, usize),
        length: Length,
        shown: &str,
    ) -> CypherResult<()> {
        let (Some((_, start)), Some((_, end))) = (building.node_at(from), building.node_at(to)) else {
            return Ok(());
        };
        let most = length.most.map_or_else(|| "NULL".to_owned(), |most| most.to_string());
        if from == to && length.least == 0 {
            self.step_of("Reach", shown);
            return self.settle(building, false);
        }
        let graph = self.adjacency(link)?;
        if from == to {
            self.step_of("Cycle", shown);
            building.filters.push(format!("cy_cyclic({graph}, {}, {most})", start.id));
        } else {
            self.step_of("Reach", shown);
            let least = length.least;
            // Along the arrows, wherever the search in the pattern came from.
            let forward = (link.direction == Direction::Right) == (from == link.left);
            let (start, end) = if forward { (start.id, end.id) } else { (end.id, start.id) };
            building.filters.push(format!("cy_reaches({graph}, {start}, {end}, {least}, {most})"));
        }
        self.settle(building, false)
    }

    /// The shortest paths between two nodes that are placed.
    pub(super) fn place_shortest(
        &mut self,
        building: &mut Building<'_, '_>,
        at: usize,
        link: &Link<'_>,
        length: Length,
    ) -> CypherResult<()> {
        building.stage(self);
        let backwards = link.direction == Direction::Left;
        let (from, to) = if backwards { (link.right, link.left) } else { (link.left, link.right) };
        let (Some((_, start)), Some((_, end))) = (building.node_at(from), building.node_at(to)) else {
            return Ok(());
        };
        let all = link.shortest == Some(Shortest::All);
        let shown = self.shown_link(building.graph, link, from);
        self.step_of(if all { "AllShortestPaths" } else { "ShortestPath" }, shown);
        let graph = self.adjacency(link)?;
        let most = length.most.map_or_else(|| "NULL".to_owned(), |most| most.to_string());
        let found = self.name("j");
        building.sources.push(format!(
            "json_each(cy_shortest({graph}, {}, {}, {}, {most}, {}, {})) AS {found}",
            start.id,
            end.id,
            length.least,
            u8::from(all),
            u8::from(link.direction == Direction::Either)
        ));
        let name = self.name(&HIDDEN.to_string());
        building.chain.scope.set(Variable::value(&name, Type::Any, format!("unhex({found}.value)")));
        if let Some(slot) = building.trails.get_mut(at) {
            *slot = Some((name, backwards));
        }
        self.settle(building, false)
    }
}
