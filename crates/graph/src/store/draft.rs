//! The work tree as the last moment, and changes that are only tried.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rusqlite::hooks::{AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, params};
use serde_json::json;
use tgp_contract::{
    Change, Code, GraphQuery, GraphRows, IngestSummary, LeftOutFiles, ToolError, is_chronicle_content,
};

use super::graph_store::Inner;
use super::query;
use super::revisions::{self, WORKTREE};
use super::write_session::{IngestRun, IngestScope, WriteSession};
use crate::cypher;
use crate::ingest::apply_changes::apply_changes;
use crate::ingest::blobs::{Content, Keep, ParseCache};
use crate::ingest::commits;
use crate::ingest::history;
use crate::ingest::ignores::{Ignores, is_at_or_below, is_rule_file};
use crate::ingest::language::{Language, is_chronicle, is_in_chronicles};
use crate::ingest::link::pattern::Pattern;
use crate::ingest::repository::{Changed, Repo};
use crate::ingest::state::{Blob, State};
use crate::ingest::worktree::{self, Differences, WalkedFile, WorkTree};
use crate::tables::connect::{meta, set_meta};
use crate::tables::facts::Frontier;
use crate::tables::failure::GraphError;
use crate::tables::identity::Identities;
use crate::tables::schema::OPEN;
use crate::tables::undo::take_back;
use crate::tables::write::Writer;

/// How often a proposal starts again because another process wrote in between.
const MAX_TRIES: usize = 5;

/// Where the files of the work tree are kept that can be neither named nor opened.
const LEFT_OUT: &str = "left out";

/// Rows of an answer about a proposal. It is judged, not read: what is cut off could be what forbids it.
const PROPOSAL_ROWS: usize = 100_000;

/// Bytes of such an answer.
const PROPOSAL_BYTES: usize = 64 << 20;

/// Files that git ignores and that the changed ones import, one through the other.
const MAX_REVEALED: usize = 2000;

/// SQLite's own limit of a row, which questions lower.
const MAX_ROW_BYTES: i32 = 1_000_000_000;

/// Returns the files that the draft does not have because they can be neither named nor opened.
pub(crate) fn left_out(connection: &Connection) -> Result<LeftOutFiles, GraphError> {
    let Some(text) = meta(connection, LEFT_OUT)? else { return Ok(LeftOutFiles::default()) };
    serde_json::from_str(&text).map_err(|error| {
        ToolError::new(Code::Internal, format!("the graph's store is broken: {error}")).into()
    })
}

