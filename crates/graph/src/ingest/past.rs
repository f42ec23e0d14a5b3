//! History that is read backwards, from the first commit of a store to its ancestors.
//!
//! What has to be known for it is kept beside what is known of the last moment, so that it can go on at any time,
//! whatever was ingested meanwhile. See `tables/schema.rs` for the numbers of moments.

use std::collections::HashMap;

use git2::Oid;
use globset::GlobSet;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::apply_changes::apply_changes;
use super::blobs::{Keep, ParseCache};
use super::commits;
use super::history;
use super::repository::{Changed, Repo};
use super::shallow;
use super::state::State;
use crate::tables::connect::{meta, set_meta};
use crate::tables::facts::{Frontier, Stretches};
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;
use crate::tables::schema::OPEN;
use crate::tables::write::Writer;

/// Changed files of commits whose blobs are read together.
const MAX_FILES: usize = 2_000;

/// Where it is kept that there is history to read.
const RECORD: &str = "history";

/// History that is still to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pending {
    /// The commit whose history it is.
    pub(crate) base: String,
    /// Commits of the history, its newest included; 0 where nobody has counted them yet.
    pub(crate) total: u64,
    /// Commits that were read.
    pub(crate) read: u64,
    /// Whether the ledger of the oldest moment is there.
    copied: bool,
}

impl Pending {
    pub(crate) fn base(&self) -> Result<Oid, GraphError> {
        Ok(Oid::from_str(&self.base)?)
    }

    /// Whether the ledger of the oldest moment is there.
    pub(crate) fn is_copied(&self) -> bool {
        self.copied
    }

    fn write(&self, connection: &Connection) -> Result<(), GraphError> {
        set_meta(connection, RECORD, &serde_json::to_string(self)?)
    }
}

/// The history that is still to be read; none where all of it was.
pub(crate) fn pending(connection: &Connection) -> Result<Option<Pending>, GraphError> {
    Ok(meta(connection, RECORD)?.map(|text| serde_json::from_str(&text)).transpose()?)
}

/// Writes down that the history of the first commit is still to be read.
pub(crate) fn begin(connection: &Connection, base: Oid) -> Result<(), GraphError> {
    Pending { base: base.to_string(), total: 0, read: 1, copied: false }.write(connection)
}

/// What is known at the oldest moment begins as what is known at the first one. To be done before any other moment is
/// written, and without a draft.
pub(crate) fn copy(connection: &Connection) -> Result<(), GraphError> {
    let Some(pending) = pending(connection)?.filter(|pending| !pending.copied) else { return Ok(()) };
    connection.execute_batch(
        "DELETE FROM past; DELETE FROM past_key; \
         INSERT INTO past SELECT row_id, owner, name, file, facts FROM now WHERE owner IN (0, 1); \
         INSERT INTO past_key SELECT key, row FROM now_key;",
    )?;
    Pending { copied: true, ..pending }.write(connection)
}

/// The reading of history, from one step to the next.
pub(crate) struct Past {
    /// The files at the oldest moment.
    state: Option<State>,
    /// The commits that are to be read, in reverse order.
    open: Vec<Oid>,
    total: usize,
    /// Whether there are older commits than may be read.
    cut: bool,
    /// The moments from which the commits are seen that are read next, by their nodes.
    seen: HashMap<i64, Stretches>,
}

