//! A server that needs a login, with its authorization server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tgp_upstream::Login;
use url::Url;

use crate::server::{Answer, Request, Server, parameters, protocol};
use crate::support::{NAME, User, recorded};

/// Where the browser is sent in the end.
pub const REDIRECT: &str = "http://127.0.0.1:49152/callback";

/// What the authorization server knows.
#[derive(Debug, Default)]
pub struct State {
    /// The challenge of each code that was given out.
    pub challenges: BTreeMap<String, String>,
    /// The tokens that count.
    pub access: String,
    pub refresh: String,
    pub number: u32,
    pub expires_in: u32,
    pub refuses_refresh: bool,
    /// Whether clients are given a secret, and have to show it.
    pub has_client_secret: bool,
    /// Replaces a field of the description of the authorization server.
    pub described: BTreeMap<String, Value>,
}

pub struct Authorization {
    pub server: Server,
    pub state: Arc<Mutex<State>>,
}

impl Authorization {
    pub async fn start() -> Self {
        let state = Arc::new(Mutex::new(State { expires_in: 3600, ..State::default() }));
        let known = Arc::clone(&state);
        let server = Server::start(move |request| answer(request, &mut known.lock().unwrap())).await;
        Self { server, state }
    }

    /// What a browser and a person do: the address of the redirect with its code.
    pub fn approve(&self, login: &Login) -> String {
        let url = Url::parse(login.url()).unwrap();
        let asked = parameters(url.query().unwrap());
        assert_eq!(asked["response_type"], "code");
        assert_eq!(asked["client_id"], "client-1");
        assert_eq!(asked["code_challenge_method"], "S256");
        assert_eq!(asked["redirect_uri"], REDIRECT);
        assert_eq!(asked["resource"], self.server.url());
        assert_eq!(asked["scope"], "tools");
        let mut state = self.state.lock().unwrap();
        let code = format!("code-{}", state.challenges.len());
        state.challenges.insert(code.clone(), asked["code_challenge"].clone());
        let mut redirect = Url::parse(REDIRECT).unwrap();
        redirect
            .query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &asked["state"])
            .append_pair("iss", &self.server.origin);
        redirect.into()
    }

    pub async fn log_in(&self, user: &User) {
        let login = user.servers.login(NAME, &user.definition, REDIRECT, recorded().await).await.unwrap();
        login.finish(&self.approve(&login)).await.unwrap();
    }

    /// Takes the access token back, as a server does that was told to.
    pub fn revoke(&self) {
        self.state.lock().unwrap().access.clear();
    }

    pub fn tokens(&self) -> (String, String) {
        let state = self.state.lock().unwrap();
        (state.access.clone(), state.refresh.clone())
    }
}

fn answer(request: &Request, state: &mut State) -> Answer {
    let origin = format!("http://{}", request.header("host").unwrap());
    match request.path.as_str() {
        "/mcp" => resource(request, &origin, state),
        "/.well-known/oauth-protected-resource/mcp" => Answer::json(&json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [origin],
            "scopes_supported": ["tools"],
        })),
        "/.well-known/oauth-authorization-server" => {
            let mut described = json!({
                "issuer": origin,
                "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
            });
            for (name, value) in &state.described {
                described[name] = value.clone();
            }
            Answer::json(&described)
        }
        "/register" => {
            let asked = request.json();
            assert_eq!(asked["redirect_uris"], json!([REDIRECT]));
            let mut client = json!({ "client_id": "client-1", "redirect_uris": asked["redirect_uris"] });
            if state.has_client_secret {
                client["client_secret"] = json!("secret-of-the-client");
            }
            Answer::status("201 Created", "Content-Type: application/json\r\n", &client.to_string())
        }
        "/token" => token(&parameters(&request.body), state),
        _ => Answer::status("404 Not Found", "", ""),
    }
}

/// The protocol, for those who have the token that counts.
fn resource(request: &Request, origin: &str, state: &State) -> Answer {
    let expected = format!("Bearer {}", state.access);
    if state.access.is_empty() || request.header("authorization") != Some(expected.as_str()) {
        let challenge = format!(
            "WWW-Authenticate: Bearer error=\"invalid_token\", \
             resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"\r\n"
        );
        return Answer::status("401 Unauthorized", &challenge, "");
    }
    protocol(request)
}

fn token(form: &BTreeMap<String, String>, state: &mut State) -> Answer {
    let refused = |error: &str, said: &str| {
        let body = json!({ "error": error, "error_description": said }).to_string();
        Answer::status("400 Bad Request", "Content-Type: application/json\r\n", &body)
    };
    let secret = form.get("client_secret").map(String::as_str);
    if state.has_client_secret && secret != Some("secret-of-the-client") {
        return refused("invalid_client", "the client shows no secret");
    }
    match form["grant_type"].as_str() {
        "authorization_code" => {
            let verifier = URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
            if state.challenges.remove(&form["code"]) != Some(verifier) {
                return refused("invalid_grant", "the code or its verifier is wrong");
            }
            assert_eq!(form["redirect_uri"], REDIRECT);
        }
        "refresh_token" => {
            if state.refuses_refresh || form["refresh_token"] != state.refresh {
                return refused("invalid_grant", &format!("{} is not known", form["refresh_token"]));
            }
        }
        other => return refused("unsupported_grant_type", other),
    }
    state.number += 1;
    state.access = format!("access-token-{}", state.number);
    state.refresh = format!("refresh-token-{}", state.number);
    Answer::json(&json!({
        "access_token": state.access,
        "refresh_token": state.refresh,
        "token_type": "Bearer",
        "expires_in": state.expires_in,
    }))
}
