//! marsdb: it loads the set-up statements of the TCK, which write, and is what the fuzz compares with.

use marsdb::{Database, Literal, PathElem, PropertyValue, Value};
use serde_json::{Map, Value as Json, json};
use tgp_graph::TestGraph;

/// Runs statements that write, and states what they made as facts.
pub fn load(statements: &[String]) -> Result<TestGraph, String> {
    let mut facts = TestGraph::new().map_err(|error| error.to_string())?;
    if statements.is_empty() {
        return Ok(facts);
    }
    let database = Database::in_memory().map_err(|error| error.to_string())?;
    for statement in statements {
        database.execute(statement).map_err(|error| error.to_string())?;
    }
    copy(&database, &mut facts)?;
    Ok(facts)
}

/// States everything that a database has.
pub fn copy(database: &Database, facts: &mut TestGraph) -> Result<(), String> {
    let nodes = database.execute("MATCH (n) RETURN n").map_err(|error| error.to_string())?;
    let mut ids = std::collections::HashMap::new();
    for row in &nodes.rows {
        if let [Value::Node(node)] = row.as_slice() {
            let labels: Vec<&str> = node.labels.iter().map(String::as_str).collect();
            let id = facts.node(&labels, &properties(&node.props)?).map_err(|error| error.to_string())?;
            ids.insert(node.id.0, id);
        }
    }
    let edges = database.execute("MATCH ()-[r]->() RETURN r").map_err(|error| error.to_string())?;
    for row in &edges.rows {
        if let [Value::Edge(edge)] = row.as_slice() {
            facts
                .relationship(ids[&edge.src.0], &edge.label, ids[&edge.dst.0], &properties(&edge.props)?)
                .map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn properties<'a>(props: impl IntoIterator<Item = (&'a String, &'a PropertyValue)>) -> Result<Json, String> {
    let mut map = Map::new();
    for (name, value) in props {
        map.insert(name.clone(), property(value)?);
    }
    Ok(Json::Object(map))
}

pub fn property(value: &PropertyValue) -> Result<Json, String> {
    Ok(match value {
        PropertyValue::Null => Json::Null,
        PropertyValue::Bool(value) => json!(value),
        PropertyValue::Int(value) => json!(value),
        PropertyValue::Float(value) => float(*value),
        PropertyValue::String(value) => json!(value),
        PropertyValue::List(items) => Json::Array(items.iter().map(property).collect::<Result<_, _>>()?),
        other => return Err(format!("a property is {other:?}")),
    })
}

fn float(value: f64) -> Json {
    serde_json::Number::from_f64(value).map_or_else(|| json!(value.to_string()), Json::Number)
}

/// A value of the oracle as our answers have it, without ids.
pub fn json(value: &Value) -> Result<Json, String> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Literal(Literal::Int(value)) => json!(value),
        Value::Literal(Literal::Float(value)) => float(*value),
        Value::Literal(Literal::String(value)) => json!(value),
        Value::Literal(Literal::Bool(value)) => json!(value),
        Value::Literal(_) => Json::Null,
        Value::Property(value) => property(value)?,
        Value::List(items) => Json::Array(items.iter().map(json).collect::<Result<_, _>>()?),
        Value::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                map.insert(key.clone(), json(value)?);
            }
            Json::Object(map)
        }
        Value::Node(node) => {
            let mut map = properties(&node.props)?;
            let mut labels = node.labels.clone();
            labels.sort();
            map["_labels"] = json!(labels);
            map
        }
        Value::Edge(edge) => {
            let mut map = properties(&edge.props)?;
            map["_type"] = json!(edge.label);
            map
        }
        Value::Path(elements) => {
            let items = elements.iter().map(|element| match element {
                PathElem::Node(node) => json(&Value::Node(node.clone())),
                PathElem::Edge(edge) => json(&Value::Edge(edge.clone())),
            });
            Json::Array(items.collect::<Result<_, _>>()?)
        }
    })
}
