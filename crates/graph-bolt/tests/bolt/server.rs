//! The graph on a real server. `TGP_TEST_BOLT_URL` names one with the empty databases that these tests use, each its own;
//! without it they say so in one line and do nothing.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use git2::Oid;
use serde_json::{Value, json};
use tgp_contract::{Code, Graph, GraphQuery, GraphRows, ToolError};
use tgp_graph::GraphStore;
use tgp_graph_bolt::{BoltGraph, BoltOptions};

use crate::support::{Project, export, run};

const VARIABLE: &str = "TGP_TEST_BOLT_URL";

/// The server with one of its databases.
fn server(database: &str) -> Option<BoltOptions> {
    match std::env::var(VARIABLE) {
        Ok(url) => Some(BoltOptions::parse(&format!("{}/{database}", url.trim_end_matches('/'))).unwrap()),
        Err(_) => {
            println!("skipped: {VARIABLE} names no graph server");
            None
        }
    }
}

fn graph(project: &Project, options: BoltOptions) -> BoltGraph {
    run(BoltGraph::open(project.options(), options)).unwrap()
}

fn ask(graph: &BoltGraph, commit: &str, query: &str) -> Result<GraphRows, ToolError> {
    run(graph.query(GraphQuery::new(query).at(commit)))
}

/// Rows as a set of texts, since neither side promises an order.
fn set(rows: Vec<Vec<Value>>) -> BTreeSet<String> {
    let count = rows.len();
    let set: BTreeSet<String> = rows.into_iter().map(|row| Value::from(row).to_string()).collect();
    assert_eq!(set.len(), count, "a row is there twice");
    set
}

/// The same with properties in order, and lists of texts too: the order in which they are collected is not
/// defined.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        Value::Array(mut items) if items.iter().all(Value::is_string) => {
            items.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            Value::Array(items)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// All that the server shows at a commit, and all that the store does.
fn compare(graph: &BoltGraph, store: &GraphStore, commit: &str) {
    let expected = export(store, commit);
    let of_nodes =
        expected.nodes.iter().filter(|node| node.labels != ["File"] || node.properties.contains_key("blob"));
    let nodes = of_nodes.map(|node| {
        let mut object = node.properties.clone();
        object.insert("_id".to_owned(), node.id.into());
        object.insert("_labels".to_owned(), node.labels.clone().into());
        vec![sorted(Value::Object(object))]
    });
    let found = ask(graph, commit, "MATCH (n) RETURN n").unwrap();
    assert!(!found.truncated);
    assert_eq!(
        set(found.rows.into_iter().map(|row| vec![sorted(row[0].clone())]).collect()),
        set(nodes.collect())
    );
    let edges = expected.relationships.iter().map(|edge| {
        let mut object = edge.properties.clone();
        object.insert("_id".to_owned(), edge.id.into());
        object.insert("_type".to_owned(), edge.kind.clone().into());
        object.insert("_from".to_owned(), edge.from.into());
        object.insert("_to".to_owned(), edge.to.into());
        vec![sorted(Value::Object(object))]
    });
    let found = ask(graph, commit, "MATCH ()-[r]->() RETURN r").unwrap();
    assert_eq!(
        set(found.rows.into_iter().map(|row| vec![sorted(row[0].clone())]).collect()),
        set(edges.collect())
    );
}

