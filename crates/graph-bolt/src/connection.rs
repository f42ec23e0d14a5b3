//! One connection to a graph server: handshake, frames, messages. Bolt 4.1 to 5.4, by the published protocol.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tgp_contract::{Code, ToolError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::failure::Failure;
use super::options::BoltOptions;
use super::pack::{self, Packed};

const MAGIC: [u8; 4] = [0x60, 0x60, 0xb0, 0x17];
/// What we can speak, best first, each as `0, how many minor versions below it too, minor, major`.
const VERSIONS: [[u8; 4]; 4] = [[0, 4, 4, 5], [0, 2, 4, 4], [0, 0, 1, 4], [0; 4]];
/// What a web server answers to the handshake.
const HTTP: [u8; 4] = *b"HTTP";
/// The most bytes of a chunk; its size is written in two bytes.
const MAX_CHUNK: usize = 0xffff;
/// The largest message that is taken. A row is one, and a row is a few nodes; a summary is smaller.
const MAX_MESSAGE: usize = 8 << 20;
/// Chunks without content keep a connection alive. So many of them in a row keep nothing but us.
const MAX_EMPTY_CHUNKS: usize = 100_000;
const AGENT: &str = concat!("tgp/", env!("CARGO_PKG_VERSION"));

const HELLO: u8 = 0x01;
const LOGON: u8 = 0x6a;
const RESET: u8 = 0x0f;
const RUN: u8 = 0x10;
const BEGIN: u8 = 0x11;
const COMMIT: u8 = 0x12;
const ROLLBACK: u8 = 0x13;
const PULL: u8 = 0x3f;
const SUCCESS: u8 = 0x70;
const RECORD: u8 = 0x71;
const IGNORED: u8 = 0x7e;
const FAILURE: u8 = 0x7f;

trait Stream: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Rows that were pulled.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) rows: Vec<Vec<Packed>>,
    /// What they weighed on the wire.
    pub(super) bytes: usize,
    pub(super) has_more: bool,
}

/// A connection that is ready for a transaction. After an error its state is unknown, and it is dropped.
pub(super) struct Connection {
    stream: BufStream<Pin<Box<dyn Stream>>>,
    version: (u8, u8),
    /// How long one exchange may take.
    pub(super) patience: Duration,
}

/// The answer to one message that is not a row.
enum Summary {
    Success(Packed),
    Failure(Failure),
    /// The server passes over what follows a failure.
    Ignored,
}

impl Connection {
    pub(super) async fn open(options: &BoltOptions, patience: Duration) -> Result<Self, Failure> {
        within(patience, async {
            let stream = reach(options).await?;
            let mut connection = Self { stream: BufStream::new(stream), version: (0, 0), patience };
            connection.shake_hands().await?;
            connection.log_on(options).await?;
            Ok(connection)
        })
        .await
    }

    async fn shake_hands(&mut self) -> Result<(), Failure> {
        self.stream.write_all(&MAGIC).await?;
        for version in VERSIONS {
            self.stream.write_all(&version).await?;
        }
        self.stream.flush().await?;
        let mut answer = [0; 4];
        self.stream.read_exact(&mut answer).await?;
        let [zero, range, minor, major] = answer;
        let is_ours = matches!((major, minor), (5, 0..=4) | (4, 1..=4));
        if answer == HTTP {
            return Err(Failure::Protocol("a web server answers at this port".to_owned()));
        }
        if answer == [0; 4] {
            return Err(Failure::Version);
        }
        if (zero, range) != (0, 0) || !is_ours {
            return Err(Failure::Protocol(format!(
                "it chose a version that was not offered ({answer:02x?})"
            )));
        }
        self.version = (major, minor);
        Ok(())
    }

    async fn log_on(&mut self, options: &BoltOptions) -> Result<(), Failure> {
        let scheme = if options.user.is_empty() && options.password.is_empty() { "none" } else { "basic" };
        let mut who = vec![("scheme".to_owned(), Packed::text(scheme))];
        if scheme == "basic" {
            who.push(("principal".to_owned(), Packed::text(&options.user)));
            who.push(("credentials".to_owned(), Packed::text(&options.password)));
        }
        let mut hello = vec![("user_agent".to_owned(), Packed::text(AGENT))];
        if self.version >= (5, 3) {
            let product = vec![("product".to_owned(), Packed::text(AGENT))];
            hello.push(("bolt_agent".to_owned(), Packed::Map(product)));
        }
        // Since 5.1 authentication has its own message.
        if self.version >= (5, 1) {
            self.send(HELLO, vec![Packed::Map(hello)]).await?;
            self.send(LOGON, vec![Packed::Map(who)]).await?;
            self.stream.flush().await?;
            self.success().await?;
            self.success().await?;
        } else {
            hello.extend(who);
            self.send(HELLO, vec![Packed::Map(hello)]).await?;
            self.stream.flush().await?;
            self.success().await?;
        }
        Ok(())
    }

