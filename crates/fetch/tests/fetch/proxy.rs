//! The proxy: which hosts it knows, which request heads it understands, and what it answers to all others.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tgp_fetch::{
    ConnectProxy, ProxyEvent, ProxyHosts, ProxyOutcome, ProxyRefusal, ProxyTarget, proxy_environment,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::server::{ScriptedResolver, accept};

/// Only a fault takes longer, on a machine of any speed.
pub const SOON: Duration = Duration::from_secs(60);

pub fn hosts<Text: AsRef<str>>(entries: &[Text]) -> ProxyHosts {
    ProxyHosts::parse(entries).unwrap()
}

/// A proxy that serves until this is dropped.
pub struct RunningProxy {
    pub address: SocketAddr,
    events: Arc<Mutex<Vec<ProxyEvent>>>,
    task: JoinHandle<std::convert::Infallible>,
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RunningProxy {
    pub async fn start(proxy: ConnectProxy) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&events);
        let proxy = proxy.with_observer(move |event| seen.lock().unwrap().push(event));
        Self { address, events, task: tokio::spawn(proxy.serve(listener)) }
    }

    pub fn stop(&self) {
        self.task.abort();
    }

    /// What was reported so far, as text.
    pub fn events(&self) -> Vec<String> {
        let show = |target: &ProxyTarget| format!("{} {}", target.host(), target.port());
        let events = self.events.lock().unwrap();
        events
            .iter()
            .map(|event| {
                let target = event.target.as_ref().map_or("-".to_owned(), show);
                match &event.outcome {
                    ProxyOutcome::Opened => format!("{target} opened"),
                    ProxyOutcome::Refused(refusal) => format!("{target} refused: {refusal}"),
                    ProxyOutcome::Failed(problem) => format!("{target} failed: {problem}"),
                    ProxyOutcome::Closed { sent, received } => format!("{target} closed {sent} {received}"),
                }
            })
            .collect()
    }

    /// Waits until this was reported.
    pub async fn reported(&self, event: &str) {
        let wait = async {
            while !self.events().iter().any(|own| own == event) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let reported = tokio::time::timeout(SOON, wait).await;
        assert!(reported.is_ok(), "`{event}` is not in {:?}", self.events());
    }

    /// Sends `bytes` and returns all that comes back.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(bytes).await.unwrap();
        read_all(&mut client).await.unwrap()
    }

    /// A tunnel to `target`.
    pub async fn tunnel(&self, target: &str) -> TcpStream {
        let (client, head) = self.connect(target).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        client
    }

    /// A connection after the head of the answer to a `CONNECT`.
    pub async fn connect(&self, target: &str) -> (TcpStream, String) {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(connect(target).as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(tokio::time::timeout(SOON, client.read_u8()).await.unwrap().unwrap());
        }
        (client, String::from_utf8(head).unwrap())
    }
}

