//! Verifying: each entry by itself, its link to the one before, and the whole against the anchor.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::Value;
use tgp_contract::{ToolError, canonical};

use crate::anchor::{Anchor, Head};
use crate::entry::GENESIS;
use crate::failure::{ErrorContext, Failure, is_corrupt};
use crate::store::{self, Chain};

pub(crate) const COLUMNS: &str = "sequence, hash, body, time_ms, session, tool, verdict";

/// One row as it lies in the database, whatever that is.
#[derive(Debug)]
pub(crate) struct StoredRow {
    pub(crate) sequence: u64,
    pub(crate) hash: String,
    pub(crate) body: Vec<u8>,
    time_ms: i64,
    session: String,
    tool: String,
    verdict: String,
}

impl StoredRow {
    /// Reads a row of [`COLUMNS`]. A value of another type than was written is a broken entry.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, Failure> {
        let number = |index: usize| match row.get_ref(index) {
            Ok(ValueRef::Integer(number)) => Some(number),
            _ => None,
        };
        let text = |index: usize| match row.get_ref(index) {
            Ok(ValueRef::Text(bytes)) => String::from_utf8(bytes.to_vec()).ok(),
            _ => None,
        };
        let body = match row.get_ref(2) {
            Ok(ValueRef::Blob(bytes)) => Some(bytes.to_vec()),
            _ => None,
        };
        let sequence = number(0).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        let read = || {
            Some(Self {
                sequence,
                hash: text(1)?,
                body: body?,
                time_ms: number(3)?,
                session: text(4)?,
                tool: text(5)?,
                verdict: text(6)?,
            })
        };
        read().ok_or_else(|| Failure::broken(sequence, "a value of it is of another kind than was written"))
    }

    /// Sees that the entry is what its hash says, and its columns are what the entry says.
    pub(crate) fn parse(&self) -> Result<Value, Failure> {
        let broken = |what: &str| Failure::broken(self.sequence, what);
        if canonical::sha256_hex(&self.body) != self.hash {
            return Err(broken("its content does not match its hash"));
        }
        let body: Value =
            serde_json::from_slice(&self.body).map_err(|_| broken("its content is not JSON"))?;
        let field = |name: &str| body.get(name).unwrap_or(&Value::Null);
        let agree = field("sequence").as_u64() == Some(self.sequence)
            && field("time").as_i64() == Some(self.time_ms)
            && field("session").as_str() == Some(&self.session)
            && field("tool").as_str() == Some(&self.tool)
            && field("verdict").as_str() == Some(&self.verdict);
        if !agree {
            return Err(broken("what it is found by differs from its content"));
        }
        Ok(body)
    }

    /// Sees that the entry follows `before`.
    fn follow(&self, before: &Head) -> Result<Head, Failure> {
        let expected = before.sequence + 1;
        if self.sequence != expected {
            let what =
                if self.sequence > expected { "it is missing" } else { "it is where no entry belongs" };
            return Err(Failure::broken(expected.min(self.sequence), what));
        }
        let body = self.parse()?;
        let field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        if field("chain") != before.chain {
            return Err(Failure::broken(self.sequence, "it belongs to another chain"));
        }
        if field("previous") != before.hash {
            return Err(Failure::broken(self.sequence, "it does not follow the entry before it"));
        }
        Ok(Head { chain: before.chain.clone(), sequence: self.sequence, hash: self.hash.clone() })
    }
}

/// Walks from `from`, which has to be in the chain, to the end, one entry at a time. Gives the end and how many
/// entries were verified.
pub(crate) fn walk(
    connection: &Connection,
    from: &Head,
    landmarks: &[(&Head, &str)],
    path: &Path,
) -> Result<(Head, u64), Failure> {
    let mut before = from.clone();
    let mut count = 0;
    // From the very beginning nothing may precede the first either.
    let start = if from.sequence == 0 { i64::MIN } else { i64::try_from(from.sequence).unwrap_or(i64::MAX) };
    let sql = format!("SELECT {COLUMNS} FROM entries WHERE sequence >= ? ORDER BY sequence");
    let mut statement = connection.prepare(&sql).doing("cannot read", path)?;
    let mut rows = statement.query([start]).doing("cannot read", path)?;
    while let Some(row) = next(&mut rows, &before, path)? {
        let stored = StoredRow::read(row)?;
        count += 1;
        if stored.sequence == from.sequence && from.sequence > 0 {
            stored.parse()?;
            continue;
        }
        before = stored.follow(&before)?;
        for (landmark, who) in landmarks {
            if landmark.sequence == before.sequence && landmark.hash != before.hash {
                let what = format!("it is not the entry that {who} knows");
                return Err(Failure::broken(before.sequence, what));
            }
        }
    }
    Ok((before, count))
}

