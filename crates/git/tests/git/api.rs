//! A provider's API on a loopback address: it keeps requests in memory and checks whatever it is sent.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tgp_git::{Provider, Remote, Secret, Strategy, ToolRepo, ToolRepoOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{World, forge, refactor, show};

pub const TOKEN: &str = "tok_Loopback0123456789";

/// One request as it came in.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does with the next calls.
#[derive(Clone, Debug)]
pub enum Mood {
    /// Lists what is open, opens and updates.
    Serve,
    Fail(u16, Value),
    Hang,
    Redirect(String),
    /// Sends this instead of an answer.
    Babble(usize),
}

#[derive(Clone)]
pub struct Server {
    pub address: String,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    pub mood: Arc<Mutex<Mood>>,
    open: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    pub async fn start(provider: Provider) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            seen: Arc::default(),
            mood: Arc::new(Mutex::new(Mood::Serve)),
            open: Arc::default(),
        };
        let own = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                tokio::spawn(async move { own.serve(stream, provider).await });
            }
        });
        server
    }

    /// The calls since this was last read.
    pub fn calls(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    async fn serve(&self, mut stream: TcpStream, provider: Provider) {
        while let Some(seen) = receive(&mut stream).await {
            self.seen.lock().unwrap().push(seen.clone());
            let mood = self.mood.lock().unwrap().clone();
            let (status, location, body) = match mood {
                Mood::Serve => (200, None, self.answer(provider, &seen).to_string()),
                Mood::Fail(status, body) => (status, None, body.to_string()),
                Mood::Hang => std::future::pending().await,
                Mood::Redirect(to) => (302, Some(to), String::new()),
                Mood::Babble(bytes) => (200, None, "x".repeat(bytes)),
            };
            let location = location.map_or_else(String::new, |to| format!("location: {to}\r\n"));
            let text = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{location}content-length: {}\r\n\r\n{body}",
                body.len()
            );
            if stream.write_all(text.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, provider: Provider, seen: &Seen) -> Value {
        let mut open = self.open.lock().unwrap();
        match (seen.method.as_str(), provider) {
            ("GET", Provider::Bitbucket) => json!({ "values": *open }),
            ("GET", _) => json!(*open),
            ("POST", _) => {
                let number = 40 + open.len();
                let url = format!("https://web.example.org/request/{number}");
                let request = match provider {
                    Provider::GitHub => json!({ "number": number, "html_url": url,
                        "head": { "ref": seen.body["head"] }, "base": { "ref": seen.body["base"] } }),
                    Provider::GitLab => json!({ "id": 9000, "iid": number, "web_url": url,
                        "source_branch": seen.body["source_branch"],
                        "target_branch": seen.body["target_branch"] }),
                    Provider::Bitbucket => json!({ "id": number, "links": { "html": { "href": url } },
                        "source": seen.body["source"], "destination": seen.body["destination"] }),
                };
                open.push(request.clone());
                request
            }
            _ => open.last().unwrap().clone(),
        }
    }
}

async fn receive(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap().split(' ');
    let (method, target) = (words.next().unwrap().to_owned(), words.next().unwrap());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < end + 4 + length {
        stream.read_buf(&mut bytes).await.ok()?;
    }
    let body = serde_json::from_slice(&bytes[end + 4..end + 4 + length]).unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    Some(Seen { method, path: path.to_owned(), query, headers, body })
}

/// A kernel in gatekeeper mode, whose provider is `server` and whose repository is the world's remote.
pub fn gatekeeper(world: &World, name: &str, provider: Provider, server: &Server) -> ToolRepoOptions {
    let mut options = world.options(name);
    options.strategy = Strategy::Request;
    options.token = Some(Secret::new(TOKEN));
    let prefix = match provider {
        Provider::GitHub => "/api/v3",
        Provider::GitLab => "/api/v4/",
        Provider::Bitbucket => "/2.0",
    };
    options.remote = Some(Remote::Hosted {
        provider,
        repo: "own-er/to.ols".to_owned(),
        api_base_url: Some(format!("{}{prefix}", server.address)),
        clone_url: Some(world.remote().to_str().unwrap().to_owned()),
    });
    options
}

/// How the three differ, as their documentation says.
struct Shape {
    provider: Provider,
    path: &'static str,
    query: Vec<(&'static str, &'static str)>,
    token: (&'static str, String),
    accept: &'static str,
    create: Value,
    update: (&'static str, Value),
}

const BODY: &str =
    "- Forge: tools/math/fib.ts\n\n`meta.json` is computed from the tools and is not part of this request.\n";
const LONGER: &str = "- Forge: tools/math/fib.ts\n- Refactor: tools/math/fib.ts\n\n\
                      `meta.json` is computed from the tools and is not part of this request.\n";

fn shapes() -> Vec<Shape> {
    let title = "Forge: tools/math/fib.ts";
    let bearer = ("authorization", format!("Bearer {TOKEN}"));
    vec![
        Shape {
            provider: Provider::GitHub,
            path: "/api/v3/repos/own-er/to.ols/pulls",
            query: vec![("head", "own-er:feat/math-fib"), ("base", "main"), ("state", "open")],
            token: bearer.clone(),
            accept: "application/vnd.github+json",
            create: json!({ "title": title, "head": "feat/math-fib", "base": "main", "body": BODY }),
            update: ("PATCH", json!({ "title": title, "body": LONGER })),
        },
        Shape {
            provider: Provider::GitLab,
            path: "/api/v4/projects/own-er%2Fto.ols/merge_requests",
            query: vec![("source_branch", "feat/math-fib"), ("target_branch", "main"), ("state", "opened")],
            token: ("private-token", TOKEN.to_owned()),
            accept: "application/json",
            create: json!({ "source_branch": "feat/math-fib", "target_branch": "main", "title": title, "description": BODY }),
            update: ("PUT", json!({ "title": title, "description": LONGER })),
        },
        Shape {
            provider: Provider::Bitbucket,
            path: "/2.0/repositories/own-er/to.ols/pullrequests",
            query: vec![(
                "q",
                r#"source.branch.name = "feat/math-fib" AND destination.branch.name = "main" AND state = "OPEN""#,
            )],
            token: bearer,
            accept: "application/json",
            create: json!({ "title": title, "description": BODY,
                "source": { "branch": { "name": "feat/math-fib" } },
                "destination": { "branch": { "name": "main" } } }),
            update: ("PUT", json!({ "title": title, "description": LONGER })),
        },
    ]
}

#[tokio::test]
async fn a_request_is_opened_once_and_updated_after_that() {
    for shape in shapes() {
        let world = World::with(&[("tools/a.ts", "a")]);
        let server = Server::start(shape.provider).await;
        let memory = ToolRepo::open(gatekeeper(&world, "agent", shape.provider, &server)).await.unwrap();
        memory.hydrate().await.unwrap();
        let persisted = memory.persist(forge("tools/math/fib.ts", "1")).await.unwrap();
        assert_eq!(
            (persisted.branch.as_str(), persisted.pushed, &persisted.why),
            ("feat/math-fib", true, &None)
        );
        let link = persisted.request.unwrap();
        assert_eq!((link.number, link.created), (40, true));
        assert_eq!(link.url, "https://web.example.org/request/40");
        let calls = server.calls();
        let [find, create] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!((find.method.as_str(), find.path.as_str()), ("GET", shape.path));
        let query: Vec<(&str, &str)> =
            find.query.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(query, shape.query);
        assert_eq!((create.method.as_str(), create.path.as_str()), ("POST", shape.path));
        assert_eq!(create.body, shape.create);

        let persisted = memory.persist(refactor("tools/math/fib.ts", "2")).await.unwrap();
        let link = persisted.request.unwrap();
        assert_eq!((link.number, link.created), (40, false));
        let more = server.calls();
        let [_, update] = more.as_slice() else { panic!("{more:?}") };
        assert_eq!(update.method, shape.update.0);
        assert_eq!(update.path, format!("{}/40", shape.path));
        assert_eq!(update.body, shape.update.1);
        for seen in calls.iter().chain(&more) {
            assert_eq!(seen.header(shape.token.0), Some(shape.token.1.as_str()));
            assert_eq!(seen.header("accept"), Some(shape.accept));
            assert!(seen.header("user-agent").unwrap().starts_with("tgp/"));
            let is_github = shape.provider == Provider::GitHub;
            assert_eq!(seen.header("x-github-api-version").is_some(), is_github);
            assert_eq!(seen.header("content-type").is_some(), seen.method != "GET");
        }
        assert_eq!(show(&world.remote(), "feat/math-fib", "tools/math/fib.ts").unwrap(), "2");
    }
}

#[tokio::test]
async fn a_failed_call_leaves_the_branch_and_says_what_to_do() {
    let refused =
        json!({ "message": "Validation Failed", "errors": [{ "message": format!("no for {TOKEN}") }] });
    let gitlab = json!({ "message": ["Another open merge request exists"] });
    let bitbucket = json!({ "type": "error", "error": { "message": "Something went wrong" } });
    for (provider, mood, said) in [
        (Provider::GitHub, Mood::Fail(422, refused), "422: Validation Failed (no for [secret])"),
        (Provider::GitLab, Mood::Fail(409, gitlab), "Another open merge request exists"),
        (Provider::Bitbucket, Mood::Fail(500, bitbucket), "500: Something went wrong"),
        (Provider::GitHub, Mood::Fail(401, json!({ "message": "Bad credentials" })), "401: Bad credentials"),
        (Provider::GitHub, Mood::Redirect("http://127.0.0.1:1/elsewhere".to_owned()), "302"),
        (Provider::GitHub, Mood::Hang, "no answer within"),
        (Provider::GitHub, Mood::Babble(100), "not understood"),
        (Provider::GitHub, Mood::Babble(8 << 20), "not understood"),
    ] {
        let world = World::with(&[("tools/a.ts", "a")]);
        let server = Server::start(provider).await;
        let mut options = gatekeeper(&world, "agent", provider, &server);
        if matches!(mood, Mood::Hang) {
            options.timeouts.api = std::time::Duration::from_secs(2);
        }
        let memory = ToolRepo::open(options).await.unwrap();
        server.set(mood.clone());
        let persisted = memory.persist(forge("tools/x.ts", "x")).await.unwrap();
        let why = persisted.why.unwrap();
        assert!(persisted.pushed && persisted.request.is_none(), "{mood:?}");
        assert!(why.contains("branch `feat/x` is pushed; open the request by hand at http"), "{why}");
        assert!(why.contains(said), "{said} is not in {why}");
        let is_passing = said.contains("500") || said.contains("no answer");
        assert_eq!(why.ends_with("`tgp sync` tries again"), is_passing, "{why}");
        assert_eq!(why.contains("correct `git.auth.token`"), said.contains("401"), "{why}");
        assert!(!why.contains(TOKEN));
        assert_eq!(show(&world.remote(), "feat/x", "tools/x.ts").unwrap(), "x");
        assert_eq!(memory.status().await.unwrap().pending, ["feat/x"]);
        // What could not be opened is opened by the next synchronisation, once.
        server.set(Mood::Serve);
        server.calls();
        let synced = memory.sync().await.unwrap();
        assert_eq!((synced.requests.len(), synced.pushed, synced.why), (1, 0, None), "the branch was there");
        assert!(synced.requests[0].created);
        assert_eq!(memory.status().await.unwrap().pending, Vec::<String>::new());
        assert_eq!(memory.sync().await.unwrap().requests, []);
    }
}

#[tokio::test]
async fn bug_a_request_of_other_branches_is_not_taken_for_ours() {
    let link = json!({ "html": { "href": "https://web.example.org/foreign" } });
    let branches = [("feat/other", "main"), ("feat/x", "release"), ("FEAT/X", "main")];
    for provider in [Provider::GitHub, Provider::GitLab, Provider::Bitbucket] {
        let world = World::with(&[("tools/a.ts", "a")]);
        let server = Server::start(provider).await;
        for (number, (source, target)) in branches.into_iter().enumerate() {
            server.open.lock().unwrap().push(match provider {
                Provider::GitHub => json!({ "number": number, "html_url": "https://web.example.org/foreign",
                    "head": { "ref": source }, "base": { "ref": target } }),
                Provider::GitLab => json!({ "iid": number, "web_url": "https://web.example.org/foreign",
                    "source_branch": source, "target_branch": target }),
                Provider::Bitbucket => json!({ "id": number, "links": link,
                    "source": { "branch": { "name": source } },
                    "destination": { "branch": { "name": target } } }),
            });
        }
        let memory = ToolRepo::open(gatekeeper(&world, "agent", provider, &server)).await.unwrap();
        let created = memory.persist(forge("tools/x.ts", "1")).await.unwrap().request.unwrap();
        assert_eq!((created.number, created.created), (43, true), "{provider:?}");
        let updated = memory.persist(refactor("tools/x.ts", "2")).await.unwrap().request.unwrap();
        assert_eq!((updated.number, updated.created), (43, false), "{provider:?}");
    }
}
