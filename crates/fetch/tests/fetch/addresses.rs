//! Names that resolve to places a tool must not reach, and names that change their mind.

use std::sync::Arc;

use tgp_contract::Code;
use tgp_fetch::{FetchClient, FetchLimits};

use crate::server::{ScriptedResolver, Server, client, client_for, get, list, redirect, refused};

fn resolving(entry: &str, resolver: &Arc<ScriptedResolver>) -> FetchClient {
    let resolver: Arc<ScriptedResolver> = Arc::clone(resolver);
    FetchClient::new(list(&[entry]), FetchLimits::default()).with_resolver(resolver)
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused() {
    let server = Server::text("secret").await;
    let port = server.address.port();
    for (address, kind) in [
        ("127.0.0.1", "loopback"),
        ("127.9.9.9", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("10.1.2.3", "private"),
        ("172.31.0.1", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("169.254.1.1", "link-local"),
        ("169.254.169.254", "cloud metadata"),
        ("192.0.2.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::127.0.0.1", "IPv4-compatible"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("2002:7f00:1::", "6to4"),
        ("fd00::1", "unique-local"),
        ("fe80::1", "link-local"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
    ] {
        let resolver = ScriptedResolver::new(&[&[address]]);
        let client = resolving(&format!("http://rebind.test:{port}"), &resolver);
        let error = refused(get(&client, format!("http://rebind.test:{port}/x")).await, Code::Security, kind);
        assert!(error.message.contains("rebind.test"), "{error}");
        assert!(error.details["add"].as_str().unwrap().starts_with("http://"), "{error:?}");
        assert_eq!(resolver.questions(), ["rebind.test"]);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn several_private_addresses_are_no_better_than_one() {
    let resolver = ScriptedResolver::new(&[&["10.0.0.1", "127.0.0.1", "::1", "fd00::1"]]);
    let client = resolving("http://*.rebind.test", &resolver);
    refused(get(&client, "http://a.rebind.test/").await, Code::Security, "10.0.0.1");
}

#[tokio::test]
async fn a_listed_localhost_is_reached_and_asked_for_once() {
    let server = Server::text("hello").await;
    let port = server.address.port();
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let client = resolving(&format!("http://localhost:{port}"), &resolver);
    let response = get(&client, format!("http://LOCALHOST.:{port}/x")).await.unwrap();
    assert_eq!(response.body, b"hello");
    assert_eq!(response.url, format!("http://localhost:{port}/x"));
    // The answer that was checked is the answer that was used: a second question would have got 10.0.0.1.
    assert_eq!(resolver.questions(), ["localhost"]);
    // The next connection asks again, and the changed answer is checked again.
    refused(get(&client, format!("http://localhost:{port}/x")).await, Code::Security, "10.0.0.1");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn localhost_means_this_machine_and_nothing_else() {
    for answer in ["93.184.216.34", "10.0.0.1", "169.254.169.254", "0.0.0.0", "::ffff:127.0.0.1"] {
        let resolver = ScriptedResolver::new(&[&[answer]]);
        let client = resolving("http://localhost:8080", &resolver);
        refused(get(&client, "http://localhost:8080/").await, Code::Security, answer);
    }
    // A wildcard that happens to cover such a name does not name it.
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
    let client = resolving("http://*.app.localhost:8080", &resolver);
    refused(get(&client, "http://x.app.localhost:8080/").await, Code::Security, "loopback");
}

#[tokio::test]
async fn a_redirect_to_a_name_with_a_private_address_is_refused() {
    let inside = Server::text("secret").await;
    let target = format!("http://inside.test:{}/", inside.address.port());
    let (location, entry) = (target.clone(), target.clone());
    let server = Server::start(move |_| redirect(302, &location)).await;
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
    let client = FetchClient::new(list(&[&server.url(""), &entry]), FetchLimits::default())
        .with_resolver(Arc::clone(&resolver) as Arc<_>);
    refused(get(&client, server.url("/")).await, Code::Security, "inside.test");
    assert_eq!(resolver.questions(), ["inside.test"]);
    assert!(inside.requests().is_empty());
}

#[tokio::test]
async fn an_address_that_the_list_names_is_reached_without_the_resolver() {
    let server = Server::text("hello").await;
    let port = server.address.port();
    let resolver = ScriptedResolver::new(&[]);
    let client = resolving(&format!("http://127.0.0.1:{port}"), &resolver);
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "127.0.0.1."] {
        let response = get(&client, format!("http://{host}:{port}/")).await.unwrap();
        assert_eq!(response.url, format!("http://127.0.0.1:{port}/"), "{host}");
    }
    assert!(resolver.questions().is_empty());
}

#[tokio::test]
async fn addresses_that_the_list_does_not_name_are_refused() {
    let client = client(&["http://127.0.0.1:1", "https://*.example.com", "http://localhost:1"]);
    for url in [
        "http://127.0.0.2:1/",
        "http://127.0.0.1:2/",
        "http://[::1]:1/",
        "http://[::ffff:7f00:1]:1/",
        "http://[::7f00:1]:1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://0251.0376.0251.0376/",
        "http://[fd00:ec2::254]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://0/",
        "http://10.1/",
    ] {
        refused(get(&client, url).await, Code::Security, "not in `allowedFetchUrls`");
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_a_plain_error() {
    let nothing = ScriptedResolver::new(&[]);
    refused(
        get(&resolving("http://x.test", &nothing), "http://x.test/").await,
        Code::Fetch,
        "could not be resolved",
    );
    let empty = ScriptedResolver::new(&[&[]]);
    refused(get(&resolving("http://x.test", &empty), "http://x.test/").await, Code::Fetch, "no address");
}

#[tokio::test]
async fn the_system_resolver_finds_localhost() {
    let server = Server::text("hello").await;
    let entry = format!("http://localhost:{}", server.address.port());
    assert_eq!(get(&client(&[&entry]), entry.as_str()).await.unwrap().body, b"hello");
}

/// The variables are set for a child, because a test cannot change its own environment safely.
#[tokio::test]
async fn a_proxy_of_the_environment_is_ignored() {
    const CHILD: &str = "TGP_TEST_FETCH_BEHIND_PROXY";
    if std::env::var_os(CHILD).is_some() {
        let server = Server::text("direct").await;
        assert_eq!(get(&client_for(&[&server]), server.url("/")).await.unwrap().body, b"direct");
        return;
    }
    let proxy = Server::text("from the proxy").await;
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "addresses::a_proxy_of_the_environment_is_ignored"]).env(CHILD, "1");
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        child.env(name, proxy.url(""));
    }
    let output = child.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert!(proxy.requests().is_empty());
}
