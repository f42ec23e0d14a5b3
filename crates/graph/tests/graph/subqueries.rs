//! `CALL { ... }`, patterns in EXISTS and COUNT, EXPLAIN, dates.

use serde_json::{Value, json};
use tgp_contract::{Code, GraphQuery, ToolError};
use tgp_graph::TestGraph;

fn graph() -> TestGraph {
    let mut facts = TestGraph::new().unwrap();
    let file = |facts: &mut TestGraph, name: &str| facts.node(&["File"], &json!({ "name": name })).unwrap();
    let (a, b, c) = (file(&mut facts, "a"), file(&mut facts, "b"), file(&mut facts, "c"));
    let symbol = facts.node(&["Symbol"], &json!({ "name": "s", "kind": "function" })).unwrap();
    for (from, kind, to) in [(a, "IMPORTS", b), (a, "IMPORTS", c), (b, "IMPORTS", c), (b, "DEFINES", symbol)]
    {
        facts.relationship(from, kind, to, &json!({})).unwrap();
    }
    for (name, time) in [("old", "2024-02-29T23:30:00Z"), ("new", "2026-11-18T09:30:15Z")] {
        facts.node(&["Commit"], &json!({ "name": name, "time": time })).unwrap();
    }
    facts
}

fn rows(query: &str) -> Value {
    match graph().query(&GraphQuery::new(query)) {
        Ok(answer) => json!(answer.rows),
        Err(error) => panic!("{query}: {error:?}"),
    }
}

fn refused(query: &str) -> ToolError {
    match graph().query(&GraphQuery::new(query)) {
        Ok(answer) => panic!("{query}: {:?}", answer.rows),
        Err(error) => error,
    }
}

#[test]
fn bug_a_pattern_with_a_label_in_exists_and_count_needs_no_match() {
    let table = [
        ("MATCH (f:File) WHERE EXISTS { (f)-[:IMPORTS]->(:File) } RETURN count(f)", json!([[2]])),
        ("MATCH (f:File) WHERE EXISTS { (:File)-[:IMPORTS]->(f) } RETURN count(f)", json!([[2]])),
        ("MATCH (f:File) WHERE NOT EXISTS { (f)-[:IMPORTS]->(g:File) } RETURN f.name", json!([["c"]])),
        (
            "MATCH (f:File) WHERE EXISTS { (f)-[:IMPORTS]->(g:File {name: 'b'}) } RETURN f.name",
            json!([["a"]]),
        ),
        (
            "MATCH (f:File) WHERE EXISTS { (f)-[:IMPORTS]->(g:File) WHERE g.name = 'b' } RETURN f.name",
            json!([["a"]]),
        ),
        (
            "MATCH (f:File) RETURN f.name, COUNT { (f)-[:DEFINES]->(:Symbol) } AS n ORDER BY f.name",
            json!([["a", 0], ["b", 1], ["c", 0]]),
        ),
        (
            "MATCH (f:File) WHERE COUNT { (f)-[:IMPORTS]->(:File) } > 1 AND EXISTS { (f)-->(:File) } RETURN f.name",
            json!([["a"]]),
        ),
        ("RETURN EXISTS { (f:File)-[:IMPORTS]->(:File|Symbol) } AS there", json!([[true]])),
        ("MATCH (f:File) WHERE EXISTS { p = (f)-[:IMPORTS*]->(:File) } RETURN count(f)", json!([[2]])),
        (
            "MATCH (f:File) WHERE EXISTS { (f)-->(g:File) WHERE EXISTS { (g)-->(:Symbol) } } RETURN f.name",
            json!([["a"]]),
        ),
    ];
    for (query, expected) in table {
        assert_eq!(rows(query), expected, "{query}");
    }
    // The column has the words of the query, and an error its place.
    let answer = graph().query(&GraphQuery::new("RETURN EXISTS { (:File)-->(:File) }")).unwrap();
    assert_eq!(answer.columns, ["EXISTS { (:File)-->(:File) }"]);
    let error = refused("MATCH (f:File) WHERE EXISTS { (f)-->(:File) } RETURN fiel");
    let place = error.place_of().unwrap();
    assert_eq!((place.line, place.column), (1, 54), "{error}");
    let error = refused("MATCH (f:File) WHERE EXISTS { (f)-->(:File) } RETRUN f");
    let place = error.place_of().unwrap();
    assert_eq!((place.line, place.column), (1, 47), "{error}");
}

