//! The wire, against a peer that speaks the bytes of the published protocol.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tgp_contract::{Code, Graph, GraphQuery, GraphRows, ToolError};
use tgp_graph_bolt::{BoltGraph, BoltOptions};

use crate::peer::{Heard, Peer, Say, failure, ignored, packed, record, structure, success};
use crate::support::{Project, run};

const HELLO: u8 = 0x01;
const RESET: u8 = 0x0f;
const RUN: u8 = 0x10;
const BEGIN: u8 = 0x11;
const ROLLBACK: u8 = 0x13;
const PULL: u8 = 0x3f;
const LOGON: u8 = 0x6a;
const V5_4: [u8; 4] = [0, 0, 4, 5];

/// A peer that has one moment, and answers every other statement with what `rows` says.
fn peer(version: [u8; 4], rows: impl Fn() -> Vec<Say> + Send + Sync + 'static) -> Peer {
    let about_moments = Mutex::new(false);
    Peer::start(version.to_vec(), move |heard| match heard.tag {
        RUN => {
            let is_moment = heard.fields[0].as_str().unwrap().contains("TgpMoment");
            *about_moments.lock().unwrap() = is_moment;
            vec![success(&json!({ "fields": if is_moment { vec!["n", "c"] } else { vec!["x"] } }))]
        }
        PULL if *about_moments.lock().unwrap() => {
            vec![record(&[packed(&json!(7)), packed(&json!("abc"))]), success(&json!({}))]
        }
        PULL => rows(),
        _ => vec![success(&json!({}))],
    })
}

fn one_row(value: &Value) -> Vec<Say> {
    vec![record(&[packed(value)]), success(&json!({ "has_more": false }))]
}

fn open(peer: &Peer, time: Duration) -> (Project, BoltGraph) {
    let project = Project::new();
    let mut options = BoltOptions::parse(&peer.address).unwrap();
    options.time = time;
    options.max_rows = 1000;
    options.any_names = true;
    let graph = run(BoltGraph::open(project.options(), options)).unwrap();
    (project, graph)
}

fn ask(peer: &Peer, question: GraphQuery) -> Result<GraphRows, ToolError> {
    let (_project, graph) = open(peer, Duration::from_secs(20));
    run(graph.query(question))
}

/// What a question is sent as.
fn sent(query: &str) -> Result<String, ToolError> {
    let peer = peer(V5_4, || one_row(&json!(1)));
    ask(&peer, GraphQuery::new(query))?;
    let heard = peer.heard();
    let run: Vec<&Heard> = heard.iter().filter(|heard| heard.tag == RUN).collect();
    Ok(run.last().unwrap().fields[0].as_str().unwrap().to_owned())
}

#[test]
fn a_question_is_the_messages_that_each_version_of_the_protocol_wants() {
    for (minor, major) in [(4, 5), (3, 5), (1, 5), (0, 5), (4, 4), (1, 4)] {
        let peer = peer([0, 0, minor, major], || one_row(&json!("yes")));
        let answer =
            ask(&peer, GraphQuery::new("RETURN $a AS x").param("a", json!([1, -17, 1000, 2.5, null])))
                .unwrap();
        assert_eq!((answer.columns, answer.rows), (vec!["x".to_owned()], vec![vec![json!("yes")]]));
        assert_eq!((answer.standing.commit.as_str(), answer.truncated), ("abc", false));

        let heard = peer.heard();
        let who = json!({ "scheme": "basic", "principal": "ada", "credentials": "secret" });
        let hello = heard[0].fields[0].as_object().unwrap();
        assert_eq!(heard[0].tag, HELLO);
        assert!(hello["user_agent"].as_str().unwrap().starts_with("tgp/"));
        assert_eq!(hello.contains_key("bolt_agent"), (major, minor) >= (5, 3));
        let mut rest = &heard[1..];
        if (major, minor) >= (5, 1) {
            assert!(!hello.contains_key("credentials"), "since 5.1 HELLO says nothing of who it is");
            assert_eq!((rest[0].tag, &rest[0].fields), (LOGON, &vec![who]));
            rest = &rest[1..];
        } else {
            assert_eq!(hello["principal"], "ada");
            assert_eq!(hello["credentials"], "secret");
        }
        let tags: Vec<u8> = rest.iter().map(|heard| heard.tag).collect();
        assert_eq!(tags, [BEGIN, RUN, PULL, RUN, PULL, RUN, PULL, ROLLBACK], "{major}.{minor}");
        assert_eq!(rest[0].fields, [json!({ "db": "shop", "mode": "r", "tx_timeout": 20_000 })]);
        assert_eq!(rest[5].fields[0], "RETURN $a AS x");
        assert_eq!(rest[5].fields[1], json!({ "tgp_moment": 7, "a": [1, -17, 1000, 2.5, null] }));
        assert_eq!(rest[5].fields[2], json!({}), "in a transaction a statement has no options of its own");
        assert_eq!(rest[6].fields, [json!({ "n": 500 })]);
    }
}

