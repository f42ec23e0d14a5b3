//! Nodes and relationships as a picture: Graphviz and Mermaid.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value};

/// Nodes in one picture. A reader cannot grasp more, and the programs that draw them give up before.
const MAX_NODES: usize = 2_000;
/// How deep nodes may be in lists and maps of an answer.
const MAX_DEPTH: usize = 16;

/// What there is to draw.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    nodes: BTreeMap<u64, Value>,
    edges: BTreeMap<(u64, u64, String), ()>,
}

impl Drawing {
    /// Everything that can be drawn in these values, wherever it is in them.
    pub(super) fn of(values: &[Value]) -> Self {
        let mut drawing = Self::default();
        values.iter().for_each(|value| drawing.collect(value, 0));
        drawing
    }

    /// What the cells of all rows show.
    pub(super) fn of_rows(rows: &[Map<String, Value>]) -> Self {
        let mut drawing = Self::default();
        rows.iter().flat_map(Map::values).for_each(|value| drawing.collect(value, 1));
        drawing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.edges.is_empty()
    }

    fn collect(&mut self, value: &Value, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, depth + 1)),
            Value::Object(_) if value.get("_labels").is_some() => {
                if let Some(id) = number("_id")
                    && self.nodes.len() < MAX_NODES
                {
                    self.nodes.insert(id, value.clone());
                }
            }
            Value::Object(_) if value.get("_type").is_some() => {
                if let (Some(from), Some(to)) = (number("_from"), number("_to"))
                    && self.edges.len() < MAX_NODES * 4
                {
                    let kind = value.get("_type").and_then(Value::as_str).unwrap_or_default();
                    self.edges.insert((from, to, kind.to_owned()), ());
                }
            }
            Value::Object(fields) => fields.values().for_each(|field| self.collect(field, depth + 1)),
            _ => {}
        }
    }

    /// Relationships whose ends are in the picture; when no node was returned, all of them.
    fn drawn(&self) -> impl Iterator<Item = (&u64, &u64, &str)> {
        let edges = self.edges.keys();
        edges
            .filter(|(from, to, _)| {
                self.nodes.is_empty() || (self.nodes.contains_key(from) && self.nodes.contains_key(to))
            })
            .map(|(from, to, kind)| (from, to, kind.as_str()))
    }

    pub(super) fn dot(&self) -> String {
        let mut text = "digraph tgp {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for (id, node) in &self.nodes {
            let _ = writeln!(text, "  n{id} [label=\"{}\"];", escape(&title(node)));
        }
        for (from, to, kind) in self.drawn() {
            let _ = writeln!(text, "  n{from} -> n{to} [label=\"{}\"];", escape(kind));
        }
        text.push_str("}\n");
        text
    }

    pub(super) fn mermaid(&self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        for (id, node) in &self.nodes {
            let _ = writeln!(text, "  n{id}[\"{}\"]", entity(&title(node)));
        }
        for (from, to, kind) in self.drawn() {
            let _ = writeln!(text, "  n{from} -->|{}| n{to}", entity(kind));
        }
        text
    }
}

/// What a node is called: a path, a name, the beginning of a commit.
pub(super) fn title(node: &Value) -> String {
    let text = |name: &str| node.get(name).and_then(Value::as_str);
    let symbol = text("qualifiedName").zip(text("path")).map(|(name, path)| format!("{name} ({path})"));
    symbol
        .or_else(|| text("path").map(str::to_owned))
        .or_else(|| text("name").map(str::to_owned))
        .or_else(|| text("short").map(str::to_owned))
        .or_else(|| text("specifier").map(str::to_owned))
        .or_else(|| node.get("_id").map(Value::to_string))
        .unwrap_or_default()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Mermaid has no escapes in quotes, only entities.
fn entity(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '#' | ';' | '<' | '>' | '|' | '&' | '`' => {
                let _ = write!(safe, "#{};", u32::from(letter));
            }
            '\n' | '\r' => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn picture() -> Drawing {
        Drawing::of(&[
            json!({ "f": { "_id": 1, "_labels": ["File"], "path": "a \"b\".ts" }, "n": 3 }),
            json!({ "p": [
                { "_id": 1, "_labels": ["File"], "path": "a \"b\".ts" },
                { "_id": 9, "_type": "IMPORTS", "_from": 1, "_to": 2 },
                { "_id": 2, "_labels": ["Symbol"], "qualifiedName": "C.m", "path": "b.ts" },
            ] }),
            json!({ "r": { "_id": 8, "_type": "CALLS", "_from": 2, "_to": 77 } }),
        ])
    }

    #[test]
    fn nodes_are_drawn_once_and_relationships_between_them() {
        assert_eq!(
            picture().dot(),
            "digraph tgp {\n  rankdir=LR;\n  node [shape=box];\n  n1 [label=\"a \\\"b\\\".ts\"];\n  n2 [label=\"C.m (b.ts)\"];\n  n1 -> n2 [label=\"IMPORTS\"];\n}\n"
        );
        assert_eq!(
            picture().mermaid(),
            "flowchart LR\n  n1[\"a #34;b#34;.ts\"]\n  n2[\"C.m (b.ts)\"]\n  n1 -->|IMPORTS| n2\n"
        );
        assert!(Drawing::of(&[json!({ "n": 1 })]).is_empty());
    }
}
