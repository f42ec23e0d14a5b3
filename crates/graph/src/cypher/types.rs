//! What is known of a value before the query runs.

/// The type of an expression, as far as its text shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Not known.
    Any,
    Null,
    Bool,
    Int,
    Float,
    /// An integer or a float.
    Number,
    Text,
    List(Box<Type>),
    Map,
    Node,
    Relationship,
    Path,
}

impl Type {
    pub fn list(item: Self) -> Self {
        Self::List(Box::new(item))
    }

    /// The type of what may be either.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Null, other) | (other, Self::Null) => other,
            (Self::Int | Self::Float | Self::Number, Self::Int | Self::Float | Self::Number) => Self::Number,
            (Self::List(one), Self::List(other)) => Self::list(one.or(*other)),
            _ => Self::Any,
        }
    }

    /// Whether a value of this type may be a boolean.
    pub fn may_be_bool(&self) -> bool {
        matches!(self, Self::Any | Self::Null | Self::Bool)
    }

    pub fn may_be_number(&self) -> bool {
        matches!(self, Self::Any | Self::Null | Self::Int | Self::Float | Self::Number)
    }

    pub fn may_be_list(&self) -> bool {
        matches!(self, Self::Any | Self::Null | Self::List(_))
    }

    /// Whether a value of this type may have properties.
    pub fn may_have_properties(&self) -> bool {
        matches!(self, Self::Any | Self::Null | Self::Map | Self::Node | Self::Relationship)
    }

    /// The name used in messages.
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Any => "a value",
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Int => "an integer",
            Self::Float => "a float",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::List(_) => "a list",
            Self::Map => "a map",
            Self::Node => "a node",
            Self::Relationship => "a relationship",
            Self::Path => "a path",
        }
    }
}
