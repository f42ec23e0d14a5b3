//! SQLite: one file, one writer at a time, each transaction on its own thread.
//!
//! A transaction that will write takes the write lock when it begins (`BEGIN IMMEDIATE`). One that reads first takes it at
//! its first statement that writes, and is refused for good (`SQLITE_BUSY_SNAPSHOT`) when another writer has committed
//! since its first read: what it would write might rest on what it has read. Writers of this process queue for their
//! turn in order; other processes are waited for with a busy handler. Readers do not wait.

mod actions;
mod authorizer;
mod connection;
mod errors;
mod inspector;
mod math;
mod serve;
mod session;
mod turn;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::{Database, SqlAccess, SqlClass, SqlTransaction, ToolError, UNKNOWN_KIND, background};
use tokio::sync::{Semaphore, oneshot};

use crate::SqlOptions;
use crate::failure::esql;
use crate::options::Limits;
use crate::pool::Pool;
use crate::transaction::{self, Ending};
use connection::Connection;
use inspector::Inspector;
use session::SqliteSession;
use turn::WriterTurn;

pub(crate) struct Sqlite {
    file: PathBuf,
    options: SqlOptions,
    limits: Limits,
    pool: Arc<Pool<Connection>>,
    /// The turn of the one writer; the queue for it is fair.
    writer: Arc<Semaphore>,
    inspector: Arc<Inspector>,
}

impl Sqlite {
    pub fn new(file: PathBuf, options: &SqlOptions) -> Self {
        let inspector = Inspector::new(file.clone(), options.wait, options.statement_timeout);
        Self {
            inspector: Arc::new(inspector),
            file,
            limits: options.limits(),
            pool: Arc::new(Pool::new(options.pool, options.wait)),
            writer: Arc::new(Semaphore::new(1)),
            options: options.clone(),
        }
    }
}

#[async_trait]
impl Database for Sqlite {
    fn dialect(&self) -> &str {
        "sqlite"
    }

    fn is_embedded(&self) -> bool {
        true
    }

    async fn inspect(&self, sql: &str) -> Option<SqlClass> {
        let (inspector, sql) = (Arc::clone(&self.inspector), sql.to_owned());
        // A thread that died has found out nothing.
        let unknown = || SqlClass { kinds: vec![UNKNOWN_KIND.to_owned()], reads: false };
        let found = background::run(move || Ok(inspector.inspect(&sql))).await;
        Some(found.unwrap_or_else(|_| unknown()))
    }

    async fn begin(&self, access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        let access = self.options.access(access);
        // INVARIANT: the holder of the turn never waits for a slot, because those that hold slots may wait for the turn.
        // The turn is the right to one connection too, so waiting writers leave the others to readers.
        let (turn, slot) = match access {
            SqlAccess::ReadOnly | SqlAccess::ReadFirst => (None, Some(self.pool.slot().await?)),
            SqlAccess::ReadWrite => {
                let waiting = Arc::clone(&self.writer).acquire_owned();
                let turn = tokio::time::timeout(self.pool.wait(), waiting).await;
                (Some(turn.map_err(|_| busy(self.pool.wait().as_millis()))?.map_err(|_| busy(0))?), None)
            }
        };
        let (handle, orders, abandoned) = transaction::channel();
        let (ready, started) = oneshot::channel();
        let (pool, file, limits) = (Arc::clone(&self.pool), self.file.clone(), self.limits);
        let create = !self.options.read_only;
        let runtime = tokio::runtime::Handle::current();
        let turn = WriterTurn::new(Arc::clone(&self.writer), self.pool.wait(), runtime, turn);
        tokio::task::spawn_blocking(move || {
            let wait = pool.wait();
            let opened = pool.idle().map_or_else(|| Connection::open(&file, create, wait), Ok);
            let begun = opened.and_then(|mut connection| {
                connection.begin(access, abandoned, wait)?;
                Ok(connection)
            });
            let session = match begun {
                Ok(connection) => SqliteSession::new(connection, access, limits, turn),
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            // A caller that has gone away drops the handle, and the transaction ends at once.
            let _ = ready.send(Ok(()));
            let ending = serve::serve(&session, orders);
            let (connection, turn) = session.into_parts();
            if let (Ending::Ended, Some(connection)) = (ending, connection.clean()) {
                pool.keep(connection);
            }
            drop(turn);
            drop(slot);
        });
        started.await.unwrap_or_else(|_| Err(esql("the database's worker has ended")))?;
        Ok(Box::new(handle))
    }

    async fn finished(&self) {
        self.pool.finished().await;
        // The semaphore is never closed.
        let _ = self.writer.acquire().await;
    }
}

fn busy(waited: u128) -> ToolError {
    esql(format!("other transactions were writing to the database for {waited} ms"))
        .detail("wait_ms", u64::try_from(waited).unwrap_or(u64::MAX))
        .detail("sqlCode", "SQLITE_BUSY")
        .help("try again; keep transactions short, since SQLite has one writer at a time")
}
