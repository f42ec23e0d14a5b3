//! PostgreSQL's binary values as exact JSON.
//!
//! The driver always asks for binary values. What is not known here is refused before the statement runs, with the advice
//! to cast it to text: never a guess.

use std::error::Error;

use serde_json::{Map, Value};
use tgp_contract::ToolError;
use tokio_postgres::types::{FromSql, Kind, Type};

use super::text_format;
use crate::failure::esql;
use crate::values::{bytes, float, integer, json, small_float, unsigned};

type Fault = Box<dyn Error + Sync + Send>;

/// Arrays, ranges and composites nest as types do; real ones are never this deep.
const MAX_DEPTH: usize = 16;

/// A value of the answer.
pub(crate) struct Decoded(pub Value);

impl<'a> FromSql<'a> for Decoded {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Fault> {
        Ok(Self(decode(kind, raw)?))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Fault> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Refuses a column whose values could not be read.
pub(crate) fn check_readable(kind: &Type, column: &str) -> Result<(), ToolError> {
    if readable(kind, 0) {
        return Ok(());
    }
    Err(esql(format!(
        "the column `{column}` has the type {}, which has no exact JSON form here",
        kind.name()
    ))
    .detail("column", column)
    .help(format!("cast it to text: {column}::text")))
}

fn readable(kind: &Type, depth: usize) -> bool {
    depth < MAX_DEPTH
        && match kind.kind() {
            Kind::Array(inner) | Kind::Domain(inner) | Kind::Range(inner) => readable(inner, depth + 1),
            Kind::Composite(fields) => fields.iter().all(|field| readable(field.type_(), depth + 1)),
            Kind::Enum(_) => true,
            _ => scalar(kind).is_some(),
        }
}

type Reader = fn(&mut Bytes<'_>) -> Result<Value, Fault>;

/// How a simple type is read.
fn scalar(kind: &Type) -> Option<Reader> {
    Some(match *kind {
        Type::BOOL => |raw| Ok(Value::Bool(raw.number::<1>()? != [0])),
        Type::INT2 => |raw| Ok(integer(i16::from_be_bytes(raw.number()?).into())),
        Type::INT4 => |raw| Ok(integer(i32::from_be_bytes(raw.number()?).into())),
        Type::INT8 => |raw| Ok(integer(i64::from_be_bytes(raw.number()?))),
        Type::OID | Type::XID | Type::CID => |raw| Ok(integer(u32::from_be_bytes(raw.number()?).into())),
        Type::XID8 => |raw| Ok(unsigned(u64::from_be_bytes(raw.number()?))),
        Type::FLOAT4 => |raw| Ok(small_float(f32::from_be_bytes(raw.number()?))),
        Type::FLOAT8 => |raw| Ok(float(f64::from_be_bytes(raw.number()?))),
        Type::NUMERIC => |raw| Ok(text_format::numeric(raw)?.into()),
        Type::TEXT
        | Type::VARCHAR
        | Type::BPCHAR
        | Type::NAME
        | Type::UNKNOWN
        | Type::CSTRING
        | Type::XML => text,
        Type::CHAR => |raw| Ok(char::from(u8::from_be_bytes(raw.number()?)).to_string().into()),
        Type::BYTEA => |raw| Ok(bytes(raw.rest())),
        Type::JSON => |raw| Ok(json(std::str::from_utf8(raw.rest())?)),
        Type::JSONB => |raw| {
            raw.version()?;
            Ok(json(std::str::from_utf8(raw.rest())?))
        },
        Type::JSONPATH => |raw| {
            raw.version()?;
            text(raw)
        },
        Type::UUID => |raw| Ok(text_format::uuid(raw)?.into()),
        Type::DATE => |raw| Ok(text_format::date(i32::from_be_bytes(raw.number()?)).into()),
        Type::TIME => |raw| Ok(text_format::time(i64::from_be_bytes(raw.number()?)).into()),
        Type::TIMETZ => |raw| Ok(text_format::zoned_time(raw)?.into()),
        Type::TIMESTAMP => |raw| Ok(text_format::timestamp(i64::from_be_bytes(raw.number()?), "").into()),
        Type::TIMESTAMPTZ => |raw| Ok(text_format::timestamp(i64::from_be_bytes(raw.number()?), "Z").into()),
        Type::INTERVAL => |raw| Ok(text_format::interval(raw)?.into()),
        Type::INET | Type::CIDR => |raw| Ok(text_format::network(raw)?.into()),
        Type::MACADDR | Type::MACADDR8 => |raw| Ok(text_format::hardware_address(raw.rest()).into()),
        Type::BIT | Type::VARBIT => |raw| Ok(text_format::bits(raw)?.into()),
        Type::PG_LSN => |raw| Ok(text_format::log_position(u64::from_be_bytes(raw.number()?)).into()),
        Type::VOID => |_| Ok(Value::Null),
        // A type of an extension, which has no fixed number.
        _ if kind.name() == "citext" => text,
        _ => return None,
    })
}

fn text(raw: &mut Bytes<'_>) -> Result<Value, Fault> {
    Ok(std::str::from_utf8(raw.rest())?.into())
}

fn decode(kind: &Type, raw: &[u8]) -> Result<Value, Fault> {
    let mut input = Bytes(raw);
    match kind.kind() {
        Kind::Domain(inner) => decode(inner, raw),
        Kind::Enum(_) => text(&mut input),
        Kind::Array(member) => array(member, &mut input),
        Kind::Range(member) => range(member, &mut input),
        Kind::Composite(fields) => {
            let count = i32::from_be_bytes(input.number()?);
            if usize::try_from(count)? != fields.len() {
                return Err("a composite value does not fit its type".into());
            }
            let mut object = Map::new();
            for field in fields {
                input.number::<4>()?;
                object.insert(field.name().to_owned(), input.member(field.type_())?);
            }
            Ok(Value::Object(object))
        }
        _ => scalar(kind).ok_or("the type is not known")?(&mut input),
    }
}

/// Dimensions, a flag, the member type, then each dimension's length and lower bound, then the members.
fn array(member: &Type, input: &mut Bytes<'_>) -> Result<Value, Fault> {
    /// The server's own bound.
    const MAX_DIMENSIONS: i32 = 6;
    let dimensions = i32::from_be_bytes(input.number()?);
    input.number::<8>()?;
    if !(0..=MAX_DIMENSIONS).contains(&dimensions) {
        return Err("an array has too many dimensions".into());
    }
    let mut lengths = Vec::new();
    for _ in 0..dimensions {
        lengths.push(usize::try_from(i32::from_be_bytes(input.number()?))?);
        input.number::<4>()?;
    }
    if lengths.is_empty() { Ok(Value::Array(Vec::new())) } else { members(member, &lengths, input) }
}

fn members(member: &Type, lengths: &[usize], input: &mut Bytes<'_>) -> Result<Value, Fault> {
    match lengths.split_first() {
        None => input.member(member),
        Some((length, inner)) => (0..*length).map(|_| members(member, inner, input)).collect(),
    }
}

/// `[1,10)` with the bounds as they are shown elsewhere.
fn range(member: &Type, input: &mut Bytes<'_>) -> Result<Value, Fault> {
    const EMPTY: u8 = 1;
    const LOWER_INCLUDED: u8 = 2;
    const UPPER_INCLUDED: u8 = 4;
    const LOWER_OPEN: u8 = 8;
    const UPPER_OPEN: u8 = 16;
    let flags = u8::from_be_bytes(input.number()?);
    let has = |flag: u8| flags & flag != 0;
    if has(EMPTY) {
        return Ok("empty".into());
    }
    let mut bound = |open: u8| -> Result<String, Fault> {
        if has(open) {
            return Ok(String::new());
        }
        Ok(match input.member(member)? {
            Value::String(text) => text,
            other => other.to_string(),
        })
    };
    let (lower, upper) = (bound(LOWER_OPEN)?, bound(UPPER_OPEN)?);
    let (left, right) =
        (if has(LOWER_INCLUDED) { '[' } else { '(' }, if has(UPPER_INCLUDED) { ']' } else { ')' });
    Ok(format!("{left}{lower},{upper}{right}").into())
}

/// Bytes that are read from the front. Running out of them is a fault, never a panic.
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (taken, left) = self.0.split_at_checked(length).ok_or("a value is too short")?;
        self.0 = left;
        Ok(taken)
    }

    pub fn number<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Fault> {
        Ok(self.take(LENGTH)?.try_into()?)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// Formats that may change begin with their version, which is 1.
    fn version(&mut self) -> Result<(), Fault> {
        if self.number::<1>()? == [1] { Ok(()) } else { Err("a value has an unknown version".into()) }
    }

    /// A value with its length before it; -1 is NULL.
    fn member(&mut self, kind: &Type) -> Result<Value, Fault> {
        let length = i32::from_be_bytes(self.number()?);
        if length == -1 {
            return Ok(Value::Null);
        }
        let raw = self.take(usize::try_from(length)?)?;
        decode(kind, raw)
    }
}
