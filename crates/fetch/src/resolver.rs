//! Name resolution that strikes addresses a tool must not reach.
//!
//! The HTTP client asks this resolver and connects to nothing but its answer. There is no second resolution, so a
//! name that answers differently the next time (DNS rebinding) is checked again the next time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use url::Host;

use super::AllowList;
use super::address::off_limits;

/// Turns a host name into addresses. Tests bring their own; programs use [`SystemResolver`].
#[async_trait]
pub trait NameResolver: Send + Sync {
    /// The addresses of `host`, which is never an IP literal and has no final dot.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl NameResolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A host all of whose addresses are off limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{host}` is at {address}, which is a {kind} address")]
pub(super) struct OffLimits {
    pub(super) host: String,
    pub(super) address: IpAddr,
    pub(super) kind: &'static str,
}

/// Which addresses a host may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The public internet.
    Public,
    /// This machine: for `localhost` and names below it, when the list has them by name.
    Loopback,
}

impl Scope {
    pub(super) fn of(list: &AllowList, host: &str) -> Self {
        if is_localhost(host) && list.names(&Host::Domain(host)) { Self::Loopback } else { Self::Public }
    }

    fn refuses(self, address: IpAddr) -> Option<&'static str> {
        match self {
            Self::Public => off_limits(address),
            Self::Loopback if address.is_loopback() => None,
            Self::Loopback => Some(off_limits(address).unwrap_or("public")),
        }
    }
}

/// RFC 6761 reserves these names for the loopback interface.
pub(super) fn is_localhost(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// Keeps the addresses that `scope` permits; none left is an error that names the first one refused.
pub(super) fn screen(host: &str, scope: Scope, answer: &[IpAddr]) -> Result<Vec<IpAddr>, OffLimits> {
    let kept: Vec<IpAddr> =
        answer.iter().copied().filter(|address| scope.refuses(*address).is_none()).collect();
    let refused = answer.iter().find_map(|address| scope.refuses(*address).map(|kind| (*address, kind)));
    match refused {
        Some((address, kind)) if kept.is_empty() => Err(OffLimits { host: host.to_owned(), address, kind }),
        _ => Ok(kept),
    }
}

/// What the HTTP client is given as its resolver.
pub(super) struct ScreeningResolver {
    pub(super) list: Arc<AllowList>,
    pub(super) resolver: Arc<dyn NameResolver>,
}

impl reqwest::dns::Resolve for ScreeningResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let (list, resolver) = (Arc::clone(&self.list), Arc::clone(&self.resolver));
        Box::pin(async move {
            let host = name.as_str();
            let answer = resolver.resolve(host).await?;
            if answer.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
            }
            let kept = screen(host, Scope::of(&list, host), &answer)?;
            // Port 0 is replaced by the port of the URL.
            let addresses = kept.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as reqwest::dns::Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{Scope, screen};
    use crate::AllowList;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    #[test]
    fn a_mixed_answer_keeps_only_what_is_permitted() {
        let answer = addresses(&["127.0.0.1", "8.8.8.8", "10.0.0.1", "64:ff9b::808:808", "2606:4700::1"]);
        let kept = screen("x.test", Scope::Public, &answer).expect("two are public");
        assert_eq!(kept, addresses(&["8.8.8.8", "2606:4700::1"]));
        let kept = screen("localhost", Scope::Loopback, &answer).expect("one is loopback");
        assert_eq!(kept, addresses(&["127.0.0.1"]));
    }

    #[test]
    fn an_answer_with_nothing_left_names_the_first_address() {
        let answer = addresses(&["10.0.0.7", "127.0.0.1"]);
        let refusal = screen("x.test", Scope::Public, &answer).expect_err("both are off limits");
        assert_eq!(refusal.to_string(), "`x.test` is at 10.0.0.7, which is a private address");
        let refusal =
            screen("localhost", Scope::Loopback, &addresses(&["8.8.8.8"])).expect_err("not loopback");
        assert_eq!(refusal.kind, "public");
    }

    #[test]
    fn only_a_listed_localhost_is_loopback() {
        let list = |entry: &str| AllowList::parse(&[entry.to_owned()]).expect(entry);
        for (entry, host, scope) in [
            ("http://localhost:1", "localhost", Scope::Loopback),
            ("http://LOCALHOST.:1", "localhost", Scope::Loopback),
            ("http://app.localhost", "app.localhost", Scope::Loopback),
            ("http://*.app.localhost", "x.app.localhost", Scope::Public),
            ("http://localhost", "app.localhost", Scope::Public),
            ("http://127.0.0.1", "localhost", Scope::Public),
            ("http://notlocalhost", "notlocalhost", Scope::Public),
            ("http://localhost.evil.com", "localhost.evil.com", Scope::Public),
        ] {
            assert_eq!(Scope::of(&list(entry), host), scope, "{entry} {host}");
        }
    }
}
