//! Commits as nodes: what they say of themselves once for all, and from which moments they are seen.

use std::collections::{BTreeSet, HashSet};

use git2::Oid;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::link::path_props;
use super::past::without;
use super::repository::Repo;
use crate::tables::facts::{Fact, FactSource, Stretches};
use crate::tables::failure::GraphError;
use crate::tables::identity;
use crate::tables::schema::{OPEN, RENAME};
use crate::tables::write::{NextFacts, Writer};

/// The first line of a message is cut after this many characters.
const MAX_MESSAGE: usize = 200;

/// What is kept of a commit so that it can be shown and hidden without reading it again.
#[derive(Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) id: i64,
    props: String,
    /// Ids of files: the new name's, the old name's.
    renames: Vec<(i64, i64)>,
    /// Ids of files.
    deleted: Vec<i64>,
}

/// Writes down what a commit says of itself. What hangs on both its own node and another one needs no stretch: it is
/// seen where both are.
pub(crate) fn record(writer: &mut Writer<'_>, repo: &Repo, id: Oid) -> Result<Note, GraphError> {
    let sha = id.to_string();
    if let Some(note) = note(writer, &sha)? {
        return Ok(note);
    }
    let node = writer.ids.claim(writer.connection, "Commit", &[&sha])?;
    for (order, parent) in repo.parents(id)?.into_iter().enumerate() {
        let parent = writer.ids.claim(writer.connection, "Commit", &[&parent.to_string()])?;
        for_ever(writer, Fact::edge("PARENT", node, parent, 0, json!({ "order": order }).to_string()))?;
    }
    let (mut renames, mut deleted) = (Vec::new(), Vec::new());
    for touched in repo.touched(id)? {
        let file = writer.ids.claim(writer.connection, "File", &[&touched.path])?;
        let props = json!({ "change": touched.change }).to_string();
        for_ever(writer, Fact::edge("CHANGED_IN", file, node, 0, props))?;
        if touched.change == "deleted" {
            deleted.push(file);
        }
        if let Some(from) = touched.from {
            let older = writer.ids.claim(writer.connection, "File", &[&from])?;
            renames.push((file, older));
            ghost(writer, file, &touched.path)?;
            ghost(writer, older, &from)?;
        }
    }
    let note = Note { id: node, props: props(repo, id)?, renames, deleted };
    writer
        .connection
        .prepare_cached("INSERT INTO change (sha, data) VALUES (?1, ?2)")?
        .execute(params![sha, postcard::to_stdvec(&note)?])?;
    Ok(note)
}

fn props(repo: &Repo, id: Oid) -> Result<String, GraphError> {
    let commit = repo.commit(id)?;
    let sha = id.to_string();
    let short = sha.get(..7).unwrap_or(&sha).to_owned();
    let author = String::from_utf8_lossy(commit.author().name_bytes()).into_owned();
    let message = commit.summary_bytes().map(String::from_utf8_lossy).unwrap_or_default();
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let time = tgp_text::rfc3339_seconds(commit.time().seconds()).unwrap_or_default();
    Ok(json!({ "sha": sha, "short": short, "author": author, "time": time, "message": message }).to_string())
}

/// A relationship that is seen wherever both its ends are.
fn for_ever(writer: &Writer<'_>, fact: Fact) -> Result<(), GraphError> {
    if let Fact::Edge { id, kind, source, target, props, .. } = fact {
        writer
            .connection
            .prepare_cached(
                "INSERT INTO edge (id, type, source, target, props, since, until) \
                 VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
            )?
            .execute(params![id, kind, source, target, props, OPEN])?;
    }
    Ok(())
}

/// What is known of a file where it is gone: a rename leads to it.
fn ghost(writer: &Writer<'_>, id: i64, path: &str) -> Result<(), GraphError> {
    let props = Value::Object(path_props(path)).to_string();
    writer
        .connection
        .prepare_cached(
            "INSERT INTO node (id, props, since, until, ghost) SELECT ?1, ?2, 0, ?3, 1 \
             WHERE NOT EXISTS (SELECT 1 FROM node WHERE id = ?1 AND ghost = 1)",
        )?
        .execute(params![id, props, OPEN])?;
    Ok(())
}

/// Shows a commit, that was just read, where it is seen from: later moments are there already. A rename is over where
/// its newer file was deleted since.
pub(crate) fn show_from(
    writer: &mut Writer<'_>,
    id: Oid,
    note: Note,
    seen: &Stretches,
) -> Result<(), GraphError> {
    let sha = id.to_string();
    let mut facts = vec![(Fact::node(note.id, note.props), seen.clone())];
    for (file, older) in note.renames {
        let mut stretches = seen.clone();
        for (number, node) in deleting(writer, file)? {
            if number != writer.moment
                && seen.iter().any(|(since, until)| *since <= number && number < *until)
            {
                stretches = without(&stretches, &stretches_of(writer, node)?);
            }
        }
        facts.push((rename(&sha, file, older), stretches));
    }
    writer.place(FactSource::Commit, &sha, &facts)
}

