//! The table of targets, and what their oracles share.

mod aql;
mod chronicle;
mod cypher;
mod database_url;
mod fetch_url;
mod patch;
mod path;
mod policy;
mod socket_frames;
mod source;
mod sql;
mod sql_reference;
mod sqlite;
mod sse;
mod streams;
mod worker_frames;

use crate::Target;

/// All targets, in the order in which they run.
pub const TARGETS: &[Target] = &[
    worker_frames::TARGET,
    socket_frames::TARGET,
    policy::TARGET,
    aql::TARGET,
    cypher::TARGET,
    sql::SQLITE,
    sql::POSTGRESQL,
    sql::MYSQL,
    sse::TARGET,
    chronicle::TARGET,
    patch::TARGET,
    database_url::TARGET,
    fetch_url::TARGET,
    path::TARGET,
    source::TARGET,
];

/// Reports a broken invariant unless a condition holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}
pub(crate) use ensure;

/// Reports two values that should be the same.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{what}:\n  {one:?}\n  {other:?}")) }
}

/// The input as text; what is not UTF-8 is replaced, since all of these readers are given text.
fn text(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input)
}
