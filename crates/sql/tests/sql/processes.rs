//! Many tasks, many processes, and processes that die.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use tgp_contract::Database;

use crate::support::{Kind, ReadWrite, each, on, open, run};

/// Passes its role to a copy of this program.
const ROLE: &str = "TGP_SQL_TEST_ROLE";
const URL: &str = "TGP_SQL_TEST_URL";

/// This test again, in its own process.
fn child(role: &str, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::a_role_in_another_process", "--nocapture"])
        .env(ROLE, role)
        .env(URL, url)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Plays its role when it was started by `child`; in the ordinary run there is none to play.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_in_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let database = open(&std::env::var(URL).unwrap(), |_| {}).await;
    match role.as_str() {
        "victim" => {
            let mut transaction = database.begin(ReadWrite).await.unwrap();
            for id in 1..=20 {
                let params = json!({"id": id, "name": format!("user {id}")});
                run(&mut *transaction, "INSERT INTO users (id, name) VALUES (:id, :name)", params)
                    .await
                    .unwrap();
            }
            println!("\nin the middle");
            std::future::pending::<()>().await;
        }
        "counter" => {
            count_up(&database, 12).await;
            println!("\ndone");
        }
        other => panic!("there is no role {other}"),
    }
}

/// Reads a number and writes the next one, `times` at once. A lost update would show.
async fn count_up(database: &Arc<dyn Database>, times: usize) {
    let runs = (0..times).map(|_| {
        let database = Arc::clone(database);
        tokio::spawn(async move {
            let mut transaction = database.begin(ReadWrite).await.unwrap();
            let answer = run(&mut *transaction, "SELECT n FROM counter", json!(null)).await.unwrap();
            let next = answer.rows[0]["n"].as_i64().unwrap() + 1;
            tokio::task::yield_now().await;
            run(&mut *transaction, "UPDATE counter SET n = ?", json!([next])).await.unwrap();
            run(&mut *transaction, "INSERT INTO log (n) VALUES (:n)", json!({"n": next})).await.unwrap();
            transaction.commit().await.unwrap();
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
}

fn wait_for(child: &mut Child, word: &str) {
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
    assert!(lines.iter().any(|line| line == word), "the child never said `{word}`");
}

#[tokio::test]
async fn a_process_killed_in_the_middle_leaves_zero_rows() {
    each("killed", async |place| {
        place.table().await;
        let mut victim = child("victim", &place.url);
        let mut output = BufReader::new(victim.stdout.take().unwrap()).lines();
        assert!(output.any(|line| line.unwrap() == "in the middle"));
        victim.kill().unwrap();
        victim.wait().unwrap();
        assert_eq!(place.ids().await, [] as [i64; 0]);
        // Nor are its locks: the same rows can be written at once.
        let mut transaction = place.begin().await;
        place.insert(&mut *transaction, 1).await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(place.ids().await, [1]);
    })
    .await;
}

async fn counter(place: &crate::support::Place) {
    place.call("CREATE TABLE counter (n INTEGER)", json!(null)).await.unwrap();
    place.call("CREATE TABLE log (n INTEGER UNIQUE)", json!(null)).await.unwrap();
    place.call("INSERT INTO counter VALUES (0)", json!(null)).await.unwrap();
}

async fn assert_counted(place: &crate::support::Place, expected: i64) {
    let answer = place
        .call("SELECT (SELECT n FROM counter) AS n, (SELECT count(*) FROM log) AS logged", json!(null))
        .await;
    assert_eq!(
        serde_json::Value::Object(answer.unwrap().rows[0].clone()),
        json!({"n": expected, "logged": expected})
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_tasks_read_then_write_and_nothing_is_lost() {
    on(Kind::Sqlite, "tasks", &|_| {}, &async |place| {
        counter(place).await;
        count_up(&place.database, 50).await;
        assert_counted(place, 50).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_read_then_write_and_nothing_is_lost() {
    on(Kind::Sqlite, "processes", &|_| {}, &async |place| {
        counter(place).await;
        let mut children: Vec<Child> = (0..4).map(|_| child("counter", &place.url)).collect();
        count_up(&place.database, 12).await;
        for child in &mut children {
            wait_for(child, "done");
            assert!(child.wait().unwrap().success());
        }
        assert_counted(place, 5 * 12).await;
    })
    .await;
}

/// Eight processes meet a file that does not exist yet.
#[tokio::test]
async fn the_file_is_made_once() {
    on(Kind::Sqlite, "first", &|_| {}, &async |place| {
        let openings = (0..8).map(|_| {
            let url = place.url.clone();
            tokio::spawn(async move {
                let database = open(&url, |_| {}).await;
                let mut transaction = database.begin(ReadWrite).await.unwrap();
                run(&mut *transaction, "CREATE TABLE IF NOT EXISTS t (n INTEGER)", json!(null))
                    .await
                    .unwrap();
                run(&mut *transaction, "INSERT INTO t VALUES (1)", json!(null)).await.unwrap();
                transaction.commit().await.unwrap();
            })
        });
        for opening in openings.collect::<Vec<_>>() {
            opening.await.unwrap();
        }
        assert_eq!(place.call("SELECT count(*) AS n FROM t", json!(null)).await.unwrap().rows[0]["n"], 8);
    })
    .await;
}
