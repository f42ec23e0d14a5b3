//! Database URLs, Unix sockets and files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;
use tgp_contract::Code;
use tgp_sql::DatabaseUrl;

use crate::support::{Kind, MYSQL, POSTGRES, on, open, run};

#[test]
fn urls_are_read_or_refused_with_help() {
    let read = [
        ("sqlite:data/app.db", "sqlite:data/app.db"),
        ("sqlite:///abs/app.db", "sqlite:/abs/app.db"),
        ("data/app.db", "sqlite:data/app.db"),
        ("./with space.db", "sqlite:./with space.db"),
        ("postgres://u:p@h:5433/d", "postgresql://h/d"),
        ("postgresql://u@h/d?sslmode=require", "postgresql://h/d"),
        ("postgres:///d?host=/run/pg&user=u&password=p", "postgresql:///run/pg/d"),
        ("mysql://u:p@h/d?ssl-mode=REQUIRED", "mysql://h/d"),
        ("mariadb://u:p%40x@h:3307/d?socket=/run/my.sock", "mysql:///run/my.sock/d"),
    ];
    for (text, shown) in read {
        let url = DatabaseUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(url.to_string(), shown);
        assert_eq!(format!("{url:?}"), format!("DatabaseUrl({shown})"));
    }
    let refused = [
        "",
        "  ",
        "sqlite:",
        "sqlite::memory:",
        "sqlite:x.db?mode=ro",
        "file:x.db",
        "oracle://h/d",
        "http://h/",
        "postgres://h/d",
        // Shown as one server, and connected to another.
        "postgres://u:p@evil:5999,y@good/d",
        "postgres://u:p@evil@good/d",
        "postgres://good/d?application_name=x@evil",
        "postgres://u:p/w@h/d",
        "postgres://u:p@h1,h2/d",
        "mysql://u:p@evil@good/d",
        "mysql://u:p#w@h/d",
        "postgres://u@h:port/d",
        "postgres://u@h/d?sslmode=maybe",
        "postgres://u@h/d?nonsense=1",
        "mysql://u@h/d?ssl-mode=maybe",
        "mysql://u@h/d?pool_max=3",
        "mysql://u@h:port/d",
        "mysql://u@h/d?socket",
    ];
    for text in refused {
        let error = DatabaseUrl::parse(text).expect_err(text);
        assert_eq!(error.code, Code::Config, "{text}");
        assert!(error.help_of().unwrap().contains("postgres://"), "{text}");
    }
    let url = DatabaseUrl::parse("data/app.db").unwrap().below(Path::new("/project"));
    assert_eq!(url.sqlite_file(), Some(Path::new("/project/data/app.db")));
}

#[tokio::test]
async fn nothing_is_made_before_the_first_transaction_and_the_file_is_private() {
    on(Kind::Sqlite, "file", &|_| {}, &async |place| {
        let file = DatabaseUrl::parse(&place.url).unwrap().sqlite_file().unwrap().to_owned();
        assert!(!file.parent().unwrap().exists());
        place.table().await;
        for name in ["", "-wal", "-shm"] {
            let file = file.with_file_name(format!("test.db{name}"));
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
        }
        let settings = ["journal_mode", "foreign_keys", "synchronous"];
        let connection = rusqlite::Connection::open(&file).unwrap();
        let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!((settings[0], mode.as_str()), ("journal_mode", "wal"));
        place.call("CREATE TABLE notes (id INTEGER REFERENCES users(id))", json!(null)).await.unwrap();
        let error = place.call("INSERT INTO notes VALUES (99)", json!(null)).await.unwrap_err();
        assert_eq!(error.details["sqlCode"], "SQLITE_CONSTRAINT_FOREIGNKEY");
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_an_error_and_stays_as_it_is() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "x".repeat(5000)).unwrap();
    let database = open(&format!("sqlite:{}", file.display()), |_| {}).await;
    let error = database.begin(crate::support::ReadWrite).await.map(drop).unwrap_err();
    assert_eq!(error.details["sqlCode"], "SQLITE_NOTADB", "{error:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x".repeat(5000));
    let database = open(&format!("sqlite:{}", folder.path().display()), |_| {}).await;
    assert_eq!(database.begin(crate::support::ReadWrite).await.map(drop).unwrap_err().code, Code::Sql);
}

#[tokio::test]
async fn unix_sockets_work() {
    for (kind, variable) in [(Kind::Postgres, POSTGRES), (Kind::MySql, MYSQL)] {
        let Ok(server) = std::env::var(variable) else { continue };
        on(kind, "socket", &|_| {}, &async |place| {
            let sql = place.pick("", "SHOW unix_socket_directories", "SELECT @@socket AS s");
            let answer = place.call(sql, json!(null)).await.unwrap();
            let socket = answer.rows[0].values().next().unwrap().as_str().unwrap().to_owned();
            if !Path::new(&socket).exists() {
                eprintln!("skipped: the socket of {kind:?} is on another machine");
                return;
            }
            let (credentials, rest) = server.split_once('@').unwrap();
            let (address, name) = rest.rsplit_once('/').unwrap();
            let url = match kind {
                Kind::Postgres => {
                    let (user, password) = credentials.split_once("//").unwrap().1.split_once(':').unwrap();
                    let port = address.rsplit_once(':').map_or("5432", |(_, port)| port);
                    format!("postgres:///{name}?host={socket}&port={port}&user={user}&password={password}")
                }
                _ => format!("{credentials}@localhost/{name}?socket={socket}"),
            };
            let database = open(&url, |_| {}).await;
            let mut transaction = database.begin(crate::support::ReadOnly).await.unwrap();
            let how = place.pick(
                "",
                "SELECT inet_client_addr() IS NULL AS v",
                "SELECT user() LIKE '%@localhost' AS v",
            );
            let answer = run(&mut *transaction, how, json!(null)).await.unwrap();
            assert!(answer.rows[0]["v"] == json!(true) || answer.rows[0]["v"] == json!(1), "{answer:?}");
        })
        .await;
    }
}
