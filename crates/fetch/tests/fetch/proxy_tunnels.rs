//! Tunnels through the proxy: what flows, where it leads, and real programs that use one.

use std::net::SocketAddr;
use std::sync::Arc;

use tgp_fetch::{ConnectProxy, proxy_environment};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::proxy::{RunningProxy, SOON, connect, hosts, read_all};
use crate::server::{ScriptedResolver, accept, ok};
use crate::tls;

/// Sends back what it gets, and closes its side when the other one has.
pub async fn echo() -> SocketAddr {
    accept(|mut stream| async move {
        let (mut from, mut to) = stream.split();
        let _ = tokio::io::copy(&mut from, &mut to).await;
        let _ = to.shutdown().await;
    })
    .await
}

#[tokio::test]
async fn bytes_flow_in_both_directions() {
    let server = echo().await;
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&[server.to_string()]))).await;
    let mut client = proxy.tunnel(&server.to_string()).await;
    let mut bytes = vec![0; 300_000];
    for round in 0..3_u8 {
        let sent: Vec<u8> = (0..bytes.len()).map(|place| (place % 251) as u8 ^ round).collect();
        let (mut from, mut to) = client.split();
        let (written, read) = tokio::join!(to.write_all(&sent), from.read_exact(&mut bytes));
        written.unwrap();
        read.unwrap();
        assert!(bytes == sent, "round {round}");
    }
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap(), "");
    let target = format!("127.0.0.1 {}", server.port());
    proxy.reported(&format!("{target} closed 900000 900000")).await;
    assert_eq!(proxy.events()[0], format!("{target} opened"));
}

#[tokio::test]
async fn what_follows_the_head_is_sent_to_the_host() {
    let server = echo().await;
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&[server.to_string()]))).await;
    for head in [connect(&server.to_string()), format!("CONNECT {server} HTTP/1.0\r\n\r\n")] {
        for rest in ["hello", "\r\n\r\n", "\0\x01", "CONNECT evil.test:443 HTTP/1.1\r\n\r\n"] {
            let mut client = TcpStream::connect(proxy.address).await.unwrap();
            client.write_all(format!("{head}{rest}").as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let answer = read_all(&mut client).await.unwrap();
            assert_eq!(answer, format!("HTTP/1.1 200 Connection Established\r\n\r\n{rest}"));
        }
    }
    assert!(proxy.events().iter().all(|event| event.starts_with("127.0.0.1 ")), "{:?}", proxy.events());
}

/// A head may come in pieces of any size, and with headers of any kind.
#[tokio::test]
async fn a_head_in_pieces_is_understood() {
    let server = echo().await;
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&[server.to_string()]))).await;
    let headers =
        "Host: other.test\r\nProxy-Authorization: Basic eA==\r\nUser-Agent:\r\nproxy-connection:\tkeep-alive";
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    client.set_nodelay(true).unwrap();
    for byte in format!("CONNECT {server} HTTP/1.1\r\n{headers}\r\n\r\nhello").bytes() {
        client.write_u8(byte).await.unwrap();
        tokio::task::yield_now().await;
    }
    client.shutdown().await.unwrap();
    let answer = read_all(&mut client).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nhello"), "{answer}");
}

/// One odd byte at every place of a head: it is refused, or it leads to the same host.
#[tokio::test]
async fn an_odd_byte_does_not_lead_elsewhere() {
    let server = echo().await;
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&[server.to_string()]))).await;
    let head = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n");
    let line = head.find("\r\n").unwrap();
    // An absolute name, which is the same name.
    let final_dot = head.find(':').unwrap();
    for place in 0..=head.len() - 4 {
        for odd in [" ", "\t", "\r", "\n", "\r\n", "\0", "@", ":", "%", "/", "\\", ".", ",", "#", "0", "é"] {
            let (before, after) = head.split_at(place);
            let mut client = TcpStream::connect(proxy.address).await.unwrap();
            client.write_all(format!("{before}{odd}{after}").as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let answer = read_all(&mut client).await.unwrap();
            let is_open = answer.starts_with("HTTP/1.1 200 ");
            assert!(is_open || answer.starts_with("HTTP/1.1 40"), "{place} {odd:?} {answer}");
            // An empty line ends the head, and the rest is for the host.
            let may_open = place > line || [(final_dot, "."), (line, "\r\n")].contains(&(place, odd));
            assert!(may_open || !is_open, "{place} {odd:?} {answer}");
        }
    }
    let opened = format!("127.0.0.1 {} opened", server.port());
    let events = proxy.events();
    assert!(events.contains(&opened));
    assert!(events.iter().all(|event| !event.ends_with(" opened") || *event == opened), "{events:?}");
}

