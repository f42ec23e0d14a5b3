//! Reading SQL just far enough: what kind of statement it is, whether it is one, and where its parameters are.

mod attributes;
mod calls;
mod definitions;
mod functions;
mod kinds;
mod lexer;
mod parameters;
mod statement;

pub(crate) use attributes::Attributes;
pub use kinds::{all_kinds, statement_kinds};
pub(crate) use kinds::{classify, doubt_call};
pub(crate) use lexer::{Dialect, Kind, Token};
pub(crate) use parameters::{Bound, bind, count, missing_name, not_given, superfluous};
pub(crate) use statement::{MAX_SQL_BYTES, Script};

/// The entry point of `fuzz/`: the tokens of a text in a dialect, as byte ranges with the names of their kinds.
#[doc(hidden)]
#[must_use]
pub fn token_spans(sql: &str, dialect: &str) -> Vec<(std::ops::Range<usize>, String)> {
    let dialect = match dialect {
        "sqlite" => Dialect::Sqlite,
        "mysql" => Dialect::MySql,
        _ => Dialect::Postgres,
    };
    let span = |token: &lexer::Token<'_>| (token.start..token.end(), format!("{:?}", token.kind));
    lexer::tokens(sql, dialect).iter().map(span).collect()
}

#[cfg(test)]
mod lexer_tests;
