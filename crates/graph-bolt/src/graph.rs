//! The code graph on a server, behind the same trait as the embedded store.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tgp_contract::{Change, Code, Graph, GraphQuery, GraphRows, IngestSummary, SnapshotInfo, ToolError};
use tgp_graph::mirroring::{self, Phase, QueryLimits, Repo};
use tgp_graph::{GraphOptions, GraphStore};

use crate::connection::{Access, Connection, Page};
use crate::failure::Failure;
use crate::mirror;
use crate::options::BoltOptions;
use crate::pack::Packed;
use crate::rewrite::{self, MOMENT, OWN_NAMES, Rewritten};
use crate::values;

/// The name of the files as they are, which no server has.
const WORKTREE: &str = "WORKTREE";
/// Rows that are asked for at once; the caps are checked in between.
const PAGE: usize = 500;
/// Connections that are kept for the next question.
const MAX_IDLE: usize = 4;
/// The stack of the thread that rewrites a query, which recurses as deep as the query is nested.
const STACK: usize = 64 << 20;
/// How long another process that copies the same store is waited for, and how often the lock is tried.
const COPY_WAIT: Duration = Duration::from_secs(600);
const COPY_LOOK: Duration = Duration::from_millis(100);

/// A graph on a server that speaks Bolt. The embedded store reads the repository; its rows are copied to the server, and
/// questions are asked there.
pub struct BoltGraph {
    store: GraphStore,
    /// Where the store is, and what it is about.
    source: GraphOptions,
    options: BoltOptions,
    idle: Mutex<Vec<Connection>>,
}

/// What a question is about, as far as git knows.
struct Named {
    reference: String,
    /// None for the latest that the server has.
    commit: Option<String>,
    /// The branch and the commit of the head.
    head: Option<(String, String)>,
}

impl BoltGraph {
    /// Opens the store that feeds the server. The server is not spoken to before it is needed.
    ///
    /// # Errors
    /// As [`GraphStore::open`].
    pub async fn open(store: GraphOptions, options: BoltOptions) -> Result<Self, ToolError> {
        let source = store.clone();
        let store = GraphStore::open(store).await?;
        Ok(Self { store, source, options, idle: Mutex::default() })
    }

    async fn connection(&self, patience: Duration) -> Result<Connection, Failure> {
        Connection::open(&self.options, patience).await
    }

    /// A connection in a transaction that reads: one that was used before, or a new one where the server has ended it.
    async fn reading(&self) -> Result<Connection, Failure> {
        let time = self.options.time;
        let database = self.options.database.as_deref();
        let held = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut connection) = held
            && connection.begin(Access::Read, database, time).await.is_ok()
        {
            return Ok(connection);
        }
        let mut connection = self.connection(time).await?;
        connection.begin(Access::Read, database, time).await?;
        Ok(connection)
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }

    async fn copy(&self) -> Result<(), ToolError> {
        let _lock = lock(&self.source.file).await?;
        let mut connection = self.connection(self.options.write_time).await?;
        let file = self.source.file.clone();
        mirror::mirror(&mut connection, &self.options, move || mirroring::reader(&file)).await?;
        Ok(())
    }

    async fn ask(&self, question: &GraphQuery, named: Named, query: Rewritten) -> Result<GraphRows, Failure> {
        let mut connection = self.reading().await?;
        let (number, standing) = moment(&mut connection, named).await?;
        let mut parameters = vec![(MOMENT.to_owned(), Packed::Integer(number))];
        for (name, value) in &question.params {
            if !name.starts_with(OWN_NAMES) {
                parameters.push((name.clone(), values::parameter(name, value)?));
            }
        }
        let (found, mut page) = connection.run(&query.text, parameters, PAGE).await?;
        let shown: Vec<bool> = found.iter().map(|column| !column.starts_with(OWN_NAMES)).collect();
        let mut answer = GraphRows { standing, ..GraphRows::default() };
        answer.columns = query.columns.unwrap_or_else(|| {
            found.into_iter().zip(&shown).filter(|(_, shown)| **shown).map(|(column, _)| column).collect()
        });
        let mut bytes = 0;
        loop {
            let Page { rows, bytes: weight, has_more } = page;
            bytes += weight;
            for row in rows {
                if answer.rows.len() == self.options.max_rows {
                    answer.truncated = true;
                    break;
                }
                let cells = row.into_iter().zip(&shown).filter(|(_, shown)| **shown);
                answer.rows.push(cells.map(|(cell, _)| values::json(cell)).collect::<Result<_, _>>()?);
            }
            let is_full = answer.rows.len() >= self.options.max_rows || bytes >= self.options.max_bytes;
            answer.truncated |= has_more && is_full;
            if !has_more || answer.truncated {
                break;
            }
            page = connection.pull(PAGE).await?;
        }
        // What is still to come is not wanted; a reset ends it wherever it is.
        if answer.truncated {
            connection.reset().await?
        } else {
            connection.roll_back().await?
        }
        self.keep(connection);
        Ok(answer)
    }
}

#[async_trait]
impl Graph for BoltGraph {
    fn marks_unread_files(&self) -> bool {
        true
    }

    async fn ingest(&self, commit: &str) -> Result<IngestSummary, ToolError> {
        if commit == WORKTREE {
            return Err(only_embedded("the work tree"));
        }
        let ingested = self.store.ingest(commit).await?;
        self.copy().await?;
        Ok(ingested)
    }

    /// A server does not know who asks: it is asked for those who may see everything.
    async fn query(&self, question: GraphQuery) -> Result<GraphRows, ToolError> {
        if !question.visible.is_everything() {
            return Err(cannot_hide());
        }
        let query = rewritten(question.query.clone(), !self.options.any_names).await?;
        let (source, commit) = (self.source.clone(), question.commit.clone());
        let named = blocking(move || named(&source, commit)).await?;
        let time = self.options.time;
        let asked = tokio::time::timeout(time, self.ask(&question, named, query)).await;
        Ok(asked.unwrap_or(Err(Failure::Slow(time)))?)
    }