impl Past {
    pub(crate) fn load(
        connection: &Connection,
        repo: &Repo,
        base: Oid,
        cap: usize,
    ) -> Result<Self, GraphError> {
        let ids = Identities::load(connection)?;
        let known = commits::known(connection)?;
        let (history, cut) = repo.history(base, cap)?;
        let total = history.len();
        let open = history.into_iter().rev().filter(|id| !known.contains(id)).collect();
        let mut past = Self { state: None, open, total, cut, seen: HashMap::new() };
        let mut moments = connection.prepare(
            "SELECT number, commit_id FROM moment WHERE commit_id IS NOT NULL ORDER BY number DESC",
        )?;
        let mut rows = moments.query([])?;
        let last = commits::last(connection)?.number;
        while let Some(row) = rows.next()? {
            let (number, commit): (i64, String) = (row.get(0)?, row.get(1)?);
            let node = ids.id("Commit", &[&commit]);
            let until = if number == last { OPEN } else { number + 1 };
            let seen = past.seen_from(node, (number, until));
            // Git may have dropped the commit since; its parents are still known.
            let mut parents =
                connection.prepare_cached("SELECT target FROM edge WHERE source = ?1 AND type = 'PARENT'")?;
            let parents = parents.query_map([node], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
            past.pass_on(&seen, &parents);
        }
        Ok(past)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// How many commits of the history were read, and how many there are.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.total.saturating_sub(self.open.len()) as u64, self.total as u64)
    }

    /// The moments from which a commit is seen: its own, and those of its descendants, which come before it.
    fn seen_from(&mut self, node: i64, own: (i64, i64)) -> Stretches {
        let mut seen = self.seen.remove(&node).unwrap_or_default();
        join(&mut seen, &[own]);
        seen
    }

    fn pass_on(&mut self, seen: &Stretches, parents: &[i64]) {
        for parent in parents {
            join(self.seen.entry(*parent).or_default(), seen);
        }
    }

    /// Reads the next commits, within the transaction that is open. Returns how many commits and blobs were read.
    pub(crate) fn step(
        &mut self,
        connection: &Connection,
        repo: &Repo,
        parses: &mut ParseCache,
        tests: &GlobSet,
        limit: usize,
    ) -> Result<(u64, u64), GraphError> {
        copy(connection)?;
        let mut state = match self.state.take() {
            Some(state) => state,
            None => State::load(connection, Frontier::Oldest, parses)?,
        };
        let mut ids = Identities::load(connection)?;
        let mut first = first(connection)?;
        let open = self.open.len().saturating_sub(limit)..;
        let mut next: Vec<Oid> = self.open.get(open).unwrap_or_default().to_vec();
        next.reverse();
        let planned = plan(repo, &state, &first.1, &next)?;
        let count = planned.len() as u64;
        self.open.truncate(self.open.len().saturating_sub(planned.len()));
        // While the links of a commit are made, the blobs of those behind it are read.
        let blobs: Vec<_> = planned.iter().map(|planned| commits::blobs(&planned.changes)).collect();
        let mut planned = planned.into_iter();
        let link = |parses: &mut ParseCache, _| {
            let Some(Planned { id, tree, changes }) = planned.next() else { return Ok(()) };
            let number = first.0 - 1;
            let mut writer = Writer::before(connection, &mut ids, number);
            apply_changes(&mut writer, &mut state, parses, tests, &changes)?;
            let note = history::record(&mut writer, repo, id)?;
            connection
                .prepare_cached("INSERT INTO moment (number, commit_id, tree) VALUES (?1, ?2, ?3)")?
                .execute(params![number, id.to_string(), tree])?;
            let seen = self.seen_from(note.id, (number, number + 1));
            let parents = repo.parents(id)?;
            let parents: Vec<i64> =
                parents.iter().map(|parent| writer.ids.id("Commit", &[&parent.to_string()])).collect();
            self.pass_on(&seen, &parents);
            history::show_from(&mut writer, id, note, &seen)?;
            first = (number, tree);
            Ok(())
        };
        let content = |blob| repo.content(blob);
        let parsed = parses.read_in_turn(connection, &blobs, Keep::InMemory, content, link)?;
        self.state = Some(state);
        let (read, total) = self.counts();
        if let Some(pending) = pending(connection)? {
            Pending { total, read, ..pending }.write(connection)?;
        }
        Ok((count, parsed))
    }

    /// Ends the reading, when all is read.
    pub(crate) fn finish(
        &self,
        connection: &Connection,
        repo: &Repo,
        base: Oid,
        cap: usize,
    ) -> Result<(), GraphError> {
        connection.execute_batch("DELETE FROM past; DELETE FROM past_key")?;
        connection.execute("DELETE FROM meta WHERE name = ?1", [RECORD])?;
        if self.cut {
            set_meta(connection, "cut", "true")?;
        }
        if self.cut || repo.has_shallow() {
            shallow::remember(connection, repo, &repo.history(base, cap)?.0, cap)?;
        }
        Ok(())
    }
}

/// A commit that is read next: its tree, and what is other there than in the one that is read before it.
struct Planned {
    id: Oid,
    tree: String,
    changes: Vec<Changed>,
}

/// The first of some commits, as many as may be read together; at least one.
fn plan(repo: &Repo, state: &State, first: &str, next: &[Oid]) -> Result<Vec<Planned>, GraphError> {
    let mut planned: Vec<Planned> = Vec::new();
    let mut files = 0;
    for id in next {
        let before = planned.last().map_or(first, |planned| planned.tree.as_str());
        let tree = repo.tree(*id)?;
        // Where git has dropped the tree before it, the state tells what was there, and it is that of the first one.
        if !planned.is_empty() && (files > MAX_FILES || repo.find_tree(before).is_err()) {
            break;
        }
        let changes = commits::changes(repo, state, before, tree.as_ref())?;
        files += changes.len();
        let tree = tree.map(|tree| tree.id().to_string()).unwrap_or_default();
        planned.push(Planned { id: *id, tree, changes });
    }
    Ok(planned)
}

/// The number of the oldest moment, and its tree.
fn first(connection: &Connection) -> Result<(i64, String), GraphError> {
    let row = connection
        .prepare_cached(
            "SELECT number, tree FROM moment WHERE commit_id IS NOT NULL ORDER BY number LIMIT 1",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(row.unwrap_or_default())
}

/// Adds stretches to others. What touches becomes one.
fn join(stretches: &mut Stretches, more: &[(i64, i64)]) {
    if stretches.as_slice() == more {
        return;
    }
    stretches.extend_from_slice(more);
    stretches.sort_unstable();
    let mut joined: Stretches = Vec::with_capacity(stretches.len());
    for (since, until) in stretches.drain(..) {
        match joined.last_mut() {
            Some((_, end)) if *end >= since => *end = until.max(*end),
            _ => joined.push((since, until)),
        }
    }
    *stretches = joined;
}

/// What of some stretches is not in others.
pub(crate) fn without(stretches: &[(i64, i64)], gone: &[(i64, i64)]) -> Stretches {
    let mut left: Stretches = stretches.to_vec();
    for (from, to) in gone {
        let parts = left.into_iter().flat_map(|(since, until)| {
            [(since, until.min(*from)), (since.max(*to), until)]
                .into_iter()
                .filter(|(since, until)| since < until)
        });
        left = parts.collect();
    }
    left
}
