//! Reading SQL just far enough: what kind of statement it is, whether it is one, and where its parameters are.

mod calls;
mod functions;
mod kinds;
mod lexer;
mod parameters;
mod statement;

pub(crate) use kinds::classify;
pub use kinds::{all_kinds, statement_kinds};
pub(crate) use lexer::{Dialect, Kind};
pub(crate) use parameters::{Bound, bind, count, missing_name, superfluous};
pub(crate) use statement::{MAX_SQL_BYTES, Script};

#[cfg(test)]
mod lexer_tests;