    async fn propose(
        &self,
        _changes: &[Change],
        _questions: &[GraphQuery],
    ) -> Result<Vec<(GraphRows, GraphRows)>, ToolError> {
        Err(only_embedded("a proposal"))
    }
}

/// Why a graph server is not asked for a caller who may not see everything.
fn cannot_hide() -> ToolError {
    let message = "the graph server of `graph.url` is not asked: it cannot leave out files that are hidden from this call";
    ToolError::new(Code::Permission, message)
        .help("ask about `WORKTREE`, or remove `graph.url` to use the embedded store, which can")
}

fn only_embedded(what: &str) -> ToolError {
    let message = format!("{what} is not supported over Bolt: a server holds commits only");
    ToolError::new(Code::Validation, message).help("use the embedded store for it")
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cut_off = |error| ToolError::new(Code::Internal, format!("the graph's work was cut off: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(cut_off)?
}

async fn rewritten(query: String, vocabulary: bool) -> Result<Rewritten, ToolError> {
    blocking(move || {
        let work = || {
            let limits = QueryLimits { vocabulary, ..QueryLimits::default() };
            let tree = mirroring::accepted(&query, &limits)?;
            rewrite::rewrite(&query, &tree, limits.hops)
                .map_err(|refusal| refusal.into_error(&query, Phase::Compile))
        };
        let failed =
            |what: &str| ToolError::new(Code::Internal, format!("the query could not be read: {what}"));
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            let thread = thread.map_err(|error| failed(&error.to_string()))?;
            thread.join().map_err(|_| failed("its thread failed"))?
        })
    })
    .await
}

/// What git says of the name of a commit.
fn named(source: &GraphOptions, name: Option<String>) -> Result<Named, ToolError> {
    if name.as_deref() == Some(WORKTREE) {
        return Err(only_embedded("the work tree"));
    }
    let repo = Repo::open(&source.project, &source.repository)?;
    let head = repo.as_ref().and_then(Repo::head).map(|(branch, id)| (branch, id.to_string()));
    let Some(reference) = name else { return Ok(Named { reference: String::new(), commit: None, head }) };
    let commit = match repo {
        Some(repo) => repo.resolve(&reference)?.to_string(),
        None => reference.clone(),
    };
    Ok(Named { reference, commit: Some(commit), head })
}

/// The number of the moment that a question is about, and what the answer says of it.
async fn moment(connection: &mut Connection, named: Named) -> Result<(i64, SnapshotInfo), Failure> {
    let Named { reference, commit, head } = named;
    let head_commit = head.as_ref().map(|(_, commit)| commit.clone()).unwrap_or_default();
    let wanted = commit.clone().unwrap_or_default();
    let commits = Packed::List(vec![Packed::text(&wanted), Packed::text(&head_commit)]);
    let statement = "MATCH (m:TgpMoment) WHERE m.commit IN $commits RETURN m.number, m.commit";
    let (_, mut page) = connection.run(statement, vec![("commits".to_owned(), commits)], PAGE).await?;
    let find = |page: &Page, wanted: &str| {
        page.rows.iter().find_map(|row| match row.as_slice() {
            [number, commit] if commit.as_text() == Some(wanted) => number.as_integer(),
            _ => None,
        })
    };
    let behind = !head_commit.is_empty() && find(&page, &head_commit).is_none();
    let Some(commit) = commit else {
        let statement = "MATCH (m:TgpMoment) RETURN m.number, m.commit ORDER BY m.number DESC LIMIT 1";
        page = connection.run(statement, Vec::new(), PAGE).await?.1;
        let Some([number, commit]) = page.rows.first().map(Vec::as_slice) else {
            return Err(not_there("nothing was ingested yet", "run `tgp graph ingest`"));
        };
        let commit = commit.as_text().unwrap_or_default().to_owned();
        let branch = head.filter(|(_, head)| *head == commit).map(|(branch, _)| branch);
        let reference = branch.unwrap_or_else(|| commit.clone());
        let number = number.as_integer().unwrap_or_default();
        return Ok((number, SnapshotInfo { reference, commit, behind, ..SnapshotInfo::default() }));
    };
    match find(&page, &commit) {
        Some(number) => Ok((number, SnapshotInfo { reference, commit, behind, ..SnapshotInfo::default() })),
        None => Err(not_there(
            &format!("`{reference}` was not ingested"),
            &format!("run `tgp graph ingest --commit {reference}`"),
        )),
    }
}

fn not_there(message: &str, help: &str) -> Failure {
    ToolError::new(Code::NotFound, message).help(help).into()
}

/// One copy of a store at a time, whichever process makes it. The lock ends with the process that holds it.
async fn lock(store: &Path) -> Result<File, ToolError> {
    let mut name = store.as_os_str().to_owned();
    name.push(".copy-lock");
    let path = PathBuf::from(name);
    let broken = |error: std::io::Error| {
        let message = format!("cannot lock `{}`: {error}", path.display());
        ToolError::new(Code::Internal, message).help("see that the folder of the store can be written")
    };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(broken)?;
    let until = tokio::time::Instant::now() + COPY_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(error)) => return Err(broken(error)),
            Err(std::fs::TryLockError::WouldBlock) if tokio::time::Instant::now() >= until => {
                return Err(ToolError::new(
                    Code::Conflict,
                    "another process keeps copying this graph to the server",
                )
                .help("wait for it, or end it, and try again"));
            }
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(COPY_LOOK).await,
        }
    }
}
