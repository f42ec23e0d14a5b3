//! One connection of a client: its request, the checks, and the answer.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::Host;

use super::event::UNREACHABLE;
use super::head::{NoHead, ReceivedHead};
use super::tunnel::Tunnel;
use super::{Admission, ConnectProxy, ProxyOutcome, ProxyRefusal, ProxyTarget, limits};
use crate::resolver::screen;

/// Why a tunnel to a target is not opened.
pub(super) enum NoTunnel {
    Refused(ProxyRefusal),
    Failed(String),
}

impl From<ProxyRefusal> for NoTunnel {
    fn from(refusal: ProxyRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Serves one connection to its end. `slot` is its place among those that are not tunnels.
pub(super) async fn handle(
    proxy: Arc<ConnectProxy>,
    tunnels: Arc<Semaphore>,
    mut client: TcpStream,
    slot: OwnedSemaphorePermit,
) {
    let head = match ReceivedHead::read(&mut client, &proxy.limits).await {
        Ok(head) => head,
        Err(NoHead::Gone) => return,
        Err(NoHead::Refused(refusal)) => return refuse(&proxy, client, None, refusal.into()).await,
    };
    let target = match head.target() {
        Ok(target) => target,
        Err(refusal) => return refuse(&proxy, client, None, refusal.into()).await,
    };
    match proxy.open(&tunnels, &target).await {
        Ok((host, permit)) => {
            drop(slot);
            Tunnel::new(proxy, target, permit).run(client, host, head.rest()).await;
        }
        Err(reason) => refuse(&proxy, client, Some(&target), reason).await,
    }
}

impl ConnectProxy {
    /// A connection to the target, and its place among the tunnels.
    async fn open(
        &self,
        tunnels: &Arc<Semaphore>,
        target: &ProxyTarget,
    ) -> Result<(TcpStream, OwnedSemaphorePermit), NoTunnel> {
        // An owner may take time to answer. What follows has to be fast.
        let asked = match &self.admission {
            Admission::Listed(hosts) => {
                hosts.scope_of(target).ok_or_else(|| ProxyRefusal::Unlisted(target.clone()))?;
                None
            }
            Admission::Asked(owner) => Some(self.asked(owner, target).await?),
        };
        let permit = Arc::clone(tunnels)
            .try_acquire_owned()
            .map_err(|_| ProxyRefusal::TooManyTunnels { limit: self.limits.tunnels })?;
        let connecting = async {
            let addresses = match asked {
                Some(addresses) => addresses,
                None => self.listed(target).await?,
            };
            let connected = connect(addresses, target.port()).await;
            connected.map_err(|error| NoTunnel::Failed(format!("no connection to `{target}`: {error}")))
        };
        let host = timeout(self.limits.connect_time, connecting).await;
        Ok((host.unwrap_or_else(|_| Err(self.late(target)))?, permit))
    }

    fn late(&self, target: &ProxyTarget) -> NoTunnel {
        let seconds = self.limits.connect_time.as_secs();
        NoTunnel::Failed(format!("no connection to `{target}` within {seconds} s"))
    }

    /// The addresses of a listed target that may be connected to.
    async fn listed(&self, target: &ProxyTarget) -> Result<Vec<IpAddr>, NoTunnel> {
        let answer = self.resolved(target).await?;
        let (Admission::Listed(hosts), Host::Domain(name)) = (&self.admission, target.url_host()) else {
            return Ok(answer);
        };
        let scope = hosts.scope_of(target).ok_or_else(|| ProxyRefusal::Unlisted(target.clone()))?;
        screen(name, scope, &answer).map_err(|refused| {
            let (address, kind) = (refused.address, refused.kind);
            ProxyRefusal::Address { target: target.clone(), address, kind }.into()
        })
    }

    /// Every address of the target. A name is resolved here and nowhere else.
    pub(super) async fn resolved(&self, target: &ProxyTarget) -> Result<Vec<IpAddr>, NoTunnel> {
        let name = match target.url_host() {
            Host::Domain(name) => name,
            Host::Ipv4(address) => return Ok(vec![address.into()]),
            Host::Ipv6(address) => return Ok(vec![address.into()]),
        };
        let resolving = timeout(self.limits.connect_time, self.resolver.resolve(name)).await;
        let answer = resolving
            .map_err(|_| self.late(target))?
            .map_err(|error| NoTunnel::Failed(format!("the host `{name}` could not be resolved: {error}")))?;
        if answer.is_empty() {
            return Err(NoTunnel::Failed(format!("the host `{name}` has no address")));
        }
        Ok(answer)
    }
}

/// The first connection that succeeds. An address that does not answer soon is not waited for: the next one is tried beside
/// it.
async fn connect(addresses: Vec<IpAddr>, port: u16) -> io::Result<TcpStream> {
    let mut rest = addresses.into_iter().take(limits::ADDRESSES);
    let mut attempts = JoinSet::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        if let Some(address) = rest.next() {
            attempts.spawn(TcpStream::connect((address, port)));
        }
        let has_more = rest.len() > 0;
        tokio::select! {
            Some(attempt) = attempts.join_next() => match attempt {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => failure = error,
                Err(error) => failure = error.into(),
            },
            () = sleep(limits::ADDRESS_PAUSE), if has_more => {}
            else => return Err(failure),
        }
    }
}

/// Reports and answers a request that gets no tunnel, and closes the connection.
async fn refuse(proxy: &ConnectProxy, mut client: TcpStream, target: Option<&ProxyTarget>, reason: NoTunnel) {
    let (status, text, outcome) = match reason {
        NoTunnel::Refused(refusal) => (refusal.status(), refusal.to_string(), ProxyOutcome::Refused(refusal)),
        NoTunnel::Failed(problem) => (UNREACHABLE, problem.clone(), ProxyOutcome::Failed(problem)),
    };
    proxy.report(target, outcome);
    let length = text.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}\n"
    );
    let answering = async {
        client.write_all(answer.as_bytes()).await?;
        client.shutdown().await?;
        let mut ignored = [0; 1024];
        let mut drained = 0;
        while drained < limits::DRAINED_BYTES {
            match client.read(&mut ignored).await? {
                0 => break,
                length => drained += length,
            }
        }
        io::Result::Ok(())
    };
    // A client that does not read its answer does not get one.
    let _ = timeout(limits::ANSWER_TIME, answering).await;
}