/// A history with all that can happen to a file, two branches and their merge. Answers its commits, oldest first.
fn history(project: &mut Project) -> Vec<String> {
    let mut commits = Vec::new();
    project.write("src/a.ts", "import { b } from './b';\nexport function a() { return b(); }\n");
    project.write("src/b.ts", "export function b() { return 1; }\n");
    commits.push(project.commit("one"));
    project.write("src/b.ts", "export function b() { return c(); }\nexport function c() { return 2; }\n");
    project.write("src/d.ts", "import { a } from './a';\nexport const d = a();\n");
    commits.push(project.commit("two"));
    let base = Oid::from_str(commits.last().unwrap()).unwrap();
    project.rename("src/b.ts", "src/core/e.ts");
    project.write("src/a.ts", "import { b } from './core/e';\nexport function a() { return b(); }\n");
    commits.push(project.commit("three: b becomes e"));
    let left = Oid::from_str(commits.last().unwrap()).unwrap();
    project.remove("src/d.ts");
    commits.push(project.commit("four: d is gone"));
    let four = Oid::from_str(commits.last().unwrap()).unwrap();
    // The other branch, from the second commit.
    project
        .git()
        .reset(project.git().find_commit(base).unwrap().as_object(), git2::ResetType::Hard, None)
        .unwrap();
    project.write("src/f.py", "def f():\n    return g()\n\ndef g():\n    return 3\n");
    commits.push(project.commit("five: beside them"));
    let right = Oid::from_str(commits.last().unwrap()).unwrap();
    project
        .git()
        .reset(project.git().find_commit(four).unwrap().as_object(), git2::ResetType::Hard, None)
        .unwrap();
    project.write("src/f.py", "def f():\n    return g()\n\ndef g():\n    return 3\n");
    commits.push(project.commit_on("six: both", &[four, right]));
    // The old name comes back, and goes again.
    project.write("src/b.ts", "export function b() { return 4; }\n");
    commits.push(project.commit("seven: b again"));
    project.rename("src/core/e.ts", "src/core/g.ts");
    project.write("src/a.ts", "import { b } from './core/g';\nexport function a() { return b(); }\n");
    commits.push(project.commit("eight: e becomes g"));
    project.remove("src/b.ts");
    commits.push(project.commit("nine: b is gone"));
    // Lines move, and nothing else.
    project.write("src/f.py", "# a line\n\ndef f():\n    return g()\n\ndef g():\n    return 3\n");
    commits.push(project.commit("ten: a line above"));
    assert_ne!(left, right);
    commits
}

#[test]
fn the_server_shows_at_every_commit_what_the_store_shows() {
    let Some(options) = server("whole") else { return };
    let mut project = Project::new();
    let commits = history(&mut project);
    let graph = graph(&project, options);
    run(graph.ingest("HEAD")).unwrap();
    let store = project.open();
    for commit in &commits {
        compare(&graph, &store, commit);
    }
    // Once more changes nothing.
    run(graph.ingest("HEAD")).unwrap();
    for commit in &commits {
        compare(&graph, &store, commit);
    }
    let answer = run(graph.query(GraphQuery::new("MATCH (f:File) RETURN count(f) AS n"))).unwrap();
    assert_eq!((answer.standing.reference.as_str(), answer.standing.behind), ("main", false));
    assert_eq!(&answer.standing.commit, commits.last().unwrap());
    assert_eq!(answer.columns, ["n"]);
}

#[test]
fn commits_that_come_one_by_one_give_the_same_as_all_at_once() {
    let Some(options) = server("steps") else { return };
    let mut project = Project::new();
    let commits = history(&mut project);
    let graph = graph(&project, options);
    let store = project.open();
    // Not in the order of the history, and with a draft in the store that must not be copied.
    for index in [1, 0, 4, 3, 8, 5] {
        for _ in 0..2 {
            run(graph.ingest(&commits[index])).unwrap();
            for known in &commits {
                if run(store.export(Some(known), 1)).is_ok() {
                    compare(&graph, &store, known);
                }
            }
            // A draft on top of the head. The next copy meets it in the store, and leaves it there.
            project.write("src/draft.ts", format!("export const draft{index} = {index};\n"));
            run(store.ingest("WORKTREE")).unwrap();
        }
    }
}

