//! Lists, maps, nodes, relationships, paths: how SQL makes them and looks into them.

use rusqlite::Connection;
use rusqlite::functions::Context;
use rusqlite::types::{Value as Sql, ValueRef};

use super::operators::list;
use super::{over_raw, over_values};
use crate::cypher::error::met;
use crate::cypher::key::key;
use crate::cypher::value::{Entity, Value, from_json, item_at, items_of, kind, kind_of};
use crate::tables::positions::{self, Position};

/// One step of a trail: row and id of the relationship, then of the node behind it.
const STEP: usize = 32;

pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    entities(connection)?;
    trails(connection)?;
    over_raw(connection, "cy_json", 1, |context| json(context.get_raw(0)))?;
    // The place of a fact, the positions of its file, the name of one of them, and the property with this name.
    over_raw(connection, "cy_position", 4, |context| match placed(context) {
        Some(position) => {
            let name = context.get_raw(2).as_str().unwrap_or_default();
            Ok(position.property(name).map_or(Sql::Null, |number| Sql::Integer(number.into())))
        }
        None => json(context.get_raw(3)),
    })?;
    // The same with all properties, as a map.
    over_raw(connection, "cy_all", 3, |context| {
        let Some(position) = placed(context) else { return json(context.get_raw(2)) };
        let Value::Map(mut entries) = context.get_raw(2).as_bytes().map_or(Ok(Value::Null), parsed)? else {
            return Ok(Sql::Null);
        };
        for (name, number) in position.properties().into_iter().flatten() {
            entries.push((name.to_owned(), Value::Int(number.into())));
        }
        Value::Map(entries).into_sql()
    })?;
    over_raw(connection, "cy_key", 1, |context| Ok(Sql::Blob(key(&Value::read(context.get_raw(0))?))))?;
    over_raw(connection, "cy_low", 1, |context| bound(&Value::read(context.get_raw(0))?, false))?;
    over_raw(connection, "cy_high", 1, |context| bound(&Value::read(context.get_raw(0))?, true))?;
    over_raw(connection, "cy_limit", 1, |context| match Value::read(context.get_raw(0))? {
        Value::Int(number) if number >= 0 => Ok(Sql::Integer(number)),
        Value::Int(_) => {
            Err(met("NegativeIntegerArgument", "SKIP and LIMIT need an integer that is not negative"))
        }
        other => Err(met(
            "InvalidArgumentType",
            format!("SKIP and LIMIT need an integer, this is {}", other.noun()),
        )),
    })?;
    over_values(connection, "cy_list", -1, |values| list(values.to_vec()))?;
    over_values(connection, "cy_map", -1, |values| {
        let mut entries: Vec<(String, Value)> = Vec::new();
        for pair in values.chunks(2) {
            if let [Value::Text(name), value] = pair {
                entries.retain(|(known, _)| known != name);
                entries.push((name.clone(), value.clone()));
            }
        }
        Ok(Value::Map(entries))
    })?;
    over_values(connection, "cy_merge", 2, |values| match values {
        [Value::Map(one), Value::Map(other)] => {
            let kept = one.iter().filter(|(name, _)| other.iter().all(|(newer, _)| newer != name));
            Ok(Value::Map(kept.chain(other).cloned().collect()))
        }
        [Value::Null, _] | [_, Value::Null] => Ok(Value::Null),
        [other, ..] => Err(met("InvalidArgumentType", format!("a map is needed, this is {}", other.noun()))),
        [] => Ok(Value::Null),
    })?;
    over_values(connection, "cy_get", 2, |values| match values {
        [Value::Map(entries), Value::Text(name)] => {
            Ok(entries.iter().find(|(key, _)| key == name).map_or(Value::Null, |(_, value)| value.clone()))
        }
        [Value::Null, _] => Ok(Value::Null),
        [Value::Date(date), Value::Text(name)] => Ok(date.part(name).map_or(Value::Null, Value::Int)),
        [Value::DateTime(time), Value::Text(name)] => Ok(match (time.part(name), time.text_part(name)) {
            (Some(number), _) => Value::Int(number),
            (None, text) => text.map_or(Value::Null, Value::Text),
        }),
        [other, ..] => {
            let message =
                format!("only nodes, relationships and maps have properties, this is {}", other.noun());
            Err(met("InvalidArgumentType", message))
        }
        [] => Ok(Value::Null),
    })?;
    over_values(connection, "cy_index", 2, index)?;
    over_values(connection, "cy_slice", 3, slice)?;
    // A list as `json_each` walks it, each item once: integers as they are, all others as the digits of their bytes,
    // so that nothing is lost on the way; `cy_item` reads them again.
    over_raw(connection, "cy_each", 1, |context| match Value::read(context.get_raw(0))? {
        Value::Null => Ok(Sql::Text("[]".to_owned())),
        Value::List(items) => each(&items).map(Sql::Text),
        other => Err(met("InvalidArgumentType", format!("a list is needed, this is {}", other.noun()))),
    })?;
    over_raw(connection, "cy_item", 1, |context| match context.get_raw(0) {
        ValueRef::Null => Ok(Sql::Null),
        ValueRef::Integer(number) => Ok(Sql::Integer(number)),
        ValueRef::Text(digits) => Value::read(ValueRef::Blob(&unhex(digits)))?.into_sql(),
        _ => Err(met("InvalidArgumentValue", "an item of a list cannot be read")),
    })?;
    // The same for a list that is in a column: only the number of items, each of which `cy_at` reads.
    over_raw(connection, "cy_steps", 1, |context| {
        let count = match context.get_raw(0) {
            ValueRef::Null => 0,
            value => items_of(value).ok_or_else(|| {
                let noun = Value::read(value).map_or("something else", |value| value.noun());
                met("InvalidArgumentType", format!("a list is needed, this is {noun}"))
            })?,
        };
        Ok(Sql::Text(format!("[{}]", vec!["0"; count].join(","))))
    })?;
    over_raw(connection, "cy_count", 1, |context| {
        let count = items_of(context.get_raw(0)).unwrap_or(0);
        Ok(Sql::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
    })?;
    over_raw(connection, "cy_at", 2, |context| match context.get_raw(1) {
        ValueRef::Integer(place) => {
            item_at(context.get_raw(0), usize::try_from(place).unwrap_or(usize::MAX))?.into_sql()
        }
        _ => Ok(Sql::Null),
    })
}