/// The next row. When the file itself is damaged there, the entry that should come next is the first bad one.
fn next<'r, 's>(
    rows: &'r mut rusqlite::Rows<'s>,
    before: &Head,
    path: &Path,
) -> Result<Option<&'r Row<'s>>, Failure> {
    rows.next().doing("cannot read", path).map_err(|failure| match failure {
        Failure::Database { source, .. } if is_corrupt(&source) => {
            Failure::broken(before.sequence + 1, format!("the database file is damaged: {source}"))
        }
        other => other,
    })
}

/// Sees that the anchor and the database speak of the same chain.
pub(crate) fn check_anchored(chain: &Chain, anchored: Option<&Head>, last: &Head) -> Result<(), Failure> {
    match anchored {
        None if last.sequence == 0 => Ok(()),
        None => Err(Failure::Foreign("the database has entries, but its anchor is gone".to_owned())),
        Some(anchored) if anchored.chain != chain.id => Err(Failure::broken(
            1,
            format!("the database holds the chain {}, but the anchor knows {}", chain.id, anchored.chain),
        )),
        Some(_) => Ok(()),
    }
}

/// The error of a database that is not there although the anchor knows of one.
pub(crate) fn vanished(anchored: &Head, path: &Path) -> Failure {
    Failure::broken(
        1,
        format!(
            "the database `{}` is missing or empty, but the anchor knows {} entries of the chain {}",
            path.display(),
            anchored.sequence,
            anchored.chain
        ),
    )
}

/// Verifies from the older of checkpoint and anchor to the end. Gives the end and how many entries were verified.
pub(crate) fn recent(
    connection: &Connection,
    chain: &Chain,
    anchored: Option<&Head>,
    path: &Path,
) -> Result<(Head, u64), Failure> {
    let last = store::last(connection, &chain.id, path)?;
    check_anchored(chain, anchored, &last)?;
    let checkpoint = &chain.checkpoint;
    store::confirm(connection, checkpoint, "the checkpoint", path)?;
    let mut from = checkpoint;
    if let Some(anchored) = anchored {
        store::confirm(connection, anchored, "the anchor", path)?;
        if anchored.sequence < checkpoint.sequence {
            from = anchored;
        }
    }
    if from.sequence == 0 && from.hash != GENESIS {
        return Err(Failure::Foreign("the chain does not begin at its beginning".to_owned()));
    }
    walk(connection, from, &[], path)
}

/// Verifies everything.
pub(crate) fn whole(
    connection: &Connection,
    chain: &Chain,
    anchored: Option<&Head>,
    path: &Path,
) -> Result<(Head, u64), Failure> {
    let genesis = Head { chain: chain.id.clone(), sequence: 0, hash: GENESIS.to_owned() };
    let checkpoint = &chain.checkpoint;
    let mut landmarks = vec![(checkpoint, "the checkpoint")];
    landmarks.extend(anchored.map(|anchored| (anchored, "the anchor")));
    let last = store::last(connection, &chain.id, path)?;
    check_anchored(chain, anchored, &last)?;
    let (end, count) = walk(connection, &genesis, &landmarks, path)?;
    for (landmark, who) in landmarks {
        if landmark.sequence > end.sequence {
            let what = format!("it is missing; {who} knows {} entries", landmark.sequence);
            return Err(Failure::broken(end.sequence + 1, what));
        }
        if landmark.sequence == 0 && landmark.hash != GENESIS {
            return Err(Failure::Foreign(format!("{who} does not begin at the beginning")));
        }
    }
    // The indexes decide what a filter finds, so they have to agree with the entries.
    let sound: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).doing("cannot read", path)?;
    if sound != "ok" {
        return Err(Failure::Foreign(format!("the database file is damaged: {sound}")));
    }
    Ok((end, count))
}

pub(crate) fn load(anchor: &dyn Anchor) -> Result<Option<Head>, Failure> {
    anchor.load().map_err(|error: ToolError| Failure::Told(error))
}