/// The end of one direction is passed on, and the other one goes on.
#[tokio::test]
async fn each_direction_ends_by_itself() {
    // Reads to the end first, then answers.
    let after_end = accept(|mut stream| async move {
        let text = read_all(&mut stream).await.unwrap();
        stream.write_all(format!("got {text}").as_bytes()).await.unwrap();
    })
    .await;
    // Ends its side first, then reads, and tells the test.
    let (heard, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let before_end = accept(move |mut stream| {
        let heard = heard.clone();
        async move {
            stream.write_all(b"bye").await.unwrap();
            stream.shutdown().await.unwrap();
            heard.send(read_all(&mut stream).await.unwrap()).unwrap();
        }
    })
    .await;
    let entries = [after_end.to_string(), before_end.to_string()];
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&entries))).await;
    let mut client = proxy.tunnel(&entries[0]).await;
    client.write_all(b"hello").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await.unwrap(), "got hello");
    let mut client = proxy.tunnel(&entries[1]).await;
    assert_eq!(read_all(&mut client).await.unwrap(), "bye");
    client.write_all(b"still here").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(tokio::time::timeout(SOON, hears.recv()).await.unwrap().unwrap(), "still here");
}

/// A connection that breaks ends its tunnel, so that neither side waits for the other.
#[tokio::test]
async fn a_broken_side_ends_the_tunnel() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&[server.to_string()]))).await;
    let mut client = proxy.tunnel(&server.to_string()).await;
    let (host, _) = listener.accept().await.unwrap();
    host.set_zero_linger().unwrap();
    drop(host);
    let _ = read_all(&mut client).await;
    proxy.reported(&format!("127.0.0.1 {} closed 0 0", server.port())).await;
    let client = proxy.tunnel(&server.to_string()).await;
    let (mut host, _) = listener.accept().await.unwrap();
    client.set_zero_linger().unwrap();
    drop(client);
    let _ = read_all(&mut host).await;
}

/// The answer that was checked is the answer that is used: a second question would have got another.
#[tokio::test]
async fn a_name_is_resolved_once() {
    let server = echo().await;
    let target = format!("localhost:{}", server.port());
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let proxy = ConnectProxy::new(hosts(&[&target])).with_resolver(Arc::clone(&resolver) as Arc<_>);
    let proxy = RunningProxy::start(proxy).await;
    drop(proxy.tunnel(&format!("LOCALHOST.:{}", server.port())).await);
    assert_eq!(resolver.questions(), ["localhost"]);
    let (_, head) = proxy.connect(&target).await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
}

#[tokio::test]
async fn addresses_are_checked_as_for_a_fetch() {
    let server = accept(|_| async { panic!("a connection was made") }).await;
    let port = server.port();
    for (entry, target, address) in [
        ("rebind.test", "rebind.test", "127.0.0.1"),
        ("*.rebind.test", "a.rebind.test", "127.0.0.1"),
        ("*.app.localhost", "x.app.localhost", "127.0.0.1"),
        ("rebind.test", "rebind.test", "10.1.2.3"),
        ("rebind.test", "rebind.test", "169.254.169.254"),
        ("rebind.test", "rebind.test", "0.0.0.0"),
        ("rebind.test", "rebind.test", "::1"),
        ("rebind.test", "rebind.test", "::ffff:127.0.0.1"),
        ("rebind.test", "rebind.test", "fd00::1"),
        ("rebind.test", "rebind.test", "64:ff9b::7f00:1"),
        ("localhost", "localhost", "10.0.0.1"),
        ("localhost", "localhost", "93.184.216.34"),
    ] {
        // The address itself is listed for another port, and a name for `localhost` too.
        let entries = [format!("{entry}:{port}"), "127.0.0.1:1".to_owned(), "x.app.localhost:1".to_owned()];
        let resolver = ScriptedResolver::new(&[&[address]]);
        let proxy = ConnectProxy::new(hosts(&entries)).with_resolver(resolver);
        let proxy = RunningProxy::start(proxy).await;
        let answer = proxy.exchange(connect(&format!("{target}:{port}")).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target} {address} {answer}");
        assert!(answer.contains(&format!("is at {address}, which is a ")), "{target} {address} {answer}");
    }
}

