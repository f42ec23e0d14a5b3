//! What outlives the process: the tool repository and the database, through the program itself.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::processes::{assert_gone, descendants, send, start_session};
use crate::project::Project;

const FIBONACCI: &str = "/** The n-th Fibonacci number. */\nexport default function fib(args: { n: number }): number {\n  return args.n <= 1 ? args.n : fib({ n: args.n - 1 }) + fib({ n: args.n - 2 });\n}\n";

/// A project that knows a bare remote beside it, and nothing else.
fn agent() -> Project {
    let project = Project::empty();
    let made = project.shell("git init --quiet --bare --initial-branch=main ../remote.git");
    assert_eq!(made.code, Some(0), "{made:?}");
    project.write("tgp.config.ts", "export default { git: { url: '../remote.git' } };\n");
    project.trust();
    project
}

fn git(project: &Project, arguments: &str) -> String {
    let ran = project.shell(&format!("git {arguments}"));
    assert_eq!(ran.code, Some(0), "git {arguments}: {ran:?}");
    ran.stdout
}

/// A new clone, as the next agent would make it.
fn clone(project: &Project, name: &str) -> PathBuf {
    git(project, &format!("clone --quiet \"file://$PWD/../remote.git\" ../{name}"));
    project.path(name)
}

#[test]
fn e2e_1_cold_start_agent() {
    let project = agent();
    project.run(&["list"]).expect_code(0);
    let here: Vec<String> =
        project.all_files().into_iter().filter(|name| name.starts_with("here/.tgp/")).collect();
    assert!(
        here.iter().all(|name| name.starts_with("here/.tgp/.git") || name.starts_with("here/.tgp/.state")),
        "{here:?}"
    );
    project.run_with_input(&["write", "tools/math/fib.ts"], FIBONACCI).expect_code(0);
    project.run(&["check", "tools/math/fib.ts"]).expect_code(0);
    let ran = project.run(&["exec", "tools/math/fib.ts", "--args", r#"{"n": 10}"#]).expect_code(0);
    assert_eq!(ran.stdout, "55\n");
    project.run(&["sync"]).expect_code(0);
    let next = clone(&project, "next");
    assert_eq!(std::fs::read_to_string(next.join("tools/math/fib.ts")).unwrap(), FIBONACCI);
    assert!(git(&project, "-C ../remote.git log --format=%s").contains("Forge: tools/math/fib.ts\n"));
}

/// A tool writes to the database in a loop when the platform says goodbye.
#[test]
fn e2e_4_sigterm_releases_database_and_repository() {
    for signal in [libc::SIGTERM, libc::SIGKILL] {
        let project = agent();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        project.write(
            "tgp.config.ts",
            &format!("export default {{ git: {{ url: '../remote.git' }}, allowedFetchUrls: ['http://{address}'], sandbox: {{ wallMs: 60000, cpuMs: 20000, bridgeCalls: 100000 }} }};"),
        );
        project.trust();
        project.run(&["sql", "CREATE TABLE entries (n INTEGER)"]).expect_code(0);
        let source = "/** Writes until it is stopped. */\nexport default async function fill(args: { url: string }) {\n  await tgp.exec_sql('INSERT INTO entries VALUES (0)');\n  await tgp.fetch(args.url);\n  for (let n = 1; ; n += 1) await tgp.exec_sql('INSERT INTO entries VALUES (?)', [n]);\n}\n";
        project.run_with_input(&["write", "tools/fill.ts"], source).expect_code(0);
        let arguments = format!(r#"{{"url": "http://{address}/begun"}}"#);
        let mut command = project.command(&["exec", "tools/fill.ts", "--args", &arguments]);
        let child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (mut connection, _) = server.accept().unwrap();
        let mut line = String::new();
        BufReader::new(connection.try_clone().unwrap()).read_line(&mut line).unwrap();
        connection.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
        drop(connection);
        std::thread::sleep(Duration::from_millis(100));
        let (id, workers) = (child.id(), descendants(child.id()));
        send(id, signal);
        child.wait_with_output().unwrap();
        assert_gone(&workers, id);
        project.assert_clean();
        // The lock is free, and nothing of the run is there.
        let counted = project.run(&["sql", "SELECT count(*) AS n FROM entries", "--json"]).expect_code(0);
        assert_eq!(counted.document()["data"]["rows"][0]["n"], 0, "signal {signal}");
        project.run(&["sql", "INSERT INTO entries VALUES (1)"]).expect_code(0);
        assert!(!project.file(".tgp/.git/index.lock").exists());
        project.run(&["write", "tools/after.ts", "--content", "1"]).expect_code(0);
        let next = clone(&project, "next");
        assert!(next.join("tools/after.ts").exists());
    }
}

/// Whatever was reported as written is at the remote, however many writers were killed in between.
#[test]
fn a_write_that_was_reported_survives_kill_9() {
    let project = agent();
    let mut reported = Vec::new();
    let mut delay = 7;
    for number in 0..24 {
        let path = format!("tools/kill/tool{number}.ts");
        let mut command = project.command(&["write", &path, "--content", &format!("{number}"), "--json"]);
        let mut child = start_session(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        // A different moment of its life each time, from the first millisecond to after its end.
        delay = (delay * 31 + 17) % 160;
        std::thread::sleep(Duration::from_millis(delay));
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        if String::from_utf8_lossy(&output.stdout).contains("\"ok\":true") {
            reported.push((path, number));
        }
    }
    let last = project.run(&["write", "tools/kill/last.ts", "--content", "99"]).expect_code(0);
    assert!(last.stderr.contains("pushed to main"), "{last:?}");
    project.run(&["sync"]).expect_code(0);
    let next = clone(&project, "next");
    for (path, number) in reported {
        assert_eq!(
            std::fs::read_to_string(next.join(&path)).unwrap_or_default(),
            number.to_string(),
            "{path}"
        );
    }
    git(&project, "-C .tgp fsck --strict");
    assert_eq!(git(&project, "-C .tgp status --porcelain"), "");
    project.assert_clean();
}

#[test]
fn a_tool_is_found_by_other_words() {
    let project = Project::initialised();
    project.run_with_input(&["write", "tools/math/fib.ts"], FIBONACCI).expect_code(0);
    let csv = "/** Converts an array of objects to CSV text. */\nexport default (args: { rows: object[] }): string => String(args.rows.length);\n";
    project.run_with_input(&["write", "tools/export/to_csv.ts"], csv).expect_code(0);
    let found = project.run(&["search", "turn", "a", "list", "of", "objects", "into", "CSV", "--json"]);
    let document = found.expect_code(0).document();
    assert_eq!(document["data"]["results"][0]["path"], "tools/export/to_csv.ts", "{document}");
    for field in ["score", "why", "description", "signature", "verdict"] {
        assert!(!document["data"]["results"][0][field].is_null(), "{field}: {document}");
    }
    let nothing =
        project.run(&["search", "send an SMS to a phone number", "--json"]).expect_code(0).document();
    assert_eq!(nothing["data"]["verdict"], "forge", "{nothing}");
}

/// Eight processes patch eight lines of one file, and all eight get a success.
#[test]
fn bug_patches_at_once_lose_nothing() {
    let project = agent();
    let lines: String = (0..8).map(|number| format!("// line{number};\n")).collect();
    project.run_with_input(&["write", "tools/lines.ts"], &lines).expect_code(0);
    let children: Vec<_> = (0..8)
        .map(|number| {
            let (search, replace) = (format!("line{number};"), format!("done{number};"));
            let arguments = ["patch", "tools/lines.ts", "--search", &search, "--replace", &replace];
            project.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let expected: String = (0..8).map(|number| format!("// done{number};\n")).collect();
    assert_eq!(project.read(".tgp/tools/lines.ts"), expected);
    project.run(&["sync"]).expect_code(0);
    assert_eq!(std::fs::read_to_string(clone(&project, "next").join("tools/lines.ts")).unwrap(), expected);
}

/// What a person has changed by hand is in the history, whatever writes the file next.
#[test]
fn bug_a_hand_edit_is_never_destroyed() {
    let project = agent();
    project.run(&["write", "tools/a.ts", "--content", "1"]).expect_code(0);
    project.write(".tgp/tools/a.ts", "// an hour of work\n");
    project.run(&["write", "tools/a.ts", "--content", "2"]).expect_code(0);
    assert_eq!(project.read(".tgp/tools/a.ts"), "2");
    assert!(git(&project, "-C .tgp log -p").contains("an hour of work"));
}

#[test]
fn bug_every_failure_of_the_remote_was_to_be_tried_again_later() {
    let project = Project::initialised();
    let at = |url: &str| {
        project.write("tgp.config.ts", &format!("export default {{ git: {{ url: '{url}' }} }};\n"));
        project.trust();
    };
    // A port that nothing listens on.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    at(&format!("http://127.0.0.1:{port}/tools.git"));
    let refused = project.run(&["sync"]).expect_code(1);
    let words = format!("no connection to `127.0.0.1` port {port}: it was refused");
    assert!(refused.stderr.contains(&words), "{refused:?}");
    assert!(refused.stderr.contains("commits are kept on this machine; run `tgp sync` when"), "{refused:?}");
    at("../nowhere.git");
    // The note about the other address is not shown.
    let doctor = project.run(&["doctor"]);
    assert!(doctor.stderr.contains("there is no git repository at"), "{doctor:?}");
    assert!(!doctor.stderr.contains("127.0.0.1"), "{doctor:?}");
    assert!(doctor.stdout.contains(" not pushed yet (`tgp sync` pushes "), "{doctor:?}");
    let missing = project.run(&["sync"]).expect_code(1);
    assert!(missing.stderr.contains("not delivered: there is no git repository at"), "{missing:?}");
    assert!(missing.stderr.contains("check `git.url`"), "{missing:?}");
    // A program that reads only the document learns of it, too.
    let document = project.run(&["--json", "sync"]).expect_code(1).document();
    assert_eq!((&document["ok"], &document["error"]["code"]), (&json!(false), &json!("EGIT")), "{document}");
    assert!(document["error"]["details"]["synced"]["remote"].is_string(), "{document}");
    assert!(!missing.stderr.contains("later"), "{missing:?}");
}