/// The commits that deleted a file: their moments and nodes.
fn deleting(writer: &Writer<'_>, file: i64) -> Result<Vec<(i64, i64)>, GraphError> {
    let mut statement = writer.connection.prepare_cached(
        "SELECT DISTINCT m.number, e.target FROM edge AS e \
         JOIN node AS n ON n.id = e.target AND n.ghost = 0 \
         JOIN moment AS m ON m.commit_id = json_extract(n.props, '$.sha') \
         WHERE e.source = ?1 AND e.type = 'CHANGED_IN' AND json_extract(e.props, '$.change') = 'deleted'",
    )?;
    let rows = statement.query_map([file], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn stretches_of(writer: &Writer<'_>, node: i64) -> Result<Stretches, GraphError> {
    let mut statement =
        writer.connection.prepare_cached("SELECT since, until FROM node WHERE id = ?1 AND ghost = 0")?;
    let rows = statement.query_map([node], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The same rename in two commits is two facts.
fn rename(sha: &str, file: i64, older: i64) -> Fact {
    let digest = identity::digest(&[RENAME, sha, &file.to_string(), &older.to_string()]);
    let id = (identity::number(&digest) >> 12).cast_signed();
    let props = json!({ "commit": sha }).to_string();
    Fact::Edge { id, kind: RENAME, source: file, target: older, props, at: None }
}

/// Shows the commits that are ancestors of `to`, and no others, where those of `from` were shown.
pub(crate) fn show(
    writer: &mut Writer<'_>,
    repo: &Repo,
    from: Option<Oid>,
    to: Option<Oid>,
) -> Result<(), GraphError> {
    let (gone, come) = moved(writer, repo, from, to)?;
    let mut files = BTreeSet::new();
    let mut renaming = BTreeSet::new();
    for id in gone {
        let sha = id.to_string();
        if let Some(note) = note(writer, &sha)? {
            files.extend(note.deleted);
        }
        writer.clear(FactSource::Commit, &sha)?;
    }
    for id in come {
        let sha = id.to_string();
        // A history that was cut off has commits that were never read.
        let Some(note) = note(writer, &sha)? else { continue };
        let facts = vec![Fact::node(note.id, note.props)];
        writer.set(FactSource::Commit, &sha, NextFacts { facts, ..NextFacts::default() })?;
        files.extend(note.deleted);
        if !note.renames.is_empty() {
            renaming.insert(sha);
        }
    }
    for file in files {
        renaming.extend(shown(writer, file, "renamed")?);
    }
    for sha in renaming {
        show_renames(writer, repo, &sha)?;
    }
    Ok(())
}

/// Which commits are no longer seen, and which are from now on. Where git has dropped what was last, the store knows
/// what it has shown.
fn moved(
    writer: &Writer<'_>,
    repo: &Repo,
    from: Option<Oid>,
    to: Option<Oid>,
) -> Result<(Vec<Oid>, Vec<Oid>), GraphError> {
    match repo.reached(from, to).and_then(|gone| Ok((gone, repo.reached(to, from)?))) {
        Err(error) if error.is_missing_object() => {}
        told => return told,
    }
    let mut come = repo.reached(to, None)?;
    let ancestors: HashSet<Oid> = come.iter().copied().collect();
    let mut statement = writer.connection.prepare_cached("SELECT name FROM now WHERE owner = ?1")?;
    let rows = statement.query_map([FactSource::Commit as i64], |row| row.get::<_, String>(0))?;
    let mut seen = HashSet::new();
    for row in rows {
        seen.insert(Oid::from_str(&row?)?);
    }
    come.retain(|id| !seen.contains(id));
    Ok((seen.difference(&ancestors).copied().collect(), come))
}

fn note(writer: &Writer<'_>, sha: &str) -> Result<Option<Note>, GraphError> {
    let data: Option<Vec<u8>> = writer
        .connection
        .prepare_cached("SELECT data FROM change WHERE sha = ?1")?
        .query_row([sha], |row| row.get(0))
        .optional()?;
    Ok(data.map(|data| postcard::from_bytes(&data)).transpose()?)
}

/// The commits that are seen now and that did this to a file.
fn shown(writer: &Writer<'_>, file: i64, change: &str) -> Result<Vec<String>, GraphError> {
    let mut statement = writer.connection.prepare_cached(
        "SELECT json_extract(n.props, '$.sha') FROM edge AS e \
         JOIN node AS n ON n.id = e.target AND n.until = ?3 AND n.ghost = 0 \
         WHERE e.source = ?1 AND e.type = 'CHANGED_IN' AND json_extract(e.props, '$.change') = ?2",
    )?;
    let rows = statement.query_map(params![file, change, OPEN], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Shows the renames of a commit, but for those whose newer file was deleted since: a later file of that name is
/// another one.
fn show_renames(writer: &mut Writer<'_>, repo: &Repo, sha: &str) -> Result<(), GraphError> {
    let Some(note) = note(writer, sha)? else { return Ok(()) };
    let own = Oid::from_str(sha)?;
    let mut facts = vec![Fact::node(note.id, note.props)];
    for (file, older) in note.renames {
        let mut is_over = false;
        for deleting in shown(writer, file, "deleted")? {
            is_over = is_over || repo.is_ancestor(own, Oid::from_str(&deleting)?)?;
        }
        if is_over {
            continue;
        }
        facts.push(rename(sha, file, older));
    }
    writer.set(FactSource::Commit, sha, NextFacts { facts, ..NextFacts::default() })?;
    Ok(())
}
