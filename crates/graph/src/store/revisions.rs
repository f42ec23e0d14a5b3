//! Names of commits, and the moments they refer to.

use rusqlite::{Connection, OptionalExtension};
use tgp_contract::{Code, SnapshotInfo, ToolError};

use super::progress;
use crate::ingest::repository::{Repo, check_name};
use crate::tables::connect::{REBUILT, meta};
use crate::tables::failure::GraphError;

/// The name of the files as they are.
pub(crate) const WORKTREE: &str = "WORKTREE";

/// Where the commit is kept that an ingest was asked for last.
pub(crate) const ASKED: &str = "asked";

/// Fewer characters of a commit's id say nothing.
const MIN_PREFIX: usize = 4;

/// The moment that a question is about.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) number: i64,
    pub(crate) standing: SnapshotInfo,
}

/// The moment of the work tree and the commit it is based on.
pub(crate) fn draft(connection: &Connection) -> Result<Option<(i64, Option<String>)>, GraphError> {
    let mut statement =
        connection.prepare_cached("SELECT number, base FROM moment WHERE commit_id IS NULL LIMIT 1")?;
    Ok(statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

fn number_of(connection: &Connection, commit: &str) -> Result<Option<i64>, GraphError> {
    let mut statement = connection.prepare_cached("SELECT number FROM moment WHERE commit_id = ?1")?;
    Ok(statement.query_row([commit], |row| row.get(0)).optional()?)
}

/// Finds the moment that `name` refers to. Without a name it is the head, or the commit that an ingest was asked for
/// last where the head was not ingested.
pub(crate) fn find(
    connection: &Connection,
    repo: Option<&Repo>,
    name: Option<&str>,
) -> Result<Revision, GraphError> {
    let head = repo.and_then(Repo::head);
    let behind = match &head {
        Some((_, id)) => number_of(connection, &id.to_string())?.is_none(),
        None => false,
    };
    match name {
        Some(WORKTREE) => {
            let Some((number, base)) = draft(connection)? else {
                return Err(not_ingested(connection, WORKTREE)?.into());
            };
            of_draft(connection, number, base, head.as_ref())
        }
        Some(name) => {
            let commit = commit_of(connection, repo, name)?;
            let Some(number) = number_of(connection, &commit)? else {
                return Err(not_ingested(connection, name)?.into());
            };
            let standing =
                SnapshotInfo { reference: name.to_owned(), commit, behind, ..SnapshotInfo::default() };
            Ok(Revision { number, standing })
        }
        None => latest(connection, head),
    }
}

/// A draft is behind when the head is no longer the commit that it is based on.
fn of_draft(
    connection: &Connection,
    number: i64,
    base: Option<String>,
    head: Option<&(String, git2::Oid)>,
) -> Result<Revision, GraphError> {
    let behind = head.is_some_and(|(_, id)| Some(id.to_string()) != base);
    let commit = base.unwrap_or_default();
    let standing = SnapshotInfo {
        reference: WORKTREE.to_owned(),
        commit,
        draft: true,
        behind,
        left_out: super::draft::left_out(connection)?,
        ..SnapshotInfo::default()
    };
    Ok(Revision { number, standing })
}

fn latest(connection: &Connection, head: Option<(String, git2::Oid)>) -> Result<Revision, GraphError> {
    if let Some((branch, id)) = &head {
        let commit = id.to_string();
        if let Some(number) = number_of(connection, &commit)? {
            let standing = SnapshotInfo { reference: branch.clone(), commit, ..SnapshotInfo::default() };
            return Ok(Revision { number, standing });
        }
    }
    let asked = meta(connection, ASKED)?.unwrap_or_default();
    let row = match number_of(connection, &asked)? {
        Some(number) => Some((number, asked)),
        // The first ingest was cut off before its end.
        None => connection
            .prepare_cached(
                "SELECT number, commit_id FROM moment WHERE commit_id IS NOT NULL \
                 ORDER BY number DESC LIMIT 1",
            )?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?,
    };
    if let Some((number, commit)) = row {
        let standing = SnapshotInfo {
            reference: commit.clone(),
            commit,
            behind: head.is_some(),
            ..SnapshotInfo::default()
        };
        return Ok(Revision { number, standing });
    }
    // Where there is no commit, the work tree is used.
    match (head, draft(connection)?) {
        (None, Some((number, base))) => of_draft(connection, number, base, None),
        _ if progress::is_running(connection) => {
            let message = "an ingest is running, and the newest commit is not in the graph yet";
            Err(ToolError::new(Code::NotFound, message).help("ask again in a few seconds").into())
        }
        _ if meta(connection, REBUILT)?.is_some() => {
            let message = "the store of the graph was made by another version of tgp and has to be rebuilt";
            Err(ToolError::new(Code::NotFound, message).help("run `tgp graph ingest`").into())
        }
        _ => Err(ToolError::new(Code::NotFound, "nothing was ingested yet")
            .help("run `tgp graph ingest`")
            .into()),
    }
}

/// The full id of the commit that a name refers to: what git says, or an id that was ingested.
fn commit_of(connection: &Connection, repo: Option<&Repo>, name: &str) -> Result<String, GraphError> {
    check_name(name)?;
    let refusal = match repo.map(|repo| repo.resolve(name)) {
        Some(Ok(id)) => return Ok(id.to_string()),
        Some(Err(error)) => error,
        None => not_ingested(connection, name)?.into(),
    };
    // A commit that git has dropped since is still in the graph.
    let is_id = name.len() >= MIN_PREFIX && name.chars().all(|character| character.is_ascii_hexdigit());
    if is_id {
        let mut statement =
            connection.prepare("SELECT commit_id FROM moment WHERE commit_id GLOB ?1 LIMIT 2")?;
        let pattern = format!("{}*", name.to_ascii_lowercase());
        let found = statement.query_map([pattern], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
        if let [commit] = found.as_slice() {
            return Ok(commit.clone());
        }
    }
    Err(refusal)
}

fn not_ingested(connection: &Connection, name: &str) -> Result<ToolError, GraphError> {
    let unread = progress::unread(connection)?.filter(|_| name != WORKTREE);
    let Some(unread) = unread else {
        return Ok(ToolError::new(Code::NotFound, format!("`{name}` was not ingested"))
            .help(format!("run `tgp graph ingest --commit {name}`")));
    };
    let short = unread.oldest.get(..7).unwrap_or_default();
    let far = match unread.total {
        0 => "its history is not read yet".to_owned(),
        total => format!("{} of {total} commits of the history are read, back to {short}", unread.read),
    };
    let message = format!("`{name}` is not in the graph yet: {far}");
    Ok(ToolError::new(Code::NotFound, message).help(if unread.running {
        "an ingest is running; ask again later".to_owned()
    } else {
        format!("run `tgp graph ingest --commit {name}`")
    }))
}
