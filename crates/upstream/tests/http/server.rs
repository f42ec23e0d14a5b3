//! A small HTTP server: one request for each connection, and an answer in bytes.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The method of the protocol.
    pub fn asks(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    async fn read(stream: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let (head, length) = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let length = head.lines().find_map(|line| {
                    line.to_ascii_lowercase()
                        .strip_prefix("content-length: ")
                        .map(|length| length.parse().unwrap())
                });
                bytes.drain(..end + 4);
                break (head, length.unwrap_or(0_usize));
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        while bytes.len() < length {
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        }
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ').map(str::to_owned);
        let headers = lines.filter_map(|line| line.split_once(": "));
        Some(Self {
            method: words.next()?,
            path: words.next()?,
            headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect(),
            body: String::from_utf8(bytes).ok()?,
        })
    }
}

/// What a server does with a request: the bytes of an answer, and what it goes on with.
pub struct Answer {
    pub head: String,
    /// Sent again and again after the head.
    pub endless: Vec<u8>,
    pub then: Then,
}

/// What a server does after its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Close,
    Hang,
    Repeat,
}

impl Answer {
    pub fn raw(head: impl Into<String>) -> Self {
        Self { head: head.into(), endless: Vec::new(), then: Then::Close }
    }

    pub fn status(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::raw(format!(
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    pub fn json(body: &Value) -> Self {
        Self::status("200 OK", "Content-Type: application/json\r\n", &body.to_string())
    }

    pub fn hang(head: &str) -> Self {
        Self { then: Then::Hang, ..Self::raw(head) }
    }

    pub fn repeat(head: &str, piece: &str) -> Self {
        let endless = piece.repeat((64 << 10) / piece.len() + 1).into_bytes();
        Self { endless, then: Then::Repeat, ..Self::raw(head) }
    }
}

/// A server that is there as long as the test runs.
pub struct Server {
    pub origin: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub async fn start(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (answer, requests) = (Arc::new(answer), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
                tokio::spawn(async move {
                    let Some(request) = Request::read(&mut stream).await else { return };
                    let answer = answer(&request);
                    requests.lock().unwrap().push(request);
                    let _ = send(&mut stream, &answer).await;
                });
            }
        });
        Self { origin, seen }
    }

    pub fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

async fn send(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
    stream.write_all(answer.head.as_bytes()).await?;
    match answer.then {
        Then::Close => stream.shutdown().await,
        Then::Hang => std::future::pending().await,
        Then::Repeat => loop {
            stream.write_all(&answer.endless).await?;
        },
    }
}

/// The answers of a server of the protocol with one tool, `echo`, that answers with what it is given.
pub fn protocol(request: &Request) -> Answer {
    if request.method != "POST" {
        return Answer::status("405 Method Not Allowed", "", "");
    }
    let message = request.json();
    let result = match request.asks().as_str() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "test", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        "tools/call" => {
            let text = message["params"]["arguments"]["text"].as_str().unwrap_or("nothing").to_owned();
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        _ => return Answer::status("202 Accepted", "", ""),
    };
    Answer::json(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
}

/// The parameters of a query or of a form.
pub fn parameters(text: &str) -> std::collections::BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