#[test]
fn a_subquery_gives_its_rows_for_each_row() {
    let table = [
        ("CALL { MATCH (f:File) RETURN count(f) AS n } RETURN n", json!([[3]])),
        (
            "MATCH (f:File) CALL { WITH f MATCH (f)-[:IMPORTS]->(g) RETURN count(g) AS n } RETURN f.name, n ORDER BY f.name",
            json!([["a", 2], ["b", 1], ["c", 0]]),
        ),
        (
            "MATCH (f:File) CALL (f) { MATCH (f)-[:IMPORTS]->(g) RETURN g.name AS name ORDER BY name LIMIT 1 } \
             RETURN f.name, name ORDER BY f.name",
            json!([["a", "b"], ["b", "c"]]),
        ),
        (
            "MATCH (f:File) OPTIONAL CALL (f) { MATCH (f)-[:IMPORTS]->(g) RETURN g.name AS name ORDER BY name LIMIT 1 } \
             RETURN f.name, name ORDER BY f.name",
            json!([["a", "b"], ["b", "c"], ["c", null]]),
        ),
        (
            "MATCH (f:File) CALL (*) { WITH 1 AS one MATCH (f)-->(g:File) RETURN g } RETURN f.name, g.name ORDER BY f.name, g.name",
            json!([["a", "b"], ["a", "c"], ["b", "c"]]),
        ),
        // A node that comes back is a node.
        (
            "MATCH (f:File {name: 'a'}) CALL (f) { MATCH (f)-->(g) RETURN g } MATCH (g)-[:DEFINES]->(s) RETURN s.name",
            json!([["s"]]),
        ),
        (
            "MATCH (f:File {name: 'b'}) CALL (f) { MATCH (f)-->(x:File) RETURN x.name AS name \
             UNION MATCH (f)-->(x:Symbol) RETURN x.name AS name } RETURN name ORDER BY name",
            json!([["c"], ["s"]]),
        ),
        (
            "MATCH (f:File {name: 'b'}) CALL { WITH f MATCH (f)-->(x:File) RETURN x.name AS name \
             UNION WITH f MATCH (f)-->(x:Symbol) RETURN x.name AS name } RETURN name ORDER BY name",
            json!([["c"], ["s"]]),
        ),
        // Without an import the name is another one.
        (
            "MATCH (f:File {name: 'a'}) CALL { MATCH (f:Symbol) RETURN f.name AS inner } RETURN f.name, inner",
            json!([["a", "s"]]),
        ),
        ("MATCH (f:File {name: 'a'}) CALL () { MATCH (g:File) RETURN count(g) AS n } RETURN n", json!([[3]])),
        (
            "UNWIND [1, 2] AS x CALL { WITH x RETURN x * 2 AS y, [x] AS z } RETURN x, y, z",
            json!([[1, 2, [1]], [2, 4, [2]]]),
        ),
        (
            "UNWIND [1, 2] AS x CALL (x) { CALL (x) { RETURN x + 1 AS y } RETURN y * 10 AS z } RETURN x, z",
            json!([[1, 20], [2, 30]]),
        ),
        // Rows multiply, and none is none.
        (
            "UNWIND [1, 2] AS x CALL { UNWIND [3, 3] AS y RETURN y } RETURN x, y",
            json!([[1, 3], [1, 3], [2, 3], [2, 3]]),
        ),
        ("UNWIND [1, 2] AS x CALL { MATCH (n:None) RETURN n } RETURN x", json!([])),
    ];
    for (query, expected) in table {
        assert_eq!(rows(query), expected, "{query}");
    }
    let refusals = [
        ("MATCH (f:File) CALL (g) { RETURN 1 AS x } RETURN x", "UndefinedVariable"),
        ("MATCH (f:File) CALL { RETURN f.name AS x } RETURN x", "UndefinedVariable"),
        ("MATCH (f:File) CALL (f) { MATCH (f)-->(g) RETURN g AS f } RETURN f", "VariableAlreadyBound"),
        ("MATCH (f:File) CALL (f) { RETURN f.name } RETURN 1", "NoExpressionAlias"),
        ("MATCH (f:File) CALL (f) { MATCH (f)-->(g) } RETURN 1", "InvalidClauseComposition"),
        ("MATCH (f:File) CALL (f) { CREATE (x) RETURN x } RETURN 1", "InvalidClauseComposition"),
        ("CALL { MATCH (f) RETURN f } IN TRANSACTIONS RETURN f", "Unsupported"),
        ("CALL db.labels() YIELD label RETURN label", "Unsupported"),
    ];
    for (query, kind) in refusals {
        let error = refused(query);
        assert_eq!(
            (error.code, &error.details["kind"]),
            (Code::Validation, &json!(kind)),
            "{query}: {error}"
        );
        assert!(error.place_of().is_some(), "{query}: {error:?}");
    }
    // Places behind a subquery are those of the query.
    let error = refused("CALL { MATCH (f:File) RETURN f } RETURN fiel");
    assert_eq!(error.place_of().unwrap().column, 41, "{error}");
}

