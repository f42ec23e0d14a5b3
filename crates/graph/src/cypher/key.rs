//! Bytes that order and compare as Cypher's values do: for ORDER BY, DISTINCT, grouping, min and max.

use super::value::{Entity, Value};

// The order of types in an ascending sort.
const MAP: u8 = 0x10;
const NODE: u8 = 0x20;
const RELATIONSHIP: u8 = 0x30;
const LIST: u8 = 0x40;
const PATH: u8 = 0x50;
const TEXT: u8 = 0x60;
const DATE_TIME: u8 = 0x51;
const DATE: u8 = 0x52;
const BOOL: u8 = 0x70;
const NUMBER: u8 = 0x80;
const NULL: u8 = 0xF0;
/// Ends a list or a map; smaller than every type, so that the shorter one comes first.
const END: u8 = 0x01;

/// The key of a value. Two values have the same key exactly when DISTINCT takes them for one.
pub(crate) fn key(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    put(value, &mut bytes);
    bytes
}

fn put(value: &Value, bytes: &mut Vec<u8>) {
    match value {
        Value::Null => bytes.push(NULL),
        Value::Bool(value) => bytes.extend([BOOL, u8::from(*value)]),
        Value::Int(number) => put_integer(*number, bytes),
        Value::Float(number) => put_float(*number, bytes),
        Value::Text(text) => {
            bytes.push(TEXT);
            put_text(text, bytes);
        }
        Value::List(items) => {
            bytes.push(LIST);
            items.iter().for_each(|item| put(item, bytes));
            bytes.push(END);
        }
        Value::Map(entries) => {
            bytes.push(MAP);
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            for (key, value) in entries {
                // Not END, which is the end of all entries.
                bytes.push(TEXT);
                put_text(key, bytes);
                put(value, bytes);
            }
            bytes.push(END);
        }
        Value::Node(entity) => put_entity(NODE, *entity, bytes),
        Value::Relationship(entity) => put_entity(RELATIONSHIP, *entity, bytes),
        Value::Path(entities) => {
            bytes.push(PATH);
            entities.iter().for_each(|entity| put_entity(NODE, *entity, bytes));
            bytes.push(END);
        }
        Value::Date(date) => {
            bytes.push(DATE);
            bytes.extend(sortable(date.0).to_be_bytes());
        }
        Value::DateTime(time) => {
            bytes.push(DATE_TIME);
            for number in [time.seconds, i64::from(time.nanos), i64::from(time.offset)] {
                bytes.extend(sortable(number).to_be_bytes());
            }
        }
    }
}

fn put_entity(tag: u8, entity: Entity, bytes: &mut Vec<u8>) {
    bytes.push(tag);
    bytes.extend(sortable(entity.id).to_be_bytes());
}

fn put_text(text: &str, bytes: &mut Vec<u8>) {
    for byte in text.bytes() {
        bytes.push(byte);
        if byte == 0 {
            bytes.push(0xFF);
        }
    }
    bytes.extend([0, 0]);
}

/// The nearest float, then what is missing to the integer: rounding keeps the order, so the pair is exact.
fn put_integer(number: i64, bytes: &mut Vec<u8>) {
    #[expect(clippy::cast_precision_loss, reason = "what is lost here is the second part of the key")]
    let near = number as f64;
    #[expect(clippy::cast_possible_truncation, reason = "a float made of an i64 fits an i128")]
    let rest = i128::from(number) - near as i128;
    put_parts(near, i64::try_from(rest).unwrap_or(0), bytes);
}

fn put_float(number: f64, bytes: &mut Vec<u8>) {
    // Minus zero is zero, and all that is not a number is one thing, above every number.
    let number = if number == 0.0 { 0.0 } else { number };
    put_parts(if number.is_nan() { f64::NAN } else { number }, 0, bytes);
}

fn put_parts(near: f64, rest: i64, bytes: &mut Vec<u8>) {
    bytes.push(NUMBER);
    let bits = near.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    bytes.extend(ordered.to_be_bytes());
    bytes.extend(sortable(rest).to_be_bytes());
}

fn sortable(number: i64) -> u64 {
    number.cast_unsigned() ^ 1 << 63
}
