//! Many runs at once, on every database that this machine has: through the socket, through a query, through processes.
//! Whatever becomes of each, rows, files and audit agree afterwards, and nothing is left.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::events;
use crate::crowd::{Crowd, POSTGRES, Reported, WATCHDOG, databases, finish, start};
use crate::processes::{assert_gone, descendants, send};

/// Runs at a time.
const RUNS: u64 = 64;

/// What each run of the crowd does.
fn kind(number: u64) -> &'static str {
    match number % 16 {
        0..=8 => "both",
        9 | 10 => "nested",
        11 => "fans",
        12 | 13 => "fails",
        14 => "spins",
        _ => "waits",
    }
}

/// A server of the crowd's project.
struct Served {
    child: Child,
    folder: tempfile::TempDir,
    token: String,
}

impl Served {
    fn start(crowd: &Crowd) -> Self {
        let folder = tempfile::TempDir::new_in("/tmp").unwrap();
        let token = crowd.project.run(&["token", "mint", "--all"]).expect_code(0).stdout.trim().to_owned();
        let socket = folder.path().join("s");
        let words = ["serve", "--socket", socket.to_str().unwrap(), "--yes", "--connections", "128"];
        let child = start(crowd.project.command(&words));
        let started = Instant::now();
        while !socket.exists() {
            assert!(started.elapsed() < WATCHDOG, "the socket did not appear");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { child, folder, token }
    }

    fn connect(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.folder.path().join("s")).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        write(&mut stream, &json!({ "token": self.token, "actor": "crowd" }));
        assert!(read(&mut stream).unwrap().get("session").is_some());
        stream
    }

    /// Makes one run to its end, or goes away while it runs.
    fn run(&self, number: u64) -> Reported {
        let mut stream = self.connect();
        let path = format!("tools/{}.ts", kind(number));
        let arguments = json!({ "path": path, "args": { "n": number } });
        let id = number.to_string();
        write(
            &mut stream,
            &json!({ "method": "call", "id": id, "tool": "exec_tool", "arguments": arguments }),
        );
        if kind(number) == "waits" {
            // At whichever moment of its run that is.
            std::thread::sleep(Duration::from_millis(number * 10));
            return Reported::Nothing;
        }
        let answer = read(&mut stream).expect("the server hangs or has gone");
        reported(&answer["result"], number)
    }

    fn end(self, signal: i32, code: i32) {
        let id = self.child.id();
        let workers = descendants(id);
        send(id, signal);
        let output = finish(self.child);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_gone(&workers, id);
        assert!(!self.folder.path().join("s").exists(), "the socket stays behind");
    }
}

/// A run fails when it should, or when others were writing for too long.
fn reported(result: &Value, number: u64) -> Reported {
    if result["ok"] == true {
        assert!(matches!(kind(number), "both" | "nested" | "fans"), "{number}: {result}");
        return Reported::Success;
    }
    let code = result["error"]["code"].as_str().unwrap_or_default();
    let expected = match kind(number) {
        "fails" => "ERUNTIME",
        "spins" => "ERR_ISOLATE_TIMEOUT",
        _ => "ESQL",
    };
    assert!([expected, "ESQL"].contains(&code), "{number}: {result}");
    Reported::Failure
}

fn write(stream: &mut UnixStream, value: &Value) {
    let frame = value.to_string().into_bytes();
    stream.write_all(&u32::try_from(frame.len()).unwrap().to_be_bytes()).unwrap();
    stream.write_all(&frame).unwrap();
}

fn read(stream: &mut UnixStream) -> Option<Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).ok()?;
    Some(serde_json::from_slice(&frame).unwrap())
}

/// Some of those that should succeed have.
fn assert_not_idle(reported: &BTreeMap<u64, Reported>) {
    let good = reported.values().filter(|reported| **reported == Reported::Success).count();
    assert!(good >= 8, "only {good} runs succeeded: {reported:?}");
}

#[test]
fn many_runs_through_the_socket_leave_rows_files_and_audit_in_agreement() {
    for url in databases() {
        let crowd = Crowd::new(url.as_deref());
        let served = Served::start(&crowd);
        let reported: BTreeMap<u64, Reported> = std::thread::scope(|scope| {
            let served = &served;
            let runs: Vec<_> =
                (0..RUNS).map(|number| (number, scope.spawn(move || served.run(number)))).collect();
            runs.into_iter().map(|(number, run)| (number, run.join().unwrap())).collect()
        });
        assert_not_idle(&reported);
        served.end(libc::SIGTERM, 143);
        crowd.check(&reported);
    }
}