#[test]
fn values_of_every_kind_come_back() {
    let properties = json!({ "path": "a", "_id": 5, "_key": "5:1", "_since": 1, "_from": 5, "_to": 6 });
    let text = |text: &str| packed(&json!(text));
    let node = structure(b'N', &[vec![9], packed(&json!(["File"])), packed(&properties), text("4:9")]);
    let old_node = structure(b'N', &[vec![9], packed(&json!(["File"])), packed(&properties)]);
    let edge = structure(
        b'R',
        &[vec![1], vec![2], vec![3], text("IMPORTS"), packed(&properties), text("a"), text("b"), text("c")],
    );
    let link = structure(b'r', &[vec![1], text("IMPORTS"), packed(&properties), text("a")]);
    let list = |items: &[Vec<u8>]| {
        [&[0x90 | u8::try_from(items.len()).unwrap()], items.concat().as_slice()].concat()
    };
    // Two nodes and one relationship, walked there and back.
    let path = structure(
        b'P',
        &[
            list(&[node.clone(), old_node.clone()]),
            list(&[link]),
            list(&[vec![1], vec![1], vec![0xff], vec![0]]),
        ],
    );
    let shown_node = json!({ "path": "a", "_id": 5, "_labels": ["File"] });
    let shown_edge = json!({ "path": "a", "_id": 5, "_type": "IMPORTS", "_from": 5, "_to": 6 });
    let walked = json!([shown_node, shown_edge, shown_node, shown_edge, shown_node]);
    let cases: Vec<(Vec<u8>, Value)> = vec![
        (vec![0xc0], Value::Null),
        (vec![0xc3], json!(true)),
        (vec![0x7f], json!(127)),
        (vec![0xf0], json!(-16)),
        (vec![0xc8, 0x80], json!(-128)),
        (vec![0xc9, 0x03, 0xe8], json!(1000)),
        (vec![0xca, 0xff, 0xff, 0x00, 0x00], json!(-65536)),
        (packed(&json!(i64::MIN)), json!(i64::MIN)),
        (packed(&json!(1.5)), json!(1.5)),
        ([&[0xc1], f64::NAN.to_be_bytes().as_slice()].concat(), json!("NaN")),
        ([&[0xc1], f64::NEG_INFINITY.to_be_bytes().as_slice()].concat(), json!("-Infinity")),
        (vec![0x82, b'h', b'i'], json!("hi")),
        (vec![0xd0, 2, 0xc3, 0xa4], json!("ä")),
        ([&[0xd1, 1, 0], [b'x'; 256].as_slice()].concat(), json!("x".repeat(256))),
        (packed(&json!("long")), json!("long")),
        (vec![0x92, 1, 0xc0], json!([1, null])),
        (vec![0xd4, 1, 2], json!([2])),
        (vec![0xd5, 0, 1, 2], json!([2])),
        (vec![0xa1, 0x81, b'k', 0xc2], json!({ "k": false })),
        (vec![0xd8, 1, 0x81, b'k', 0xc2], json!({ "k": false })),
        (packed(&json!({ "a": { "b": [1] } })), json!({ "a": { "b": [1] } })),
        (node, shown_node.clone()),
        (old_node, shown_node),
        (edge, shown_edge),
        (path, walked),
    ];
    for (bytes, expected) in cases {
        let reply = bytes.clone();
        let peer = peer(V5_4, move || vec![record(std::slice::from_ref(&reply)), success(&json!({}))]);
        let answer = ask(&peer, GraphQuery::new("RETURN 1 AS x")).unwrap();
        assert_eq!(answer.rows, [[expected]], "{bytes:02x?}");
    }
}

