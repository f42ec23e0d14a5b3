//! The work tree as the last moment, and changes that are only tried.

use std::path::Path;

use globset::GlobSet;
use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, params};
use tgp_contract::{Change, GraphAnswer, GraphQuestion, Ingested, ToolError};

use super::connect::meta;
use super::face::Inner;
use super::failure::GraphError;
use super::moments::{self, WORKTREE};
use super::query;
use super::write::{Writer, take_back};
use super::writing::Writing;
use crate::cypher;
use crate::ingest::advance::advance;
use crate::ingest::blobs::{Content, Parses};
use crate::ingest::commits;
use crate::ingest::history;
use crate::ingest::language::Language;
use crate::ingest::repository::{Changed, Repo};
use crate::ingest::state::State;
use crate::ingest::worktree::{self, WorkTree};
use crate::store::identity::Identities;

/// How often a proposal begins anew because another process wrote in between.
const MAX_TRIES: usize = 5;

/// SQLite's own limit of a row, which questions lower.
const MAX_ROW_BYTES: i32 = 1_000_000_000;

impl Writing {
    /// Brings the draft up to date with the files on the disk.
    pub(crate) fn draft(
        &mut self,
        repo: Option<&Repo>,
        project: &Path,
        cap: usize,
        tests: &GlobSet,
    ) -> Result<Ingested, GraphError> {
        let head = repo.and_then(Repo::head).map(|(_, id)| id);
        let mut ingested = Ingested::default();
        if let (Some(repo), Some(head)) = (repo, head) {
            ingested = self.ingest(repo, head, cap, tests)?;
        }
        let (files, broken, parsed) = self.transact(|connection, state, parses| {
            let base = head.map(|head| head.to_string());
            let mut number = None;
            if let Some((held, stands_on)) = moments::draft(connection)? {
                if stands_on == base {
                    number = Some(held);
                } else {
                    take_back(connection)?;
                    *state = State::load(connection, parses)?;
                }
            }
            let mut committed = std::collections::HashSet::new();
            if let (Some(repo), Some(head)) = (repo, head) {
                committed = repo.files(head)?.into_iter().map(|file| file.path).collect();
            }
            let tree = WorkTree { project, committed };
            let (changes, parsed) = tree.changes(connection, state, parses)?;
            let last = commits::last(connection)?;
            let mut ids = Identities::load(connection)?;
            let moment = number.unwrap_or(last.number + 1);
            let mut writer = Writer { connection, moment, draft: true, ids: &mut ids };
            advance(&mut writer, state, parses, tests, &changes)?;
            if number.is_none() {
                if let Some(repo) = repo {
                    history::show(&mut writer, repo, last.commit, head)?;
                }
                connection
                    .prepare_cached(
                        "INSERT INTO moment (number, commit_id, base, tree) VALUES (?1, NULL, ?2, '')",
                    )?
                    .execute(params![moment, base])?;
            }
            let broken = state.files().values().filter(|file| file.broken).count();
            Ok((state.files().len() as u64, broken as u64, parsed))
        })?;
        ingested.commit = head.map(|head| head.to_string()).unwrap_or_default();
        Ok(Ingested { files, broken, parsed: ingested.parsed + parsed, ..ingested })
    }

    /// Answers the questions on the draft and on the draft with the changes, and undoes them.
    fn try_changes(
        &mut self,
        inner: &Inner,
        repo: Option<&Repo>,
        changes: &[Change],
        questions: &[GraphQuestion],
    ) -> Result<Vec<(GraphAnswer, GraphAnswer)>, GraphError> {
        for _ in 0..MAX_TRIES {
            self.draft(repo, &inner.options.project, inner.options.history, &inner.tests)?;
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            let answers = self.tried(inner, repo, changes, questions);
            unguard(&mut self.connection)?;
            self.connection.execute_batch("ROLLBACK")?;
            self.parses.undo();
            if let Some(answers) = answers? {
                return Ok(answers);
            }
        }
        Err(ToolError::new(tgp_contract::Code::Conflict, "other processes keep changing the graph's store")
            .help("try again")
            .into())
    }