#[tokio::test]
async fn a_second_address_is_tried() {
    let server = echo().await;
    let target = format!("localhost:{}", server.port());
    let resolver = ScriptedResolver::new(&[&["10.0.0.1", "127.0.0.3", "127.0.0.2", "127.0.0.1"]]);
    let proxy = ConnectProxy::new(hosts(&[&target])).with_resolver(resolver);
    drop(RunningProxy::start(proxy).await.tunnel(&target).await);
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_reported() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let no_name = ScriptedResolver::new(&[]);
    let no_address = ScriptedResolver::new(&[&[]]);
    for (target, resolver, problem) in [
        (closed.to_string(), &no_name, format!("no connection to `{closed}`: ")),
        (
            "x.test:443".to_owned(),
            &no_name,
            "the host `x.test` could not be resolved: no such name".to_owned(),
        ),
        ("x.test:443".to_owned(), &no_address, "the host `x.test` has no address".to_owned()),
    ] {
        let resolver = Arc::clone(resolver) as Arc<_>;
        let proxy = ConnectProxy::new(hosts(&[&target])).with_resolver(resolver);
        let proxy = RunningProxy::start(proxy).await;
        let answer = proxy.exchange(connect(&target).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer}");
        assert!(answer.contains(&problem), "{answer}");
        assert!(proxy.events()[0].contains(&format!(" failed: {problem}")), "{:?}", proxy.events());
    }
}

#[tokio::test]
async fn the_end_of_the_proxy_ends_its_tunnels() {
    let server = echo().await;
    let proxy = RunningProxy::start(ConnectProxy::new(hosts(&[server.to_string()]))).await;
    let mut client = proxy.tunnel(&server.to_string()).await;
    client.write_all(b"hello").await.unwrap();
    client.read_exact(&mut [0; 5]).await.unwrap();
    proxy.stop();
    let _ = read_all(&mut client).await;
    proxy.reported(&format!("127.0.0.1 {} closed 5 5", server.port())).await;
    assert!(TcpStream::connect(proxy.address).await.is_err());
}

/// A TLS server and a proxy that may reach it, for programs that are run with the proxy in their environment.
async fn behind_proxy() -> (RunningProxy, u16) {
    let port = tls::serve_with(|name, _| ok(&format!("hello from {name}"))).port();
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
    let proxy = ConnectProxy::new(hosts(&[format!("localhost:{port}")])).with_resolver(resolver);
    (RunningProxy::start(proxy).await, port)
}

/// Runs a program on a URL; nothing when it is not installed.
async fn run(program: &str, arguments: &[&str], proxy: &RunningProxy, url: &str) -> Option<(bool, String)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fetch/fixtures/root.pem");
    let mut command = Command::new(program);
    command.args(arguments).arg(url).envs(proxy_environment(proxy.address.port()));
    command.env("CURL_CA_BUNDLE", root).env("SSL_CERT_FILE", root).env("NODE_EXTRA_CA_CERTS", root);
    command.kill_on_drop(true);
    let Ok(output) = tokio::time::timeout(SOON, command.output()).await.expect("the end of the program")
    else {
        println!("no `{program}` here: skipped");
        return None;
    };
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some((output.status.success(), text))
}

async fn check_program(program: &str, arguments: &[&str]) {
    let (proxy, port) = behind_proxy().await;
    let Some((is_fine, text)) = run(program, arguments, &proxy, &format!("https://localhost:{port}/")).await
    else {
        return;
    };
    assert!(is_fine && text.contains("hello from localhost"), "{program}: {text}");
    assert_eq!(proxy.events()[0], format!("localhost {port} opened"), "{program}");
    let refused = run(program, arguments, &proxy, "https://evil.test/").await.unwrap();
    assert!(!refused.0, "{program}: {}", refused.1);
    let wanted = "evil.test 443 refused: `evil.test:443` is not listed";
    assert!(proxy.events().iter().any(|event| event.starts_with(wanted)), "{program}: {:?}", proxy.events());
}

#[tokio::test]
async fn curl_works_through_the_proxy() {
    check_program("curl", &["--silent", "--show-error", "--max-time", "30"]).await;
}

#[tokio::test]
async fn python_works_through_the_proxy() {
    let script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).read().decode())";
    check_program("python3", &["-c", script]).await;
}

/// Versions before 24 (and 22.21) do not know the variable, and would go around a proxy that is not enforced by a jail.
#[tokio::test]
async fn node_works_through_the_proxy() {
    let script = "const [major, minor] = process.versions.node.split('.').map(Number); \
                  process.exit(major >= 24 || (major === 22 && minor >= 21) ? 0 : 1)";
    let knows = Command::new("node").args(["-e", script]).status().await;
    if !knows.is_ok_and(|status| status.success()) {
        println!("no `node` here that knows NODE_USE_ENV_PROXY: skipped");
        return;
    }
    let script = "fetch(process.argv[1]).then(r => r.text()).then(console.log)";
    check_program("node", &["-e", script]).await;
}