#[test]
fn long_messages_are_cut_into_chunks_and_small_chunks_are_put_together() {
    // The answer comes byte by byte, with empty chunks before it that only keep the connection alive.
    let peer = peer(V5_4, || {
        let Say::Message(bytes) = record(&[packed(&json!("long ".repeat(100)))]) else { unreachable!() };
        let mut raw = vec![0; 6];
        raw.extend(bytes.iter().flat_map(|byte| [0, 1, *byte]));
        raw.extend([0, 0]);
        vec![Say::Raw(raw), success(&json!({}))]
    });
    let long = "ä".repeat(100_000);
    let answer = ask(&peer, GraphQuery::new("RETURN $long AS x").param("long", long.clone())).unwrap();
    assert_eq!(answer.rows, [[json!("long ".repeat(100))]]);
    let heard = peer.heard();
    let run = heard.iter().rfind(|heard| heard.tag == RUN).unwrap();
    assert_eq!(run.fields[1]["long"], json!(long));
    assert_eq!(run.chunks[..3], [0xffff; 3]);
}

#[test]
fn rows_come_in_pages_and_no_more_of_them_than_are_wanted() {
    let page = || -> Vec<Say> {
        let rows = (0..500).map(|number| record(&[packed(&json!(number))]));
        rows.chain([success(&json!({ "has_more": true }))]).collect()
    };
    let peer = peer(V5_4, page);
    let (_project, graph) = open(&peer, Duration::from_secs(20));
    run(async {
        for _ in 0..2 {
            let answer = graph.query(GraphQuery::new("RETURN 1 AS x")).await.unwrap();
            assert!(answer.truncated && answer.rows.len() == 1000);
        }
    });
    let tags: Vec<u8> = peer.heard().iter().map(|heard| heard.tag).collect();
    let once = [BEGIN, RUN, PULL, RUN, PULL, RUN, PULL, PULL, RESET];
    assert_eq!(tags[2..], [once, once].concat(), "and the connection is used again");
    assert_eq!(*peer.connections.lock().unwrap(), 1);
}

#[test]
fn a_refusal_of_the_server_is_told_with_a_code_of_ours() {
    let cases = [
        ("Neo.ClientError.Security.Unauthorized", Code::Permission),
        ("Neo.ClientError.Statement.SyntaxError", Code::Validation),
        ("Neo.ClientError.Transaction.TransactionTimedOut", Code::Budget),
        ("Neo.ClientError.Database.DatabaseNotFound", Code::Config),
        ("Neo.TransientError.General.DatabaseUnavailable", Code::Fetch),
        ("Memgraph.DatabaseError", Code::Fetch),
    ];
    for (code, expected) in cases {
        // To a statement, to its rows, and to the very first message.
        for stage in [RUN, PULL, HELLO] {
            let peer = Peer::start(V5_4.to_vec(), move |heard| match heard.tag {
                tag if tag == stage => vec![failure(code, "because")],
                PULL if stage == RUN => vec![ignored()],
                LOGON if stage == HELLO => vec![ignored()],
                RUN => vec![success(&json!({ "fields": ["x", "y"] }))],
                _ => vec![success(&json!({}))],
            });
            let error = ask(&peer, GraphQuery::new("RETURN 1 AS x")).unwrap_err();
            assert_eq!(error.code, expected, "{code}: {error}");
            assert!(error.message.contains("because") && error.help_of().is_some(), "{error:?}");
            assert!(!format!("{error:?}").contains("secret"));
        }
    }
}

