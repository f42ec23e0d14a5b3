//! An open tunnel: bytes in both directions until both have ended, one breaks, or nothing flows any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use super::limits::RELAY_BUFFER_BYTES;
use super::{ConnectProxy, ProxyOutcome, ProxyTarget};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

/// An open tunnel. Its end is reported when it is dropped, since the proxy may be dropped around it at any time.
pub(super) struct Tunnel {
    proxy: Arc<ConnectProxy>,
    target: ProxyTarget,
    sent: AtomicU64,
    received: AtomicU64,
    opened: Instant,
    /// When something flowed last, in milliseconds after it was opened.
    last_flow: AtomicU64,
    _permit: OwnedSemaphorePermit,
}

impl Tunnel {
    pub(super) fn new(proxy: Arc<ConnectProxy>, target: ProxyTarget, permit: OwnedSemaphorePermit) -> Self {
        proxy.report(Some(&target), ProxyOutcome::Opened);
        Self {
            proxy,
            target,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            opened: Instant::now(),
            last_flow: AtomicU64::new(0),
            _permit: permit,
        }
    }

    /// Tells the client that it is connected, sends the host what the client has sent already, and carries the rest.
    pub(super) async fn run(&self, mut client: TcpStream, mut host: TcpStream, first: &[u8]) {
        // Both sides decide themselves when a packet is worth sending.
        let _ = (client.set_nodelay(true), host.set_nodelay(true));
        let (from_client, mut to_client) = client.split();
        let (from_host, mut to_host) = host.split();
        let outward = async {
            to_host.write_all(first).await?;
            self.count(&self.sent, first.len());
            self.carry(from_client, to_host, &self.sent).await
        };
        let inward = async {
            to_client.write_all(ESTABLISHED).await?;
            self.carry(from_host, to_client, &self.received).await
        };
        tokio::select! {
            // The end of one direction is passed on, and the other one goes on. An error ends both.
            _ = async { tokio::try_join!(outward, inward) } => {}
            () = self.idle(self.proxy.limits.idle_time) => {}
        }
    }

    async fn carry(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        counter: &AtomicU64,
    ) -> io::Result<()> {
        let mut buffer = vec![0; RELAY_BUFFER_BYTES];
        loop {
            let length = from.read(&mut buffer).await?;
            if length == 0 {
                return to.shutdown().await;
            }
            to.write_all(buffer.get(..length).unwrap_or_default()).await?;
            self.count(counter, length);
        }
    }

    fn count(&self, counter: &AtomicU64, length: usize) {
        counter.fetch_add(u64::try_from(length).unwrap_or(u64::MAX), Ordering::Relaxed);
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_flow.store(now, Ordering::Relaxed);
    }

    /// Returns when nothing has flowed for this long.
    async fn idle(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_flow.load(Ordering::Relaxed));
            let silent = self.opened.elapsed().saturating_sub(last);
            if silent >= limit {
                return;
            }
            tokio::time::sleep(limit.saturating_sub(silent)).await;
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let (sent, received) = (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed));
        self.proxy.report(Some(&self.target), ProxyOutcome::Closed { sent, received });
    }
}