#[test]
fn every_way_to_match_sees_the_moment_and_nothing_else() {
    let Some(options) = server("constructs") else { return };
    let mut project = Project::new();
    let commits = history(&mut project);
    let graph = graph(&project, options);
    run(graph.ingest("HEAD")).unwrap();
    let store = project.open();
    let text = |answer: Result<GraphRows, ToolError>, query: &str| {
        let rows = answer.unwrap_or_else(|error| panic!("{query}: {error}")).rows.into_iter();
        let mut rows: Vec<String> = rows
            .map(|row| Value::from(row.into_iter().map(sorted).collect::<Vec<_>>()).to_string())
            .collect();
        rows.sort();
        rows.join(" ")
    };
    let cases: &[(&str, &[(usize, &str)])] = &[
        (
            "MATCH (f:File) RETURN f.path",
            &[
                (0, r#"["src/a.ts"] ["src/b.ts"]"#),
                (3, r#"["src/a.ts"] ["src/core/e.ts"]"#),
                (4, r#"["src/a.ts"] ["src/b.ts"] ["src/d.ts"] ["src/f.py"]"#),
            ],
        ),
        ("MATCH (f:File {path: 'src/d.ts'}) RETURN f.name", &[(0, ""), (1, r#"["d.ts"]"#), (3, "")]),
        (
            "MATCH (a:File)-[:IMPORTS]->(b:File) RETURN a.path, b.path",
            &[
                (0, r#"["src/a.ts","src/b.ts"]"#),
                (2, r#"["src/a.ts","src/core/e.ts"] ["src/d.ts","src/a.ts"]"#),
                (3, r#"["src/a.ts","src/core/e.ts"]"#),
            ],
        ),
        // Two hops lead over a file that both ends of the path could outlive.
        (
            "MATCH (a:File)-[:IMPORTS*2]->(b:File) RETURN a.path, b.path",
            &[(0, ""), (1, r#"["src/d.ts","src/b.ts"]"#), (2, r#"["src/d.ts","src/core/e.ts"]"#), (3, "")],
        ),
        (
            "MATCH p = (a:File {path: 'src/d.ts'})-[:IMPORTS*..4]->(b) RETURN [n IN nodes(p) | {path: n.path}] AS way",
            &[
                (
                    1,
                    r#"[[{"path":"src/d.ts"},{"path":"src/a.ts"},{"path":"src/b.ts"}]] [[{"path":"src/d.ts"},{"path":"src/a.ts"}]]"#,
                ),
                (3, ""),
            ],
        ),
        (
            "MATCH (f:File) WHERE (f)-[:IMPORTS]->() RETURN f.path",
            &[(0, r#"["src/a.ts"]"#), (1, r#"["src/a.ts"] ["src/d.ts"]"#), (3, r#"["src/a.ts"]"#)],
        ),
        (
            "MATCH (f:File) WHERE NOT (f)<-[:IMPORTS]-(:File) RETURN f.path",
            &[(0, r#"["src/a.ts"]"#), (1, r#"["src/d.ts"]"#), (3, r#"["src/a.ts"]"#)],
        ),
        (
            "MATCH (f:File) WHERE EXISTS { MATCH (f)-[:DEFINES]->(s:Symbol) WHERE s.name = 'c' } RETURN f.path",
            &[(0, ""), (1, r#"["src/b.ts"]"#), (2, r#"["src/core/e.ts"]"#)],
        ),
        (
            "MATCH (f:File) RETURN f.path, [(f)-[:DEFINES]->(s) WHERE s.name <> 'a' | s.name] AS names",
            &[(0, r#"["src/a.ts",[]] ["src/b.ts",["b"]]"#)],
        ),
        (
            "MATCH (f:File) OPTIONAL MATCH (f)<-[:IMPORTS]-(by:File) RETURN f.path, by.path",
            &[
                (0, r#"["src/a.ts",null] ["src/b.ts","src/a.ts"]"#),
                (3, r#"["src/a.ts",null] ["src/core/e.ts","src/a.ts"]"#),
            ],
        ),
        (
            "MATCH (f:File) WITH f ORDER BY f.path LIMIT 1 MATCH (f)-[:DEFINES]->(s) RETURN f.path, s.name",
            &[(0, r#"["src/a.ts","a"]"#)],
        ),
        (
            "MATCH (f:File) RETURN f.path AS x UNION MATCH (s:Symbol) RETURN s.name AS x",
            &[(0, r#"["a"] ["b"] ["src/a.ts"] ["src/b.ts"]"#)],
        ),
        (
            "MATCH (new:File)-[:WAS_RENAMED_FROM]->(old:File) RETURN new.path, old.path",
            &[
                (1, ""),
                (2, r#"["src/core/e.ts","src/b.ts"]"#),
                (6, r#"["src/core/e.ts","src/b.ts"]"#),
                (7, r#"["src/core/e.ts","src/b.ts"] ["src/core/g.ts","src/core/e.ts"]"#),
            ],
        ),
        (
            "MATCH (new:File {path: 'src/core/g.ts'})-[:WAS_RENAMED_FROM*]->(old) RETURN old.path",
            &[(6, ""), (7, r#"["src/b.ts"] ["src/core/e.ts"]"#), (8, r#"["src/b.ts"] ["src/core/e.ts"]"#)],
        ),
        ("MATCH (c:Commit) RETURN count(*) AS n", &[(0, "[1]"), (3, "[4]"), (4, "[3]"), (5, "[6]")]),
        (
            "MATCH (f:File)-[c:CHANGED_IN]->(:Commit {message: 'two'}) RETURN f.path, c.change",
            &[(1, r#"["src/b.ts","modified"] ["src/d.ts","added"]"#)],
        ),
        (
            "MATCH (f:File) WHERE f.path STARTS WITH 'src/core' RETURN keys(f)[0] IS NOT NULL AS ok",
            &[(2, "[true]")],
        ),
        (
            "MATCH (n) WHERE n:File AND n.path IN ['src/a.ts', 'x'] RETURN labels(n) AS l",
            &[(0, r#"[["File"]]"#)],
        ),
        ("MATCH (n) RETURN n", &[]),
        ("MATCH ()-[r]->() RETURN r", &[]),
        ("MATCH (a)-[r]-(b) RETURN id(a), type(r), id(b)", &[]),
        ("MATCH p = (:File {path: 'src/a.ts'})-[*1..2]-() RETURN p", &[]),
        ("MATCH (a)-[:IMPORTS|DEFINES*0..2]->(b) RETURN id(a), id(b), count(*) AS n", &[]),
        ("MATCH (s:Symbol)<-[:CALLS]-(by) RETURN s.name, collect(by.name) AS by", &[]),
        (
            "MATCH (f:File) RETURN f.path, COUNT { MATCH (f)-[:DEFINES]->(s) WHERE s.kind = 'function' } AS n",
            &[],
        ),
        ("MATCH (f:File) WHERE NOT EXISTS { (f)<-[:IMPORTS]-() } RETURN f.path", &[]),
        (
            "MATCH (a:File), (b:File) WHERE a.path < b.path AND (a)-[:IMPORTS*..3]->(b) RETURN a.path, b.path",
            &[],
        ),
        ("MATCH (f:File)-[r:DEFINES]->(s) WITH f, count(r) AS n WHERE n > 1 RETURN f.path, n", &[]),
        ("MATCH (f:File)-[:DEFINES]->(s) RETURN f.path, any(x IN collect(s.name) WHERE x = 'c') AS c", &[]),
        ("MATCH (s:Symbol) RETURN DISTINCT s.kind ORDER BY s.kind DESC", &[]),
        ("MATCH (f:File) RETURN f {.path, size: f.bytes} AS m", &[]),
        (
            "MATCH (a:File) OPTIONAL MATCH p = (a)-[:WAS_RENAMED_FROM*]->(b) RETURN a.path, length(p) AS n",
            &[],
        ),
        ("MATCH (c:Commit)-[:PARENT*]->(d:Commit) RETURN c.message, d.message", &[]),
        (
            "MATCH (f:File)-[r]->(x) WHERE startNode(r) = f AND endNode(r) = x RETURN labels(x) AS l, count(*) AS n",
            &[],
        ),
        (
            "UNWIND ['src/a.ts', 'src/x.ts'] AS p MATCH (f:File) WHERE f.path = p RETURN p",
            &[(0, r#"["src/a.ts"]"#)],
        ),
    ];
    for (query, expected) in cases {
        for (index, commit) in commits.iter().enumerate() {
            let found = text(ask(&graph, commit, query), query);
            // What the embedded store answers is what a server has to answer.
            let question = GraphQuery::new(*query).at(commit);
            assert_eq!(found, text(run(store.query(question)), query), "{query} at commit {index}");
            if let Some((_, rows)) = expected.iter().find(|(known, _)| *known == index) {
                assert_eq!(found, *rows, "{query} at commit {index}");
            }
        }
    }
    let star = run(graph.query(GraphQuery::new("MATCH (f:File {path: 'src/f.py'})-[:DEFINES]->() RETURN *")))
        .unwrap();
    assert_eq!((star.columns.as_slice(), star.rows.len()), (["f".to_owned()].as_slice(), 2));
    let question = GraphQuery::new("MATCH (f:File) WHERE f.path = $path RETURN id(f) = $id AS same, f.path")
        .param("path", "src/a.ts")
        .param("id", json!(1));
    let answer = run(graph.query(question)).unwrap();
    assert_eq!(answer.columns, ["same", "f.path"]);
    assert_eq!(answer.rows, [vec![json!(false), json!("src/a.ts")]]);
}

#[test]
fn a_question_changes_nothing_and_what_could_is_refused_before_it_is_sent() {
    let Some(options) = server("reading") else { return };
    let mut project = Project::new();
    let commits = history(&mut project);
    let graph = graph(&project, options);
    run(graph.ingest("HEAD")).unwrap();
    let store = project.open();
    let hostile = [
        "CREATE (n:File {path: 'x'}) RETURN n",
        "MATCH (n) DETACH DELETE n",
        "MATCH (n) SET n.path = 'x' RETURN n",
        "MATCH (n) REMOVE n.path RETURN n",
        "MERGE (n:File {path: 'x'}) RETURN n",
        "CALL dbms.procedures() YIELD name RETURN name",
        "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
        "MATCH (n) CALL { WITH n DELETE n } RETURN 1",
        "MATCH (n) FOREACH (x IN [1] | SET n.x = x)",
        "MATCH (n) RETURN n; MATCH (m) DETACH DELETE m",
        "MATCH (n) WHERE EXISTS { CREATE (m) } RETURN n",
        "USE system MATCH (n) RETURN n",
        "EXPLAIN MATCH (n) RETURN n",
        "MATCH (tgp_1) RETURN tgp_1",
        "MATCH (n) WHERE n._until > 0 RETURN n",
        "MATCH (n) WHERE n.path = $tgp_moment RETURN n",
        "MATCH (n) RETURN n {.*}",
        "MATCH (n) RETURN properties(n)",
        "MATCH p = shortestPath((a)-[*]-(b)) RETURN p",
    ];
    for query in hostile {
        let error = run(graph.query(GraphQuery::new(query))).unwrap_err();
        assert_eq!(error.code, Code::Validation, "{query}: {error}");
    }
    // Texts that would be more than a text if they were put into the query as they are.
    for text in ["' OR true //", "\\' OR true", "`", "\\", "\u{7}'}) DETACH DELETE n //", "*/", "${x}"] {
        let question = GraphQuery::new("MATCH (f:File) WHERE f.path = $path RETURN f").param("path", text);
        assert_eq!(run(graph.query(question)).unwrap().rows.len(), 0, "{text}");
        let quoted = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\u{7}', "\\u0007");
        let inline = format!("MATCH (f:File) WHERE f.path = '{quoted}' RETURN f");
        assert_eq!(run(graph.query(GraphQuery::new(inline))).unwrap().rows.len(), 0, "{text}");
        let echo = format!("RETURN '{quoted}' AS x");
        assert_eq!(run(graph.query(GraphQuery::new(echo))).unwrap().rows, [[json!(text)]]);
    }
    compare(&graph, &store, commits.last().unwrap());
    for refused in [run(graph.ingest("WORKTREE")).map(|_| ()), run(graph.propose(&[], &[])).map(|_| ())] {
        let error = refused.unwrap_err();
        assert!(
            error.code == Code::Validation && error.help_of().unwrap().contains("embedded store"),
            "{error:?}"
        );
    }
}

#[test]
fn caps_hold_and_a_connection_goes_on_after_them() {
    let Some(mut options) = server("caps") else { return };
    let mut project = Project::new();
    let commits = history(&mut project);
    options.max_rows = 3;
    options.time = Duration::from_secs(60);
    let graph = graph(&project, options.clone());
    let question = GraphQuery::new("MATCH (n) RETURN n");
    let error = run(graph.query(question.clone())).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    run(graph.ingest(&commits[1])).unwrap();
    run(async {
        for _ in 0..3 {
            let answer = graph.query(question.clone()).await.unwrap();
            assert!(answer.truncated && answer.rows.len() == 3);
            assert!(answer.standing.behind, "the head was not ingested");
            let few = graph.query(GraphQuery::new("UNWIND range(1, 3) AS x RETURN x")).await.unwrap();
            assert_eq!((few.rows.len(), few.truncated), (3, false));
        }
    });
    let many = run(graph.query(GraphQuery::new("UNWIND range(1, 5000) AS x RETURN x"))).unwrap();
    assert!(many.truncated && many.rows.len() == 3);
    let error = ask(&graph, &commits[8], "MATCH (n) RETURN n").unwrap_err();
    assert_eq!(error.code, Code::NotFound, "{error}");
    assert!(error.help_of().unwrap().contains("tgp graph ingest --commit"));

    options.max_rows = 100_000;
    let wide = run(BoltGraph::open(project.options(), options.clone())).unwrap();
    let all = run(wide.query(GraphQuery::new("UNWIND range(1, 5000) AS x RETURN x"))).unwrap();
    assert_eq!((all.rows.len(), all.truncated, &all.rows[4999]), (5000, false, &vec![json!(5000)]));
    options.max_bytes = 20_000;
    let heavy = run(BoltGraph::open(project.options(), options.clone())).unwrap();
    let some =
        run(heavy
            .query(GraphQuery::new("UNWIND range(1, 5000) AS x RETURN toString(x) + 'xxxxxxxxxxxxxxxx'")))
        .unwrap();
    assert!(some.truncated && some.rows.len() < 2000, "{}", some.rows.len());

    options.time = Duration::from_millis(1);
    let hasty = run(BoltGraph::open(project.options(), options)).unwrap();
    let error = run(hasty.query(GraphQuery::new("MATCH (n) RETURN n"))).unwrap_err();
    assert_eq!(error.code, Code::Budget, "{error}");
}

/// A way to the server that ends after some bytes.
fn cut_after(bytes: usize) -> String {
    let address = std::env::var(VARIABLE).unwrap();
    let (who, place) = address.split_once('@').unwrap();
    let place = place.trim_end_matches('/').to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = std::net::TcpStream::connect(place).unwrap();
        let (mut up, mut down) =
            (client.try_clone().unwrap().take(bytes as u64), server.try_clone().unwrap());
        let back = std::thread::spawn(move || std::io::copy(&mut down, &mut &client).map(|_| ()));
        let _ = std::io::copy(&mut up, &mut &server);
        let _ = server.shutdown(std::net::Shutdown::Both);
        let _ = up.into_inner().shutdown(std::net::Shutdown::Both);
        let _ = back.join();
    });
    format!("{who}@{here}/cut")
}

#[test]
fn a_copy_that_breaks_off_is_seen_by_nobody_and_goes_on_later() {
    let Some(options) = server("cut") else { return };
    let mut project = Project::new();
    let commits = history(&mut project);
    let whole = graph(&project, options);
    run(whole.ingest(&commits[1])).unwrap();
    let store = project.open();
    let before = export(&store, &commits[1]);
    // Cut at places that lie close at first, where there is more to go wrong, and far apart later.
    let mut broken = 0;
    for step in 0..40 {
        let bytes = 100 + step * step * 60;
        let broke =
            run(graph(&project, BoltOptions::parse(&cut_after(bytes)).unwrap()).ingest("HEAD")).is_err();
        broken += u32::from(broke);
        compare(&whole, &store, &commits[1]);
        assert_eq!(export(&store, &commits[1]).nodes, before.nodes);
        if broke {
            let error = ask(&whole, commits.last().unwrap(), "MATCH (n) RETURN n").unwrap_err();
            assert_eq!(error.code, Code::NotFound, "half a commit is none");
        }
    }
    assert!(broken >= 10, "only {broken} copies broke off");
    run(whole.ingest("HEAD")).unwrap();
    for commit in &commits {
        compare(&whole, &store, commit);
    }
}

#[test]
fn another_store_cannot_write_over_the_graph_of_the_first() {
    let Some(options) = server("foreign") else { return };
    let mut project = Project::new();
    let commits = history(&mut project);
    let first = graph(&project, options.clone());
    run(first.ingest(&commits[1])).unwrap();
    let mut stranger = Project::new();
    stranger.write("src/x.ts", "export const x = 1;\n");
    stranger.commit("elsewhere");
    let error = run(graph(&stranger, options.clone()).ingest("HEAD")).unwrap_err();
    assert_eq!(error.code, Code::Conflict, "{error}");
    // The same commits in another order are another store, too.
    let other = run(BoltGraph::open(project.options_at("other.sqlite", &project.root()), options)).unwrap();
    let error = run(other.ingest(&commits[4])).err();
    assert!(error.is_none_or(|error| error.code == Code::Conflict));
    compare(&first, &project.open(), &commits[1]);
}

#[test]
fn a_wrong_password_and_a_missing_database_are_said() {
    let Some(options) = server("whole") else { return };
    let address = std::env::var(VARIABLE).unwrap();
    let (_, place) = address.split_once('@').unwrap();
    let project = Project::new();
    let question = GraphQuery::new("RETURN 1 AS x");
    let wrong = BoltOptions::parse(&format!("bolt://root:wrong-secret@{place}/whole")).unwrap();
    let error = run(graph(&project, wrong).query(question.clone())).unwrap_err();
    assert_eq!(error.code, Code::Permission, "{error}");
    assert!(!format!("{error:?} {options:?}").contains("secret"), "{error:?}");
    let nowhere = server("there-is-no-such-database").unwrap();
    let error = run(graph(&project, nowhere).query(question)).unwrap_err();
    assert!(!error.help_of().unwrap_or_default().is_empty(), "{error:?}");
}