    pub(super) async fn begin(
        &mut self,
        access: Access,
        database: Option<&str>,
        time: Duration,
    ) -> Result<(), Failure> {
        let mut extra = options(database);
        if access == Access::Read {
            extra.push(("mode".to_owned(), Packed::text("r")));
        }
        let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        extra.push(("tx_timeout".to_owned(), Packed::Integer(milliseconds)));
        self.exchange(BEGIN, vec![Packed::Map(extra)]).await.map(|_| ())
    }

    /// Runs a statement inside a transaction and pulls its first `rows` rows. Returns the names of its columns too.
    pub(super) async fn run(
        &mut self,
        statement: &str,
        parameters: Vec<(String, Packed)>,
        rows: usize,
    ) -> Result<(Vec<String>, Page), Failure> {
        self.run_with(statement, parameters, Vec::new(), rows).await
    }

    /// Runs a statement in its own transaction, as servers require for what is not data, such as an index.
    pub(super) async fn run_alone(&mut self, statement: &str, database: Option<&str>) -> Result<(), Failure> {
        let ran = self.run_with(statement, Vec::new(), options(database), usize::MAX).await;
        if matches!(ran, Err(Failure::Refused { .. })) {
            self.reset().await?;
        }
        ran.map(|_| ())
    }

    async fn run_with(
        &mut self,
        statement: &str,
        parameters: Vec<(String, Packed)>,
        extra: Vec<(String, Packed)>,
        rows: usize,
    ) -> Result<(Vec<String>, Page), Failure> {
        within(self.patience, async {
            self.send(RUN, vec![Packed::text(statement), Packed::Map(parameters), Packed::Map(extra)])
                .await?;
            self.send(PULL, pull(rows)).await?;
            self.stream.flush().await?;
            let summary = match self.summary().await? {
                Summary::Success(summary) => summary,
                refused => {
                    // The server passes over the second message, and says so.
                    self.summary().await?;
                    return Err(refused.into_failure());
                }
            };
            let Some(Packed::List(fields)) = summary.get("fields") else {
                return Err(Failure::Protocol("a statement has no columns".to_owned()));
            };
            let columns = fields.iter().map(|field| field.as_text().unwrap_or_default().to_owned()).collect();
            Ok((columns, self.rows().await?))
        })
        .await
    }

    /// The next rows of the statement that ran last.
    pub(super) async fn pull(&mut self, rows: usize) -> Result<Page, Failure> {
        within(self.patience, async {
            self.send(PULL, pull(rows)).await?;
            self.stream.flush().await?;
            self.rows().await
        })
        .await
    }

