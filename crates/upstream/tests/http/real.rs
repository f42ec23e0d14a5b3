//! Servers of others. `TGP_TEST_MCP_CLIENTS` names the folder with their packages, as `cargo xtask` installs them.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::{Child, Command};
use url::Url;

use crate::server::parameters;
use crate::support::{NAME, User, recorded, watched};

const VARIABLE: &str = "TGP_TEST_MCP_CLIENTS";
/// A server that everybody has, with a tool of each kind.
const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";
/// An example of the official SDK, with an authorization server beside it.
const EXAMPLE: &str = "@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js";

/// A program in the folder; `None` says why the test is skipped.
fn script(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        println!("skipped: {VARIABLE} is not set");
        return None;
    };
    let path = folder.join("node_modules").join(name);
    if !path.is_file() {
        println!("skipped: {name} is not in {VARIABLE}");
        return None;
    }
    Some(path)
}

async fn free_port() -> u16 {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Starts a program, and waits until it listens.
async fn start(command: &mut Command, port: u16) -> Child {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("node is installed");
    for _ in 0..300 {
        if tokio::net::TcpStream::connect(("localhost", port)).await.is_ok() {
            return child;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the server does not listen");
}

#[tokio::test]
async fn the_everything_server_is_called() {
    watched(async {
        let Some(script) = script(EVERYTHING) else { return };
        let port = free_port().await;
        let mut command = Command::new("node");
        let _server =
            start(command.arg(script).arg("streamableHttp").env("PORT", port.to_string()), port).await;
        let user = User::new(&format!("http://localhost:{port}/mcp"));
        let pin = user.add().await.unwrap();
        assert!(pin.tools().count() > 5, "{pin:?}");
        let echoed = user.call("echo", json!({ "message": "grüße" })).await.unwrap();
        assert_eq!(echoed, json!("Echo: grüße"));
        let sum = user.call("get-sum", json!({ "a": 2, "b": 3 })).await.unwrap();
        assert!(sum.as_str().unwrap().contains('5'), "{sum}");
        let weather = user.call("get-structured-content", json!({ "location": "Chicago" })).await.unwrap();
        assert!(weather["temperature"].is_number(), "{weather}");
        let long = user.call("trigger-long-running-operation", json!({ "duration": 1, "steps": 4 })).await;
        assert!(long.unwrap().as_str().unwrap().contains("completed"));
        let wrong = user.call("get-sum", json!({ "a": "x" })).await.unwrap_err();
        assert!(wrong.message.contains("get-sum"), "{wrong}");
        let calls = (0..8).map(|number| {
            let servers = std::sync::Arc::clone(&user.servers);
            tokio::spawn(async move {
                let arguments = json!({ "message": number.to_string() });
                servers.call(NAME, "echo", serde_json::from_value(arguments).unwrap()).await
            })
        });
        for (number, call) in calls.enumerate() {
            assert_eq!(call.await.unwrap().unwrap(), json!(format!("Echo: {number}")));
        }
    })
    .await;
}

#[tokio::test]
async fn a_login_to_the_example_of_the_official_sdk() {
    watched(async {
        const REDIRECT: &str = "http://127.0.0.1:49152/callback";
        let Some(script) = script(EXAMPLE) else { return };
        let (port, authorization) = (free_port().await, free_port().await);
        let mut command = Command::new("node");
        command.arg(script).args(["--oauth", "--oauth-strict"]);
        command.env("MCP_PORT", port.to_string()).env("MCP_AUTH_PORT", authorization.to_string());
        let _server = start(&mut command, port).await;
        let user = User::new(&format!("http://localhost:{port}/mcp"));
        let error = user.add().await.unwrap_err();
        assert!(tgp_upstream::Upstreams::needs_login(&error), "{error}");
        let login = user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await.unwrap();
        // The example approves without asking.
        let client = tgp_net::build_client(tgp_net::client_builder(tgp_net::Transport::Plain), Vec::new())
            .await
            .unwrap();
        let page = client.get(login.url()).send().await.unwrap();
        let redirect = page.headers()["location"].to_str().unwrap().to_owned();
        assert!(
            parameters(Url::parse(&redirect).unwrap().query().unwrap()).contains_key("code"),
            "{redirect}"
        );
        login.finish(&redirect).await.unwrap();
        user.add().await.unwrap();
        let greeting = user.call("greet", json!({ "name": "TGP" })).await.unwrap();
        assert_eq!(greeting, json!("Hello, TGP!"));
    })
    .await;
}
