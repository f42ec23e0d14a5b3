//! Ingests commits: the first one of a store, and what comes after it, ancestors first, a bounded number in each
//! transaction. What comes before it is read by `past.rs`.

use std::collections::HashSet;

use git2::{Oid, Tree};
use globset::GlobSet;
use rusqlite::{Connection, OptionalExtension, params};

use super::apply_changes::apply_changes;
use super::blobs::{BlobKey, Keep, ParseCache};
use super::history;
use super::language::Language;
use super::past;
use super::repository::{Changed, Repo};
use super::state::State;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;
use crate::tables::schema::{BASE, INDEXES, OPEN, WITHOUT_INDEXES};
use crate::tables::write::Writer;

/// What was ingested last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Last {
    pub(crate) number: i64,
    pub(crate) commit: Option<Oid>,
    pub(crate) tree: String,
}

/// The last moment that is a commit.
pub(crate) fn last(connection: &Connection) -> Result<Last, GraphError> {
    let row: Option<(i64, String, String)> = connection
        .prepare_cached(
            "SELECT number, commit_id, tree FROM moment WHERE commit_id IS NOT NULL \
             ORDER BY number DESC LIMIT 1",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    match row {
        Some((number, commit, tree)) => Ok(Last { number, commit: Some(Oid::from_str(&commit)?), tree }),
        None => Ok(Last::default()),
    }
}

/// Whether a commit was ingested.
pub(crate) fn is_known(connection: &Connection, id: Oid) -> Result<bool, GraphError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM moment WHERE commit_id = ?1")?;
    Ok(statement.exists([id.to_string()])?)
}

/// All commits that were ingested.
pub(crate) fn known(connection: &Connection) -> Result<HashSet<Oid>, GraphError> {
    let mut statement = connection.prepare("SELECT commit_id FROM moment WHERE commit_id IS NOT NULL")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut known = HashSet::new();
    for row in rows {
        known.insert(Oid::from_str(&row?)?);
    }
    Ok(known)
}

/// Ingests these commits in this order, within the transaction that is open. Returns how many blobs were read.
pub(crate) fn ingest(
    connection: &Connection,
    repo: &Repo,
    state: &mut State,
    parses: &mut ParseCache,
    tests: &GlobSet,
    commits: &[Oid],
) -> Result<u64, GraphError> {
    let mut ids = Identities::load(connection)?;
    let mut last = last(connection)?;
    let mut parsed = 0;
    for id in commits {
        let new = repo.tree(*id)?;
        let changes = changes(repo, state, &last.tree, new.as_ref())?;
        parsed += read(connection, repo, parses, Keep::InStore, &changes)?;
        let number = last.number + 1;
        let mut writer = Writer::after(connection, &mut ids, number);
        apply_changes(&mut writer, state, parses, tests, &changes)?;
        history::record(&mut writer, repo, *id)?;
        history::show(&mut writer, repo, last.commit, Some(*id))?;
        let tree = new.map(|tree| tree.id().to_string()).unwrap_or_default();
        connection
            .prepare_cached("INSERT INTO moment (number, commit_id, tree) VALUES (?1, ?2, ?3)")?
            .execute(params![number, id.to_string(), tree])?;
        last = Last { number, commit: Some(*id), tree };
    }
    Ok(parsed)
}

/// Ingests the first commit of a store, within the transaction that is open. Its blobs must have been read.
pub(crate) fn ingest_first(
    connection: &Connection,
    repo: &Repo,
    state: &mut State,
    parses: &mut ParseCache,
    tests: &GlobSet,
    id: Oid,
) -> Result<(), GraphError> {
    let mut ids = Identities::load_whole(connection)?;
    let new = repo.tree(id)?;
    let changes = repo.changed(None, new.as_ref())?;
    let mut writer = Writer::base(connection, &mut ids);
    connection.execute_batch(WITHOUT_INDEXES)?;
    apply_changes(&mut writer, state, parses, tests, &changes)?;
    connection.execute_batch(INDEXES)?;
    let note = history::record(&mut writer, repo, id)?;
    let tree = new.map(|tree| tree.id().to_string()).unwrap_or_default();
    connection
        .prepare_cached("INSERT INTO moment (number, commit_id, tree) VALUES (?1, ?2, ?3)")?
        .execute(params![BASE, id.to_string(), tree])?;
    history::show_from(&mut writer, id, note, &vec![(BASE, OPEN)])?;
    past::begin(connection, id)
}

/// What is other than at the last moment. Where git has dropped that tree since, the state knows what was in it.
pub(crate) fn changes(
    repo: &Repo,
    state: &State,
    last: &str,
    new: Option<&Tree<'_>>,
) -> Result<Vec<Changed>, GraphError> {
    match repo.find_tree(last).and_then(|old| repo.changed(old.as_ref(), new)) {
        Err(error) if error.is_missing_object() => {}
        told => return told,
    }
    let files = repo.changed(None, new)?;
    let paths: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let gone = state.files().keys().filter(|path| !paths.contains(path.as_str()));
    let mut changes: Vec<Changed> = gone.map(|path| Changed { path: path.clone(), blob: None }).collect();
    let is_other = |file: &Changed| state.file(&file.path).map(|held| held.blob) != file.blob;
    changes.extend(files.into_iter().filter(is_other));
    changes.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(changes)
}

/// Reads the blobs that were never read. Returns how many there were.
pub(crate) fn read<'c>(
    connection: &Connection,
    repo: &Repo,
    parses: &mut ParseCache,
    keep: Keep,
    changes: impl IntoIterator<Item = &'c Changed>,
) -> Result<u64, GraphError> {
    parses.read(connection, blobs(changes), keep, |blob| repo.content(blob))
}

/// What has to be read of some changes.
pub(crate) fn blobs<'c>(changes: impl IntoIterator<Item = &'c Changed>) -> Vec<BlobKey> {
    let blob = |change: &Changed| Some((change.blob?, Language::of(&change.path)));
    changes.into_iter().filter_map(blob).collect()
}