#[test]
fn a_server_that_lies_or_stalls_is_an_error_and_not_a_crash() {
    let framed = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes, &[0, 0]].concat();
    let nested = [vec![0x91; 5000], vec![0xc0]].concat();
    let endless: Vec<u8> =
        (0..300).flat_map(|_| [&[0xff, 0xff], [0x81; 0xffff].as_slice()].concat()).collect();
    let replies: Vec<(&str, Vec<u8>)> = vec![
        ("a list of four milliards of nothing", framed(&[0xb1, 0x71, 0xd6, 0xff, 0xff, 0xff, 0xff])),
        ("a text that is not there", framed(&[0xb1, 0x71, 0x91, 0xd2, 0x7f, 0xff, 0xff, 0xff])),
        ("a text that is none", framed(&[0xb1, 0x71, 0x91, 0x82, 0xff, 0xfe])),
        ("an unknown marker", framed(&[0xb1, 0x71, 0x91, 0xdf])),
        ("an unknown message", framed(&[0xb1, 0x55, 0xa0])),
        ("no message", framed(&[0x01])),
        ("more than its value", framed(&[0xb1, 0x71, 0x90, 0x01])),
        ("a row that is not a list", framed(&[0xb1, 0x71, 0x01])),
        ("a map with a number for a key", framed(&[0xb1, 0x71, 0x91, 0xa1, 0x01, 0x01])),
        ("values in values in values", framed(&[&[0xb1, 0x71], nested.as_slice()].concat())),
        ("a message without an end", endless),
        ("a strange structure", framed(&[0xb1, 0x71, 0x91, 0xb1, b'X', 0x01])),
        ("bytes", framed(&[0xb1, 0x71, 0x91, 0xcc, 1, 0])),
        ("half a path", framed(&[0xb1, 0x71, 0x91, 0xb1, b'P', 0x90])),
        ("a path that leads nowhere", framed(&[0xb1, 0x71, 0x91, 0xb3, b'P', 0x90, 0x90, 0x90])),
    ];
    for (what, reply) in replies {
        let peer = peer(V5_4, move || vec![Say::Raw(reply.clone()), success(&json!({}))]);
        let error = ask(&peer, GraphQuery::new("RETURN 1 AS x")).unwrap_err();
        assert_eq!(error.code, Code::Fetch, "{what}: {error}");
    }
    for (what, answer) in
        [("a web server", b"HTTP".to_vec()), ("no version", vec![0; 4]), ("one of its own", vec![0, 0, 0, 9])]
    {
        let peer = Peer::start(answer, |_| vec![Say::Close]);
        assert_eq!(ask(&peer, GraphQuery::new("RETURN 1 AS x")).unwrap_err().code, Code::Fetch, "{what}");
    }
    let closing = peer(V5_4, || vec![Say::Close]);
    assert_eq!(ask(&closing, GraphQuery::new("RETURN 1 AS x")).unwrap_err().code, Code::Fetch);
    let silent = peer(V5_4, || vec![Say::Silence]);
    let (_project, graph) = open(&silent, Duration::from_millis(200));
    assert_eq!(run(graph.query(GraphQuery::new("RETURN 1 AS x"))).unwrap_err().code, Code::Budget);
    let nobody = BoltOptions::parse("bolt://127.0.0.1:1/x").unwrap();
    let graph = run(BoltGraph::open(Project::new().options(), nobody)).unwrap();
    assert_eq!(run(graph.query(GraphQuery::new("RETURN 1 AS x"))).unwrap_err().code, Code::Fetch);
}

#[test]
fn a_connection_that_the_server_has_ended_is_replaced() {
    let ending = Peer::start(V5_4.to_vec(), |message| match message.tag {
        RUN => vec![success(&json!({ "fields": ["x", "y"] }))],
        PULL => vec![record(&[packed(&json!(7)), packed(&json!("abc"))]), success(&json!({}))],
        ROLLBACK => vec![success(&json!({})), Say::Close],
        _ => vec![success(&json!({}))],
    });
    let (_project, graph) = open(&ending, Duration::from_secs(20));
    run(async {
        for _ in 0..3 {
            assert_eq!(graph.query(GraphQuery::new("RETURN 1 AS x, 2 AS y")).await.unwrap().rows.len(), 1);
        }
    });
    assert_eq!(*ending.connections.lock().unwrap(), 3);
}

