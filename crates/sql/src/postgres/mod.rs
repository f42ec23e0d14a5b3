//! PostgreSQL: each transaction in its own task, each statement behind a savepoint.

mod catalogue;
mod decode;
mod encode;
mod errors;
pub(crate) mod rules;
mod session;
mod text_format;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tgp_contract::{Database, SqlAccess, SqlClass, SqlTransaction, ToolError};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{CancelToken, Client, Config, NoTls};

use crate::SqlOptions;
use crate::failure::esql;
use crate::options::Limits;
use crate::pool::{Pool, Slot};
use crate::text::{Attributes, Dialect, classify, doubt_call};
use crate::tls::ServerTls;
use crate::transaction::{self, END_GRACE, Ending, SessionCommand};
use crate::url::{PostgresTarget, Tls};
use session::PostgresSession;

/// A server that does not answer in this time is as good as down.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Everything a transaction can leave in its connection. Parts of it cannot run in a block of several statements that
/// `DISCARD ALL` would need, hence the list.
const CLEAN: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *; \
                     SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

pub(crate) struct Postgres {
    connector: Connector,
    options: SqlOptions,
    limits: Limits,
    pool: Arc<Pool<Client>>,
}

/// Makes connections and cancels statements, encrypted or not.
#[derive(Clone)]
pub(crate) struct Connector {
    config: Config,
    encryption: Option<ServerTls>,
}

impl Connector {
    async fn connect(&self) -> Result<Client, ToolError> {
        // The task ends with the connection, and the connection when its client is dropped.
        let connected = match &self.encryption {
            None => self.config.connect(NoTls).await.map(|(client, connection)| {
                tokio::spawn(async move { drop(connection.await) });
                client
            }),
            Some(encryption) => self.config.connect(encryption.clone()).await.map(|(client, connection)| {
                tokio::spawn(async move { drop(connection.await) });
                client
            }),
        };
        connected.map_err(|error| errors::of_connection(&error))
    }

    /// Stops what the connection of `token` is doing. A stop that fails is noticed by the statement that
    /// continues.
    pub async fn cancel(&self, token: CancelToken) {
        let _ = match &self.encryption {
            None => token.cancel_query(NoTls).await,
            Some(encryption) => token.cancel_query(encryption.clone()).await,
        };
    }
}

impl Postgres {
    pub fn new(target: &PostgresTarget, options: &SqlOptions) -> Result<Self, ToolError> {
        let mut config = target.config.clone();
        let given = config.get_options().unwrap_or_default().to_owned();
        // The server's own clock also stops what a killed kernel has left running.
        let timeout = options.statement_timeout.as_millis();
        config.options(format!(
            "{given} -c statement_timeout={timeout} -c standard_conforming_strings=on -c client_encoding=UTF8"
        ));
        if config.get_application_name().is_none() {
            config.application_name("tgp");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        let encryption = match &target.tls {
            Tls::Plain => None,
            Tls::Verified { authorities } => Some(ServerTls::new(authorities.as_deref())?),
        };
        Ok(Self {
            connector: Connector { config, encryption },
            limits: options.limits(),
            pool: Arc::new(Pool::new(options.pool, options.wait)),
            options: options.clone(),
        })
    }
}

/// What the worker of one transaction owns.
struct Work {
    connector: Connector,
    pool: Arc<Pool<Client>>,
    _slot: Slot,
    access: SqlAccess,
    limits: Limits,
}

#[async_trait]
impl Database for Postgres {
    fn dialect(&self) -> &str {
        "postgresql"
    }

    async fn inspect(&self, sql: &str) -> Option<SqlClass> {
        let found = classify(sql, Dialect::Postgres);
        if Attributes::read(sql).is_empty() {
            return Some(found);
        }
        let Ok(mut transaction) = self.begin(SqlAccess::ReadOnly).await else {
            return Some(doubt_call(found));
        };
        let asked = transaction.inspect(sql).await;
        transaction.rollback().await;
        Some(asked.unwrap_or_else(|| doubt_call(found)))
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

/// How a try to begin on one connection went.
enum Try {
    /// It served the transaction to its end.
    Served(Ending),
    Failed(ToolError),
}

impl Work {
    async fn run(
        self,
        ready: oneshot::Sender<Result<(), ToolError>>,
        orders: mpsc::Receiver<SessionCommand>,
    ) {
        let mut ready = Some(ready);
        let mut orders = Some(orders);
        // Kept connections may have died with their server; a fresh one decides.
        loop {
            let kept = self.pool.idle();
            let fresh = kept.is_none();
            let client = match kept {
                Some(client) => Ok(client),
                None => self.connector.connect().await,
            };
            let mut client = match client {
                Ok(client) => client,
                Err(error) => return answer(&mut ready, Err(error)),
            };
            match self.serve(&mut client, &mut ready, &mut orders).await {
                Try::Failed(_) if !fresh => {}
                Try::Failed(error) => return answer(&mut ready, Err(error)),
                Try::Served(Ending::Broken) => return,
                Try::Served(Ending::Ended) => {
                    let cleaned = tokio::time::timeout(END_GRACE, client.batch_execute(CLEAN)).await;
                    if let Ok(Ok(())) = cleaned {
                        self.pool.keep(client);
                    }
                    return;
                }
            }
        }
    }

    async fn serve(
        &self,
        client: &mut Client,
        ready: &mut Option<oneshot::Sender<Result<(), ToolError>>>,
        orders: &mut Option<mpsc::Receiver<SessionCommand>>,
    ) -> Try {
        let builder = client.build_transaction().read_only(self.access == SqlAccess::ReadOnly);
        let transaction = match tokio::time::timeout(END_GRACE, builder.start()).await {
            Ok(Ok(transaction)) => transaction,
            Ok(Err(error)) => return Try::Failed(errors::of_connection(&error)),
            Err(_) => return Try::Failed(esql("the database server does not answer")),
        };
        let Some(orders) = orders.take() else { return Try::Failed(esql("the transaction has no orders")) };
        answer(ready, Ok(()));
        let mut session = PostgresSession::new(transaction, self.connector.clone(), self.access, self.limits);
        Try::Served(transaction::serve(&mut session, orders, self.limits.statement_timeout).await)
    }
}

/// Says once how the beginning went. A caller that has gone away drops the handle, and the transaction ends at once.
fn answer(ready: &mut Option<oneshot::Sender<Result<(), ToolError>>>, result: Result<(), ToolError>) {
    if let Some(ready) = ready.take() {
        let _ = ready.send(result);
    }
}
