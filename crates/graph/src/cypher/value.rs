//! The values of Cypher, and how they are represented in SQL.
//!
//! Null, integers, floats and text are SQLite's own. All others are a blob whose first byte says what it is. Nodes,
//! relationships and paths hold only row and id: code that needs a property looks it up by row, in SQL.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value as Sql, ValueRef};

use super::error::met;
use super::temporal::{Date, DateTime};

/// How deep lists and maps may be in each other. Everything that walks a value recurses, so this bounds the stack.
pub(crate) const MAX_DEPTH: u8 = 64;

/// The longest list that a function may make.
pub(crate) const MAX_ITEMS: usize = 2_000_000;

const NULL: u8 = 0;
const BOOL: u8 = 1;
const INT: u8 = 2;
const FLOAT: u8 = 3;
const TEXT: u8 = 4;
const LIST: u8 = 5;
const MAP: u8 = 6;
const NODE: u8 = 7;
const RELATIONSHIP: u8 = 8;
const PATH: u8 = 9;
const DATE: u8 = 10;
const DATE_TIME: u8 = 11;

/// A node or a relationship: its row, which has the properties, and its id, which is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entity {
    pub row: i64,
    pub id: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    /// In the order in which it was written; no key twice.
    Map(Vec<(String, Value)>),
    Node(Entity),
    Relationship(Entity),
    /// Nodes and relationships in turn.
    Path(Vec<Entity>),
    Date(Date),
    DateTime(DateTime),
}

/// The kinds of [`Value`] as `cy_kind` returns them to SQL.
pub(crate) mod kind {
    pub const NODE: i64 = 1;
    pub const RELATIONSHIP: i64 = 2;
    pub const OTHER: i64 = 0;
}

impl Value {
    /// The name used in messages.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Node(_) => "a node",
            Self::Relationship(_) => "a relationship",
            Self::Path(_) => "a path",
            Self::Date(_) => "a date",
            Self::DateTime(_) => "a datetime",
        }
    }

    /// Reads a value out of SQL.
    pub fn read(value: ValueRef<'_>) -> rusqlite::Result<Self> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Int(number),
            ValueRef::Real(number) => Self::Float(number),
            ValueRef::Text(bytes) => Self::Text(String::from_utf8_lossy(bytes).into_owned()),
            ValueRef::Blob(bytes) => {
                let mut reader = Reader { bytes };
                reader.value().ok_or_else(damaged)?
            }
        })
    }

    /// The value as SQL has it.
    pub fn into_sql(self) -> rusqlite::Result<Sql> {
        Ok(match self {
            Self::Null => Sql::Null,
            Self::Int(number) => Sql::Integer(number),
            // SQLite has no NaN: it would become null.
            Self::Float(number) if !number.is_nan() => Sql::Real(number),
            Self::Text(text) => Sql::Text(text),
            other => {
                let mut bytes = Vec::new();
                other.write(&mut bytes)?;
                Sql::Blob(bytes)
            }
        })
    }

    /// The value as a blob, also where SQL has it as its own.
    pub fn bytes(&self) -> rusqlite::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes)?;
        Ok(bytes)
    }

    fn depth(&self) -> u8 {
        match self {
            Self::List(items) => items.iter().map(Self::depth).max().unwrap_or(0).saturating_add(1),
            Self::Map(entries) => {
                entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0).saturating_add(1)
            }
            _ => 0,
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) -> rusqlite::Result<()> {
        if self.depth() > MAX_DEPTH {
            return Err(met("LimitExceeded", format!("a value is more than {MAX_DEPTH} lists or maps deep")));
        }
        self.put(bytes)
    }

    fn put(&self, bytes: &mut Vec<u8>) -> rusqlite::Result<()> {
        match self {
            Self::Null => bytes.push(NULL),
            Self::Bool(value) => bytes.extend([BOOL, u8::from(*value)]),
            Self::Int(number) => {
                bytes.push(INT);
                bytes.extend(number.to_le_bytes());
            }
            Self::Float(number) => {
                bytes.push(FLOAT);
                bytes.extend(number.to_le_bytes());
            }
            Self::Text(text) => {
                bytes.push(TEXT);
                put_text(bytes, text)?;
            }
            Self::List(items) => {
                bytes.push(LIST);
                bytes.extend(narrow(items.len())?.to_le_bytes());
                let table = bytes.len();
                bytes.resize(table + items.len() * 4, 0);
                for (index, item) in items.iter().enumerate() {
                    // Where each item begins, counted from the first byte after the table: `item_at` jumps there.
                    let offset = narrow(bytes.len() - table - items.len() * 4)?.to_le_bytes();
                    let slot = table + index * 4;
                    if let Some(place) = bytes.get_mut(slot..slot + 4) {
                        place.copy_from_slice(&offset);
                    }
                    item.put(bytes)?;
                }
            }
            Self::Map(entries) => {
                bytes.push(MAP);
                bytes.extend(narrow(entries.len())?.to_le_bytes());
                for (key, value) in entries {
                    put_text(bytes, key)?;
                    value.put(bytes)?;
                }
            }
            Self::Node(entity) => put_entity(bytes, NODE, *entity),
            Self::Relationship(entity) => put_entity(bytes, RELATIONSHIP, *entity),
            Self::Path(entities) => {
                bytes.push(PATH);
                bytes.extend(narrow(entities.len())?.to_le_bytes());
                for entity in entities {
                    bytes.extend(entity.row.to_le_bytes());
                    bytes.extend(entity.id.to_le_bytes());
                }
            }
            Self::Date(date) => {
                bytes.push(DATE);
                bytes.extend(date.0.to_le_bytes());
            }
            Self::DateTime(time) => {
                bytes.push(DATE_TIME);
                for number in [time.seconds, i64::from(time.nanos), i64::from(time.offset)] {
                    bytes.extend(number.to_le_bytes());
                }
            }
        }
        Ok(())
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(self.clone().into_sql()?))
    }
}

