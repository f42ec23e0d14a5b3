//! Shortest paths and what is reached: they visit each node once, and say the same as walking every path.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use serde_json::{Value, json};
use tgp_contract::{Code, GraphQuery};
use tgp_graph::{FactLimits, TestGraph};

use crate::queries::Random;

/// A graph of nodes `0`, `1`, ... with edges of the type `R`, and some of `S`.
fn graph(nodes: i64, edges: &[(i64, i64)]) -> TestGraph {
    let mut facts = TestGraph::new().unwrap();
    facts.limit(&FactLimits { rows: Some(1_000_000), ..FactLimits::default() });
    let ids: Vec<i64> =
        (0..nodes).map(|at| facts.node(&["N"], &json!({ "name": at.to_string() })).unwrap()).collect();
    for (at, (from, to)) in edges.iter().enumerate() {
        let (from, to) = (ids[usize::try_from(*from).unwrap()], ids[usize::try_from(*to).unwrap()]);
        let kind = if at % 7 == 6 { "S" } else { "R" };
        facts.relationship(from, kind, to, &json!({ "n": at % 3 })).unwrap();
    }
    facts
}

fn rows(facts: &TestGraph, query: &str) -> Vec<Vec<Value>> {
    let answer = facts.query(&GraphQuery::new(query)).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    assert!(!answer.truncated, "{query}");
    let mut rows = answer.rows;
    rows.sort_by_key(|row| json!(row).to_string());
    rows
}

fn same(facts: &TestGraph, quick: &str, plain: &str) {
    assert_eq!(rows(facts, quick), rows(facts, plain), "{quick}\n{plain}");
}

/// Random graphs small enough that every path can be walked.
fn random(seed: u64) -> (i64, Vec<(i64, i64)>) {
    let mut random = Random::new(seed);
    let nodes = 2 + i64::try_from(random.below(6)).unwrap();
    let below = |random: &mut Random| i64::try_from(random.below(usize::try_from(nodes).unwrap())).unwrap();
    let edges = (0..random.below(7)).map(|_| (below(&mut random), below(&mut random))).collect();
    (nodes, edges)
}

#[test]
fn what_is_reached_is_what_walking_finds() {
    for seed in 0..12 {
        let (nodes, edges) = random(seed);
        let facts = graph(nodes, &edges);
        for length in ["*", "*0..", "*1..", "*..2", "*0..3", "*2..", "*1..1"] {
            for (before, after) in [("-", "->"), ("<-", "-"), ("-", "-")] {
                for (types, map) in [(":R", ""), ("", ""), (":R|S", ""), (":R", " {n: 1}")] {
                    let quick = format!("{before}[{types}{length}{map}]{after}");
                    // A name makes every path count.
                    let plain = format!("{before}[r{types}{length}{map}]{after}");
                    same(
                        &facts,
                        &format!("MATCH (a:N){quick}(b:N) RETURN DISTINCT a.name, b.name"),
                        &format!("MATCH (a:N){plain}(b:N) RETURN DISTINCT a.name, b.name"),
                    );
                    same(
                        &facts,
                        &format!("MATCH (a:N){quick}(a) RETURN DISTINCT a.name"),
                        &format!("MATCH (a:N){plain}(a) RETURN DISTINCT a.name"),
                    );
                    same(
                        &facts,
                        &format!("MATCH (a:N), (b:N) WHERE (a){quick}(b) RETURN a.name, b.name"),
                        &format!(
                            "MATCH (a:N), (b:N) WHERE EXISTS {{ MATCH (a){plain}(b) RETURN r }} RETURN a.name, b.name"
                        ),
                    );
                    same(
                        &facts,
                        &format!("MATCH (a:N) WHERE (a){quick}(a) RETURN a.name"),
                        &format!("MATCH (a:N){plain}(a) WITH DISTINCT a RETURN a.name"),
                    );
                }
            }
        }
    }
}

