//! Parameters for PostgreSQL: all as text, so that the server reads each one as the type it has inferred.

use std::error::Error;

use bytes::BytesMut;
use serde_json::Value;
use tgp_contract::{ToolError, canonical};
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type};

use crate::failure::esql;
use crate::values::Parameter;

/// A value in the server's own notation; nothing is NULL.
#[derive(Debug)]
pub(crate) struct TextValue(Option<String>);

impl ToSql for TextValue {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match &self.0 {
            None => Ok(IsNull::Yes),
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(kind, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }
}

/// Writes a value for a parameter of type `kind`.
///
/// A list is an array where the server expects one and JSON elsewhere. A string for a json parameter is taken as JSON text.
pub(crate) fn write(parameter: &Parameter, kind: &Type, number: usize) -> Result<TextValue, ToolError> {
    let kind = base(kind);
    Ok(TextValue(Some(match (parameter, kind.kind()) {
        (Parameter::Null, _) => return Ok(TextValue(None)),
        (Parameter::Bool(value), _) => value.to_string(),
        (Parameter::Integer(value), _) => value.to_string(),
        (Parameter::Unsigned(value), _) => value.to_string(),
        (Parameter::Float(value), _) => value.to_string(),
        (Parameter::Text(text), _) => text.clone(),
        (Parameter::Bytes(bytes), _) if *kind == Type::BYTEA => hex(bytes),
        (Parameter::Bytes(_), _) => {
            return Err(esql(format!(
                "parameter {number} is bytes, and the statement expects {}",
                kind.name()
            ))
            .help(format!("write ${number}::bytea")));
        }
        (Parameter::Time(time), _) => time.text.clone(),
        (Parameter::Json(Value::Array(values)), Kind::Array(member)) => array(values, base(member), number)?,
        (Parameter::Json(value), _) => value.to_string(),
    })))
}

/// What a domain is made of.
fn base(kind: &Type) -> &Type {
    match kind.kind() {
        Kind::Domain(inner) => base(inner),
        _ => kind,
    }
}

fn hex(bytes: &[u8]) -> String {
    format!("\\x{}", canonical::hex(bytes))
}

/// `{1,"two",NULL}`; inner lists are further dimensions. The depth was bounded by the JSON parser.
fn array(values: &[Value], member: &Type, number: usize) -> Result<String, ToolError> {
    let is_json = *member == Type::JSON || *member == Type::JSONB;
    let mut items = Vec::with_capacity(values.len());
    for value in values {
        items.push(match value {
            Value::Array(inner) if !is_json => array(inner, member, number)?,
            Value::Null => "NULL".to_owned(),
            value => match write(&Parameter::read(value, &number.to_string())?, member, number)?.0 {
                None => "NULL".to_owned(),
                Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            },
        });
    }
    Ok(format!("{{{}}}", items.join(",")))
}