fn put_entity(bytes: &mut Vec<u8>, tag: u8, entity: Entity) {
    bytes.push(tag);
    bytes.extend(entity.row.to_le_bytes());
    bytes.extend(entity.id.to_le_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) -> rusqlite::Result<()> {
    bytes.extend(narrow(text.len())?.to_le_bytes());
    bytes.extend(text.as_bytes());
    Ok(())
}

fn narrow(number: usize) -> rusqlite::Result<u32> {
    u32::try_from(number).map_err(|_| met("LimitExceeded", "a value is larger than four gigabytes"))
}

fn damaged() -> rusqlite::Error {
    met("InvalidArgumentValue", "a value of the database cannot be read")
}

/// What `cy_kind` says of a value, without reading more than its first byte.
pub(crate) fn kind_of(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::Blob([NODE, ..]) => kind::NODE,
        ValueRef::Blob([RELATIONSHIP, ..]) => kind::RELATIONSHIP,
        _ => kind::OTHER,
    }
}

/// The number of items of a list, without reading them; nothing for what is not a list.
pub(crate) fn items_of(value: ValueRef<'_>) -> Option<usize> {
    match value {
        ValueRef::Blob([LIST, rest @ ..]) => Reader { bytes: rest }.count(),
        _ => None,
    }
}

/// One item of a list, without reading the others; null beyond the end.
pub(crate) fn item_at(value: ValueRef<'_>, index: usize) -> rusqlite::Result<Value> {
    let ValueRef::Blob([LIST, rest @ ..]) = value else { return Ok(Value::Null) };
    let mut reader = Reader { bytes: rest };
    let count = reader.count().ok_or_else(damaged)?;
    if index >= count {
        return Ok(Value::Null);
    }
    let offset =
        reader.bytes.get(index * 4..).and_then(|bytes| Reader { bytes }.count()).ok_or_else(damaged)?;
    let bytes = reader.bytes.get(count * 4 + offset..).ok_or_else(damaged)?;
    Reader { bytes }.value().ok_or_else(damaged)
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn count(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.count()?;
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }

    fn entity(&mut self) -> Option<Entity> {
        Some(Entity { row: self.long()?, id: self.long()? })
    }

    fn value(&mut self) -> Option<Value> {
        let tag = *self.take(1)?.first()?;
        Some(match tag {
            NULL => Value::Null,
            BOOL => Value::Bool(*self.take(1)?.first()? != 0),
            INT => Value::Int(self.long()?),
            FLOAT => Value::Float(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            TEXT => Value::Text(self.text()?),
            LIST => {
                let count = self.count()?;
                self.take(count.checked_mul(4)?)?;
                Value::List((0..count).map(|_| self.value()).collect::<Option<_>>()?)
            }
            MAP => {
                let count = self.count()?;
                let entries = (0..count).map(|_| Some((self.text()?, self.value()?)));
                Value::Map(entries.collect::<Option<_>>()?)
            }
            NODE => Value::Node(self.entity()?),
            RELATIONSHIP => Value::Relationship(self.entity()?),
            PATH => {
                let count = self.count()?;
                Value::Path((0..count).map(|_| self.entity()).collect::<Option<_>>()?)
            }
            DATE => Value::Date(Date(self.long()?)),
            DATE_TIME => Value::DateTime(DateTime {
                seconds: self.long()?,
                nanos: u32::try_from(self.long()?).ok()?,
                offset: i32::try_from(self.long()?).ok()?,
            }),
            _ => return None,
        })
    }
}

/// A value of JSON. Numbers without a fraction are integers, all others floats.
pub(crate) fn from_json(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(from_json).collect()),
        serde_json::Value::Object(entries) => {
            Value::Map(entries.iter().map(|(key, value)| (key.clone(), from_json(value))).collect())
        }
    }
}
