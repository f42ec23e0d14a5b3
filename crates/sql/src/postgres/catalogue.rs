//! What the text of a statement does not say, and the catalogue of the server does.

use tgp_contract::SqlClass;
use tokio_postgres::{Error, Transaction};

use crate::text::{Attributes, doubt_call};

/// Whether one of the names is a function that a statement can call without parentheses: with at most one argument that
/// has to be given. Behind a name, `$2`, that argument is a row, and the functions of the server itself only compute
/// with one. Behind a value, `$1`, it is anything, `(1000).pg_sleep` included.
const HAS_FUNCTION: &str = "\
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_proc p
  WHERE p.pronargs > 0 AND p.pronargs - p.pronargdefaults <= 1 AND (
    p.proname = ANY ($1::pg_catalog.text[]::pg_catalog.name[])
    AND (p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace OR p.provolatile = 'v')
    OR p.proname = ANY ($2::pg_catalog.text[]::pg_catalog.name[])
    AND p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
    AND EXISTS (
      SELECT FROM pg_catalog.pg_type t
      WHERE t.oid IN (p.proargtypes[0], p.provariadic) AND (t.typtype IN ('c', 'p', 'd') OR EXISTS (
        SELECT FROM pg_catalog.pg_cast c JOIN pg_catalog.pg_type s ON s.oid = c.castsource
        WHERE c.casttarget = t.oid AND c.castcontext = 'i' AND s.typtype IN ('c', 'd'))))))";

/// Whether the server has a function of such a name of its own that does more than compute. Those that only look at
/// tables or settings are stable there.
const HAS_EFFECT: &str = "\
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_proc p
  WHERE p.provolatile = 'v' AND p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
  AND p.proname = ANY ($1::pg_catalog.text[]::pg_catalog.name[]))";

/// Whether a query calls a function of the server that does more than compute, which may do so in a read-only
/// transaction too: send a message, lock, sleep, make a large object. Functions of users are bound by the transaction.
pub(super) async fn has_effect(
    transaction: &Transaction<'_>,
    attributes: &Attributes,
) -> Result<bool, Error> {
    let names: Vec<&String> = attributes.called.iter().chain(&attributes.of_values).collect();
    if names.is_empty() || attributes.is_unclear {
        return Ok(attributes.is_unclear);
    }
    transaction.query_one(HAS_EFFECT, &[&names]).await?.try_get(0)
}

/// Adds a call that is written like a column. A server that does not answer leaves the doubt.
pub(super) async fn complete(
    transaction: &Transaction<'_>,
    found: SqlClass,
    attributes: &Attributes,
) -> SqlClass {
    match calls(transaction, attributes).await {
        Ok(false) => found,
        Ok(true) | Err(_) => doubt_call(found),
    }
}

async fn calls(transaction: &Transaction<'_>, attributes: &Attributes) -> Result<bool, Error> {
    if attributes.is_empty() || attributes.is_unclear {
        return Ok(attributes.is_unclear);
    }
    let row = transaction.query_one(HAS_FUNCTION, &[&attributes.of_values, &attributes.of_rows]).await?;
    row.try_get(0)
}
