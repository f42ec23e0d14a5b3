//! A proxy that opens tunnels (HTTP `CONNECT`) to listed hosts, for programs that make their connections by themselves.
//!
//! The program runs in a jail whose network has nothing but the port of this proxy, so a program that ignores the proxy
//! reaches nothing. The two parts go together like this; the first call is in `tgp-jail`:
//!
//! ```text
//! command.envs(proxy_environment(port));
//! let (mut command, listener) = jailed_command_with_listener(&profile, command, port)?;
//! let child = command.spawn()?;
//! let listener = listener.receive()?;
//! listener.set_nonblocking(true)?;
//! let hosts = ProxyHosts::parse(&["api.example.com"])?;
//! let serving = tokio::spawn(ConnectProxy::new(hosts).serve(TcpListener::from_std(listener)?));
//! child.wait(); serving.abort();
//! ```
//!
//! A tunnel passes the checks of a fetch: the target is parsed once, it must be listed ([`ProxyHosts`]), it is resolved
//! once, and the connection is made to an address of that answer which the target may have. What flows through the
//! tunnel is between the program and the host, usually TLS: the proxy cannot see paths, and so it cannot restrict them.
//!
//! The request head has a parser of its own, because it must refuse what a server of web pages accepts: credentials in the
//! target, single line feeds, bodies, several requests on one connection.

mod connection;
mod environment;
mod event;
mod head;
mod hosts;
mod limits;
mod question;
mod target;
mod tunnel;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::{NameResolver, SystemResolver};
pub use environment::proxy_environment;
pub use event::{ProxyEvent, ProxyOutcome, ProxyRefusal};
pub use hosts::{ProxyHosts, ProxyHostsError};
pub use limits::ProxyLimits;
pub use question::ProxyQuestion;
pub use target::ProxyTarget;

/// Which hosts a proxy connects to.
#[derive(Debug)]
enum Admission {
    Listed(ProxyHosts),
    /// Those that the owner allows when it is asked.
    Asked(mpsc::Sender<ProxyQuestion>),
}

/// Opens tunnels to the hosts that its owner has listed or allows, and to nothing else.
pub struct ConnectProxy {
    admission: Admission,
    limits: ProxyLimits,
    resolver: Arc<dyn NameResolver>,
    observer: Option<Box<dyn Fn(ProxyEvent) + Send + Sync>>,
}

impl fmt::Debug for ConnectProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectProxy")
            .field("admission", &self.admission)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl ConnectProxy {
    #[must_use]
    pub fn new(hosts: ProxyHosts) -> Self {
        Self::with_admission(Admission::Listed(hosts))
    }

    /// Asks `owner` about every target. An address that is not on the public internet is a question of its own, and one that no
    /// server of packages has (link-local, metadata of clouds, multicast) is refused.
    #[must_use]
    pub fn asking(owner: mpsc::Sender<ProxyQuestion>) -> Self {
        Self::with_admission(Admission::Asked(owner))
    }

    fn with_admission(admission: Admission) -> Self {
        Self { admission, limits: ProxyLimits::default(), resolver: Arc::new(SystemResolver), observer: None }
    }

    #[must_use]
    pub fn with_limits(mut self, limits: ProxyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Resolves names with `resolver` instead of the operating system. Its answers are screened all the same.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn NameResolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Reports every decision to `observer`, which is called on the task of the connection and must return soon.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Fn(ProxyEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Serves until its future is dropped, which closes every tunnel. Must be polled on a tokio runtime with time and
    /// I/O enabled.
    pub async fn serve(self, listener: TcpListener) -> Infallible {
        let tunnels = Arc::new(Semaphore::new(self.limits.tunnels));
        let pending = Arc::new(Semaphore::new(limits::PENDING_CONNECTIONS));
        let proxy = Arc::new(self);
        // The tasks end with this set, and so with the future.
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&listener, &pending) => accepted,
                Some(_) = connections.join_next() => continue,
            };
            let Some((client, slot)) = accepted else {
                tokio::time::sleep(limits::ACCEPT_PAUSE).await;
                continue;
            };
            connections.spawn(connection::handle(Arc::clone(&proxy), Arc::clone(&tunnels), client, slot));
        }
    }

    fn report(&self, target: Option<&ProxyTarget>, outcome: ProxyOutcome) {
        if let Some(observer) = &self.observer {
            observer(ProxyEvent { target: target.cloned(), outcome });
        }
    }
}

/// The next connection with its place among those that are not tunnels yet. Without a free place the others wait in the
/// queue of the listener.
async fn accept(
    listener: &TcpListener,
    pending: &Arc<Semaphore>,
) -> Option<(tokio::net::TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(pending).acquire_owned().await.ok()?;
    let (client, _) = listener.accept().await.ok()?;
    Some((client, slot))
}
