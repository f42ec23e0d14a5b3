//! SQLite: one file, one writer at a time, each transaction on its own thread.
//!
//! A transaction that may write takes the write lock when it begins (`BEGIN IMMEDIATE`). One that read first and asked
//! for the lock later could be refused for good, because another writer has moved on since. Writers of this process
//! queue for their turn in order; other processes are waited for with a busy handler. Readers do not wait.

mod actions;
mod authorizer;
mod connection;
mod errors;
mod inspector;
mod session;
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

    async fn inspect(&self, sql: &str) -> Option<SqlClass> {
        let (inspector, sql) = (Arc::clone(&self.inspector), sql.to_owned());
        // A thread that died has found out nothing.
        let unknown = || SqlClass { kinds: vec![UNKNOWN_KIND.to_owned()], reads: false };
        let found = background::run(move || Ok(inspector.inspect(&sql))).await;
        Some(found.unwrap_or_else(|_| unknown()))
    }

    async fn begin(&self, access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        let access = self.options.access(access);
        // The turn comes before the slot, so that waiting writers leave the connections to readers.
        let turn = match access {
            SqlAccess::ReadOnly => None,
            SqlAccess::ReadWrite => {
                let waiting = Arc::clone(&self.writer).acquire_owned();
                let turn = tokio::time::timeout(self.pool.wait(), waiting).await;
                Some(turn.map_err(|_| busy(self.pool.wait().as_millis()))?.map_err(|_| busy(0))?)
            }
        };
        let slot = self.pool.slot().await?;
        let (handle, orders, abandoned) = transaction::channel();
        let (ready, started) = oneshot::channel();
        let (pool, file, limits) = (Arc::clone(&self.pool), self.file.clone(), self.limits);
        let create = !self.options.read_only;
        let runtime = tokio::runtime::Handle::current();
        tokio::task::spawn_blocking(move || {
            let wait = pool.wait();
            let opened = pool.idle().map_or_else(|| Connection::open(&file, create, wait), Ok);
            let begun = opened.and_then(|mut connection| {
                connection.begin(access, abandoned, wait)?;
                Ok(connection)
            });
            let mut session = match begun {
                Ok(connection) => SqliteSession::new(connection, access, limits),
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return;
                }
            };
            // A caller that has gone away drops the handle, and the transaction ends at once.
            let _ = ready.send(Ok(()));
            let ending = runtime.block_on(transaction::serve(&mut session, orders, limits.statement_timeout));
            let clean = session.into_connection().clean();
            if let (Ending::Ended, Some(connection)) = (ending, clean) {
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
    }
}

fn busy(waited: u128) -> ToolError {
    esql(format!("other transactions were writing to the database for {waited} ms"))
        .detail("wait_ms", u64::try_from(waited).unwrap_or(u64::MAX))
        .detail("sqlCode", "SQLITE_BUSY")
        .help("try again; keep transactions short, since SQLite has one writer at a time")
}
