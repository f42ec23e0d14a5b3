//! Commits as nodes: what they say of themselves once for all, and from which moments they are seen.

use git2::Oid;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::link::path_props;
use super::repository::Repo;
use crate::store::failure::GraphError;
use crate::store::identity;
use crate::store::schema::{OPEN, RENAME};
use crate::store::write::{Fact, Holding, Owner, Writer};

/// The first line of a message is cut after this many characters.
const MAX_MESSAGE: usize = 200;

/// What is kept of a commit so that it can be shown and hidden without looking at it again.
#[derive(Serialize, Deserialize)]
struct Note {
    id: i64,
    props: String,
    /// Ids of files: the new name's, the old name's.
    renames: Vec<(i64, i64)>,
}

/// Writes down what a commit says of itself. What hangs on both its own node and another one needs no stretch: it is
/// seen where both are.
pub(crate) fn record(writer: &mut Writer<'_>, repo: &Repo, id: Oid) -> Result<(), GraphError> {
    let sha = id.to_string();
    let known = writer.connection.prepare_cached("SELECT 1 FROM change WHERE sha = ?1")?.exists([&sha])?;
    if known {
        return Ok(());
    }
    let node = writer.ids.claim(writer.connection, "Commit", &[&sha])?;
    for (order, parent) in repo.parents(id)?.into_iter().enumerate() {
        let parent = writer.ids.claim(writer.connection, "Commit", &[&parent.to_string()])?;
        for_ever(writer, Fact::edge("PARENT", node, parent, 0, json!({ "order": order }).to_string()))?;
    }
    let mut renames = Vec::new();
    for touched in repo.touched(id)? {
        let file = writer.ids.claim(writer.connection, "File", &[&touched.path])?;
        let props = json!({ "change": touched.change }).to_string();
        for_ever(writer, Fact::edge("CHANGED_IN", file, node, 0, props))?;
        if let Some(from) = touched.from {
            let older = writer.ids.claim(writer.connection, "File", &[&from])?;
            renames.push((file, older));
            ghost(writer, file, &touched.path)?;
            ghost(writer, older, &from)?;
        }
    }
    let note = Note { id: node, props: props(repo, id)?, renames };
    writer
        .connection
        .prepare_cached("INSERT INTO change (sha, data) VALUES (?1, ?2)")?
        .execute(params![sha, postcard::to_stdvec(&note)?])?;
    Ok(())
}

fn props(repo: &Repo, id: Oid) -> Result<String, GraphError> {
    let commit = repo.commit(id)?;
    let sha = id.to_string();
    let short = sha.get(..7).unwrap_or(&sha).to_owned();
    let author = String::from_utf8_lossy(commit.author().name_bytes()).into_owned();
    let message = commit.summary_bytes().map(String::from_utf8_lossy).unwrap_or_default();
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let time = OffsetDateTime::from_unix_timestamp(commit.time().seconds()).ok();
    let time = time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default();
    Ok(json!({ "sha": sha, "short": short, "author": author, "time": time, "message": message }).to_string())
}

/// A relationship that is seen wherever both its ends are.
fn for_ever(writer: &Writer<'_>, fact: Fact) -> Result<(), GraphError> {
    if let Fact::Edge { id, kind, source, target, props } = fact {
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

/// Shows the commits that are ancestors of `to`, and no others, where those of `from` were shown.
pub(crate) fn show(
    writer: &mut Writer<'_>,
    repo: &Repo,
    from: Option<Oid>,
    to: Option<Oid>,
) -> Result<(), GraphError> {
    for id in repo.reached(from, to)? {
        writer.clear(Owner::Commit, &id.to_string())?;
    }
    for id in repo.reached(to, from)? {
        let sha = id.to_string();
        let data: Option<Vec<u8>> = writer
            .connection
            .prepare_cached("SELECT data FROM change WHERE sha = ?1")?
            .query_row([&sha], |row| row.get(0))
            .optional()?;
        // A history that was cut off has commits that were never looked at.
        let Some(data) = data else { continue };
        let note: Note = postcard::from_bytes(&data)?;
        let mut facts = vec![Fact::Node { id: note.id, props: note.props }];
        for (file, older) in note.renames {
            // The same rename in two commits is two facts.
            let digest = identity::digest(&[RENAME, &sha, &file.to_string(), &older.to_string()]);
            let id = (identity::number(&digest) >> 12).cast_signed();
            let props = json!({ "commit": sha }).to_string();
            facts.push(Fact::Edge { id, kind: RENAME, source: file, target: older, props });
        }
        writer.set(Owner::Commit, &sha, Holding { facts, ..Holding::default() })?;
    }
    Ok(())
}
