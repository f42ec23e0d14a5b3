//! The client's side of the socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::case::Frame;

/// The largest answer that is read.
const MAX_ANSWER: usize = 64 << 20;

/// One connection.
pub struct Client(UnixStream);

impl Client {
    /// Connects without saying anything; an answer is waited for no longer than `limit`.
    ///
    /// # Errors
    /// When there is no server.
    pub fn connect(socket: &Path, limit: Duration) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("cannot connect to the socket")?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self(stream))
    }

    /// Connects and shows a token.
    ///
    /// # Errors
    /// When the server does not let it in.
    pub fn with_token(socket: &Path, token: &str, limit: Duration) -> Result<Self> {
        let mut client = Self::connect(socket, limit)?;
        let answer = client.ask(&json!({ "token": token, "actor": "hostile" }))?;
        if answer.get("session").is_none() {
            bail!("the server did not let the client in: {answer}");
        }
        Ok(client)
    }

    /// Sends one frame and gives the next answer.
    ///
    /// # Errors
    /// When the connection is closed, or no answer comes in time.
    pub fn ask(&mut self, value: &Value) -> Result<Value> {
        self.send(value.to_string().as_bytes(), None)?;
        self.receive()
    }

    /// Makes a call and gives its result.
    ///
    /// # Errors
    /// When the connection is closed, or no answer comes in time.
    pub fn call(&mut self, tool: &str, arguments: &Value, dry_run: bool) -> Result<Value> {
        let mut request = json!({ "method": "call", "id": "1", "tool": tool, "arguments": arguments });
        if dry_run && let Some(fields) = request.as_object_mut() {
            fields.insert("dry_run".to_owned(), true.into());
        }
        let answer = self.ask(&request)?;
        Ok(answer.get("result").cloned().unwrap_or(answer))
    }

    /// Sends a frame of a case as it is.
    ///
    /// # Errors
    /// When the server closes the connection before all of it is sent.
    pub fn frame(&mut self, frame: &Frame) -> Result<()> {
        let (before, after) = frame.around.clone().unwrap_or_default();
        let text = format!("{before}{}{after}", frame.text.repeat(frame.repeat.unwrap_or(1)));
        self.send(text.as_bytes(), frame.length)
    }

    fn send(&mut self, bytes: &[u8], claimed: Option<u32>) -> Result<()> {
        let length = claimed.map_or_else(|| u32::try_from(bytes.len()), Ok)?;
        self.0.write_all(&length.to_be_bytes())?;
        self.0.write_all(bytes)?;
        Ok(())
    }

    /// The next answer.
    ///
    /// # Errors
    /// When the connection is closed, or nothing comes in time.
    pub fn receive(&mut self) -> Result<Value> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let length = usize::try_from(u32::from_be_bytes(length))?;
        if length > MAX_ANSWER {
            bail!("an answer of {length} bytes");
        }
        let mut frame = vec![0; length];
        self.0.read_exact(&mut frame)?;
        Ok(serde_json::from_slice(&frame)?)
    }
}
