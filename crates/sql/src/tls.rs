//! Encryption for PostgreSQL over rustls. The server's certificate and name are always checked.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tgp_contract::{Code, ToolError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Makes encrypted connections.
#[derive(Clone)]
pub(crate) struct ServerTls(Arc<ClientConfig>);

impl ServerTls {
    /// With the authorities of a PEM file, or the public ones.
    pub fn new(authorities: Option<&Path>) -> Result<Self, ToolError> {
        tgp_net::tls_config(authorities).map(Self).map_err(|error| unusable(&error))
    }
}

fn unusable(error: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(
        Code::Config,
        format!("the certificate authorities of the database cannot be used: {error}"),
    )
    .help("check the file that the database URL names")
}

impl MakeTlsConnect<Socket> for ServerTls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, InvalidDnsNameError> {
        let server = ServerName::try_from(domain)?.to_owned();
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.0)), server })
    }
}

pub(crate) struct Handshake {
    connector: TlsConnector,
    server: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Encrypted(self.connector.connect(self.server, socket).await?)) })
    }
}

pub(crate) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    /// The certificate is checked against its authority, so the password exchange is not bound to it as well.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