#[test]
fn a_query_is_sent_with_the_moment_in_every_pattern() {
    const N: &str = "_since <= $tgp_moment AND";
    let seen = |alias: &str| format!("{alias}.{N} {alias}._until > $tgp_moment");
    let alone = |alias: &str| format!("{} AND {alias}._ghost = false", seen(alias));
    let cases = [
        ("MATCH (n) RETURN n", format!("MATCH (n) WHERE {} RETURN n", alone("n"))),
        (
            "MATCH (n:File {path: 'a\\'b\\n'}) WHERE n.lines > 3 OR true RETURN n.path AS p ORDER BY p DESC SKIP 1 LIMIT 2",
            format!(
                "MATCH (n:File {{path: 'a\\'b\\n'}}) WHERE (n.lines > 3 OR true) AND {} \
                 RETURN n.path AS p ORDER BY p DESC SKIP 1 LIMIT 2",
                alone("n")
            ),
        ),
        (
            "MATCH (a)-[:CALLS|IMPORTS]->()<-[r]-(b) RETURN a /* all */ // of it",
            format!(
                "MATCH (a)-[tgp_1:CALLS|IMPORTS]->(tgp_2)<-[r]-(b) WHERE {} AND {} AND {} AND {} AND {} RETURN a",
                seen("a"), seen("tgp_1"), seen("tgp_2"), seen("r"), seen("b")
            ),
        ),
        (
            "MATCH p = (a)-[:CALLS*..3]-(b) RETURN p",
            format!(
                "MATCH p = (a)-[tgp_1:CALLS*1..3]-(b) WHERE {} AND all(tgp_2 IN tgp_1 WHERE {}) AND {} RETURN p",
                seen("a"), seen("tgp_2"), seen("b")
            ),
        ),
        (
            "MATCH (a)-[r*0..2]->(b)-->(c) RETURN a",
            format!(
                "MATCH (a)-[r*0..2]->(b)-[tgp_2]->(c) WHERE {} AND all(tgp_1 IN r WHERE {}) AND {} AND {} AND {} AND \
                 (a._ghost = false OR size(r) > 0) RETURN a",
                seen("a"),
                seen("tgp_1"),
                seen("b"),
                seen("tgp_2"),
                seen("c")
            ),
        ),
        (
            "MATCH (a) WHERE NOT (a)-->(:File) RETURN count(*)",
            format!(
                "MATCH (a) WHERE (NOT EXISTS {{ MATCH (a)-[tgp_1]->(tgp_2:File) WHERE {} AND {} AND {} }}) AND {} RETURN count(*)",
                seen("a"), seen("tgp_1"), seen("tgp_2"), alone("a")
            ),
        ),
        (
            "OPTIONAL MATCH (a) RETURN [(a)--(b) WHERE b.x IS NULL | id(b)] AS l, NOT 1 < 2 <= 3 AS c, -2 ^ 2 AS d",
            format!(
                "OPTIONAL MATCH (a) WHERE {} RETURN [(a)-[tgp_1]-(b) WHERE ((b.x IS NULL)) AND {} AND {} AND {} | \
                 (b)._id] AS l, NOT 1 < 2 <= 3 AS c, - 2 ^ 2 AS d",
                alone("a"), seen("a"), seen("tgp_1"), seen("b")
            ),
        ),
        (
            "UNWIND [1, 0x1F] AS x WITH DISTINCT x WHERE x > 1 RETURN CASE x WHEN 1 THEN 'a' ELSE null END AS y UNION ALL RETURN 1 AS y",
            "UNWIND [1, 31] AS x WITH DISTINCT x WHERE x > 1 RETURN CASE x WHEN 1 THEN 'a' ELSE null END AS y \
             UNION ALL RETURN 1 AS y"
                .to_owned(),
        ),
        (
            "MATCH (a:File) WHERE EXISTS { MATCH (a)-[:X]->(b) WHERE b.y = $y } RETURN a.path",
            format!(
                "MATCH (a:File) WHERE (EXISTS {{ MATCH (a)-[tgp_1:X]->(b) WHERE (b.y = $y) AND {} AND {} AND {} }}) AND {} \
                 RETURN a.path",
                seen("a"), seen("tgp_1"), seen("b"), alone("a")
            ),
        ),
        (
            "MATCH (`a b`:`odd``label`) RETURN `a b`.`x-y` AS `if`",
            format!(
                "MATCH (`a b`:`odd``label`) WHERE {} RETURN `a b`.`x-y` AS `if`",
                alone("a b").replace("a b", "`a b`")
            ),
        ),
        (
            "RETURN [x IN range(1, 3) WHERE x % 2 = 1 | x * 2][0..1] AS l, reduce(s = 0, x IN [1] | s + x) AS r, all(x IN [1] WHERE x > 0) AS q",
            "RETURN [x IN range(1, 3) WHERE (x % 2 = 1) | x * 2][0..1] AS l, reduce(s = 0, x IN [1] | s + x) AS r, \
             all(x IN [1] WHERE x > 0) AS q"
                .to_owned(),
        ),
    ];
    for (query, expected) in &cases {
        assert_eq!(&sent(query).unwrap_or_else(|error| panic!("{query}: {error}")), expected, "{query}");
    }
    for query in [
        "RETURN DISTINCT *",
        "MATCH (a)--() RETURN *, 1 AS x",
        "MATCH (a) WITH DISTINCT * RETURN a",
        "MATCH (a)-[*1..99]-(b) RETURN a",
    ] {
        let error = sent(query).unwrap_err();
        assert!(matches!(error.code, Code::Validation | Code::Budget), "{query}: {error}");
    }
}