/// The deadlock of a single-threaded runtime: a run that waited for its COMMIT held a lock that another run waited for on
/// the very thread that was to bring the answer.
#[test]
fn many_runs_of_a_query_that_write_rows_and_files_end() {
    for url in databases() {
        let crowd = Crowd::new(url.as_deref());
        crowd.project.write(
            "crowd.aql",
            "query Crowd($both: [Int], $nested: [Int], $fans: [Int], $fails: [Int], $spins: [Int]) {\n  \
             a: map(n in $both, concurrency: 16) { run: exec(\"tools/both.ts\", on_error: skip) { n: n } }\n  \
             b: map(n in $nested, concurrency: 8) { run: exec(\"tools/nested.ts\", on_error: skip) { n: n } }\n  \
             e: map(n in $fans, concurrency: 4) { run: exec(\"tools/fans.ts\", on_error: skip) { n: n } }\n  \
             c: map(n in $fails, concurrency: 8) { run: exec(\"tools/fails.ts\", on_error: skip) { n: n } }\n  \
             d: map(n in $spins, concurrency: 4) { run: exec(\"tools/spins.ts\", on_error: skip) { n: n } }\n}\n",
        );
        let of = |wanted: &str| (0..RUNS).filter(|number| kind(*number) == wanted).collect::<Vec<_>>();
        let inputs = json!({ "both": of("both"), "nested": of("nested"), "fans": of("fans"), "fails": of("fails"), "spins": of("spins") });
        let words = ["--json", "aql", "run", "crowd.aql", "--yes", "--inputs", &inputs.to_string()];
        let child = start(crowd.project.command(&words));
        let id = child.id();
        let output = finish(child);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_gone(&[], id);
        let report = events(&String::from_utf8(output.stdout).unwrap()).pop().unwrap()["report"].clone();
        let reported = [("a", "both"), ("b", "nested"), ("e", "fans"), ("c", "fails"), ("d", "spins")]
            .into_iter()
            .flat_map(|(step, kind)| {
                let values = report["outputs"][step].as_array().unwrap_or_else(|| panic!("{report}")).clone();
                assert_eq!(values.len(), of(kind).len(), "{report}");
                of(kind).into_iter().zip(values)
            })
            .map(|(number, value)| {
                let is_skipped = value.is_null() || value["run"].is_null();
                (number, if is_skipped { Reported::Failure } else { Reported::Success })
            })
            .collect();
        assert_not_idle(&reported);
        crowd.check(&reported);
    }
}

#[test]
fn eight_kernels_in_eight_processes_share_one_project() {
    for url in databases() {
        let crowd = Crowd::new(url.as_deref());
        let reported: BTreeMap<u64, Reported> = std::thread::scope(|scope| {
            let crowd = &crowd;
            let processes: Vec<_> = (0..8)
                .map(|process| {
                    scope.spawn(move || {
                        (0..4).map(|turn| one_process(crowd, process * 16 + turn * 4)).collect::<Vec<_>>()
                    })
                })
                .collect();
            processes.into_iter().flat_map(|process| process.join().unwrap()).collect()
        });
        assert_not_idle(&reported);
        crowd.check(&reported);
    }
}

fn one_process(crowd: &Crowd, number: u64) -> (u64, Reported) {
    let path = format!("tools/{}.ts", kind(number));
    let arguments = json!({ "n": number }).to_string();
    let child = start(crowd.project.command(&["--json", "exec", &path, "--args", &arguments]));
    let id = child.id();
    let output = finish(child);
    assert_gone(&[], id);
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(output.status.success(), result["ok"] == true, "{output:?}");
    (number, reported(&result, number))
}

/// A run that only reads files, or changes none, does not wait for one whose COMMIT takes long.
#[test]
fn a_commit_without_an_answer_holds_up_no_run_without_files() {
    let Ok(url) = std::env::var(POSTGRES) else {
        println!("skipped: {POSTGRES} is not set");
        return;
    };
    let crowd = Crowd::new(Some(&url));
    let proxy = crate::proxy::CommitProxy::start(crate::proxy::server_of(&url));
    crowd.configure(Some(&proxy.url(&url)));
    crowd.project.write(".tgp/tools/plain.ts", "export default (): number => 7;\n");
    let served = Served::start(&crowd);
    let mut slow = served.connect();
    let arguments = json!({ "path": "tools/both.ts", "args": { "n": 1 } });
    write(&mut slow, &json!({ "method": "call", "id": "1", "tool": "exec_tool", "arguments": arguments }));
    proxy.wait_for_commit();
    let (ended, end) = mpsc::channel();
    let mut quick = served.connect();
    std::thread::spawn(move || {
        let arguments = json!({ "path": "tools/plain.ts", "args": {} });
        write(
            &mut quick,
            &json!({ "method": "call", "id": "2", "tool": "exec_tool", "arguments": arguments }),
        );
        ended.send(read(&mut quick))
    });
    let answer = end.recv_timeout(WATCHDOG).unwrap().unwrap();
    assert_eq!(answer["result"]["data"]["result"], 7, "{answer}");
    drop(slow);
    served.end(libc::SIGTERM, 143);
    crowd.configure(Some(&url));
    let records = crowd.records();
    let record = &records[&1][0];
    assert!(record["outcome"]["message"].as_str().unwrap().contains("not known"), "{record}");
    crowd.close();
}
