//! A proxy whose owner decides about each host when a program wants to go there.

use std::net::IpAddr;

use tokio::sync::{mpsc, oneshot};
use url::Host;

use super::connection::NoTunnel;
use super::{ConnectProxy, ProxyRefusal, ProxyTarget};
use crate::address::off_limits;

/// The ranges in which the servers of a company are, and this machine. They are asked for by their address, too: a name alone
/// does not tell where it leads.
const ASKED: [&str; 7] = [
    "private",
    "loopback",
    "unique-local",
    "carrier-grade NAT",
    "documentation",
    "benchmarking",
    "site-local",
];

/// Where a program wants to go. Dropping it refuses.
#[derive(Debug)]
pub struct ProxyQuestion {
    target: ProxyTarget,
    address: Option<IpAddr>,
    answer: oneshot::Sender<Result<(), String>>,
}

impl ProxyQuestion {
    #[must_use]
    pub fn target(&self) -> &ProxyTarget {
        &self.target
    }

    /// The address to which the target leads, where it is not on the public internet; the name was asked for before.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    pub fn allow(self) {
        // Without a receiver the program has gone away.
        let _ = self.answer.send(Ok(()));
    }

    /// Refuses, and tells the program why.
    pub fn refuse(self, why: impl Into<String>) {
        let _ = self.answer.send(Err(why.into()));
    }
}

impl ConnectProxy {
    /// The addresses to which a target may be connected, after the owner was asked.
    pub(super) async fn asked(
        &self,
        owner: &mpsc::Sender<ProxyQuestion>,
        target: &ProxyTarget,
    ) -> Result<Vec<IpAddr>, NoTunnel> {
        // The name first: a name that is refused is not resolved, because a question to a name server is a message, too.
        if let Host::Domain(_) = target.url_host() {
            ask(owner, target, None).await?;
        }
        let answer = self.resolved(target).await?;
        let public: Vec<IpAddr> =
            answer.iter().copied().filter(|address| off_limits(*address).is_none()).collect();
        if !public.is_empty() {
            return match target.url_host() {
                Host::Domain(_) => Ok(public),
                Host::Ipv4(_) | Host::Ipv6(_) => ask(owner, target, None).await.map(|()| public),
            };
        }
        let kind = |address: &IpAddr| off_limits(*address).unwrap_or_default();
        match answer.iter().find(|address| ASKED.contains(&kind(address))) {
            Some(address) => ask(owner, target, Some(*address)).await.map(|()| vec![*address]),
            None => {
                let refused = answer.first().map(|address| ProxyRefusal::Address {
                    target: target.clone(),
                    address: *address,
                    kind: kind(address),
                });
                Err(refused
                    .map_or_else(|| NoTunnel::Failed("it has no address".to_owned()), NoTunnel::Refused))
            }
        }
    }
}

async fn ask(
    owner: &mpsc::Sender<ProxyQuestion>,
    target: &ProxyTarget,
    address: Option<IpAddr>,
) -> Result<(), NoTunnel> {
    let (answer, answered) = oneshot::channel();
    let question = ProxyQuestion { target: target.clone(), address, answer };
    let denied = |why: String| NoTunnel::Refused(ProxyRefusal::Denied { target: target.clone(), why });
    let gone = || denied("its owner does not answer".to_owned());
    owner.send(question).await.map_err(|_| gone())?;
    answered.await.map_err(|_| gone())?.map_err(denied)
}