fn each(items: &[Value]) -> rusqlite::Result<String> {
    let mut text = String::with_capacity(items.len() * 4 + 2);
    for item in items {
        text.push(if text.is_empty() { '[' } else { ',' });
        match item {
            Value::Null => text.push_str("null"),
            Value::Int(number) => text.push_str(&number.to_string()),
            other => {
                text.push('"');
                for byte in other.bytes()? {
                    text.extend(
                        [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16).unwrap_or('0')),
                    );
                }
                text.push('"');
            }
        }
    }
    if text.is_empty() {
        text.push('[');
    }
    text.push(']');
    Ok(text)
}

fn unhex(digits: &[u8]) -> Vec<u8> {
    let half =
        |digit: u8| char::from(digit).to_digit(16).and_then(|half| u8::try_from(half).ok()).unwrap_or(0);
    digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | half(*digit))).collect()
}

fn json(value: ValueRef<'_>) -> rusqlite::Result<Sql> {
    match value {
        ValueRef::Null => Ok(Sql::Null),
        ValueRef::Text(text) => parsed(text)?.into_sql(),
        _ => Err(met("InvalidArgumentValue", "a property is not JSON")),
    }
}

/// The position of the place that is the first argument, in the positions that are the second.
fn placed(context: &Context<'_>) -> Option<Position> {
    match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Integer(place), ValueRef::Blob(data)) => positions::find(data, place),
        _ => None,
    }
}

fn parsed(text: &[u8]) -> rusqlite::Result<Value> {
    match serde_json::from_slice(text) {
        Ok(json) => Ok(from_json(&json)),
        Err(_) => Err(met("InvalidArgumentValue", "a property is not JSON")),
    }
}

