//! Ids of nodes and relationships: derived from what they are, so that every ingest gives the same ones.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use super::failure::GraphError;

/// Ids fit into the integers that a JSON number carries exactly.
const ID_BITS: u32 = 52;

/// How many ids are tried for a node whose id is taken. Each try fails with the chance of one collision.
const MAX_TRIES: u32 = 16;

/// SHA-256 of the parts, each with its length, so that no two lists of parts give the same bytes.
pub(crate) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

/// SHA-256 of bytes.
pub(crate) fn digest_bytes(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The first eight bytes of a hash.
pub(crate) fn number(digest: &[u8; 32]) -> u64 {
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// A hash of the parts as SQLite stores integers.
pub(crate) fn key(parts: &[&str]) -> i64 {
    number(&digest(parts)).cast_signed()
}

/// An id, from a hash.
fn id_of(digest: &[u8; 32], bits: u32) -> i64 {
    (number(digest) >> (64 - bits)).cast_signed()
}

/// The id of a relationship. Two that share one by chance would only be taken for the same in one path.
pub(crate) fn edge_id(kind: &str, source: i64, target: i64, occurrence: usize) -> i64 {
    id_of(&digest(&[kind, &source.to_string(), &target.to_string(), &occurrence.to_string()]), ID_BITS)
}

/// Gives ids to nodes, and another one where two nodes would get the same.
pub(crate) struct Identities {
    bits: u32,
    aliases: HashMap<[u8; 32], i64>,
    /// The ids that are taken, each with the rest of its node's hash, where all of them are known.
    taken: Option<HashMap<i64, i64>>,
}

impl Identities {
    pub(crate) fn load(connection: &Connection) -> Result<Self, GraphError> {
        Self::with_bits(connection, ID_BITS)
    }

    /// With all ids that are taken, so that none has to be looked up: for the first commit of a store, which has few of them
    /// before and many afterwards.
    pub(crate) fn load_whole(connection: &Connection) -> Result<Self, GraphError> {
        let mut statement = connection.prepare("SELECT node, digest FROM label")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self { taken: Some(rows.collect::<Result<_, _>>()?), ..Self::load(connection)? })
    }

    /// With fewer bits collisions can be had on purpose.
    pub(crate) fn with_bits(connection: &Connection, bits: u32) -> Result<Self, GraphError> {
        let mut statement = connection.prepare_cached("SELECT digest, id FROM alias")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, [u8; 32]>(0)?, row.get(1)?)))?;
        Ok(Self { bits, aliases: rows.collect::<Result<_, _>>()?, taken: None })
    }

    /// The id of the node with this label and key.
    pub(crate) fn id(&self, label: &str, key: &[&str]) -> i64 {
        let digest = node_digest(label, key);
        self.aliases.get(&digest).copied().unwrap_or_else(|| id_of(&digest, self.bits))
    }

    /// Takes the id for this node, so that no other node can have it. To be done before anything refers to the node.
    pub(crate) fn claim(
        &mut self,
        connection: &Connection,
        label: &str,
        key: &[&str],
    ) -> Result<i64, GraphError> {
        let digest = node_digest(label, key);
        if let Some(id) = self.aliases.get(&digest) {
            let id = *id;
            self.take(connection, label, id, &digest)?;
            return Ok(id);
        }
        let mut id = id_of(&digest, self.bits);
        for attempt in 1..=MAX_TRIES {
            if self.take(connection, label, id, &digest)? {
                break;
            }
            let retry = Sha256::new().chain_update(digest).chain_update(attempt.to_le_bytes()).finalize();
            id = id_of(&retry.into(), self.bits);
        }
        if id != id_of(&digest, self.bits) {
            connection
                .prepare_cached("INSERT OR REPLACE INTO alias (digest, id) VALUES (?1, ?2)")?
                .execute(params![digest, id])?;
            self.aliases.insert(digest, id);
        }
        Ok(id)
    }

    /// Whether the id is this node's, or unused until now.
    fn take(
        &mut self,
        connection: &Connection,
        label: &str,
        id: i64,
        digest: &[u8; 32],
    ) -> Result<bool, GraphError> {
        let rest = digest.iter().skip(8).take(8).fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        let rest = rest.cast_signed();
        let held: Option<i64> = match &self.taken {
            Some(taken) => taken.get(&id).copied(),
            None => connection
                .prepare_cached("SELECT digest FROM label WHERE node = ?1 LIMIT 1")?
                .query_row([id], |row| row.get(0))
                .optional()?,
        };
        if let Some(held) = held {
            return Ok(held == rest);
        }
        connection
            .prepare_cached("INSERT INTO label (name, node, digest) VALUES (?1, ?2, ?3)")?
            .execute(params![label, id, rest])?;
        if let Some(taken) = &mut self.taken {
            taken.insert(id, rest);
        }
        Ok(true)
    }
}

fn node_digest(label: &str, key: &[&str]) -> [u8; 32] {
    let mut parts = vec![label];
    parts.extend_from_slice(key);
    digest(&parts)
}

#[cfg(test)]
#[path = "identity_tests.rs"]
mod tests;