impl WriteSession {
    /// Brings the draft up to date with the files on the disk.
    pub(crate) fn draft(
        &mut self,
        repo: Option<&Repo>,
        run: &IngestRun<'_>,
    ) -> Result<IngestSummary, GraphError> {
        let (project, tests) = (run.project, run.tests);
        let head = repo.and_then(Repo::head).map(|(_, id)| id);
        let mut ingested = IngestSummary::default();
        if let (Some(repo), Some(head)) = (repo, head) {
            ingested = self.ingest_uncounted(repo, head, IngestScope::Head, run)?;
        }
        let (files, broken, parsed) = self.transact(|connection, state, parses| {
            let base = head.map(|head| head.to_string());
            let mut number = None;
            if let Some((held, stands_on)) = revisions::draft(connection)? {
                if stands_on == base {
                    number = Some(held);
                } else {
                    take_back(connection)?;
                    *state = State::load(connection, Frontier::Newest, parses)?;
                }
            }
            let tracked = run.tracked.of(repo)?;
            let absent = repo.map_or(Ok(BTreeMap::new()), Repo::absent)?;
            let mut unseen = 0;
            if let Some(repo) = repo {
                let wanted = absent.iter().map(|(path, blob)| (*blob, Language::of(path))).collect();
                unseen = parses.read(connection, wanted, Keep::InStore, |blob| repo.content(blob))?;
            }
            let tree =
                WorkTree { project, tracked, ignores: Ignores::new(project, run.repository, repo), absent };
            let Differences { changes, parsed, left_out } = tree.changes(connection, state, parses)?;
            let parsed = parsed + unseen;
            set_meta(connection, LEFT_OUT, &json!(left_out).to_string())?;
            let last = commits::last(connection)?;
            let mut ids = Identities::load(connection)?;
            let moment = number.unwrap_or(last.number + 1);
            let mut writer = Writer::draft(connection, &mut ids, moment);
            apply_changes(&mut writer, state, parses, tests, &changes)?;
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
        Ok(IngestSummary { files, broken, parsed: ingested.parsed + parsed, ..ingested })
    }

    /// Answers the questions on the draft and on the draft with the changes, and undoes them.
    fn try_changes(
        &mut self,
        inner: &Inner,
        repo: Option<&Repo>,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, GraphError> {
        for _ in 0..MAX_TRIES {
            self.draft(repo, &inner.run())?;
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            let answers = self.tried(inner, repo, changes, questions);
            unguard(&mut self.connection)?;
            self.connection.execute_batch("ROLLBACK")?;
            self.parses.undo();
            if let Some(answers) = answers? {
                return Ok(answers);
            }
        }
        Err(ToolError::new(Code::Conflict, "other processes keep changing the graph's store")
            .help("try again")
            .into())
    }

    /// None when the draft is not the one that was just made.
    fn tried(
        &mut self,
        inner: &Inner,
        repo: Option<&Repo>,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Option<Vec<(GraphRows, GraphRows)>>, GraphError> {
        let Some((held, state)) = &self.state else { return Ok(None) };
        if meta(&self.connection, "generation")? != Some(held.to_string()) {
            return Ok(None);
        }
        let mut proposed = state.clone();
        let moment = revisions::find(&self.connection, repo, Some(WORKTREE))?;
        let place = Place { inner, repo };
        let paths: Vec<String> = changes.iter().map(|change| change.path().as_str().to_owned()).collect();
        place.reveal(&self.connection, moment.number, &mut proposed, &mut self.parses, &paths, &[])?;
        cypher::prepare(&mut self.connection)?;
        let usual = inner.limits();
        let limits = cypher::QueryLimits {
            rows: usual.rows.max(PROPOSAL_ROWS),
            bytes: usual.bytes.max(PROPOSAL_BYTES),
            ..usual
        };
        let ask = |connection: &Connection| -> Result<Vec<GraphRows>, GraphError> {
            let answer = |(at, question): (usize, &GraphQuery)| {
                let answer = query::answer(connection, repo, question, &moment, &limits, None);
                // Who has asked several questions learns which of them cannot be answered.
                answer.map_err(|error| ToolError::from(error).detail("question", at).into())
            };
            questions.iter().enumerate().map(answer).collect()
        };
        let before = ask(&self.connection)?;
        unguard(&mut self.connection)?;
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
        parses: &mut ParseCache,
        changes: &[Change],
    ) -> Result<(), GraphError> {
        let project = &self.inner.options.project;
        let mut contents = HashMap::new();
        let mut wanted = Vec::new();
        let mut files: BTreeMap<String, Option<Blob>> = BTreeMap::new();
        let (ignores, rules_change) = self.proposed_ignores(state, changes);
        let is_chronicle = |change: &Change| {
            is_chronicle(change.path().as_str(), || change.content().is_some_and(is_chronicle_content))
        };
        for change in changes.iter().filter(|change| !is_chronicle(change)) {
            let path = change.path().as_str().to_owned();
            match change {
                Change::Write { content, .. } => {
                    // Who writes a file may have written the rule before that hides it.
                    if is_never_code(&path)
                        && state.file(&path).is_none()
                        && self.is_left_out(&ignores, &path)?
                    {
                        continue;
                    }
                    let blob = worktree::hash(content)?;
                    let language = Language::of(&path);
                    wanted.push((blob, language));
                    contents.insert(blob, Content::Bytes(Arc::clone(content)));
                    files.insert(path, Some(blob));
                }
                Change::Remove { .. } => {
                    let all: Vec<String> = state
                        .files()
                        .keys()
                        .chain(files.keys())
                        .filter(|file| is_at_or_below(file, &path))
                        .cloned()
                        .collect();
                    files.extend(all.into_iter().map(|file| (file, None)));
                }
            }
        }
        if rules_change {
            let tracked = self.inner.tracked.of(self.repo)?;
            let absent = self.repo.map_or(Ok(BTreeMap::new()), Repo::absent)?;
            let tree = WorkTree { project, tracked, ignores, absent };
            let removed: Vec<&str> = changes
                .iter()
                .filter(|change| matches!(change, Change::Remove { .. }))
                .map(|change| change.path().as_str())
                .collect();
            uncover(connection, state, parses, &tree, &removed, &mut files)?;
        }
        parses.read(connection, wanted, Keep::InStore, |blob| {
            Ok(contents.get(&blob).map_or(Content::TooLarge(0), Content::share))
        })?;
        let changes: Vec<Changed> = files
            .into_iter()
            .filter(|(path, blob)| state.file(path).map(|file| file.blob) != *blob)
            .map(|(path, blob)| Changed { path, blob })
            .collect();
        let mut ids = Identities::load(connection)?;
        let mut writer = Writer::draft(connection, &mut ids, moment);
        apply_changes(&mut writer, state, parses, &self.inner.tests, &changes)?;
        let written: Vec<String> =
            changes.iter().filter(|change| change.blob.is_some()).map(|change| change.path.clone()).collect();
        let gone: Vec<String> =
            changes.into_iter().filter(|change| change.blob.is_none()).map(|change| change.path).collect();
        self.reveal(connection, moment, state, parses, &written, &gone)
    }

    /// Adds the files that no rule of git counts to the code and that the changes are about all the same: those at
    /// `paths` as they are on the disk, and what they import, however far that leads. Without that an import could
    /// take a detour that is not checked.
    fn reveal(
        &self,
        connection: &Connection,
        moment: i64,
        state: &mut State,
        parses: &mut ParseCache,
        paths: &[String],
        gone: &[String],
    ) -> Result<(), GraphError> {
        let project = &self.inner.options.project;
        let mut ids = Identities::load(connection)?;
        let mut open: Vec<String> = paths.to_vec();
        let mut wanted: BTreeSet<String> = paths.iter().cloned().collect();
        let mut revealed = 0;
        while !open.is_empty() {
            wanted.retain(|path| state.file(path).is_none() && !is_never_code(path) && !gone.contains(path));
            let met: Vec<WalkedFile> =
                wanted.iter().filter_map(|path| WalkedFile::at(project, path)).collect();
            revealed += met.len();
            if revealed > MAX_REVEALED {
                let message =
                    format!("the changed files import more than {MAX_REVEALED} files that git ignores");
                return Err(ToolError::new(Code::Budget, message)
                    .help("let fewer files be ignored, or change fewer files at once")
                    .into());
            }
            let mut blobs = BTreeMap::new();
            worktree::read(project, connection, parses, &met.iter().collect::<Vec<_>>(), &mut blobs)?;
            let found: Vec<Changed> =
                blobs.into_iter().map(|(path, blob)| Changed { path, blob: Some(blob) }).collect();
            open.extend(found.iter().map(|file| file.path.clone()));
            let mut writer = Writer::draft(connection, &mut ids, moment);
            apply_changes(&mut writer, state, parses, &self.inner.tests, &found)?;
            wanted.clear();
            for path in std::mem::take(&mut open) {
                for target in unresolved(connection, ids.id("File", &[&path]))? {
                    wanted.extend(worktree::meant(project, &target));
                }
                let Some(file) = state.file(&path) else { continue };
                let parse = parses.get(connection, file.blob, file.language)?;
                for pattern in parse.imports.iter().filter_map(|import| Pattern::of(&path, import)) {
                    wanted.extend(worktree::below(project, &pattern)?);
                }
            }
            wanted.retain(|path| state.file(path).is_none());
            open.extend(wanted.iter().filter(|path| WalkedFile::at(project, path).is_some()).cloned());
        }
        Ok(())
    }

    /// The ignore rules as the changes would have them, and whether they are others than before.
    fn proposed_ignores(&self, state: &State, changes: &[Change]) -> (Ignores<'_>, bool) {
        let mut ignores =
            Ignores::new(&self.inner.options.project, &self.inner.options.repository, self.repo);
        let mut are_others = false;
        for change in changes {
            let path = change.path().as_str();
            match change {
                Change::Write { content, .. } => are_others |= ignores.write(path, content),
                Change::Remove { .. } => {
                    ignores.remove(path);
                    are_others |=
                        state.files().keys().any(|file| is_rule_file(file) && is_at_or_below(file, path));
                }
            }
        }
        (ignores, are_others)
    }

    /// Whether a file is not part of the repository.
    fn is_left_out(&self, ignores: &Ignores<'_>, path: &str) -> Result<bool, GraphError> {
        let Some(repo) = self.repo else { return Ok(ignores.leaves_out(path, &|_| false)) };
        let is_tracked = |directory: &str| repo.is_tracked(directory).unwrap_or(true);
        Ok(ignores.leaves_out(path, &is_tracked) && !repo.is_tracked(path)?)
    }
}

/// What is not a code of the project, whatever a rule says: git's own files, the kernel's, chronicles, and installed
/// packages, which imports name as packages.
fn is_never_code(path: &str) -> bool {
    is_in_chronicles(path)
        || tgp_fs::is_in_kernel_directory(path)
        || path.split('/').any(|part| part == ".git" || part == "node_modules")
}

/// Where the imports of a file would lead that lead nowhere.
fn unresolved(connection: &Connection, file: i64) -> Result<Vec<String>, GraphError> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT json_extract(n.props, '$.target') FROM edge AS e \
         JOIN label AS l ON l.node = e.target AND l.name = 'Unresolved' \
         JOIN node AS n ON n.id = e.target AND n.until = ?2 \
         WHERE e.source = ?1 AND e.type = 'IMPORTS' AND e.until = ?2",
    )?;
    let rows = statement.query_map(params![file, OPEN], |row| row.get::<_, Option<String>>(0))?;
    let targets: Vec<Option<String>> = rows.collect::<Result<_, _>>()?;
    Ok(targets.into_iter().flatten().collect())
}

/// What other ignore rules bring to light, and what they hide, beside what the changes name themselves.
fn uncover(
    connection: &Connection,
    state: &State,
    parses: &mut ParseCache,
    tree: &WorkTree<'_>,
    removed: &[&str],
    files: &mut BTreeMap<String, Option<Blob>>,
) -> Result<(), GraphError> {
    let (met, _) = tree.walk()?;
    let is_removed = |path: &str| removed.iter().any(|removed| is_at_or_below(path, removed));
    let new: Vec<&WalkedFile> = met
        .iter()
        .filter(|file| state.file(&file.path).is_none() && !files.contains_key(&file.path))
        .filter(|file| !is_removed(&file.path))
        .collect();
    let mut blobs = BTreeMap::new();
    worktree::read(tree.project, connection, parses, &new, &mut blobs)?;
    let seen: HashSet<&str> = met.iter().map(|file| file.path.as_str()).collect();
    let is_there = |path: &str| seen.contains(path) || tree.absent.contains_key(path);
    let hidden = state.files().keys().filter(|path| !is_there(path));
    let hidden: Vec<String> = hidden.filter(|path| !files.contains_key(*path)).cloned().collect();
    files.extend(hidden.into_iter().map(|path| (path, None)));
    files.extend(blobs.into_iter().map(|(path, blob)| (path, Some(blob))));
    Ok(())
}

impl Inner {
    pub(crate) fn propose(
        &self,
        changes: &[Change],
        questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, GraphError> {
        let repo = self.open_repository(Some(WORKTREE))?;
        self.writing().try_changes(self, repo.as_ref(), changes, questions)
    }
}