    pub(super) async fn commit(&mut self) -> Result<(), Failure> {
        self.exchange(COMMIT, Vec::new()).await.map(|_| ())
    }

    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        self.exchange(ROLLBACK, Vec::new()).await.map(|_| ())
    }

    /// Ends whatever is in progress.
    pub(super) async fn reset(&mut self) -> Result<(), Failure> {
        self.exchange(RESET, Vec::new()).await.map(|_| ())
    }

    async fn exchange(&mut self, tag: u8, fields: Vec<Packed>) -> Result<Packed, Failure> {
        within(self.patience, async {
            self.send(tag, fields).await?;
            self.stream.flush().await?;
            self.success().await
        })
        .await
    }

    async fn rows(&mut self) -> Result<Page, Failure> {
        let mut page = Page::default();
        loop {
            let bytes = self.message().await?;
            match pack::unpack(&bytes)? {
                Packed::Structure(RECORD, fields) => {
                    let Some(Packed::List(row)) = fields.into_iter().next() else {
                        return Err(Failure::Protocol("a row is not a list".to_owned()));
                    };
                    page.bytes += bytes.len();
                    page.rows.push(row);
                }
                other => {
                    return match summary(other)? {
                        Summary::Success(summary) => {
                            page.has_more = summary.get("has_more") == Some(&Packed::Boolean(true));
                            Ok(page)
                        }
                        refused => Err(refused.into_failure()),
                    };
                }
            }
        }
    }

    async fn success(&mut self) -> Result<Packed, Failure> {
        match self.summary().await? {
            Summary::Success(summary) => Ok(summary),
            refused => Err(refused.into_failure()),
        }
    }

    async fn summary(&mut self) -> Result<Summary, Failure> {
        let bytes = self.message().await?;
        summary(pack::unpack(&bytes)?)
    }

    async fn send(&mut self, tag: u8, fields: Vec<Packed>) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        pack::pack(&Packed::Structure(tag, fields), &mut bytes);
        for chunk in bytes.chunks(MAX_CHUNK) {
            let size = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
            self.stream.write_all(&size.to_be_bytes()).await?;
            self.stream.write_all(chunk).await?;
        }
        self.stream.write_all(&[0, 0]).await?;
        Ok(())
    }

    /// The next message: chunks up to an empty one.
    async fn message(&mut self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut empty = 0;
        loop {
            let size = usize::from(self.stream.read_u16().await?);
            if size == 0 && !bytes.is_empty() {
                return Ok(bytes);
            }
            if size == 0 {
                empty += 1;
            }
            let start = bytes.len();
            if start + size > MAX_MESSAGE || empty > MAX_EMPTY_CHUNKS {
                return Err(Failure::Protocol(format!("a message is longer than {MAX_MESSAGE} bytes")));
            }
            bytes.resize(start + size, 0);
            self.stream.read_exact(bytes.get_mut(start..).unwrap_or_default()).await?;
        }
    }
}

impl Summary {
    fn into_failure(self) -> Failure {
        match self {
            Self::Failure(failure) => failure,
            Self::Ignored => Failure::Protocol("a message was passed over".to_owned()),
            Self::Success(_) => Failure::Protocol("a message came out of turn".to_owned()),
        }
    }
}

fn options(database: Option<&str>) -> Vec<(String, Packed)> {
    database.map(|name| ("db".to_owned(), Packed::text(name))).into_iter().collect()
}

fn pull(rows: usize) -> Vec<Packed> {
    // Without a number that fits, all of them: it is only for statements that give none.
    let count = i64::try_from(rows).unwrap_or(-1);
    vec![Packed::Map(vec![("n".to_owned(), Packed::Integer(count))])]
}

fn summary(message: Packed) -> Result<Summary, Failure> {
    let Packed::Structure(tag, fields) = message else {
        return Err(Failure::Protocol("a message has no tag".to_owned()));
    };
    let what = fields.into_iter().next().unwrap_or(Packed::Null);
    match tag {
        SUCCESS => Ok(Summary::Success(what)),
        FAILURE => {
            let word = |name| what.get(name).and_then(Packed::as_text).unwrap_or_default().to_owned();
            Ok(Summary::Failure(Failure::Refused { code: word("code"), message: word("message") }))
        }
        IGNORED => Ok(Summary::Ignored),
        _ => Err(Failure::Protocol(format!("an unknown message {tag:#04x}"))),
    }
}

async fn within<T>(time: Duration, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(time, work).await.unwrap_or(Err(Failure::Slow(time)))
}

async fn reach(options: &BoltOptions) -> Result<Pin<Box<dyn Stream>>, Failure> {
    let unreachable = |source: io::Error| Failure::Unreachable { server: options.to_string(), source };
    let socket = TcpStream::connect((options.host.as_str(), options.port)).await.map_err(unreachable)?;
    socket.set_nodelay(true).map_err(unreachable)?;
    if !options.encrypted {
        return Ok(Box::pin(socket));
    }
    let connector = TlsConnector::from(trust(options.authorities.as_deref())?);
    let name = ServerName::try_from(options.host.clone()).map_err(|_| {
        ToolError::new(Code::Config, "the graph server has a name that no certificate can have")
    })?;
    Ok(Box::pin(connector.connect(name, socket).await.map_err(unreachable)?))
}

/// The server's certificate and name are always checked.
fn trust(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, ToolError> {
    tgp_net::tls_config(authorities).map_err(|error| {
        let message = format!("the certificate authorities of the graph server cannot be used: {error}");
        ToolError::new(Code::Config, message).help("check the PEM file of its authorities")
    })
}
