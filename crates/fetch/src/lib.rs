//! The host side of `tgp.fetch`: the only door from a tool to the network.
//!
//! A request passes four checks before a byte leaves this machine, and again at every redirect:
//!
//! 1. the URL is parsed once, and only the parsed form is compared and sent ([`AllowList`]);
//! 2. method, headers and sizes are checked ([`FetchRequest`], [`FetchLimits`]);
//! 3. the host name is resolved once, and addresses that are not on the public internet are struck from the answer
//!    (`resolver`); the connection is made to what is left of that same answer, so a name that changes its mind
//!    between check and use gains nothing;
//! 4. the response is counted while it streams, and the whole call has one deadline.
//!
//! A program that makes its connections by itself goes through a [`ConnectProxy`], which has the same checks of hosts and
//! addresses.
//!
//! Dropping the future of [`FetchClient::fetch`] closes its connection (over HTTP/2: resets its stream).
#![forbid(unsafe_code)]

mod address;
mod allow_list;
mod client;
mod decode;
mod entry;
mod failure;
mod hops;
mod limits;
mod path;
mod proxy;
mod redirect;
mod request;
mod resolver;
mod response;
mod secret;

pub use allow_list::{AllowList, UrlRefusal};
pub use client::FetchClient;
pub use entry::AllowListError;
pub use hops::{EveryHop, Hop, HopJudge};
pub use limits::FetchLimits;
pub use proxy::{
    ConnectProxy, ProxyEvent, ProxyHosts, ProxyHostsError, ProxyLimits, ProxyOutcome, ProxyQuestion,
    ProxyRefusal, ProxyTarget, proxy_environment,
};
pub use request::{BodyEncoding, FetchArgs, FetchRequest, HeaderArgs, Redirects};
pub use resolver::{NameResolver, SystemResolver};
pub use response::FetchResponse;
pub use secret::{SecretBinding, SecretBroker, SecretPlace, SecretSource};
