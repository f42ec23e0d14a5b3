//! A place for each test in each database, and short words for statements.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use tgp_contract::{Database, SqlAccess, SqlParams, SqlRows, SqlStatement, SqlTransaction, ToolError};
use tgp_sql::{DatabaseUrl, SqlOptions, connect};

pub use SqlAccess::{ReadOnly, ReadWrite};

pub const POSTGRES: &str = "TGP_TEST_POSTGRES_URL";
pub const MYSQL: &str = "TGP_TEST_MYSQL_URL";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sqlite,
    Postgres,
    MySql,
}

/// A database that belongs to one test.
pub struct Place {
    pub kind: Kind,
    pub url: String,
    pub database: Arc<dyn Database>,
    _folder: Option<TempDir>,
}

/// Runs a scenario on SQLite, and on the two servers when they are there.
pub async fn each(test: &str, scenario: impl AsyncFn(&Place)) {
    each_with(test, |_| {}, scenario).await;
}

pub async fn each_with(test: &str, tune: impl Fn(&mut SqlOptions), scenario: impl AsyncFn(&Place)) {
    for kind in [Kind::Sqlite, Kind::Postgres, Kind::MySql] {
        on(kind, test, &tune, &scenario).await;
    }
}

/// Runs a scenario on one database, if it is there.
pub async fn on(kind: Kind, test: &str, tune: &impl Fn(&mut SqlOptions), scenario: &impl AsyncFn(&Place)) {
    let name = format!("tgp_{test}_{}", std::process::id());
    let (url, folder) = match kind {
        Kind::Sqlite => {
            let folder = TempDir::new().unwrap();
            (format!("sqlite:{}", folder.path().join("deep/er/test.db").display()), Some(folder))
        }
        Kind::Postgres => {
            let Some(server) = server(POSTGRES, "PostgreSQL") else { return };
            own(
                &server,
                &[&format!("DROP SCHEMA IF EXISTS {name} CASCADE"), &format!("CREATE SCHEMA {name}")],
            )
            .await;
            (format!("{server}?options=-c%20search_path%3D{name}"), None)
        }
        Kind::MySql => {
            let Some(server) = server(MYSQL, "MySQL") else { return };
            own(&server, &[&format!("DROP DATABASE IF EXISTS {name}")]).await;
            own(&server, &[&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4")]).await;
            (format!("{}/{name}", server.rsplit_once('/').unwrap().0), None)
        }
    };
    let place = Place { kind, database: open(&url, tune).await, url, _folder: folder };
    scenario(&place).await;
    match kind {
        Kind::Sqlite => {}
        Kind::Postgres => {
            let server = std::env::var(POSTGRES).unwrap();
            own(&server, &[&format!("DROP SCHEMA {name} CASCADE")]).await;
        }
        Kind::MySql => own(&std::env::var(MYSQL).unwrap(), &[&format!("DROP DATABASE {name}")]).await,
    }
}

pub async fn open(url: &str, tune: impl Fn(&mut SqlOptions)) -> Arc<dyn Database> {
    let mut options = SqlOptions::new(DatabaseUrl::parse(url).unwrap());
    tune(&mut options);
    connect(options).await.unwrap()
}

/// The URL of a server; without one, a line that the test runner does not swallow, once.
fn server(variable: &'static str, name: &str) -> Option<String> {
    static SAID: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    let url = std::env::var(variable).ok();
    let mut said = SAID.lock().unwrap();
    if url.is_none() && !said.contains(&variable) {
        said.push(variable);
        let line = format!("skipped: tests on {name} ({variable} is not set)\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    url
}

/// Statements outside the scenario, each committed.
async fn own(url: &str, statements: &[&str]) {
    let database = open(url, |options| options.statement_timeout = std::time::Duration::from_secs(30)).await;
    let mut transaction = database.begin(ReadWrite).await.unwrap();
    for statement in statements {
        run(&mut *transaction, statement, json!(null)).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

pub async fn run(
    transaction: &mut dyn SqlTransaction,
    sql: &str,
    params: Value,
) -> Result<SqlRows, ToolError> {
    let statement =
        SqlStatement { sql: sql.to_owned(), params: SqlParams::from_value(params).unwrap(), judged: None };
    transaction.execute(&statement).await
}

/// The one value of the one row.
pub fn single(answer: &SqlRows) -> Value {
    assert_eq!(answer.rows.len(), 1, "{answer:?}");
    assert_eq!(answer.columns.len(), 1, "{answer:?}");
    answer.rows[0][&answer.columns[0]].clone()
}

impl Place {
    pub async fn begin(&self) -> Box<dyn SqlTransaction> {
        self.database.begin(ReadWrite).await.unwrap()
    }

    /// A statement as a separate transaction.
    pub async fn call(&self, sql: &str, params: Value) -> Result<SqlRows, ToolError> {
        let mut transaction = self.begin().await;
        let answer = run(&mut *transaction, sql, params).await?;
        transaction.commit().await?;
        Ok(answer)
    }

    pub async fn table(&self) {
        self.call(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(100) NOT NULL UNIQUE)",
            json!(null),
        )
        .await
        .unwrap();
    }

    pub async fn insert(&self, transaction: &mut dyn SqlTransaction, id: i64) -> Result<SqlRows, ToolError> {
        run(
            transaction,
            "INSERT INTO users (id, name) VALUES (:id, :name)",
            json!({"id": id, "name": format!("user {id}")}),
        )
        .await
    }

    /// The ids that a new transaction sees.
    pub async fn ids(&self) -> Vec<i64> {
        let mut transaction = self.database.begin(ReadOnly).await.unwrap();
        let answer = run(&mut *transaction, "SELECT id FROM users ORDER BY id", json!(null)).await.unwrap();
        transaction.rollback().await;
        answer.rows.iter().map(|row| row["id"].as_i64().unwrap()).collect()
    }

    /// The text for this database.
    pub fn pick<'a>(&self, sqlite: &'a str, postgres: &'a str, mysql: &'a str) -> &'a str {
        match self.kind {
            Kind::Sqlite => sqlite,
            Kind::Postgres => postgres,
            Kind::MySql => mysql,
        }
    }
}