/// The rows of a circle without DISTINCT are those of every path.
#[test]
fn a_circle_has_as_many_rows_as_there_are_paths() {
    for seed in 200..300 {
        let (nodes, edges) = random(seed);
        let facts = graph(nodes, &edges);
        same(
            &facts,
            "MATCH (a:N)-[:R*]->(a) RETURN a.name",
            "MATCH (a:N)-[:R*]->(b:N) WHERE id(a) = id(b) RETURN a.name",
        );
        same(
            &facts,
            "MATCH (a:N)-[r:R*1..4]->(a) RETURN a.name, size(r)",
            "MATCH (a:N)-[r:R*1..4]->(b:N) WHERE id(a) = id(b) RETURN a.name, size(r)",
        );
        same(
            &facts,
            "MATCH p = (a:N)<-[:R*]-(a) RETURN [n IN nodes(p) | n.name]",
            "MATCH p = (a:N)<-[:R*]-(b:N) WHERE id(a) = id(b) RETURN [n IN nodes(p) | n.name]",
        );
    }
}

#[test]
fn shortest_paths_are_the_shortest_of_all() {
    for seed in 400..430 {
        let (nodes, edges) = random(seed);
        let facts = graph(nodes, &edges);
        for (before, after) in [("-", "->"), ("<-", "-"), ("-", "-")] {
            for (types, length) in [(":R", "*"), ("", "*"), (":R", "*..2"), (":R|S", "*0..")] {
                let link = format!("{before}[{types}{length}]{after}");
                // Without arrows there is no shortest way from a node to itself.
                let apart = if before == after { "WHERE id(a) <> id(b) " } else { "" };
                let all = rows(
                    &facts,
                    &format!(
                        "MATCH p = (a:N){link}(b:N) {apart}RETURN a.name, b.name, [n IN nodes(p) | n.name], \
                         [r IN relationships(p) | id(r)]"
                    ),
                );
                let mut best: BTreeMap<String, (usize, BTreeSet<String>)> = BTreeMap::new();
                for row in &all {
                    let length = row[3].as_array().unwrap().len();
                    let entry = best
                        .entry(json!([row[0], row[1]]).to_string())
                        .or_insert((usize::MAX, BTreeSet::new()));
                    if length < entry.0 {
                        *entry = (length, BTreeSet::new());
                    }
                    if length == entry.0 {
                        entry.1.insert(json!(row).to_string());
                    }
                }
                let found = rows(
                    &facts,
                    &format!(
                        "MATCH (a:N), (b:N), p = allShortestPaths((a){link}(b)) {apart}RETURN a.name, b.name, \
                         [n IN nodes(p) | n.name], [r IN relationships(p) | id(r)]"
                    ),
                );
                let expected: BTreeSet<String> =
                    best.values().flat_map(|(_, rows)| rows.iter().cloned()).collect();
                let got: BTreeSet<String> = found.iter().map(|row| json!(row).to_string()).collect();
                assert_eq!(got, expected, "{link} {edges:?}");
                assert_eq!(found.len(), got.len(), "{link}: no path twice");
                let one = rows(
                    &facts,
                    &format!(
                        "MATCH p = shortestPath((a:N){link}(b:N)) {apart}RETURN a.name, b.name, \
                         [n IN nodes(p) | n.name], [r IN relationships(p) | id(r)]"
                    ),
                );
                assert_eq!(one.len(), best.len(), "{link}: one for each pair");
                for row in one {
                    assert!(expected.contains(&json!(row).to_string()), "{link}: {row:?}");
                }
            }
        }
    }
}

