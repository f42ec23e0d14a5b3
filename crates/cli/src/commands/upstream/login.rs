//! `tgp upstream login`: a person logs in to a server over HTTP, in a browser.

use std::time::Duration;

use serde_json::json;
use tgp::contract::{Code, ToolError};
use tgp::upstream::{ServerDefinition, Upstreams, login_decision};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::arguments::Global;
use crate::commands::done;
use crate::conversation::{Keyboard, TerminalKeyboard};
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;

/// How long a person has for the pages of the login.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a browser has for its request, and how many bytes of it are read. Browsers also connect without one.
const BROWSER_PATIENCE: Duration = Duration::from_secs(2);
const MAX_HEAD_BYTES: usize = 8 << 10;
/// The path of the address that the browser is sent to in the end.
const PATH: &str = "/callback";

/// Logs in, and says so.
pub(super) async fn run(
    name: &str,
    definition: &ServerDefinition,
    servers: &Upstreams,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    log_in(name, definition, servers, global, printer).await?;
    if printer.json() {
        printer.document(&done(json!({ "name": name, "loggedIn": true })));
    } else {
        printer.line(&format!("logged in to {name}"));
    }
    Ok(())
}

/// Shows the page of a login, and waits until the browser comes back or its address is pasted.
pub(super) async fn log_in(
    name: &str,
    definition: &ServerDefinition,
    servers: &Upstreams,
    global: &Global,
    printer: &Printer,
) -> Result<(), Failure> {
    let closed = |error: std::io::Error| {
        ToolError::new(Code::Internal, format!("no port of this machine can be listened on: {error}"))
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(closed)?;
    let origin = format!("http://{}", listener.local_addr().map_err(closed)?);
    let decision = session::record_decision(global, login_decision(name, definition)).await?;
    let login = servers.login(name, definition, &format!("{origin}{PATH}"), decision).await?;
    printer.note(&format!("open this page to log in to {name}:"));
    printer.lines(login.url());
    printer
        .note("if the browser runs elsewhere and ends at a page that it cannot open, paste its address here");
    let redirected = async {
        let mut keyboard = Some(TerminalKeyboard::default());
        loop {
            let pasted = async {
                match &mut keyboard {
                    Some(keyboard) => keyboard.line().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                accepted = listener.accept() => {
                    let (mut stream, _) = accepted.map_err(closed)?;
                    let Ok(Some(target)) = timeout(BROWSER_PATIENCE, target(&mut stream)).await else { continue };
                    let address = format!("{origin}{target}");
                    let is_path = target.split('?').next() == Some(PATH);
                    if !is_path || !login.is_answered_by(&address) {
                        answer(&mut stream, "404 Not Found", "There is nothing here.").await;
                        continue;
                    }
                    let finished = login.finish(&address).await;
                    let text = match &finished {
                        Ok(()) => "You are logged in. Go back to the terminal.",
                        Err(_) => "The login failed. The terminal shows why.",
                    };
                    answer(&mut stream, "200 OK", text).await;
                    return finished;
                }
                line = pasted => match line {
                    Ok(Some(line)) if line.trim().is_empty() => {}
                    Ok(Some(line)) if login.is_answered_by(line.trim()) => {
                        return login.finish(line.trim()).await;
                    }
                    Ok(Some(_)) => printer.note("this is not the address that the login ends at; paste all of it"),
                    // The terminal is closed; the browser may come all the same.
                    Ok(None) | Err(_) => keyboard = None,
                },
            }
        }
    };
    let ended: Result<(), ToolError> = timeout(PATIENCE, redirected).await.unwrap_or_else(|_| {
        let minutes = PATIENCE.as_secs() / 60;
        Err(ToolError::new(
            Code::Upstream,
            format!("the login to {name} did not end within {minutes} minutes"),
        )
        .help(format!("start again with `tgp upstream login {name}`")))
    });
    Ok(ended?)
}

/// The path and the query that a browser asks for; `None` for what is not a request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        match stream.read(&mut piece).await {
            Ok(length @ 1..) if head.len() + length <= MAX_HEAD_BYTES => {
                head.extend_from_slice(piece.get(..length).unwrap_or_default());
            }
            _ => return None,
        }
    }
    target_of(&head)
}

fn target_of(head: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(head).ok()?.lines().next()?;
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    target.starts_with('/').then(|| target.to_owned())
}

/// A page that loads nothing and sends its own address, with the code in it, nowhere.
async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>TGP</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n",
        page.len()
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(page.as_bytes()).await?;
        stream.shutdown().await
    };
    // A browser that is gone needs no page.
    let _ = timeout(BROWSER_PATIENCE, write).await;
}

#[cfg(test)]
mod tests {
    use super::target_of;

    #[test]
    fn only_a_request_of_a_browser_is_read() {
        for (head, target) in [
            ("GET /callback?code=a&state=b HTTP/1.1\r\nHost: x\r\n\r\n", Some("/callback?code=a&state=b")),
            ("GET / HTTP/1.1\r\n\r\n", Some("/")),
            ("POST /callback HTTP/1.1\r\n\r\n", None),
            ("GET http://elsewhere/callback HTTP/1.1\r\n\r\n", None),
            ("\r\n\r\n", None),
        ] {
            assert_eq!(target_of(head.as_bytes()).as_deref(), target, "{head}");
        }
        assert_eq!(target_of(b"GET /\xff HTTP/1.1\r\n\r\n"), None);
    }
}