    /// None when the draft is not the one that was just made.
    fn tried(
        &mut self,
        inner: &Inner,
        repo: Option<&Repo>,
        changes: &[Change],
        questions: &[GraphQuestion],
    ) -> Result<Option<Vec<(GraphAnswer, GraphAnswer)>>, GraphError> {
        let Some((held, state)) = &self.state else { return Ok(None) };
        if meta(&self.connection, "generation")? != Some(held.to_string()) {
            return Ok(None);
        }
        let mut proposed = state.clone();
        cypher::prepare(&mut self.connection)?;
        let moment = moments::find(&self.connection, repo, Some(WORKTREE))?;
        let limits = inner.limits();
        let ask = |connection: &Connection| -> Result<Vec<GraphAnswer>, GraphError> {
            questions
                .iter()
                .map(|question| query::answer(connection, repo, question, &moment, &limits))
                .collect()
        };
        let before = ask(&self.connection)?;
        unguard(&mut self.connection)?;
        let place = Place { inner, repo };
        place.apply(&self.connection, moment.number, &mut proposed, &mut self.parses, changes)?;
        cypher::prepare(&mut self.connection)?;
        let after = ask(&self.connection)?;
        Ok(Some(before.into_iter().zip(after).collect()))
    }
}

/// Questions leave a guard on their connection, which lets nothing but reads through.
fn unguard(connection: &mut Connection) -> Result<(), GraphError> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    connection.progress_handler(0, None::<fn() -> bool>)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)?;
    Ok(())
}

/// Where changes are tried.
struct Place<'a> {
    inner: &'a Inner,
    repo: Option<&'a Repo>,
}

impl Place<'_> {
    fn apply(
        &self,
        connection: &Connection,
        moment: i64,
        state: &mut State,
        parses: &mut Parses,
        changes: &[Change],
    ) -> Result<(), GraphError> {
        let mut contents = std::collections::HashMap::new();
        let mut wanted = Vec::new();
        let mut files: std::collections::BTreeMap<String, Option<crate::ingest::state::Blob>> =
            std::collections::BTreeMap::new();
        for change in changes {
            let path = change.path().as_str().to_owned();
            match change {
                Change::Write { content, .. } => {
                    let known = state.file(&path).is_some();
                    let root = self.repo.and_then(Repo::root);
                    if !known && worktree::is_ignored(&self.inner.options.project, root, &path) {
                        continue;
                    }
                    let blob = worktree::hash(content)?;
                    let language = Language::of(&path);
                    wanted.push((blob, language));
                    contents.insert(blob, Content::Bytes(content.as_slice().into()));
                    files.insert(path, Some(blob));
                }
                Change::Remove { .. } => {
                    let below = format!("{path}/");
                    let all: Vec<String> = state
                        .files()
                        .keys()
                        .chain(files.keys())
                        .filter(|file| **file == path || file.starts_with(&below))
                        .cloned()
                        .collect();
                    files.extend(all.into_iter().map(|file| (file, None)));
                }
            }
        }
        parses.read(connection, wanted, |blob| {
            Ok(contents.get(&blob).map_or(Content::TooLarge(0), Content::share))
        })?;
        let changes: Vec<Changed> = files
            .into_iter()
            .filter(|(path, blob)| state.file(path).map(|file| file.blob) != *blob)
            .map(|(path, blob)| Changed { path, blob })
            .collect();
        let mut ids = Identities::load(connection)?;
        let mut writer = Writer { connection, moment, draft: true, ids: &mut ids };
        advance(&mut writer, state, parses, &self.inner.tests, &changes)
    }
}

impl Inner {
    pub(crate) fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuestion],
    ) -> Result<Vec<(GraphAnswer, GraphAnswer)>, GraphError> {
        let repo = Repo::open(&self.options.project)?;
        self.writing().try_changes(self, repo.as_ref(), changes, questions)
    }
}