fn entities(connection: &Connection) -> rusqlite::Result<()> {
    over_raw(connection, "cy_kind", 1, |context| Ok(Sql::Integer(kind_of(context.get_raw(0)))))?;
    over_raw(connection, "cy_node", 2, |context| {
        entity(context.get_raw(0), context.get_raw(1), Value::Node)
    })?;
    over_raw(connection, "cy_rel", 2, |context| {
        entity(context.get_raw(0), context.get_raw(1), Value::Relationship)
    })?;
    // The row or the id of a value that must be of the kind of the second argument.
    over_raw(connection, "cy_row", 2, |context| {
        let found = needed(context.get_raw(0), context.get_raw(1))?;
        Ok(found.map_or(Sql::Null, |entity| Sql::Integer(entity.row)))
    })?;
    over_raw(connection, "cy_id", 2, |context| {
        let found = needed(context.get_raw(0), context.get_raw(1))?;
        Ok(found.map_or(Sql::Null, |entity| Sql::Integer(entity.id)))
    })
}

fn entity(row: ValueRef<'_>, id: ValueRef<'_>, make: fn(Entity) -> Value) -> rusqlite::Result<Sql> {
    match (row, id) {
        (ValueRef::Integer(row), ValueRef::Integer(id)) => make(Entity { row, id }).into_sql(),
        _ => Ok(Sql::Null),
    }
}

fn needed(value: ValueRef<'_>, wanted: ValueRef<'_>) -> rusqlite::Result<Option<Entity>> {
    let wanted = wanted.as_i64().unwrap_or(kind::OTHER);
    match (Value::read(value)?, wanted) {
        (Value::Null, _) => Ok(None),
        (Value::Node(entity), kind::NODE | kind::OTHER) => Ok(Some(entity)),
        (Value::Relationship(entity), kind::RELATIONSHIP | kind::OTHER) => Ok(Some(entity)),
        (other, wanted) => {
            let needed = match wanted {
                kind::NODE => "a node",
                kind::RELATIONSHIP => "a relationship",
                _ => "a node or a relationship",
            };
            Err(met("InvalidArgumentValue", format!("{needed} is needed, this is {}", other.noun())))
        }
    }
}

fn trails(connection: &Connection) -> rusqlite::Result<()> {
    over_raw(connection, "cy_push", 5, |context| {
        let mut trail = blob(context.get_raw(0)).to_vec();
        for index in 1..5 {
            trail.extend(context.get_raw(index).as_i64().unwrap_or(0).to_le_bytes());
        }
        Ok(Sql::Blob(trail))
    })?;
    over_raw(connection, "cy_seen", 2, |context| {
        let row = context.get_raw(1).as_i64().unwrap_or(0);
        let seen = steps(blob(context.get_raw(0))).any(|(relationship, _)| relationship.row == row);
        Ok(Sql::Integer(i64::from(seen)))
    })?;
    over_raw(connection, "cy_meet", 2, |context| {
        let others: Vec<_> =
            steps(blob(context.get_raw(1))).map(|(relationship, _)| relationship.row).collect();
        let meet =
            steps(blob(context.get_raw(0))).any(|(relationship, _)| others.contains(&relationship.row));
        Ok(Sql::Integer(i64::from(meet)))
    })?;
    // The relationships of a trail as a list; the second argument says whether it was walked against the pattern.
    over_raw(connection, "cy_walked", 2, |context| {
        let trail = context.get_raw(0);
        if trail == ValueRef::Null {
            return Ok(Sql::Null);
        }
        let mut items: Vec<_> =
            steps(blob(trail)).map(|(relationship, _)| Value::Relationship(relationship)).collect();
        if context.get_raw(1).as_i64().unwrap_or(0) != 0 {
            items.reverse();
        }
        Value::List(items).into_sql()
    })?;
    // A path from a node, then for each hop: relationship and node, or a trail, or the node it led back to and a trail
    // that was walked from there.
    over_raw(connection, "cy_path", -1, |context| {
        let mut path = Vec::new();
        for index in 0..context.len() {
            match context.get_raw(index) {
                ValueRef::Null => return Ok(Sql::Null),
                value @ ValueRef::Blob(_) => match Value::read(value)? {
                    Value::Node(entity) | Value::Relationship(entity) => path.push(entity),
                    Value::Path(entities) => path.extend(entities.into_iter().skip(1)),
                    _ => return Err(met("InvalidArgumentValue", "a path cannot be put together")),
                },
                _ => return Err(met("InvalidArgumentValue", "a path cannot be put together")),
            }
        }
        Value::Path(path).into_sql()
    })?;
    // A trail as a path from a node; walked against the pattern, it is turned round.
    over_raw(connection, "cy_trail", 3, |context| {
        let (Value::Node(first), false) =
            (Value::read(context.get_raw(0))?, context.get_raw(1) == ValueRef::Null)
        else {
            return Ok(Sql::Null);
        };
        let mut path = vec![first];
        for (relationship, node) in steps(blob(context.get_raw(1))) {
            path.extend([relationship, node]);
        }
        if context.get_raw(2).as_i64().unwrap_or(0) != 0 {
            path.reverse();
        }
        Value::Path(path).into_sql()
    })?;
    connection.create_scalar_function(
        "cy_too_far",
        1,
        rusqlite::functions::FunctionFlags::SQLITE_UTF8,
        |context| -> rusqlite::Result<Sql> {
            let hops = context.get_raw(0).as_i64().unwrap_or(0);
            Err(met("LimitExceeded", format!("a path of variable length is longer than {hops} hops")))
        },
    )
}

