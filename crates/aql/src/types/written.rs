//! A type as it is written in AQL.

use std::fmt;

use super::{QueryType, Record};

impl fmt::Display for QueryType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryType::Any => formatter.write_str("Any"),
            QueryType::String => formatter.write_str("String"),
            QueryType::Int => formatter.write_str("Int"),
            QueryType::Float => formatter.write_str("Float"),
            QueryType::Bool => formatter.write_str("Bool"),
            QueryType::Null => formatter.write_str("null"),
            QueryType::Choice(texts) => {
                for (at, text) in texts.iter().enumerate() {
                    if at > 0 {
                        formatter.write_str(" | ")?;
                    }
                    write!(formatter, "{}", quoted(text))?;
                }
                Ok(())
            }
            QueryType::List(item) => write!(formatter, "[{item}]"),
            QueryType::Record(record) => write!(formatter, "{record}"),
            QueryType::OneOf(types) => one_of(types, formatter),
        }
    }
}

/// Null is written as `?`, behind brackets where there is more than one other type.
fn one_of(types: &[QueryType], formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let others: Vec<&QueryType> = types.iter().filter(|ty| **ty != QueryType::Null).collect();
    let nullable = others.len() < types.len();
    let many = others.len() > 1 || matches!(others.as_slice(), [QueryType::Choice(texts)] if texts.len() > 1);
    if nullable && many {
        formatter.write_str("(")?;
    }
    for (at, ty) in others.iter().enumerate() {
        if at > 0 {
            formatter.write_str(" | ")?;
        }
        write!(formatter, "{ty}")?;
    }
    match (nullable, many) {
        (true, true) => formatter.write_str(")?"),
        (true, false) => formatter.write_str("?"),
        _ => Ok(()),
    }
}

impl fmt::Display for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.fields.is_empty() && !self.open {
            return formatter.write_str("{}");
        }
        formatter.write_str("{ ")?;
        for (at, (name, field)) in self.fields.iter().enumerate() {
            if at > 0 {
                formatter.write_str(", ")?;
            }
            if is_name(name) {
                formatter.write_str(name)?;
            } else {
                write!(formatter, "{}", quoted(name))?;
            }
            // A field whose type ends in `?` may be missing anyway.
            let said = matches!(&field.ty, QueryType::OneOf(types) if types.contains(&QueryType::Null));
            let mark = if field.optional && !said { "?" } else { "" };
            write!(formatter, "{mark}: {}", field.ty)?;
        }
        if self.open {
            formatter.write_str(if self.fields.is_empty() { "…" } else { ", …" })?;
        }
        formatter.write_str(" }")
    }
}

/// Whether it can be written without quotes.
pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A text as it is written in AQL.
pub(crate) fn quoted(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    written.push('"');
    for letter in text.chars() {
        match letter {
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '{' => written.push_str("\\{"),
            letter if letter.is_control() => written.extend(letter.escape_unicode()),
            letter => written.push(letter),
        }
    }
    written.push('"');
    written
}
