//! Values to and from MySQL and MariaDB.

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::{Column, Value as MySqlValue};
use serde_json::Value;
use tgp_contract::ToolError;

use crate::failure::esql;
use crate::values::{Parameter, bytes, float, fraction, integer, json, small_float, unsigned};

/// The character set of what is not text.
const BINARY: u16 = 63;

/// The length MariaDB gives for a JSON column, which is a LONGTEXT there.
const LONGTEXT: u32 = u32::MAX;

pub(crate) fn write(parameter: Parameter) -> MySqlValue {
    match parameter {
        Parameter::Null => MySqlValue::NULL,
        Parameter::Bool(value) => MySqlValue::Int(value.into()),
        Parameter::Integer(value) => MySqlValue::Int(value),
        Parameter::Unsigned(value) => MySqlValue::UInt(value),
        Parameter::Float(value) => MySqlValue::Double(value),
        Parameter::Text(text) => MySqlValue::Bytes(text.into_bytes()),
        Parameter::Bytes(content) => MySqlValue::Bytes(content),
        // The session's zone is UTC.
        Parameter::Time(time) => MySqlValue::Date(
            time.year,
            time.month,
            time.day,
            time.hour,
            time.minute,
            time.second,
            u32::from(time.millisecond) * 1_000,
        ),
        Parameter::Json(value) => MySqlValue::Bytes(value.to_string().into_bytes()),
    }
}

/// True when the column could be MariaDB's JSON: a LONGTEXT with a binary collation. Its check constraint
/// decides.
pub(crate) fn may_be_json(column: &Column) -> bool {
    column.column_type() == ColumnType::MYSQL_TYPE_BLOB
        && column.column_length() == LONGTEXT
        && column.character_set() != BINARY
        && column.flags().contains(ColumnFlags::BINARY_FLAG)
        && !column.org_table_ref().is_empty()
}

pub(crate) fn read(value: MySqlValue, column: &Column) -> Result<Value, ToolError> {
    Ok(match value {
        MySqlValue::NULL => Value::Null,
        MySqlValue::Int(number) => integer(number),
        MySqlValue::UInt(number) => unsigned(number),
        MySqlValue::Float(number) => small_float(number),
        MySqlValue::Double(number) => float(number),
        MySqlValue::Bytes(content) => read_bytes(content, column)?,
        MySqlValue::Date(year, month, day, hour, minute, second, micro) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            let clock = || format!("T{hour:02}:{minute:02}:{second:02}{}", fraction(micro));
            match column.column_type() {
                ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => date,
                // The session's zone is UTC.
                ColumnType::MYSQL_TYPE_TIMESTAMP | ColumnType::MYSQL_TYPE_TIMESTAMP2 => {
                    format!("{date}{}Z", clock())
                }
                _ => format!("{date}{}", clock()),
            }
            .into()
        }
        MySqlValue::Time(negative, days, hours, minutes, seconds, micro) => {
            let hours = u64::from(days) * 24 + u64::from(hours);
            let minus = if negative { "-" } else { "" };
            format!("{minus}{hours:02}:{minutes:02}:{seconds:02}{}", fraction(micro)).into()
        }
    })
}

fn read_bytes(content: Vec<u8>, column: &Column) -> Result<Value, ToolError> {
    match column.column_type() {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => text(content, column),
        ColumnType::MYSQL_TYPE_JSON => Ok(match text(content, column)? {
            Value::String(text) => json(&text),
            other => other,
        }),
        ColumnType::MYSQL_TYPE_BIT => {
            // At most 64 bits, the highest first.
            let number = content.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            Ok(unsigned(number))
        }
        ColumnType::MYSQL_TYPE_ENUM | ColumnType::MYSQL_TYPE_SET => text(content, column),
        _ if column.character_set() == BINARY => Ok(bytes(&content)),
        _ => text(content, column),
    }
}

fn text(content: Vec<u8>, column: &Column) -> Result<Value, ToolError> {
    String::from_utf8(content).map(Value::String).map_err(|_| {
        esql(format!("a text in the column `{}` is not UTF-8", column.name_str()))
            .help("select CAST(column AS BINARY) instead")
    })
}
