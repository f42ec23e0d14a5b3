//! Servers that say exactly what a test wants, byte for byte.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tgp_contract::{Code, ToolError};
use tgp_fetch::{AllowList, FetchClient, FetchLimits, FetchRequest, FetchResponse, NameResolver};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One HTTP/1.1 server: it answers every connection with the bytes that its handler makes of the request.
pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub async fn start(handler: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, handler) = (Arc::clone(&requests), Arc::new(handler));
        let address = accept(move |mut stream| {
            let (seen, handler) = (Arc::clone(&seen), Arc::clone(&handler));
            async move {
                let request = read_request(&mut stream).await;
                let answer = handler(&request);
                seen.lock().unwrap().push(request);
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        Self { address, requests }
    }

    /// Answers every request with the same text.
    pub async fn text(body: &'static str) -> Self {
        Self::start(move |_| ok(body)).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Every request so far: head and body as they came over the wire.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Hands every connection to `talk`; for servers that misbehave.
pub async fn accept<F, Talk>(talk: F) -> SocketAddr
where
    F: Fn(TcpStream) -> Talk + Send + Sync + 'static,
    Talk: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(stream));
        }
    });
    address
}

pub async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = header(head, "content-length").map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return text,
        }
    }
}

/// The value of a header in a request as it came over the wire.
pub fn header<'request>(request: &'request str, name: &str) -> Option<&'request str> {
    request
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .find(|(own, _)| own.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

pub fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

pub fn redirect(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Go\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .into_bytes()
}

pub fn list(entries: &[&str]) -> AllowList {
    let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
    AllowList::parse(&entries).unwrap()
}

pub fn client(entries: &[&str]) -> FetchClient {
    FetchClient::new(list(entries), FetchLimits::default())
}

/// A client that may reach exactly these servers.
pub fn client_for(servers: &[&Server]) -> FetchClient {
    let entries: Vec<String> = servers.iter().map(|server| server.url("")).collect();
    FetchClient::new(AllowList::parse(&entries).unwrap(), FetchLimits::default())
}

pub async fn get(client: &FetchClient, url: impl Into<String>) -> Result<FetchResponse, ToolError> {
    client.fetch(FetchRequest::new(url)).await
}

#[track_caller]
pub fn refused(result: Result<FetchResponse, ToolError>, code: Code, part_of_message: &str) -> ToolError {
    let error = result.expect_err("the fetch is refused");
    assert_eq!(error.code, code, "{error}");
    assert!(error.message.contains(part_of_message), "`{}` lacks `{part_of_message}`", error.message);
    assert!(error.help_of().is_some(), "`{error}` has no help");
    error
}

/// Plays a list of answers, the last one forever, and counts the questions.
pub struct ScriptedResolver {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    questions: Mutex<Vec<String>>,
}

impl ScriptedResolver {
    pub fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            questions: Mutex::new(Vec::new()),
        })
    }

    pub fn questions(&self) -> Vec<String> {
        self.questions.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl NameResolver for ScriptedResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.questions.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        answer.ok_or_else(|| io::Error::other("no such name"))
    }
}