#[test]
fn a_shortest_path_has_names_and_follows_a_pattern() {
    let facts = graph(5, &[(0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 0)]);
    let table = [
        ("MATCH p = shortestPath((a {name: '0'})-[*]->(b {name: '4'})) RETURN length(p)", json!([[2]])),
        (
            "MATCH p = shortestPath((a {name: '0'})-[*]->(b {name: '4'})) RETURN [n IN nodes(p) | n.name]",
            json!([[["0", "3", "4"]]]),
        ),
        ("MATCH shortestPath((a {name: '0'})-[r*]->(b {name: '2'})) RETURN size(r)", json!([[2]])),
        // Where is the circle?
        (
            "MATCH p = shortestPath((a {name: '3'})-[*]->(a)) RETURN [n IN nodes(p) | n.name]",
            json!([[["3", "4", "0", "3"]]]),
        ),
        ("MATCH p = shortestPath((a {name: '0'})-[*..1]->(b {name: '4'})) RETURN p", json!([])),
        ("MATCH p = shortestPath((a {name: '0'})-[]->(b {name: '1'})) RETURN length(p)", json!([[1]])),
        ("MATCH p = shortestPath((a {name: '2'})-[*]-(a)) RETURN p", json!([])),
        (
            "MATCH (a {name: '4'}) MATCH p = shortestPath((a)-[*]->(b {name: '2'})) RETURN length(p)",
            json!([[3]]),
        ),
        (
            "MATCH (a {name: '4'}) OPTIONAL MATCH p = shortestPath((a)-[:NONE*]->(b {name: '2'})) RETURN p",
            json!([[null]]),
        ),
        ("MATCH p = shortestPath((a {name: '0'})<-[*]-(b {name: '3'})) RETURN length(p)", json!([[2]])),
        (
            "MATCH p = shortestPath((a {name: '0'})<-[*]-(b {name: '3'})) RETURN [n IN nodes(p) | n.name]",
            json!([[["0", "4", "3"]]]),
        ),
        (
            "MATCH (a:N) WHERE EXISTS { MATCH p = shortestPath((a)-[:R*]->({name: '3'})) RETURN p } RETURN count(a)",
            json!([[5]]),
        ),
        (
            "MATCH p = shortestPath((a {name: '0'})-[*]->(b:N)) WITH p, b WHERE length(p) > 1 RETURN b.name ORDER BY b.name",
            json!([["0"], ["2"], ["4"]]),
        ),
    ];
    for (query, expected) in table {
        let answer =
            facts.query(&GraphQuery::new(query)).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        assert_eq!(json!(answer.rows), expected, "{query}");
    }
    let refused = [
        ("MATCH p = shortestPath((a)-[*2..]->(b)) RETURN p", "from 0 or from 1"),
        (
            "MATCH p = shortestPath((a)-[*]->(b)) WHERE length(p) > 2 RETURN p",
            "a condition on a shortest path",
        ),
        ("MATCH (c) MATCH p = shortestPath((a)-[* {n: c.n}]->(b)) RETURN p", "cannot depend on a row"),
        ("MATCH (a), (b) RETURN shortestPath((a)-[*]->(b))", "is not supported"),
    ];
    for (query, said) in refused {
        let error = facts.query(&GraphQuery::new(query)).unwrap_err();
        assert!(error.message.contains(said), "{query}: {error}");
        assert_eq!(error.code, Code::Validation, "{query}");
    }
}

/// More shortest paths than could be read are refused, and not cut.
#[test]
fn too_many_shortest_paths_are_refused() {
    let edges: Vec<(i64, i64)> = (0..20).flat_map(|at| [(at, at + 1), (at, at + 1)]).collect();
    let facts = graph(21, &edges);
    let query = "MATCH p = allShortestPaths((a {name: '0'})-[*]->(b {name: '20'})) RETURN count(p)";
    let error = facts.query(&GraphQuery::new(query)).unwrap_err();
    assert_eq!(error.code, Code::Budget, "{error}");
}

/// The option before a query makes its time shorter, and never longer.
#[test]
fn a_query_can_ask_for_less_time() {
    let mut facts = graph(2, &[]);
    let slow = "UNWIND range(1, 2000000) AS a UNWIND range(1, 2000000) AS b RETURN count(*)";
    let error = facts.query(&GraphQuery::new(format!("CYPHER timeoutMs=30 {slow}"))).unwrap_err();
    assert_eq!((error.code, &error.details["limitMs"]), (Code::Budget, &json!(30)), "{error}");
    facts.limit(&FactLimits { time: Some(std::time::Duration::from_millis(20)), ..FactLimits::default() });
    let error = facts.query(&GraphQuery::new(format!("CYPHER timeoutMs=60000 {slow}"))).unwrap_err();
    assert_eq!((error.code, &error.details["limitMs"]), (Code::Budget, &json!(20)), "{error}");
    let error = facts.query(&GraphQuery::new("CYPHER runtime=fast RETURN 1")).unwrap_err();
    assert!(error.help_of().unwrap().contains("timeoutMs"), "{error:?}");
    assert_eq!(rows(&facts, "CYPHER timeoutMs=5000 RETURN 1"), [[json!(1)]]);
}

