//! A small HTTP server on the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Serves until the process ends: the thread waits for connections and holds nothing else.
pub struct Server {
    pub port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&seen);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || drop(answer(&connection, &log)));
            }
        });
        Self { port, seen }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// `METHOD path body` of every request so far.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn answer(mut connection: &TcpStream, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    log.lock()
        .unwrap()
        .push(format!("{method} {path} {}", String::from_utf8_lossy(&body)).trim_end().to_owned());
    let (status, headers, text) = match path {
        "/api/slow" => {
            std::thread::sleep(Duration::from_millis(400));
            ("200 OK", String::new(), "slow".to_owned())
        }
        "/api/out" => ("302 Found", "location: /private\r\n".to_owned(), String::new()),
        "/api/away" => ("302 Found", "location: http://localhost:1/api/\r\n".to_owned(), String::new()),
        // Sends on to whatever follows the question mark.
        to if to.starts_with("/api/redirect?") => {
            let (_, target) = to.split_once('?').unwrap_or_default();
            ("302 Found", format!("location: {target}\r\n"), String::new())
        }
        to if to.starts_with("/api/repeat?") => {
            let (_, target) = to.split_once('?').unwrap_or_default();
            ("307 Temporary Redirect", format!("location: {target}\r\n"), String::new())
        }
        "/api/in" => ("302 Found", "location: /api/text\r\n".to_owned(), String::new()),
        "/api/json" => (
            "200 OK",
            "content-type: application/json\r\nx-mark: here\r\n".to_owned(),
            "{\"a\":[1,2]}".to_owned(),
        ),
        "/api/echo" => ("201 Created", String::new(), format!("{method} {}", String::from_utf8_lossy(&body))),
        "/api/missing" => ("404 Not Found", String::new(), "nothing".to_owned()),
        _ => ("200 OK", String::new(), "text ä".to_owned()),
    };
    write!(
        connection,
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}
