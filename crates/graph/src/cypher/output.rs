//! From values to JSON. Nodes and relationships are looked up here, by row, when they are given out.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, Row};
use serde_json::{Map, Number, Value as Json};

use super::QueryLimits;
use super::compile::position;
use super::value::{Entity, Value};
use crate::tables::positions::{file_of, find};

/// Nodes and relationships that are kept as JSON while one answer is made: the same few occur in many rows.
const KEPT: usize = 10_000;

/// What is asked of a node, without its position.
const NODE: &str = "SELECT props, (SELECT json_group_array(name) FROM label WHERE node = node.id)";
/// What is asked of a relationship, without its position.
const EDGE: &str = "SELECT props, type, source, target";

/// Makes JSON, and counts its bytes.
pub(super) struct Output<'c> {
    node: CachedStatement<'c>,
    edge: CachedStatement<'c>,
    nodes: HashMap<i64, Json>,
    edges: HashMap<i64, Json>,
    /// The moment at which positions are looked up.
    moment: i64,
    bytes: usize,
    most: usize,
}

impl<'c> Output<'c> {
    pub fn new(connection: &'c Connection, moment: i64, limits: &QueryLimits) -> rusqlite::Result<Self> {
        let position = position(&file_of("place"), "?2");
        let of =
            |asked: &str, table: &str| format!("{asked}, place, {position} FROM {table} WHERE row_id = ?1");
        Ok(Self {
            node: connection.prepare_cached(&of(NODE, "node"))?,
            edge: connection.prepare_cached(&of(EDGE, "edge"))?,
            moment,
            nodes: HashMap::new(),
            edges: HashMap::new(),
            bytes: 0,
            most: limits.bytes,
        })
    }

    /// Whether more was made than is allowed.
    pub fn is_full(&self) -> bool {
        self.bytes > self.most
    }

    pub fn json(&mut self, value: Value) -> rusqlite::Result<Json> {
        self.bytes += 8;
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(value),
            Value::Int(number) => Json::Number(number.into()),
            Value::Float(number) => match Number::from_f64(number) {
                Some(number) => Json::Number(number),
                // JSON has no such number.
                None if number.is_nan() => Json::String("NaN".to_owned()),
                None if number > 0.0 => Json::String("Infinity".to_owned()),
                None => Json::String("-Infinity".to_owned()),
            },
            Value::Text(text) => {
                self.bytes += text.len();
                Json::String(text)
            }
            Value::List(items) => {
                Json::Array(items.into_iter().map(|item| self.json(item)).collect::<rusqlite::Result<_>>()?)
            }
            Value::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    self.bytes += key.len();
                    map.insert(key, self.json(value)?);
                }
                Json::Object(map)
            }
            Value::Date(date) => Json::String(date.to_text()),
            Value::DateTime(time) => Json::String(time.to_text()),
            Value::Node(entity) => self.node(entity)?,
            Value::Relationship(entity) => self.edge(entity)?,
            Value::Path(entities) => {
                let mut items = Vec::with_capacity(entities.len());
                for (at, entity) in entities.into_iter().enumerate() {
                    items.push(if at % 2 == 0 { self.node(entity)? } else { self.edge(entity)? });
                }
                Json::Array(items)
            }
        })
    }

    fn node(&mut self, entity: Entity) -> rusqlite::Result<Json> {
        if let Some(known) = self.nodes.get(&entity.row) {
            self.bytes += size(known);
            return Ok(known.clone());
        }
        let (mut map, labels): (_, String) = self
            .node
            .query_row([entity.row, self.moment], |row| Ok((properties(row, 0, 2)?, row.get(1)?)))?;
        map.insert("_id".to_owned(), entity.id.into());
        map.insert("_labels".to_owned(), serde_json::from_str(&labels).unwrap_or_default());
        Ok(keep(&mut self.nodes, &mut self.bytes, entity, map))
    }

    fn edge(&mut self, entity: Entity) -> rusqlite::Result<Json> {
        if let Some(known) = self.edges.get(&entity.row) {
            self.bytes += size(known);
            return Ok(known.clone());
        }
        let (mut map, kind, source, target): (_, String, i64, i64) =
            self.edge.query_row([entity.row, self.moment], |row| {
                Ok((properties(row, 0, 4)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        map.insert("_id".to_owned(), entity.id.into());
        map.insert("_type".to_owned(), kind.into());
        map.insert("_from".to_owned(), source.into());
        map.insert("_to".to_owned(), target.into());
        Ok(keep(&mut self.edges, &mut self.bytes, entity, map))
    }
}

/// The properties in one column of a row, and those of the place and the positions in the two from `at` on.
pub(crate) fn properties(row: &Row<'_>, props: usize, at: usize) -> rusqlite::Result<Map<String, Json>> {
    let mut map: Map<String, Json> = serde_json::from_str(row.get_ref(props)?.as_str()?).unwrap_or_default();
    let (place, data) = (row.get::<_, Option<i64>>(at)?, row.get_ref(at + 1)?.as_blob_or_null()?);
    if let Some(position) = place.zip(data).and_then(|(place, data)| find(data, place)) {
        let known = position.properties().into_iter().flatten();
        map.extend(known.map(|(name, number)| (name.to_owned(), Json::from(number))));
    }
    Ok(map)
}

fn keep(kept: &mut HashMap<i64, Json>, bytes: &mut usize, entity: Entity, map: Map<String, Json>) -> Json {
    let json = Json::Object(map);
    *bytes += size(&json);
    if kept.len() < KEPT {
        kept.insert(entity.row, json.clone());
    }
    json
}

/// About how many bytes a value has as text.
fn size(json: &Json) -> usize {
    match json {
        Json::String(text) => text.len() + 2,
        Json::Array(items) => items.iter().map(size).sum::<usize>() + 2,
        Json::Object(map) => map.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>() + 2,
        _ => 8,
    }
}