/// Files that import each other at random, in layers, with a circle among the first. `TGP_PATH_FILES=7000` is a graph of
/// the size of Django; the numbers are printed, and nothing depends on them.
#[test]
fn questions_about_ways_on_a_large_graph() {
    let files: i64 =
        std::env::var("TGP_PATH_FILES").ok().and_then(|number| number.parse().ok()).unwrap_or(300);
    let mut random = Random::new(7);
    let mut facts = TestGraph::new().unwrap();
    facts.limit(&FactLimits {
        time: Some(std::time::Duration::from_secs(120)),
        rows: Some(100_000),
        ..FactLimits::default()
    });
    let path = |at: i64| format!("src/f{at}.py");
    let ids: Vec<i64> =
        (0..files).map(|at| facts.node(&["File"], &json!({ "path": path(at) })).unwrap()).collect();
    let id = |at: i64| ids[usize::try_from(at).unwrap()];
    let mut ahead: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for at in 1..files {
        for _ in 0..3 {
            let to = i64::try_from(random.below(usize::try_from(at).unwrap())).unwrap();
            facts.relationship(id(at), "IMPORTS", id(to), &json!({ "line": 1 })).unwrap();
            ahead.entry(at).or_default().push(to);
        }
    }
    for (from, to) in [(0, 1), (1, 2), (2, 0), (5, 9)] {
        facts.relationship(id(from), "IMPORTS", id(to), &json!({ "line": 1 })).unwrap();
        ahead.entry(from).or_default().push(to);
    }
    let distance = |from: i64, to: i64| {
        let mut seen = BTreeMap::from([(from, 0)]);
        let mut next = VecDeque::from([from]);
        while let Some(at) = next.pop_front() {
            for to in ahead.get(&at).into_iter().flatten() {
                if !seen.contains_key(to) {
                    seen.insert(*to, seen[&at] + 1);
                    next.push_back(*to);
                }
            }
        }
        seen.get(&to).copied()
    };
    let ask = |what: &str, query: &str| {
        let begin = Instant::now();
        let answer = facts.query(&GraphQuery::new(query)).unwrap_or_else(|error| panic!("{query}: {error}"));
        println!("{files} files: {what}: {} ms, {} rows", begin.elapsed().as_millis(), answer.rows.len());
        answer.rows
    };
    let last = path(files - 1);
    let circle = ask("files in a circle", "MATCH (f:File)-[:IMPORTS*]->(f) RETURN DISTINCT f.path");
    let condition = ask("the same as a condition", "MATCH (f:File) WHERE (f)-[:IMPORTS*]->(f) RETURN f.path");
    assert_eq!(circle.len(), condition.len());
    assert!(circle.len() >= 3);
    let any = ask("is there a circle", "RETURN EXISTS { (f:File)-[:IMPORTS*]->(f) } AS circle");
    assert_eq!(any, [[json!(true)]]);
    let way = ask(
        "how does A reach B",
        &format!(
            "MATCH p = shortestPath((a:File {{path: '{last}'}})-[:IMPORTS*]->(b:File {{path: 'src/f2.py'}})) RETURN length(p)"
        ),
    );
    assert_eq!(way.first().map(|row| row[0].clone()), distance(files - 1, 2).map(|length| json!(length)));
    ask(
        "all ways of that length",
        &format!(
            "MATCH p = allShortestPaths((a:File {{path: '{last}'}})-[:IMPORTS*]->(b:File {{path: 'src/f2.py'}})) RETURN length(p)"
        ),
    );
    ask(
        "does A reach B",
        &format!(
            "MATCH (a:File {{path: '{last}'}}), (b:File {{path: 'src/f2.py'}}) RETURN EXISTS {{ (a)-[:IMPORTS*]->(b) }} AS way"
        ),
    );
    ask(
        "what one file reaches",
        &format!("MATCH (a:File {{path: '{last}'}})-[:IMPORTS*]->(b:File) RETURN count(DISTINCT b)"),
    );
    ask(
        "the distance of every file from one",
        &format!(
            "MATCH p = shortestPath((a:File {{path: '{last}'}})-[:IMPORTS*]->(b:File)) RETURN b.path, length(p)"
        ),
    );
}
