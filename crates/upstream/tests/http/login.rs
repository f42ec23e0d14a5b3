//! Logins: discovery, registration, the code with its proof, tokens, and their refresh.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tgp_contract::Code;
use tgp_upstream::{HttpServer, ServerDefinition, StdioServer, Upstreams};

use crate::authorization::{Authorization, REDIRECT};
use crate::server::{Answer, Server};
use crate::support::{NAME, User, message, recorded, watched};

#[tokio::test]
async fn a_person_logs_in_and_calls_work() {
    watched(async {
        let authorization = Authorization::start().await;
        let mut user = User::new(&authorization.server.url());
        let error = user.add().await.unwrap_err();
        assert!(Upstreams::needs_login(&error), "{error}");
        assert_eq!(error.help_of(), Some("a person logs in with `tgp upstream login remote`"));

        let login = user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await.unwrap();
        let redirect = authorization.approve(&login);
        assert!(!format!("{login:?}").contains("state"), "{login:?}");
        for (wrong, expected) in [
            (redirect.replace("state=", "state=x"), "does not belong to this login"),
            ("no address".to_owned(), "does not belong to this login"),
            (format!("{REDIRECT}?error=access_denied"), "does not belong to this login"),
            (redirect.replace("code=", "error=access_denied&x="), "the login was refused: \"access_denied\""),
            (redirect.replace("iss=http", "iss=https"), "issuer mismatch"),
        ] {
            let told = message(login.finish(&wrong).await);
            assert!(told.contains(expected), "{told}");
        }
        assert!(!user.login_file().exists());
        login.finish(&redirect).await.unwrap();
        let mode = std::fs::metadata(user.login_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        user.add().await.unwrap();
        assert_eq!(user.call("echo", json!({ "text": "hello" })).await.unwrap(), json!("hello"));
        let (access, refresh) = authorization.tokens();
        let echoed = user.call("echo", json!({ "text": format!("{access} {refresh}") })).await.unwrap();
        assert_eq!(echoed, json!("[secret] [secret]"));
        user.again();
        assert_eq!(user.call("echo", json!({ "text": "again" })).await.unwrap(), json!("again"));
        assert!(user.servers.forget_login(NAME).unwrap() && !user.servers.forget_login(NAME).unwrap());
        user.again();
        assert!(Upstreams::needs_login(&user.call("echo", json!({})).await.unwrap_err()));
    })
    .await;
}

#[tokio::test]
async fn a_token_is_refreshed_without_a_person() {
    watched(async {
        for has_client_secret in [false, true] {
            let authorization = Authorization::start().await;
            authorization.state.lock().unwrap().has_client_secret = has_client_secret;
            let mut user = User::new(&authorization.server.url());
            authorization.log_in(&user).await;
            user.add().await.unwrap();
            // The server does not take it any more.
            user.call("echo", json!({})).await.unwrap();
            authorization.revoke();
            user.call("echo", json!({})).await.unwrap();
            assert_eq!(authorization.tokens().0, "access-token-2");
            // In another process.
            user.again();
            authorization.revoke();
            user.call("echo", json!({})).await.unwrap();
            assert_eq!(authorization.tokens().0, "access-token-3");
            let kept = std::fs::read_to_string(user.login_file()).unwrap();
            assert!(kept.contains("refresh-token-3"), "{kept}");
            assert_eq!(kept.contains("secret-of-the-client"), has_client_secret);
        }
        // It says when it ends.
        let authorization = Authorization::start().await;
        authorization.state.lock().unwrap().expires_in = 5;
        let user = User::new(&authorization.server.url());
        authorization.log_in(&user).await;
        user.add().await.unwrap();
        user.call("echo", json!({})).await.unwrap();
        assert_ne!(authorization.tokens().0, "access-token-1");
    })
    .await;
}

#[tokio::test]
async fn a_refresh_that_is_refused_needs_a_person_and_no_pause() {
    watched(async {
        let authorization = Authorization::start().await;
        let user = User::new(&authorization.server.url());
        authorization.log_in(&user).await;
        user.add().await.unwrap();
        user.call("echo", json!({})).await.unwrap();
        authorization.state.lock().unwrap().refuses_refresh = true;
        authorization.revoke();
        for _ in 0..2 {
            let error = user.call("echo", json!({})).await.unwrap_err();
            assert!(Upstreams::needs_login(&error), "{error}");
            assert!(!error.is_of_unknown_outcome() && !format!("{error:?}").contains("-token-"), "{error:?}");
        }
        authorization.state.lock().unwrap().refuses_refresh = false;
        authorization.log_in(&user).await;
        user.call("echo", json!({})).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_token_goes_to_the_server_that_it_is_for() {
    watched(async {
        let authorization = Authorization::start().await;
        let mut user = User::new(&authorization.server.url());
        authorization.log_in(&user).await;
        let other = Server::start(|_| Answer::status("401 Unauthorized", "", "")).await;
        user.definition =
            ServerDefinition::Http(HttpServer { url: other.url(), headers: Default::default() });
        assert!(Upstreams::needs_login(&user.add().await.unwrap_err()));
        for request in other.seen() {
            assert_eq!(request.header("authorization"), None, "{request:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_login_that_leads_astray_is_refused() {
    watched(async {
        for (field, value, expected) in [
            ("authorization_endpoint", "http://login.example.com/authorize", "not encrypted"),
            ("authorization_endpoint", "javascript:alert(1)", "not encrypted"),
            ("registration_endpoint", "http://login.example.com/register", "not encrypted"),
            ("registration_endpoint", "https://10.0.0.1/register", "a private address"),
            ("registration_endpoint", "https://169.254.169.254/register", "a cloud metadata address"),
            ("issuer", "https://login.example.com", "issuer"),
        ] {
            let authorization = Authorization::start().await;
            authorization.state.lock().unwrap().described.insert(field.to_owned(), json!(value));
            let user = User::new(&authorization.server.url());
            let told = message(user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await);
            assert!(told.contains(expected), "{field}: {told}, expected {expected}");
        }
        // The code is not sent there either.
        let authorization = Authorization::start().await;
        let token = json!("http://login.example.com/token");
        authorization.state.lock().unwrap().described.insert("token_endpoint".to_owned(), token);
        let user = User::new(&authorization.server.url());
        let login = user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await.unwrap();
        let told = message(login.finish(&authorization.approve(&login)).await);
        assert!(told.contains("there is no token") && !told.contains("code-0"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_description_that_floods_or_redirects_is_not_read() {
    watched(async {
        let flood = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
        let server = Server::start(move |_| Answer::repeat(flood, "          ")).await;
        let user = User::new(&server.url());
        let told = message(user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await);
        assert!(told.contains("larger than 262144 bytes"), "{told}");

        let elsewhere = Server::start(|_| Answer::status("404 Not Found", "", "")).await;
        let location = format!("Location: {}\r\n", elsewhere.origin);
        let server = Server::start(move |_| Answer::status("302 Found", &location, "")).await;
        let user = User::new(&server.url());
        let told = message(user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await);
        assert!(told.contains("redirects are not followed"), "{told}");
        assert!(elsewhere.seen().is_empty());
    })
    .await;
}

#[tokio::test]
async fn some_servers_have_no_login() {
    watched(async {
        let user = User::new("http://127.0.0.1:1/mcp");
        let program = StdioServer { command: vec!["node".to_owned()], ..StdioServer::default() };
        let with_key = HttpServer {
            url: "http://127.0.0.1:1/mcp".to_owned(),
            headers: [("authorization".to_owned(), tgp_upstream::ValueSource::Value("x".to_owned()))].into(),
        };
        for definition in [ServerDefinition::Stdio(program), ServerDefinition::Http(with_key)] {
            let error = user.servers.login(NAME, &definition, REDIRECT, recorded().await).await.unwrap_err();
            assert_eq!(error.code, Code::Validation, "{error}");
        }
        let server = Server::start(|_| Answer::status("404 Not Found", "", "")).await;
        let user = User::new(&server.url());
        let error = user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await.unwrap_err();
        assert!(error.help_of().unwrap().contains("--header"), "{error}");
    })
    .await;
}
