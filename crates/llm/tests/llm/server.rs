//! A server on the loopback that answers with exact bytes and remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// One thing that the server does when it answers.
#[derive(Clone, Debug)]
pub enum Step {
    Send(Vec<u8>),
    Sleep(Duration),
    /// Says nothing until the client has gone.
    Hang,
    /// Serves the next request on the same connection.
    Keep,
    /// Sends these bytes again and again until the client has gone.
    Flood(Vec<u8>),
}

#[derive(Clone, Debug, Default)]
pub struct Answer(pub Vec<Step>);

impl Answer {
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self(vec![Step::Send(bytes.into())])
    }

    pub fn status(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} Whatever\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Self::raw(format!("{head}content-length: {}\r\n\r\n{body}", body.len()))
    }

    /// The head of a stream whose end is the end of the connection.
    pub fn stream() -> Self {
        Self::raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    }

    pub fn events(body: &str) -> Self {
        Self::stream().then(Step::Send(body.as_bytes().to_vec()))
    }

    /// Each piece is one chunk of the transfer, which the client sees apart however the packets travel.
    pub fn chunked(pieces: &[&[u8]]) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut bytes = head.as_bytes().to_vec();
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            bytes.extend_from_slice(piece);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\n\r\n");
        Self::raw(bytes).then(Step::Keep)
    }

    pub fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub struct Server {
    pub base: String,
    requests: Arc<Mutex<Vec<Request>>>,
    arrivals: mpsc::UnboundedReceiver<()>,
    departures: mpsc::UnboundedReceiver<()>,
}

impl Server {
    /// Answers the requests in turn; who asks more often is answered with status 599.
    pub async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let (departed, departures) = mpsc::unbounded_channel();
        let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (answers, seen) = (Arc::clone(&answers), Arc::clone(&seen));
                let (arrived, departed) = (arrived.clone(), departed.clone());
                tokio::spawn(async move {
                    socket.set_nodelay(true).unwrap();
                    serve(socket, &answers, &seen, &arrived).await;
                    let _ = departed.send(());
                });
            }
        });
        Self { base, requests, arrivals, departures }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits for a request to have come in.
    pub async fn arrival(&mut self) {
        tokio::time::timeout(Duration::from_secs(30), self.arrivals.recv()).await.unwrap().unwrap();
    }

    /// Waits for a connection to have ended.
    pub async fn departure(&mut self) {
        tokio::time::timeout(Duration::from_secs(30), self.departures.recv()).await.unwrap().unwrap();
    }
}

async fn serve(
    mut socket: TcpStream,
    answers: &Mutex<VecDeque<Answer>>,
    seen: &Mutex<Vec<Request>>,
    arrived: &mpsc::UnboundedSender<()>,
) {
    while let Some(request) = receive(&mut socket).await {
        seen.lock().unwrap().push(request);
        let _ = arrived.send(());
        let answer = answers.lock().unwrap().pop_front();
        let answer = answer.unwrap_or_else(|| Answer::status(599, &[], "unexpected"));
        let keeps = matches!(answer.0.last(), Some(Step::Keep));
        if act(&mut socket, answer).await.is_none() || !keeps {
            break;
        }
    }
    let _ = socket.shutdown().await;
}

/// Does what the answer says; `None` when the client has gone.
async fn act(socket: &mut TcpStream, answer: Answer) -> Option<()> {
    for step in answer.0 {
        match step {
            Step::Send(bytes) => socket.write_all(&bytes).await.ok()?,
            Step::Sleep(pause) => tokio::time::sleep(pause).await,
            Step::Hang => {
                let mut rest = [0; 64];
                while matches!(socket.read(&mut rest).await, Ok(count) if count > 0) {}
                return None;
            }
            Step::Keep => {}
            Step::Flood(bytes) => while socket.write_all(&bytes).await.is_ok() {},
        }
    }
    Some(())
}

async fn receive(socket: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if socket.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(Request { line, headers, body })
}
