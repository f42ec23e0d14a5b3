//! The request head: read with its caps, and refused unless it is plainly a `CONNECT`.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::{ProxyLimits, ProxyRefusal, ProxyTarget};

const END: &[u8] = b"\r\n\r\n";

/// Room for the head of an ordinary program.
const FIRST_BYTES: usize = 1024;

/// Why a head is missing.
pub(super) enum NoHead {
    /// The client closed the connection without a byte, or it broke. Nothing is answered.
    Gone,
    Refused(ProxyRefusal),
}

/// A head and what the client has sent directly after it.
#[derive(Debug)]
pub(super) struct ReceivedHead {
    bytes: Vec<u8>,
    length: usize,
}

impl ReceivedHead {
    pub(super) async fn read(client: &mut TcpStream, limits: &ProxyLimits) -> Result<Self, NoHead> {
        let late = ProxyRefusal::HeadTime { seconds: limits.head_time.as_secs() };
        let reading = Self::read_all(client, limits.head_bytes);
        tokio::time::timeout(limits.head_time, reading).await.unwrap_or(Err(NoHead::Refused(late)))
    }

    async fn read_all(client: &mut TcpStream, limit: usize) -> Result<Self, NoHead> {
        let refused = |problem| NoHead::Refused(ProxyRefusal::Head(problem));
        let mut bytes = Vec::with_capacity(FIRST_BYTES.min(limit));
        loop {
            // At most this much is read, so what follows the head is bounded too.
            let room = u64::try_from(limit.saturating_sub(bytes.len())).unwrap_or(u64::MAX);
            if room == 0 {
                return Err(refused("it is too long"));
            }
            let before = bytes.len();
            match (&mut *client).take(room).read_buf(&mut bytes).await {
                Ok(0) if bytes.is_empty() => return Err(NoHead::Gone),
                Ok(0) => return Err(refused("it ends early")),
                Ok(_) => {}
                Err(_) => return Err(NoHead::Gone),
            }
            // The end may have begun in the piece before.
            let start = before.saturating_sub(END.len() - 1);
            let fresh = bytes.get(start..).unwrap_or_default();
            let end = fresh.windows(END.len()).position(|window| window == END);
            let length = end.map(|end| start + end + END.len());
            // Another protocol, such as TLS, need not be waited for.
            let in_head = bytes.get(start..length.unwrap_or(bytes.len())).unwrap_or_default();
            if !in_head.iter().copied().all(is_head_byte) {
                return Err(refused("it has bytes that are not text"));
            }
            if let Some(length) = length {
                return Ok(Self { bytes, length });
            }
        }
    }

    pub(super) fn target(&self) -> Result<ProxyTarget, ProxyRefusal> {
        parse(self.bytes.get(..self.length).unwrap_or_default())
    }

    /// What the client has sent after the head: the first bytes for the host.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.length..).unwrap_or_default()
    }
}

fn is_head_byte(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n')
}

/// The target of a head that ends in its empty line.
fn parse(head: &[u8]) -> Result<ProxyTarget, ProxyRefusal> {
    let refused = ProxyRefusal::Head;
    let head = std::str::from_utf8(head).map_err(|_| refused("it has bytes that are not text"))?;
    let head = head.strip_suffix("\r\n\r\n").ok_or(refused("it ends early"))?;
    let mut lines = head.split("\r\n");
    // Some servers end a line at each of the two bytes; such a head would have two meanings.
    if lines.clone().any(|line| line.contains(['\r', '\n'])) {
        return Err(refused("a line ends without CR and LF"));
    }
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(refused("the first line is not a request of HTTP/1.1 or HTTP/1.0"));
    };
    if !is_token(method) {
        return Err(refused("the method is not a word"));
    }
    if method != "CONNECT" {
        return Err(ProxyRefusal::Method);
    }
    for line in lines {
        let (name, _) = line.split_once(':').ok_or(refused("a header has no colon"))?;
        // A blank before the colon or at the start of a line is one of the ways to hide a header.
        if !is_token(name) {
            return Err(refused("the name of a header is not a word"));
        }
        // What follows the head is for the host. Whoever counts it as a body would find another end of the request.
        if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(refused("a CONNECT has no body"));
        }
    }
    ProxyTarget::parse(target).ok_or(refused("the target is not a plain `host:port`"))
}

/// A token of RFC 9110.
fn is_token(text: &str) -> bool {
    let is_mark = |byte: u8| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}
