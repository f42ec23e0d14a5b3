//! Where the search for a pattern begins, and how it continues.

use crate::cypher::error::CypherResult;
use crate::cypher::types::Type;

use super::Compiler;
use super::calls::simple_label;
use super::joins::Building;
use super::matching::{INDEXED, Lookup};
use super::pattern::Link;

impl Compiler<'_> {
    /// A node that nothing leads to: by its id, by an index, by a label, or all nodes.
    pub(super) fn place_anchor(&mut self, building: &mut Building<'_, '_>, at: usize) -> CypherResult<()> {
        let Some(node) = building.graph.nodes.get(at) else { return Ok(()) };
        let alias = self.name("n");
        let usable = |building: &Building<'_, '_>, lookup: &Lookup<'_>| {
            lookup.element == node.key && lookup.needs.iter().all(|name| building.has(name))
        };
        let scope = building.chain.scope.clone();
        let mut found = Vec::new();
        for lookup in &building.lookups {
            if !usable(building, lookup) {
                continue;
            }
            let value = self.expression(lookup.value, &scope)?;
            let known = value.kind.clone();
            let sql = self.as_value(value);
            match &lookup.property {
                None => found.push(format!("{alias}.id = {sql}")),
                Some(name) if INDEXED.contains(&name.as_str()) => {
                    let column = format!("json_extract({alias}.props, '$.{name}')");
                    found.push(match known {
                        Type::Text | Type::Int | Type::Float | Type::Number => format!("{column} = {sql}"),
                        _ => format!("{column} BETWEEN cy_low({sql}) AND cy_high({sql})"),
                    });
                }
                Some(_) => {}
            }
            if !found.is_empty() {
                let key = lookup.property.as_deref().unwrap_or("id");
                let shown = self.shown_node(node);
                self.step_of("NodeByIndex", format!("{shown} by {key}"));
                break;
            }
        }
        if !found.is_empty() {
            return self.add_node(building, at, &alias, found.join(" AND "), None);
        }
        let label = node.labels.iter().find_map(|labels| simple_label(labels));
        let shown = self.shown_node(node);
        let Some(label) = label else {
            self.step_of("AllNodes", shown);
            return self.add_node(building, at, &alias, String::new(), None);
        };
        self.step_of("NodeByLabel", shown);
        let labelled = self.name("l");
        let name = self.text(&label);
        building.sources.push(format!("label AS {labelled}"));
        building.filters.push(format!("{labelled}.name = {name}"));
        self.add_node(building, at, &alias, format!("{alias}.id = {labelled}.node"), Some(&label))
    }
}

/// The next link that a placed node leads to: what restricts most first, variable lengths last.
pub(super) fn next_link(building: &Building<'_, '_>) -> Option<usize> {
    let cost = |link: &Link<'_>| {
        let (left, right) = (building.is_placed(link.left), building.is_placed(link.right));
        if link.shortest.is_some() {
            return (left && right).then_some(250);
        }
        let open = if left { link.right } else { link.left };
        match (left, right, link.length) {
            (false, false, _) => None,
            (true, true, None) => Some(0),
            (true, true, Some(_)) => Some(200),
            (_, _, None) => Some(100 - score(building, open)),
            (_, _, Some(_)) => Some(300),
        }
    };
    let links = building.graph.links.iter().enumerate();
    let open = links.filter(|(at, _)| !building.placed_links.get(*at).copied().unwrap_or(true));
    open.filter_map(|(at, link)| Some((cost(link)?, at))).min().map(|(_, at)| at)
}

pub(super) fn next_anchor(building: &Building<'_, '_>) -> Option<usize> {
    let open = (0..building.graph.nodes.len()).filter(|at| !building.is_placed(*at));
    open.max_by_key(|at| (score(building, *at), std::cmp::Reverse(*at)))
}

/// How few nodes an element is likely to be.
fn score(building: &Building<'_, '_>, at: usize) -> i32 {
    let Some(node) = building.graph.nodes.get(at) else { return 0 };
    let best = building
        .lookups
        .iter()
        .filter(|lookup| lookup.element == node.key && lookup.needs.iter().all(|name| building.has(name)))
        .map(|lookup| match &lookup.property {
            None => 80,
            Some(name) if INDEXED.contains(&name.as_str()) => 60,
            Some(_) => 20,
        })
        .max()
        .unwrap_or(0);
    best + if node.labels.is_empty() { 0 } else { 10 }
}
