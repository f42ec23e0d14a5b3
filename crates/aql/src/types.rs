//! What a value can be.

mod relation;
mod value;
mod written;

pub use value::Mismatch;
pub(crate) use value::{found, names, spell};

use std::collections::BTreeMap;

pub(crate) use relation::{FieldMismatch, MAX_SIZE, TypeMismatch, fits, union};
pub(crate) use written::{is_name, quoted};

/// A type, with all names resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryType {
    /// Whatever it is; checked when it is used, at run time.
    Any,
    String,
    Int,
    Float,
    Bool,
    Null,
    /// One of these texts, sorted.
    Choice(Vec<String>),
    List(Box<QueryType>),
    Record(Record),
    /// One of several; never nested, never with [`QueryType::Any`] inside. `T?` is `T` and null.
    OneOf(Vec<QueryType>),
}

/// An object with these fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    pub fields: BTreeMap<String, Field>,
    /// Whether other fields may appear beside them, of any type.
    pub open: bool,
}

/// A field of an object type.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub ty: QueryType,
    /// Whether it may be missing.
    pub optional: bool,
}
