//! A way to a database server that swallows every answer to a COMMIT.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// Listens until the test ends.
pub struct CommitProxy {
    port: u16,
    commits: Receiver<()>,
}

impl CommitProxy {
    /// Forwards everything to `server`, an address such as `127.0.0.1:5432`.
    pub fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (committed, commits) = mpsc::channel();
        let server = server.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(&server) else { continue };
                forward(&client, &server, committed.clone());
            }
        });
        Self { port, commits }
    }

    /// The same URL, but through this.
    pub fn url(&self, url: &str) -> String {
        let server = server_of(url);
        url.replace(server, &format!("127.0.0.1:{}", self.port))
    }

    /// Returns when a COMMIT is on its way to the server, whose answer will not be seen.
    pub fn wait_for_commit(&self) {
        self.commits.recv_timeout(crate::crowd::WATCHDOG).expect("no COMMIT came");
    }
}

/// The address in a URL with user and password.
pub fn server_of(url: &str) -> &str {
    url.rsplit_once('@').unwrap().1.split('/').next().unwrap()
}

fn forward(client: &TcpStream, server: &TcpStream, committed: Sender<()>) {
    let swallows = Arc::new(AtomicBool::new(false));
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let swallowing = Arc::clone(&swallows);
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while let Ok(count @ 1..) = from_client.read(&mut buffer) {
            // A simple query: its kind, its length, its text.
            let is_commit = buffer[..count].windows(6).any(|bytes| bytes == b"COMMIT");
            swallows.fetch_or(is_commit, Ordering::SeqCst);
            if to_server.write_all(&buffer[..count]).is_err() {
                break;
            }
            if is_commit {
                let _ = committed.send(());
            }
        }
        let _ = to_server.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while let Ok(count @ 1..) = from_server.read(&mut buffer) {
            if !swallowing.load(Ordering::SeqCst) && to_client.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
}
