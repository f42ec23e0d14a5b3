//! Rows read in batches from MySQL: the server sends them one after the other on the only connection of the transaction,
//! so nothing else can run on it until the last one is read or the statement is stopped.

use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Params, Statement};
use serde_json::Value;
use tgp_contract::{SqlRows, ToolError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::values::read;
use crate::answer::{Batches, Capacity};
use crate::failure::esql;
use crate::options::Limits;
use crate::values::json;

/// For the time that a cursor is open: each batch has the time of a statement, and this side watches the clock.
pub(super) const WITHOUT_BOUNDS: &str = "SET SESSION sql_select_limit = DEFAULT \
                                         /*M!100101 , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */";

/// What a batch can end in.
pub(super) enum BatchError {
    Server(Error),
    /// The rows cannot be given to the caller.
    Rows(ToolError),
}

struct BatchRequest {
    rows: usize,
    answer: oneshot::Sender<Result<SqlRows, BatchError>>,
}

/// The statement to read, with its columns.
pub(super) struct CursorStatement {
    pub(super) statement: Statement,
    pub(super) params: Params,
    /// Each column, and whether it is JSON.
    pub(super) columns: Vec<(Column, bool)>,
}

/// An open cursor. The connection is in its task until the end.
pub(super) struct OpenCursor {
    pub(super) id: u64,
    requests: mpsc::Sender<BatchRequest>,
    task: Option<JoinHandle<Conn>>,
}

impl OpenCursor {
    pub(super) fn start(id: u64, connection: Conn, statement: CursorStatement, limits: Limits) -> Self {
        // A caller waits for each batch.
        let (requests, received) = mpsc::channel(1);
        let task = tokio::spawn(stream(connection, statement, limits, received));
        Self { id, requests, task: Some(task) }
    }

    /// The next batch; `None` when the task has ended without one.
    pub(super) async fn fetch(&self, rows: usize) -> Option<Result<SqlRows, BatchError>> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(BatchRequest { rows, answer }).await.ok()?;
        answered.await.ok()
    }

    /// Waits for the connection. The statement must have ended, or be stopped from another connection meanwhile.
    pub(super) async fn into_connection(mut self) -> Option<Conn> {
        // Without a caller the task reads what is left on the line, and gives the connection back.
        let (nowhere, _) = mpsc::channel(1);
        drop(std::mem::replace(&mut self.requests, nowhere));
        self.task.take()?.await.ok()
    }
}

impl Drop for OpenCursor {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn stream(
    mut connection: Conn,
    statement: CursorStatement,
    limits: Limits,
    mut requests: mpsc::Receiver<BatchRequest>,
) -> Conn {
    let CursorStatement { statement, params, columns } = statement;
    let names = columns.iter().map(|(column, _)| column.name_str().into_owned()).collect();
    let mut batches = Batches::new(names, limits);
    let Some(mut request) = requests.recv().await else { return connection };
    let mut result = match connection.exec_iter(&statement, params).await {
        Ok(result) => result,
        Err(error) => {
            let _ = request.answer.send(Err(BatchError::Server(error)));
            return connection;
        }
    };
    loop {
        let mut batch = batches.next(request.rows);
        let mut fault = None;
        while batch.capacity() == Capacity::Left {
            match result.next().await {
                Ok(Some(row)) => match cells(row, &columns) {
                    Ok(row) => {
                        batch.push(row);
                    }
                    Err(error) => fault = Some(BatchError::Rows(error)),
                },
                Ok(None) => break,
                Err(error) => fault = Some(BatchError::Server(error)),
            }
            if fault.is_some() {
                break;
            }
        }
        let answer = match fault {
            Some(fault) => Err(fault),
            None => batch.finish().map_err(BatchError::Rows),
        };
        let is_last = answer.as_ref().map_or(true, |rows| !rows.truncated);
        let _ = request.answer.send(answer);
        if is_last {
            break;
        }
        match requests.recv().await {
            Some(next) => request = next,
            None => break,
        }
    }
    // Reads what is still on the line; a statement that was stopped ends with an error, which is expected.
    let _ = result.drop_result().await;
    connection
}

fn cells(row: mysql_async::Row, columns: &[(Column, bool)]) -> Result<Vec<Value>, ToolError> {
    let cells =
        row.unwrap_raw().into_iter().map(|cell| cell.unwrap_or(mysql_async::Value::NULL)).zip(columns);
    cells
        .map(|(cell, (column, is_json))| match read(cell, column)? {
            Value::String(text) if *is_json => Ok(json(&text)),
            value => Ok(value),
        })
        .collect()
}

/// What another statement of the transaction gets while a cursor is open.
pub(super) fn overlaps() -> ToolError {
    esql("MySQL cannot run another statement while a tgp.query is being read")
        .help("collect what the loop needs, and run the other statements after it")
}
