//! MySQL and MariaDB: each transaction in its own task.
//!
//! Two things are the server's own. A definition (`CREATE TABLE`…) commits at once and cannot be rolled back, so it is
//! refused when there is something a commit would seal. And only tables of transactional engines roll back.

mod cursor;
mod errors;
pub(crate) mod rules;
mod session;
mod values;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder, SslOpts};
use tgp_contract::{Database, SqlAccess, SqlClass, SqlTransaction, ToolError};
use tokio::sync::{mpsc, oneshot};

use crate::SqlOptions;
use crate::failure::esql;
use crate::options::Limits;
use crate::pool::{Pool, Slot};
use crate::text::{Dialect, classify};
use crate::transaction::{self, END_GRACE, Ending, SessionCommand};
use crate::url::{MySqlTarget, Tls};
use session::MySqlSession;

/// A server that does not answer in this time is as good as down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a second connection may take to stop the first one.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct MySql {
    connector: Connector,
    options: SqlOptions,
    limits: Limits,
    pool: Arc<Pool<Conn>>,
}

/// Makes connections, and stops what another connection does.
#[derive(Clone)]
pub(crate) struct Connector {
    options: Opts,
}

impl Connector {
    async fn connect(&self) -> Result<Conn, ToolError> {
        match tokio::time::timeout(CONNECT_TIMEOUT, Conn::new(self.options.clone())).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(errors::of_connection(&error)),
            Err(_) => Err(esql("the database server does not answer")
                .help("check that the server runs and that `db.url` names it")),
        }
    }

    /// Stops a connection's statement. One that cannot be stopped is noticed by the statement that continues.
    pub async fn kill(&self, what: &str, connection: u32) {
        let killing = async {
            let mut helper = self.connect().await.ok()?;
            helper.query_drop(format!("KILL {what} {connection}")).await.ok()?;
            helper.disconnect().await.ok()
        };
        let _ = tokio::time::timeout(KILL_TIMEOUT, killing).await;
    }
}

impl MySql {
    pub fn new(target: &MySqlTarget, options: &SqlOptions) -> Result<Self, ToolError> {
        let mut builder = OptsBuilder::from_opts(target.options.clone())
            .prefer_socket(false)
            .socket(target.socket.clone())
            // Like the other two databases, an UPDATE counts the rows it found.
            .client_found_rows(true)
            .setup(vec![setup(options)]);
        if let Tls::Verified { authorities } = &target.tls {
            let mut ssl = SslOpts::default();
            if let Some(file) = authorities {
                // Read once here as well, so that a wrong path is an error of the configuration.
                crate::tls::ServerTls::new(Some(file))?;
                ssl = ssl.with_root_certs(vec![file.clone().into()]).with_disable_built_in_roots(true);
            }
            builder = builder.ssl_opts(ssl);
        }
        Ok(Self {
            connector: Connector { options: builder.into() },
            limits: options.limits(),
            pool: Arc::new(Pool::new(options.pool, options.wait)),
            options: options.clone(),
        })
    }
}

/// What every session begins with, also after it was reset.
fn setup(options: &SqlOptions) -> String {
    let lock_seconds = options.statement_timeout.as_secs().max(1);
    format!(
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', \
         time_zone = '+00:00', innodb_lock_wait_timeout = {lock_seconds}, lock_wait_timeout = {lock_seconds}, {}",
        statement_bounds(options.limits())
    )
}

/// The server's bounds of one statement. The two servers name the timeout differently; each skips the comment of the other.
fn statement_bounds(limits: Limits) -> String {
    let milliseconds = limits.statement_timeout.as_millis();
    let seconds = limits.statement_timeout.as_secs_f64();
    let rows = limits.max_rows.saturating_add(1);
    format!(
        "sql_select_limit = {rows} /*M!100101 , max_statement_time = {seconds} */ \
         /*!50708 , max_execution_time = {milliseconds} */"
    )
}

/// What the worker of one transaction owns.
struct Work {
    connector: Connector,
    pool: Arc<Pool<Conn>>,
    _slot: Slot,
    access: SqlAccess,
    limits: Limits,
}

#[async_trait]
impl Database for MySql {
    fn dialect(&self) -> &str {
        "mysql"
    }

    async fn inspect(&self, sql: &str) -> Option<SqlClass> {
        Some(classify(sql, Dialect::MySql))
    }

    async fn begin(&self, access: SqlAccess) -> Result<Box<dyn SqlTransaction>, ToolError> {
        let slot = self.pool.slot().await?;
        let (handle, orders, _) = transaction::channel();
        let (ready, started) = oneshot::channel();
        let work = Work {
            connector: self.connector.clone(),
            pool: Arc::clone(&self.pool),
            _slot: slot,
            access: self.options.access(access),
            limits: self.limits,
        };
        tokio::spawn(work.run(ready, orders));
        started.await.unwrap_or_else(|_| Err(esql("the database's worker has ended")))?;
        Ok(Box::new(handle))
    }

    async fn finished(&self) {
        self.pool.finished().await;
    }
}

impl Work {
    async fn run(
        self,
        ready: oneshot::Sender<Result<(), ToolError>>,
        orders: mpsc::Receiver<SessionCommand>,
    ) {
        let mut session = match self.start().await {
            Ok(session) => session,
            Err(error) => {
                let _ = ready.send(Err(error));
                return;
            }
        };
        // A caller that has gone away drops the handle, and the transaction ends at once.
        let _ = ready.send(Ok(()));
        let ending = transaction::serve(&mut session, orders, self.limits.statement_timeout).await;
        let number = session.number();
        let mut connection = session.into_connection();
        // The reset clears variables, temporary tables and locks, and sets the session up again.
        if ending == Ending::Ended
            && let Some(mut clean) = connection.take()
        {
            match tokio::time::timeout(END_GRACE, clean.reset()).await {
                Ok(Ok(true)) => return self.pool.keep(clean),
                _ => connection = Some(clean),
            }
        }
        if ending == Ending::Broken {
            self.connector.kill("CONNECTION", number).await;
        }
        disconnect(connection).await;
    }

    /// Kept connections may have died with their server; a fresh one decides.
    async fn start(&self) -> Result<MySqlSession, ToolError> {
        while let Some(kept) = self.pool.idle() {
            let mut session = MySqlSession::new(kept, self.connector.clone(), self.access, self.limits);
            if let Ok(Ok(())) = tokio::time::timeout(END_GRACE, session.begin()).await {
                return Ok(session);
            }
            disconnect(session.into_connection()).await;
        }
        let fresh = self.connector.connect().await?;
        let mut session = MySqlSession::new(fresh, self.connector.clone(), self.access, self.limits);
        match tokio::time::timeout(END_GRACE, session.begin()).await {
            Ok(begun) => begun.map(|()| session).map_err(|failure| failure.error),
            Err(_) => Err(esql("the database server does not answer")),
        }
    }
}

async fn disconnect(connection: Option<Conn>) {
    if let Some(connection) = connection {
        let _ = tokio::time::timeout(KILL_TIMEOUT, connection.disconnect()).await;
    }
}
