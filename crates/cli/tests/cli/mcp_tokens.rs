//! Tokens of `tgp mcp --http`: none of them allows more than the server's own options, and none takes all places.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::mcp_clients::{HttpServer, request};
use crate::project::Project;

/// A client of the server with one token.
struct Client<'s> {
    server: &'s HttpServer,
    headers: Vec<String>,
}

impl<'s> Client<'s> {
    /// Begins a session; the status line where there is none.
    fn start(server: &'s HttpServer, token: &str) -> Result<Self, String> {
        let mut headers =
            vec![format!("Host: 127.0.0.1:{}", server.port()), format!("Authorization: Bearer {token}")];
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" }
        }});
        let answer = post(server, &headers, &hello);
        let session = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let Some(session) = session else { return Err(answer.lines().next().unwrap_or_default().to_owned()) };
        headers.push(format!("Mcp-Session-Id: {session}"));
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        post(server, &headers, &ready);
        Ok(Self { server, headers })
    }

    /// Runs a kernel tool through `run`; the whole answer.
    fn run(&self, tool: &str, arguments: &Value) -> String {
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "run", "arguments": { "tool": tool, "args": arguments }
        }});
        post(self.server, &self.headers, &call)
    }

    fn ping(&self) -> String {
        post(self.server, &self.headers, &json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }))
    }
}

fn post(server: &HttpServer, headers: &[String], body: &Value) -> String {
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    request(server, &headers, &body.to_string())
}

fn mint(project: &Project, arguments: &[&str]) -> String {
    project.run(&[&["token"], arguments].concat()).expect_code(0).stdout.trim().to_owned()
}

#[test]
fn bug_the_token_of_a_wider_server_worked_at_a_narrower_one() {
    let project = Arc::new(Project::initialised());
    let wide = HttpServer::start_with(&project, &["--yes", "--files", "--shell"]);
    let old = wide.token.clone();
    let derived = mint(&project, &["attenuate", &old, "--note", "kept"]);
    drop(wide);
    // The same options: the token stays.
    let same = HttpServer::start_with(&project, &["--yes", "--files", "--shell"]);
    assert_eq!(same.token, old);
    drop(same);
    for options in [&["--yes", "--files"][..], &["--yes"], &["--files"]] {
        let minted = mint(&project, &["mint", "--all"]);
        let narrow = HttpServer::start_with(&project, options);
        assert_ne!(narrow.token, old);
        for ended in [&old, &derived] {
            assert!(
                Client::start(&narrow, ended).err().is_some_and(|line| line.contains("401")),
                "{options:?}"
            );
        }
        // A token of the project's own kernel is bounded by what this server offers.
        for token in [&minted, &narrow.token.clone()] {
            let client = Client::start(&narrow, token).unwrap();
            let answer = client.run("shell_exec", &json!({ "command": "echo pw''ned" }));
            assert!(!answer.contains("pwned") && answer.contains("EPOLICY"), "{options:?}: {answer}");
            if !options.contains(&"--files") {
                let answer = client.run("fs_write", &json!({ "path": "docs/a.md", "content": "x" }));
                assert!(answer.contains("EPOLICY"), "{options:?}: {answer}");
            }
        }
        assert!(!narrow.project.file("docs/a.md").exists());
        let tail = narrow.project.run(&["audit", "tail", "-n", "50"]).expect_code(0).stdout;
        assert!(tail.contains("token_revoke"), "{tail}");
    }
}

#[test]
fn bug_one_token_filled_all_sessions_of_a_server() {
    let server = HttpServer::start_with(&Arc::new(Project::initialised()), &["--yes"]);
    let other = mint(&server.project, &["mint", "--tools", "fs_exists"]);
    let first = Client::start(&server, &other).unwrap();
    // More than there are places, each of them with a token of its own.
    for number in 0..70 {
        let token = mint_child(&server.token, number);
        let client = Client::start(&server, &token);
        assert!(client.is_ok(), "{number}: {:?}", client.err());
    }
    assert!(first.ping().starts_with("HTTP/1.1 200"));
    let second = Client::start(&server, &other).unwrap();
    assert!(second.ping().starts_with("HTTP/1.1 200"));
}

fn mint_child(token: &str, number: u32) -> String {
    use tgp::contract::CapabilityToken;
    use tgp::gates::{Caveats, attenuate_token};
    let caveats = Caveats { note: Some(number.to_string()), ..Caveats::default() };
    attenuate_token(&CapabilityToken::new(token.to_owned()), &caveats).unwrap().reveal().to_owned()
}
