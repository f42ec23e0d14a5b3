//! Secrets that tools use by name, with the built program and a real server.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::mcp::McpHost;
use crate::project::{Project, Ran};

const VALUE: &str = "s3cr3t-t0ken-of-the-test";
const PROBE: &str = "/** Asks a server. */\nexport default async (args: { url: string; log?: boolean }): Promise<string> => \
                     {\n  const response = await tgp.fetch(args.url, { secret: 'KEY' });\n  const text = await \
                     response.text();\n  tgp.log(text, JSON.stringify([...response.headers]));\n  return text;\n};\n";

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fetch/tests/fetch/fixtures")
}

/// A server with TLS that answers with the request.
pub struct TlsServer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub port: u16,
}

impl TlsServer {
    pub fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/servers/echo_tls.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(fixtures().join("server.pem")).arg(fixtures().join("server.key"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let port = first.strip_prefix("port ").unwrap().parse().unwrap();
        Self { child, lines, port }
    }

    /// The next request: the header, and the path.
    fn saw(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A project whose secret is for the server.
fn with_secret(server: &TlsServer, other: &TlsServer, from: &Value, place: &Value) -> Project {
    let project = Project::initialised();
    let (port, second) = (server.port, other.port);
    let config = json!({
        "allowedFetchUrls": [format!("https://localhost:{port}"), format!("https://localhost:{second}")],
        "secrets": { "KEY": { "from": from, "hosts": [format!("localhost:{port}")], "paths": ["/v1"], "as": place } },
    });
    std::fs::remove_file(project.file("tgp.config.ts")).unwrap();
    project.write("tgp.config.json", &config.to_string());
    project.write(".tgp/tools/probe.ts", PROBE);
    project
}

fn run(project: &Project, arguments: &[&str]) -> Ran {
    let mut command = project.command(arguments);
    command.env("SSL_CERT_FILE", fixtures().join("root.pem")).env("THE_KEY", VALUE);
    Ran::from(command.output().unwrap())
}

fn probe(project: &Project, url: &str) -> Ran {
    run(project, &["--json", "exec", "tools/probe.ts", "--args", &json!({ "url": url }).to_string()])
}

/// No file of the project or of the user's state holds the value.
fn assert_nowhere(project: &Project) {
    let found =
        Command::new("grep").args(["-rlaF", VALUE, "here", "home"]).current_dir(project.path("")).output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    assert_eq!(found, "", "the value is in a file");
}

#[test]
fn a_tool_uses_a_secret_and_sees_nothing_of_it() {
    let (mut server, mut other) = (TlsServer::start(), TlsServer::start());
    let project = with_secret(&server, &other, &json!({ "env": "THE_KEY" }), &json!("bearer"));
    let url = format!("https://localhost:{}/v1/a", server.port);
    // Neither the secret nor the address counts before a person has confirmed them.
    let ignored = probe(&project, &url);
    assert_ne!(ignored.code, Some(0), "{ignored:?}");
    run(&project, &["trust", "--yes"]).expect_code(0);

    let ran = probe(&project, &url).expect_code(0);
    assert_eq!(server.saw(), format!("saw Bearer {VALUE} /v1/a"));
    assert!(ran.stdout.contains("Bearer [secret]"), "{ran:?}");
    assert!(!format!("{ran:?}").contains(VALUE), "{ran:?}");
    // A redirect to another host does not take it along.
    let away = format!("https://localhost:{}/v1/away/{}", server.port, other.port);
    let ran = probe(&project, &away).expect_code(0);
    assert_eq!(server.saw(), format!("saw Bearer {VALUE} /v1/away/{}", other.port));
    assert_eq!(other.saw(), "saw - /v1/end", "{ran:?}");
    // The record has the name.
    let records = run(&project, &["--json", "audit", "tail", "-n", "20"]).expect_code(0).stdout;
    assert!(records.contains("KEY") && !records.contains(VALUE), "{records}");
    let targets = json!({ "kind": "secret", "name": "KEY" });
    let has_target = records.lines().any(|line| line.contains("\"KEY\"") && line.contains("secret"));
    assert!(has_target, "{targets}: {records}");
    for path in ["/v2/a", "/v1/../v2/a"] {
        let ran = probe(&project, &format!("https://localhost:{}{path}", server.port));
        assert!(ran.stdout.contains("ESECURITY") && ran.stdout.contains("is not for GET"), "{ran:?}");
    }
    assert_nowhere(&project);
}

#[test]
fn a_secret_in_the_query_stays_out_of_records_and_errors() {
    let (mut server, other) = (TlsServer::start(), TlsServer::start());
    let from = json!({ "command": ["sh", "-c", format!("echo {}", VALUE.replace('t', "''t"))] });
    let project = with_secret(&server, &other, &from, &json!({ "query": "key" }));
    run(&project, &["trust", "--yes"]).expect_code(0);
    let ran = probe(&project, &format!("https://localhost:{}/v1/a?x=1", server.port)).expect_code(0);
    assert_eq!(server.saw(), format!("saw - /v1/a?x=1&key={VALUE}"));
    assert!(ran.stdout.contains("key=[secret]") && !format!("{ran:?}").contains(VALUE), "{ran:?}");
    let port = server.port;
    drop(server);
    let gone = probe(&project, &format!("https://localhost:{port}/v1/a"));
    assert!(gone.stdout.contains("EFETCH") && !format!("{gone:?}").contains(VALUE), "{gone:?}");
    assert_nowhere(&project);
}

#[test]
fn the_use_of_a_secret_is_asked_for_unless_a_rule_names_it() {
    let (server, other) = (TlsServer::start(), TlsServer::start());
    let project = with_secret(&server, &other, &json!({ "env": "THE_KEY" }), &json!("bearer"));
    run(&project, &["trust", "--yes"]).expect_code(0);
    let url = format!("https://localhost:{}/v1/a", server.port);
    let call = json!({ "url": url, "secret": "KEY" }).to_string();
    project.write("tgp.policy.yaml", "version: 1\nrules:\n  - {id: fetch, effect: allow, tools: [fetch]}\n");
    let asked = run(&project, &["--json", "call", "fetch", &call]);
    assert!(asked.stdout.contains("EAPPROVAL") && asked.stdout.contains("needs_approval"), "{asked:?}");
    let shown = run(&project, &["--json", "approve"]).expect_code(0).stdout;
    assert!(shown.contains("the call uses the secret `KEY`"), "{shown}");
    let rule = "version: 1\nrules:\n  - {id: fetch, effect: allow, tools: [fetch], where: {target: \"secret:KEY\"}}\n";
    project.write("tgp.policy.yaml", rule);
    run(&project, &["--json", "call", "fetch", &call]).expect_code(0);
    project.write("tgp.policy.yaml", &rule.replace("allow", "deny"));
    let denied = run(&project, &["--json", "call", "fetch", &call]);
    assert!(denied.stdout.contains("EPOLICY"), "{denied:?}");
    // The same through MCP: the host learns the name.
    let mut host = McpHost::start(project, &["--yes"]);
    let error = host.error("run", &json!({ "tool": "probe", "args": { "url": url } }));
    assert_eq!(error["code"], "EPOLICY", "{error}");
    host.close();
}