pub async fn read_all(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("the end of the connection")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

#[test]
fn good_entries_are_understood() {
    let entries = [
        "api.example.com",
        "API.Example.com.",
        "api.example.com:8443",
        "api.example.com:443",
        "*.example.com",
        "*.example.com:8443",
        "münchen.example",
        "under_score.example",
        "localhost",
        "localhost:8080",
        "10.0.0.7",
        "10.0.0.7:8443",
        "[::1]",
        "[fd00::7]:8443",
    ];
    assert!(!hosts(&entries).is_empty());
    assert!(hosts::<&str>(&[]).is_empty());
}

#[test]
fn bad_entries_are_named() {
    for (entry, problem) in [
        ("", "not a host"),
        ("https://api.example.com", "URL"),
        ("api.example.com/v1", "path"),
        ("api.example.com\\x", "path"),
        ("api.example.com?x", "path"),
        ("api.example.com#x", "path"),
        ("user@api.example.com", "credentials"),
        ("user:secret@api.example.com", "credentials"),
        ("api%2eexample.com", "escape"),
        ("[fe80::1%25eth0]", "escape"),
        (" api.example.com", "blank"),
        ("api.example.com\n", "blank"),
        ("a.com b.com", "blank"),
        ("a.com,b.com", "not a host"),
        ("a.com;b.com", "not a host"),
        ("api.example.com:", "invalid port"),
        ("api.example.com:0", "invalid port"),
        ("api.example.com:080", "invalid port"),
        ("api.example.com:+80", "invalid port"),
        ("api.example.com:65536", "invalid port"),
        ("api.example.com:https", "invalid port"),
        ("api.example.com:*", "invalid port"),
        ("::1", "brackets"),
        ("fd00::7:443", "brackets"),
        ("[::1", "not a host"),
        ("[::g]", "not a host"),
        ("1.2.3.4.5", "not a host"),
        ("*", "`*`"),
        ("api*.example.com", "`*`"),
        ("*.*.com", "`*`"),
        ("*.com", "top-level"),
        ("*.localhost", "top-level"),
        (".example.com", "empty label"),
        ("a..example.com", "empty label"),
        ("xn--a.example", "not a host"),
    ] {
        let error = ProxyHosts::parse(&["fine.example.com", entry]).expect_err(entry);
        assert_eq!(error.index(), 1);
        let message = error.to_string();
        assert!(message.starts_with("hosts[1]: `"), "{message}");
        assert!(message.contains(problem), "`{message}` lacks `{problem}`");
        assert!(!message.contains("secret"), "{message}");
    }
}

/// Every name is at a private address here, so a listed one is refused for its address, and nothing is connected.
#[tokio::test]
async fn entries_cover_hosts_and_ports() {
    let entries = [
        "api.example.com",
        "odd.example.com:8443",
        "*.wild.example",
        "*.wild.example:81",
        "xn--mnchen-3ya.example",
    ];
    let resolver = ScriptedResolver::new(&[&["10.0.0.1"]]);
    let proxy = ConnectProxy::new(hosts(&entries)).with_resolver(resolver);
    let proxy = RunningProxy::start(proxy).await;
    for (target, is_listed) in [
        ("api.example.com:443", true),
        ("API.EXAMPLE.COM:443", true),
        ("api.example.com.:443", true),
        ("api.example.com:80", false),
        ("api.example.com:8443", false),
        ("odd.example.com:8443", true),
        ("odd.example.com:443", false),
        ("example.com:443", false),
        ("x.api.example.com:443", false),
        ("xapi.example.com:443", false),
        ("api.example.com.evil.test:443", false),
        ("a.wild.example:443", true),
        ("a.b.wild.example:443", true),
        ("a.wild.example:81", true),
        ("wild.example:443", false),
        ("awild.example:443", false),
        ("a.wild.example:82", false),
        ("xn--mnchen-3ya.example:443", true),
        ("10.0.0.1:443", false),
        ("[::1]:443", false),
        ("localhost:443", false),
    ] {
        let answer = proxy.exchange(connect(target).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{target} {answer}");
        assert!(answer.contains("`hosts` of the definition"), "{target} {answer}");
        let problem = if is_listed { "is at 10.0.0.1, which is a private address" } else { "is not listed" };
        assert!(answer.contains(problem), "{target} {answer}");
    }
    let events = proxy.events();
    assert_eq!(
        events[0],
        "api.example.com 443 refused: `api.example.com:443` is at 10.0.0.1, which is a private address: `hosts` \
         of the definition must list that address itself"
    );
    assert_eq!(
        events[3],
        "api.example.com 80 refused: `api.example.com:80` is not listed: `hosts` of the definition lists what can \
         be reached"
    );
}

/// The names are listed as far as they can be, and the resolver would lead to a listening server.
#[tokio::test]
async fn what_is_not_plainly_a_connect_is_refused() {
    let server = accept(|_| async { panic!("a connection was made") }).await;
    let port = server.port();
    let entries = [format!("localhost:{port}"), format!("*.app.localhost:{port}"), "localhost".to_owned()];
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
    let proxy = ConnectProxy::new(hosts(&entries)).with_resolver(Arc::clone(&resolver) as Arc<_>);
    let proxy = RunningProxy::start(proxy).await;
    let targets = [
        "localhost".to_owned(),
        format!(":{port}"),
        "localhost:".to_owned(),
        "localhost:0".to_owned(),
        format!("localhost:0{port}"),
        format!("localhost:+{port}"),
        format!("localhost:-{port}"),
        format!("localhost:{}", u32::from(port) + 65536),
        "localhost:99999999999999999999".to_owned(),
        format!("localhost:{port}:{port}"),
        format!("localhost:{port}/"),
        format!("localhost:{port}?x"),
        format!("localhost:{port}#x"),
        format!("http://localhost:{port}"),
        format!("https://localhost:{port}/"),
        format!("//localhost:{port}"),
        format!("user@localhost:{port}"),
        format!("user:password@localhost:{port}"),
        format!("evil.test:80@localhost:{port}"),
        format!("localhost:{port}@evil.test:80"),
        format!("localhost%2e:{port}"),
        format!("loc%61lhost:{port}"),
        format!("localhost%00.evil.test:{port}"),
        format!("localhost..:{port}"),
        format!(".localhost:{port}"),
        format!("*.app.localhost:{port}"),
        format!("a..app.localhost:{port}"),
        format!("{}.app.localhost:{port}", "a".repeat(64)),
        format!("{}app.localhost:{port}", "a.".repeat(130)),
        format!("127.1:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.0.0.1:{port}"),
        format!("0177.0.0.1:{port}"),
        format!("127.0.0.01:{port}"),
        format!("1.2.3.4.5:{port}"),
        format!("::1:{port}"),
        format!("[::1:{port}"),
        format!("[::1%lo]:{port}"),
        format!("[localhost]:{port}"),
        format!("[127.0.0.1]:{port}"),
        format!("localhost,evil.test:{port}"),
        format!("localhost;evil.test:{port}"),
        format!("localhost\\evil.test:{port}"),
        format!("localhost\t:{port}"),
        format!("xn--a.app.localhost:{port}"),
        "*".to_owned(),
        "/".to_owned(),
    ];
    let mut heads: Vec<Vec<u8>> = targets.iter().map(|target| connect(target).into_bytes()).collect();
    let good = format!("CONNECT localhost:{port} HTTP/1.1\r\n");
    for head in [
        "\r\n\r\n".to_owned(),
        "CONNECT\r\n\r\n".to_owned(),
        "  \r\n\r\n".to_owned(),
        format!("\r\n{good}\r\n"),
        format!(" {good}\r\n"),
        format!("CONNECT  localhost:{port} HTTP/1.1\r\n\r\n"),
        format!("CONNECT\tlocalhost:{port} HTTP/1.1\r\n\r\n"),
        format!("CONNECT localhost:{port}  HTTP/1.1\r\n\r\n"),
        format!("CONNECT localhost:{port} HTTP/1.1 \r\n\r\n"),
        format!("CONNECT localhost:{port} HTTP/1.1 x\r\n\r\n"),
        format!("CONNECT localhost:{port}\r\n\r\n"),
        format!("CONNECT localhost:{port} HTTP/2.0\r\n\r\n"),
        format!("CONNECT localhost:{port} HTTP/1.2\r\n\r\n"),
        format!("CONNECT localhost:{port} http/1.1\r\n\r\n"),
        format!("CONNECT localhost:{port} HTTP/1.1\n\n\r\n\r\n"),
        format!("CONNECT localhost:{port} HTTP/1.1\n\r\n\r\n"),
        format!("CONNECT localhost:{port} HTTP/1.1\r\r\n\r\n"),
        format!("CONNECT evil.test:80\rlocalhost:{port} HTTP/1.1\r\n\r\n"),
        format!("CONNECT localhost:{port}\0 HTTP/1.1\r\n\r\n"),
        format!("CON\0NECT localhost:{port} HTTP/1.1\r\n\r\n"),
        format!("CON:NECT localhost:{port} HTTP/1.1\r\n\r\n"),
        format!("CONNECT münchen.app.localhost:{port} HTTP/1.1\r\n\r\n"),
        format!("{good}Content-Length: 5\r\n\r\nhello"),
        format!("{good}content-length: 0\r\n\r\n"),
        format!("{good}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        format!("{good}Content-Length : 5\r\n\r\n"),
        format!("{good}X: y\r\n Content-Length: 5\r\n\r\n"),
        format!("{good}X: y\r\n\tz\r\n\r\n"),
        format!("{good}X: y\nContent-Length: 5\r\n\r\n"),
        format!("{good}X: y\rContent-Length: 5\r\n\r\n"),
        format!("{good}X: \0\r\n\r\n"),
        format!("{good}X: \u{7f}\r\n\r\n"),
        format!("{good}X: ü\r\n\r\n"),
        format!("{good}no colon\r\n\r\n"),
        format!("{good}: no name\r\n\r\n"),
        format!("{good}two words: x\r\n\r\n"),
    ] {
        heads.push(head.into_bytes());
    }
    // The beginning of TLS, which has no end of a head.
    heads.push(vec![22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
    for head in &heads {
        let text = String::from_utf8_lossy(head);
        let answer = proxy.exchange(head).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text:?} {answer}");
        assert!(answer.contains("expected `CONNECT host:port HTTP/1.1`"), "{text:?} {answer}");
    }
    assert!(resolver.questions().is_empty());
    let events = proxy.events();
    assert_eq!(events.len(), heads.len());
    assert!(events.iter().all(|event| event.starts_with("- refused: invalid request head: ")), "{events:?}");
}

#[tokio::test]
async fn other_methods_are_told_what_to_do() {
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&["example.com"]))).await;
    for head in [
        "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "POST http://example.com:443/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        "connect example.com:443 HTTP/1.1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\n\r\n",
    ] {
        let answer = proxy.exchange(head.as_bytes()).await;
        let (head, text) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\n"), "{answer}");
        assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())), "{answer}");
        assert!(text.contains("`CONNECT host:port`") && text.ends_with('\n'), "{answer}");
        assert_eq!(text.lines().count(), 1);
    }
    let refused = proxy.events.lock().unwrap()[0].outcome.clone();
    assert_eq!(refused, ProxyOutcome::Refused(ProxyRefusal::Method));
}

/// One request for each connection: what follows a refused one is not read as another.
#[tokio::test]
async fn a_second_request_is_not_served() {
    let server = accept(|_| async { panic!("a connection was made") }).await;
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&[server.to_string()]))).await;
    for first in [connect("evil.test:443"), "GET / HTTP/1.1\r\n\r\n".to_owned(), connect("a@b:1")] {
        let answer = proxy.exchange(format!("{first}{}", connect(&server.to_string())).as_bytes()).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    assert_eq!(proxy.events().len(), 3);
}

#[test]
fn programs_find_the_proxy_by_their_environment() {
    let environment = proxy_environment(3128);
    let value = |name: &str| {
        environment.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str()).unwrap()
    };
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
        assert_eq!(value(name), "http://127.0.0.1:3128");
    }
    assert_eq!((value("NO_PROXY"), value("no_proxy"), value("NODE_USE_ENV_PROXY")), ("", "", "1"));
}