fn blob(value: ValueRef<'_>) -> &[u8] {
    value.as_blob().unwrap_or(&[])
}

fn steps(trail: &[u8]) -> impl Iterator<Item = (Entity, Entity)> + '_ {
    trail.chunks_exact(STEP).map(|step| {
        let long = |at: usize| {
            let bytes = step.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, i64::from_le_bytes)
        };
        (Entity { row: long(0), id: long(8) }, Entity { row: long(16), id: long(24) })
    })
}

/// The range of the values that `json_extract` gives for everything that may be equal to `value`.
fn bound(value: &Value, high: bool) -> rusqlite::Result<Sql> {
    let text = |low: &str, top: &str| Sql::Text(if high { top } else { low }.to_owned());
    match value {
        Value::Bool(value) => Ok(Sql::Integer(i64::from(*value))),
        // Lists and maps come out as JSON text.
        Value::List(_) => Ok(text("[", "\\")),
        Value::Map(_) => Ok(text("{", "|")),
        Value::Int(_) | Value::Float(_) | Value::Text(_) => value.clone().into_sql(),
        _ => Ok(Sql::Null),
    }
}

fn index(values: &[Value]) -> rusqlite::Result<Value> {
    match values {
        [Value::Null, _] | [_, Value::Null] => Ok(Value::Null),
        [Value::List(items), Value::Int(place)] => Ok(position(*place, items.len())
            .and_then(|place| items.get(place))
            .cloned()
            .unwrap_or(Value::Null)),
        [Value::Map(entries), Value::Text(name)] => {
            Ok(entries.iter().find(|(key, _)| key == name).map_or(Value::Null, |(_, value)| value.clone()))
        }
        [Value::Map(_), other] => {
            Err(met("MapElementAccessByNonString", format!("a map needs a string, this is {}", other.noun())))
        }
        [Value::List(_), other] => {
            Err(met("InvalidArgumentType", format!("a list needs an integer, this is {}", other.noun())))
        }
        [other, ..] => Err(met("InvalidArgumentType", format!("{} has no elements", other.noun()))),
        [] => Ok(Value::Null),
    }
}

fn position(place: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    usize::try_from(if place < 0 { length.checked_add(place)? } else { place }).ok()
}

fn slice(values: &[Value]) -> rusqlite::Result<Value> {
    let [subject, lower, upper] = values else { return Ok(Value::Null) };
    let Value::List(items) = subject else {
        return match subject {
            Value::Null => Ok(Value::Null),
            other => {
                Err(met("InvalidArgumentType", format!("a slice needs a list, this is {}", other.noun())))
            }
        };
    };
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let clamp = |value: &Value| match value {
        Value::Int(place) if *place < 0 => Ok(Some(length.saturating_add(*place).max(0))),
        Value::Int(place) => Ok(Some((*place).min(length))),
        Value::Null => Ok(None),
        other => Err(met("InvalidArgumentType", format!("a slice needs integers, this is {}", other.noun()))),
    };
    let (Some(lower), Some(upper)) = (clamp(lower)?, clamp(upper)?) else { return Ok(Value::Null) };
    let (lower, upper) = (usize::try_from(lower).unwrap_or(0), usize::try_from(upper).unwrap_or(0));
    Ok(Value::List(items.get(lower..upper).map(<[Value]>::to_vec).unwrap_or_default()))
}