/// A way to a peer over TLS, with a certificate for `localhost` of an untrusted root. Returns the port.
fn encrypted(peer: &Peer) -> u16 {
    const CERTIFICATE: &[u8] = include_bytes!("../../../fetch/tests/fetch/fixtures/server.pem");
    const KEY: &[u8] = include_bytes!("../../../fetch/tests/fetch/fixtures/server.key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()],
            PrivateKeyDer::from_pem_slice(KEY).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = peer.address.split(['@', '/']).nth(3).unwrap().to_owned();
    std::thread::spawn(move || {
        run(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut plain = tokio::net::TcpStream::connect(&place).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
            }
        });
    });
    port
}

#[test]
fn an_encrypted_connection_is_made_only_with_the_server_that_was_meant() {
    let peer = peer(V5_4, || one_row(&json!("safe")));
    let port = encrypted(&peer);
    let root =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fetch/tests/fetch/fixtures/root.pem");
    let ask = |options: BoltOptions| {
        let project = Project::new();
        let graph = run(BoltGraph::open(project.options(), options)).unwrap();
        run(graph.query(GraphQuery::new("RETURN 1 AS x")))
    };
    let at = |host: &str| BoltOptions::parse(&format!("bolt+s://ada:secret@{host}:{port}/shop")).unwrap();
    for strange in [at("localhost"), at("127.0.0.1").authorities(&root)] {
        let error = ask(strange).unwrap_err();
        assert_eq!(error.code, Code::Fetch, "{error}");
    }
    assert!(peer.heard().is_empty(), "nobody else hears a password");
    assert_eq!(ask(at("localhost").authorities("/no/such/file")).unwrap_err().code, Code::Config);
    assert_eq!(ask(at("localhost").authorities(&root)).unwrap().rows, [[json!("safe")]]);
}

#[test]
fn addresses_are_read_and_a_password_is_neither_shown_nor_sent_in_the_clear() {
    for text in [
        "bolt://localhost",
        "bolt://u:p@127.0.0.1:7688/db",
        "bolt+s://u:p%40%2F@graph.example.com/db",
        "bolt://[::1]:1",
        "bolt://example.com",
    ] {
        let options = BoltOptions::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let shown = format!("{options} {options:?}");
        assert!(!shown.contains("u:p") && !shown.contains('@'), "{shown}");
    }
    let refused = [
        "",
        "localhost",
        "http://localhost",
        "neo4j://localhost",
        "bolt+ssc://localhost",
        "bolt://",
        "bolt://localhost/a/b",
        "bolt://localhost?x=1",
        "bolt://u:hunter2@graph.example.com/db",
        "bolt://u:hunter2@10.0.0.1/db",
        "bolt://%ff:x@localhost",
    ];
    for text in refused {
        let error = BoltOptions::parse(text).unwrap_err();
        assert_eq!(error.code, Code::Config, "{text}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
