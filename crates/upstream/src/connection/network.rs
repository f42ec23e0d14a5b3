//! The network of a server in the jail: a proxy of the kernel, which reaches the hosts that the definition lists.

use std::net::TcpListener;

use tgp_contract::ToolError;
use tgp_fetch::{ConnectProxy, ProxyEvent, ProxyHosts, ProxyOutcome};
use tgp_jail::JailListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::failed;
use super::stdio::LastWords;

/// Where a server finds the proxy. Its network is its own, so the port is free.
pub(super) const PROXY_PORT: u16 = 3128;
/// Refusals that wait to be noted; a server that tries more hosts at once has told enough.
const MAX_WAITING: usize = 16;

/// The proxy of one server. It ends when this is dropped.
pub(super) struct ServerNetwork(JoinHandle<()>);

impl Drop for ServerNetwork {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ServerNetwork {
    /// Serves what the program connects to. What it may not reach is noted among its last words.
    pub(super) fn serve(
        server: &str,
        listener: JailListener,
        hosts: &[String],
        words: &LastWords,
    ) -> Result<Self, ToolError> {
        let hosts = ProxyHosts::parse(hosts).map_err(|error| failed(server, &error.to_string()))?;
        let opened = || -> std::io::Result<tokio::net::TcpListener> {
            let listener: TcpListener = listener.receive().map_err(std::io::Error::other)?;
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        };
        let listener = opened().map_err(|error| failed(server, &format!("it has no network: {error}")))?;
        let (tell, mut told) = mpsc::channel::<String>(MAX_WAITING);
        let name = server.to_owned();
        let proxy = ConnectProxy::new(hosts).with_observer(move |event: ProxyEvent| {
            tracing::debug!(target: "upstream", server = name, ?event, "proxy");
            if let ProxyOutcome::Refused(refusal) = event.outcome {
                // One that finds no room is like others that did.
                let _ = tell.try_send(refusal.to_string());
            }
        });
        let words = words.clone();
        let note = async move {
            while let Some(refused) = told.recv().await {
                words.add(&refused).await;
            }
        };
        let serve = async move {
            tokio::join!(proxy.serve(listener), note);
        };
        Ok(Self(tokio::spawn(serve)))
    }
}