#[test]
fn explain_gives_the_steps_and_asks_nothing() {
    let steps = |query: &str| {
        let answer =
            graph().query(&GraphQuery::new(query)).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        assert_eq!(answer.columns, ["step", "level", "operation", "detail"]);
        answer
            .rows
            .iter()
            .map(|row| format!("{} {} {}", row[1], row[2].as_str().unwrap(), row[3].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        steps(
            "EXPLAIN MATCH (f:File {name: $name})-[:IMPORTS]->(g:File) WHERE g.lines > 3 RETURN g.name ORDER BY g.name LIMIT 2"
        ),
        [
            "0 NodeByIndex (f:File) by name",
            "0 Filter name: $name",
            "0 Expand (f:File)-[:IMPORTS]->(g:File)",
            "0 Filter g.lines > 3",
            "0 Return g.name",
            "0 Sort g.name",
            "0 Limit LIMIT 2",
        ]
    );
    assert_eq!(
        steps("explain MATCH (f:File) WHERE (f)-[:IMPORTS*]->(f) RETURN count(f)"),
        [
            "0 NodeByLabel (f:File)",
            "0 Filter (f)-[:IMPORTS*]->(f)",
            "0 Exists ",
            "1 Cycle (f)-[:IMPORTS*]->(f)",
            "0 Aggregate count(f)",
        ]
    );
    assert_eq!(
        steps("EXPLAIN MATCH p = shortestPath((a:File)-[:IMPORTS*]->(b:File)) RETURN p"),
        [
            "0 NodeByLabel (a:File)",
            "0 NodeByLabel (b:File)",
            "0 ShortestPath (a:File)-[:IMPORTS*]->(b:File)",
            "0 Return p",
        ]
    );
    let walked = steps("EXPLAIN MATCH (a:File)-[:IMPORTS*]->(b) RETURN b.name");
    assert!(walked.contains(&"0 Walk (a:File)-[:IMPORTS*]->(b)".to_owned()), "{walked:?}");
    let reached = steps("EXPLAIN MATCH (a:File)-[:IMPORTS*]->(b) RETURN DISTINCT b.name");
    assert!(reached.contains(&"0 Reach (a:File)-[:IMPORTS*]->(b)".to_owned()), "{reached:?}");
    let error = refused("EXPLAIN MATCH (f:File) RETURN fiel");
    assert_eq!(error.place_of().unwrap().column, 31, "{error}");
    assert_eq!(refused("PROFILE MATCH (f) RETURN f").details["kind"], json!("Unsupported"));
}

#[test]
fn dates_are_read_compared_and_taken_apart() {
    let table = [
        (
            "RETURN date('2026-11-18'), datetime('2026-11-18T09:30:15.5+01:00')",
            json!([["2026-11-18", "2026-11-18T09:30:15.5+01:00"]]),
        ),
        (
            "RETURN date('20261118'), date('2026-11'), date('2026'), date('2026-W47-3'), date('2026-322')",
            json!([["2026-11-18", "2026-11-01", "2026-01-01", "2026-11-18", "2026-11-18"]]),
        ),
        (
            "RETURN datetime('2026-11-18'), datetime('2026-11-18T09'), datetime('20261118T0930Z')",
            json!([["2026-11-18T00:00Z", "2026-11-18T09:00Z", "2026-11-18T09:30Z"]]),
        ),
        (
            "WITH date('2024-02-29') AS d RETURN d.year, d.month, d.day, d.quarter, d.week, d.weekDay, d.ordinalDay",
            json!([[2024, 2, 29, 1, 9, 4, 60]]),
        ),
        (
            "WITH datetime('2026-11-18T09:30:15.25-02:00') AS t RETURN t.hour, t.minute, t.second, t.millisecond, t.offset, t.epochSeconds",
            json!([[9, 30, 15, 250, "-02:00", 1_795_001_415]]),
        ),
        ("MATCH (c:Commit) WHERE datetime(c.time) >= datetime('2025-01-01') RETURN c.name", json!([["new"]])),
        (
            "MATCH (c:Commit) WHERE c.time < datetime('2024-03-01T01:00:00+01:00') RETURN c.name",
            json!([["old"]]),
        ),
        ("MATCH (c:Commit) WHERE c.time <= date('2024-02-29') RETURN c.name", json!([["old"]])),
        ("MATCH (c:Commit) WHERE date('2026-11-18') = c.time RETURN c.name", json!([["new"]])),
        (
            "MATCH (c:Commit) RETURN date(c.time).year AS year, count(*) ORDER BY year",
            json!([[2024, 1], [2026, 1]]),
        ),
        ("MATCH (c:Commit) RETURN c.name ORDER BY datetime(c.time) DESC", json!([["new"], ["old"]])),
        (
            "RETURN date('2026-01-02') > date('2026-01-01'), date('2026-01-01') = date('2026-01-01'), date('2026-01-01') < 3",
            json!([[true, true, null]]),
        ),
        ("RETURN datetime('2026-01-01T01:00:00+01:00') = datetime('2026-01-01T00:00:00Z')", json!([[true]])),
        (
            "UNWIND ['2026-02-01', '2026-01-01', '2026-02-01'] AS t RETURN DISTINCT date(t) AS d ORDER BY d",
            json!([["2026-01-01"], ["2026-02-01"]]),
        ),
        (
            "UNWIND ['2026-02-01', '2026-01-01'] AS t RETURN min(date(t)), max(date(t)), collect(date(t).month)",
            json!([["2026-01-01", "2026-02-01", [2, 1]]]),
        ),
        (
            "RETURN toString(date('2026-11-18')) + '!', date(null), date(datetime('2026-11-18T23:59Z'))",
            json!([["2026-11-18!", null, "2026-11-18"]]),
        ),
    ];
    for (query, expected) in table {
        assert_eq!(rows(query), expected, "{query}");
    }
    for text in ["2026-13-01", "2026-02-29", "2026-1-1", "18.11.2026", "", "2026-W54-1", "2025-366", "ä"] {
        let error = refused(&format!("RETURN date('{text}')"));
        assert_eq!(error.details["kind"], json!("InvalidArgumentValue"), "{text}: {error}");
        assert!(error.message.contains("2026-11-18"), "{text}: {error}");
    }
    for text in ["2026-11-18T", "2026-11-18T25:00", "2026-11-18T10:00:00+99:00"] {
        let error = refused(&format!("RETURN datetime('{text}')"));
        assert_eq!(error.details["kind"], json!("InvalidArgumentValue"), "{text}: {error}");
    }
    for text in ["2026-11-18T10:00[Europe/Berlin]", "2026-11-18T10:00:00+01:00[Europe/Berlin]"] {
        let error = refused(&format!("RETURN datetime('{text}')"));
        assert_eq!(error.details["kind"], json!("Unsupported"), "{text}: {error}");
        assert!(error.message.contains("+02:00"), "{text}: {error}");
    }
    for query in [
        "RETURN date()",
        "RETURN date({year: 2026})",
        "RETURN date.truncate('year')",
        "RETURN duration('P1D')",
        "RETURN date(1)",
    ] {
        assert_eq!(refused(query).details["kind"], json!("Unsupported"), "{query}");
    }
}
