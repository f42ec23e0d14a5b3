//! Names of commits, and the moments they stand for.

use rusqlite::{Connection, OptionalExtension};
use tgp_contract::{Code, Standing, ToolError};

use super::failure::GraphError;
use crate::ingest::repository::{Repo, check_name};

/// The name of the files as they are.
pub(crate) const WORKTREE: &str = "WORKTREE";

/// Fewer characters of a commit's id say nothing.
const MIN_PREFIX: usize = 4;

/// The moment that a question is about.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) number: i64,
    pub(crate) standing: Standing,
}

/// The moment of the work tree and the commit it stands on.
pub(crate) fn draft(connection: &Connection) -> Result<Option<(i64, Option<String>)>, GraphError> {
    let mut statement =
        connection.prepare_cached("SELECT number, base FROM moment WHERE commit_id IS NULL LIMIT 1")?;
    Ok(statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

fn number_of(connection: &Connection, commit: &str) -> Result<Option<i64>, GraphError> {
    let mut statement = connection.prepare_cached("SELECT number FROM moment WHERE commit_id = ?1")?;
    Ok(statement.query_row([commit], |row| row.get(0)).optional()?)
}

/// Finds the moment that `name` stands for; the last commit that was ingested where there is no name.
pub(crate) fn find(
    connection: &Connection,
    repo: Option<&Repo>,
    name: Option<&str>,
) -> Result<Moment, GraphError> {
    let head = repo.and_then(Repo::head);
    let behind = match &head {
        Some((_, id)) => number_of(connection, &id.to_string())?.is_none(),
        None => false,
    };
    match name {
        Some(WORKTREE) => {
            let Some((number, base)) = draft(connection)? else { return Err(not_ingested(WORKTREE).into()) };
            Ok(of_draft(number, base, behind))
        }
        Some(name) => {
            let commit = commit_of(connection, repo, name)?;
            let Some(number) = number_of(connection, &commit)? else { return Err(not_ingested(name).into()) };
            let standing = Standing { reference: name.to_owned(), commit, draft: false, behind };
            Ok(Moment { number, standing })
        }
        None => latest(connection, head, behind),
    }
}

fn of_draft(number: i64, base: Option<String>, behind: bool) -> Moment {
    let commit = base.unwrap_or_default();
    Moment { number, standing: Standing { reference: WORKTREE.to_owned(), commit, draft: true, behind } }
}

fn latest(
    connection: &Connection,
    head: Option<(String, git2::Oid)>,
    behind: bool,
) -> Result<Moment, GraphError> {
    let row: Option<(i64, String)> = connection
        .prepare_cached(
            "SELECT number, commit_id FROM moment WHERE commit_id IS NOT NULL ORDER BY number DESC LIMIT 1",
        )?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((number, commit)) = row {
        let branch = head.filter(|(_, id)| id.to_string() == commit).map(|(branch, _)| branch);
        let reference = branch.unwrap_or_else(|| commit.clone());
        return Ok(Moment { number, standing: Standing { reference, commit, draft: false, behind } });
    }
    // Where no commit can be, the files as they are stand for themselves.
    match (head, draft(connection)?) {
        (None, Some((number, base))) => Ok(of_draft(number, base, behind)),
        _ => Err(ToolError::new(Code::NotFound, "nothing was ingested yet")
            .help("run `tgp graph ingest`")
            .into()),
    }
}

/// The full id of the commit that a name stands for: what git says, or an id that was ingested.
fn commit_of(connection: &Connection, repo: Option<&Repo>, name: &str) -> Result<String, GraphError> {
    check_name(name)?;
    let refusal = match repo.map(|repo| repo.resolve(name)) {
        Some(Ok(id)) => return Ok(id.to_string()),
        Some(Err(error)) => error,
        None => not_ingested(name).into(),
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

fn not_ingested(name: &str) -> ToolError {
    ToolError::new(Code::NotFound, format!("`{name}` was not ingested"))
        .help(format!("run `tgp graph ingest --commit {name}`"))
}
