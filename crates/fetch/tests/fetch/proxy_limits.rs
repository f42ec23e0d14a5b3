//! Clients that want too much of the proxy, or that are too slow.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tgp_fetch::{ConnectProxy, NameResolver, ProxyLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::proxy::{RunningProxy, SOON, connect, hosts, read_all};
use crate::proxy_tunnels::echo;

const SHORT: Duration = Duration::from_millis(200);

/// For limits that a well-behaved client must keep in the same test, on a busy machine too.
const LONGER: Duration = Duration::from_secs(2);

async fn limited(limits: ProxyLimits) -> (RunningProxy, String) {
    let server = echo().await.to_string();
    let proxy = ConnectProxy::new(hosts(&[&server])).with_limits(limits);
    (RunningProxy::start(proxy).await, server)
}

#[test]
fn the_limits_are_these() {
    let limits = ProxyLimits {
        head_bytes: 8192,
        head_time: Duration::from_secs(10),
        connect_time: Duration::from_secs(15),
        idle_time: Duration::from_secs(300),
        tunnels: 64,
    };
    assert_eq!(ProxyLimits::default(), limits);
}

#[tokio::test]
async fn only_so_many_tunnels_are_open() {
    let (proxy, server) = limited(ProxyLimits::default()).await;
    let mut tunnels = Vec::new();
    for _ in 0..64 {
        tunnels.push(proxy.tunnel(&server).await);
    }
    let answer = proxy.exchange(connect(&server).as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    assert!(answer.contains("64 tunnels are open"), "{answer}");
    // What is not listed is told so all the same, and the open ones work.
    assert!(proxy.exchange(connect("evil.test:443").as_bytes()).await.starts_with("HTTP/1.1 403 "));
    for tunnel in &mut tunnels {
        tunnel.write_all(b"x").await.unwrap();
        assert_eq!(tunnel.read_u8().await.unwrap(), b'x');
    }
    drop(tunnels.pop());
    let port = server.rsplit(':').next().unwrap();
    proxy.reported(&format!("127.0.0.1 {port} closed 1 1")).await;
    drop(proxy.tunnel(&server).await);
}

#[tokio::test]
async fn a_slow_head_is_not_waited_for() {
    let (proxy, server) = limited(ProxyLimits { head_time: LONGER, ..ProxyLimits::default() }).await;
    // Nothing at all, a part, and a byte now and then.
    for (part, pause) in [("", SOON), ("CONNECT 127", SOON), ("CONNECT 127", LONGER / 8)] {
        let mut client = TcpStream::connect(proxy.address).await.unwrap();
        client.write_all(part.as_bytes()).await.unwrap();
        let start = Instant::now();
        let mut answer = [0; 12];
        loop {
            tokio::select! {
                read = client.read_exact(&mut answer) => {
                    read.unwrap();
                    break;
                }
                () = tokio::time::sleep(pause) => {}
            }
            let _ = client.write_u8(b'1').await;
        }
        assert_eq!(&answer, b"HTTP/1.1 408");
        assert!(start.elapsed() >= LONGER / 2 && start.elapsed() < SOON);
    }
    // A tunnel is not a head.
    let mut client = proxy.tunnel(&server).await;
    tokio::time::sleep(LONGER + SHORT).await;
    client.write_all(b"x").await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'x');
}

#[tokio::test]
async fn a_head_may_be_as_long_as_the_limit_and_no_longer() {
    let (proxy, server) = limited(ProxyLimits::default()).await;
    let head = |length: usize| {
        let start = format!("CONNECT {server} HTTP/1.1\r\nX: ");
        let filling = "x".repeat(length - start.len() - 4);
        format!("{start}{filling}\r\n\r\n")
    };
    for (length, answer) in [(8192, "HTTP/1.1 200 "), (8193, "HTTP/1.1 400 "), (8196, "HTTP/1.1 400 ")] {
        let mut client = TcpStream::connect(proxy.address).await.unwrap();
        client.write_all(head(length).as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let text = read_all(&mut client).await.unwrap();
        assert!(text.starts_with(answer), "{length}: {text}");
    }
    // A client that does not stop sending is not read to its end.
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    let mut sent = 0;
    while sent < 1 << 30 && client.write_all(&[b'x'; 65536]).await.is_ok() {
        sent += 65536;
    }
    assert!(sent < 1 << 30, "{sent}");
    // What follows a head is part of the same piece, and does not make it too long.
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    let rest = "y".repeat(100_000);
    client.write_all(format!("{}{rest}", head(8000)).as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let text = read_all(&mut client).await.unwrap();
    assert!(text.ends_with(&rest) && text.len() < rest.len() + 100, "{}", text.len());
}

#[tokio::test]
async fn a_silent_tunnel_is_closed() {
    let (proxy, server) = limited(ProxyLimits { idle_time: LONGER, ..ProxyLimits::default() }).await;
    let mut client = proxy.tunnel(&server).await;
    let start = Instant::now();
    // Longer than the limit as a whole, with shorter pauses.
    for _ in 0..8 {
        tokio::time::sleep(LONGER / 5).await;
        client.write_all(b"x").await.unwrap();
        assert_eq!(client.read_u8().await.unwrap(), b'x');
    }
    let _ = read_all(&mut client).await;
    assert!(start.elapsed() >= LONGER && start.elapsed() < SOON);
    let port = server.rsplit(':').next().unwrap();
    proxy.reported(&format!("127.0.0.1 {port} closed 8 8")).await;
}

/// The same for a client that sends and never reads: the host cannot go on, so nothing flows.
#[tokio::test]
async fn a_client_that_never_reads_is_let_go() {
    let (proxy, server) = limited(ProxyLimits { idle_time: SHORT, ..ProxyLimits::default() }).await;
    let mut client = proxy.tunnel(&server).await;
    let sending = async { while client.write_all(&[b'x'; 65536]).await.is_ok() {} };
    tokio::time::timeout(SOON, sending).await.expect("the connection is closed");
}

/// Connections that never send a head take places, and give them back in time.
#[tokio::test]
async fn silent_clients_do_not_lock_others_out() {
    let (proxy, server) = limited(ProxyLimits { head_time: SHORT, ..ProxyLimits::default() }).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(proxy.address).await.unwrap());
    }
    let connected = tokio::time::timeout(SOON, proxy.tunnel(&server)).await;
    drop(connected.expect("a place is free"));
}

/// A resolver that never answers.
struct Silent;

#[async_trait::async_trait]
impl NameResolver for Silent {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_host_is_not_waited_for_without_end() {
    let limits = ProxyLimits { connect_time: SHORT, ..ProxyLimits::default() };
    let proxy = ConnectProxy::new(hosts(&["slow.test"])).with_limits(limits).with_resolver(Arc::new(Silent));
    let proxy = RunningProxy::start(proxy).await;
    let answer = proxy.exchange(connect("slow.test:443").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("no connection to `slow.test:443` within"), "{answer}");
}
