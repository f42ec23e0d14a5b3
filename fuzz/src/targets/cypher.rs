//! Questions to the graph in Cypher.

use std::time::Duration;

use serde_json::json;
use tgp_contract::{Code, GraphQuery, GraphRows, ToolError};
use tgp_graph::{FactLimits, TestGraph, query_columns};

use super::{ensure, same, text};
use crate::Target;
use crate::mutate::sentence;

pub(super) const TARGET: Target = Target {
    name: "cypher",
    about: "a query never fails in SQL, has the columns that were announced, changes nothing, and a comment does not matter",
    oracle: check,
    dictionary: &[
        "MATCH ",
        "OPTIONAL MATCH ",
        "WHERE ",
        "RETURN ",
        "WITH ",
        "UNWIND ",
        "UNION ",
        "UNION ALL ",
        "ORDER BY ",
        "SKIP 1 ",
        "LIMIT 2 ",
        "DISTINCT ",
        "AS a",
        "(n)",
        "(n:File)",
        "(a)-[r]->(b)",
        "(a)-[:CALLS*1..3]->(b)",
        "(a)<-[:IMPORTS]-(b)",
        "{name: 'a'}",
        "n.name",
        "n.path",
        "$p",
        "count(*)",
        "collect(n)",
        "exists(n.name)",
        "EXISTS { MATCH (n)-->() }",
        "[x IN [1, 2] WHERE x > 1 | x]",
        "reduce(s = 0, x IN [1] | s + x)",
        "CASE WHEN true THEN 1 ELSE 2 END",
        "size([1])",
        "labels(n)",
        "type(r)",
        "nodes(p)",
        "p = ",
        "shortestPath(",
        "toInteger('1')",
        "substring('abc', 1)",
        "split('a,b', ',')",
        "range(1, 5)",
        "null",
        "true",
        "1.5",
        "-1",
        "9223372036854775807",
        "0x1F",
        "'it''s'",
        "\"a\\u0041\"",
        "`n`",
        "AND ",
        "OR ",
        "XOR ",
        "NOT ",
        "IS NULL ",
        "STARTS WITH ",
        "CONTAINS ",
        "=~ ",
        "IN ",
        "<>",
        "%",
        "^",
        "/* c */",
        "// c\n",
        "CREATE (n)",
        "DELETE n",
        "SET n.a = 1",
        ";",
        "}",
        "{",
        "[",
        "]",
        "..",
        "|",
    ],
    generate: Some(|random| sentence(random, GRAMMAR, "query", DEPTH).into_bytes()),
    iterations: 1_500,
};

/// How deep a generated query nests.
const DEPTH: u32 = 7;

/// Queries that mostly have an answer on [`graph`].
const GRAMMAR: &[(&str, &[&str])] = &[
    (
        "query",
        &[
            "MATCH (n) RETURN n.name AS c0",
            "<read> <return>",
            "<read> <with> <return>",
            "<read> <read> <return>",
            "<query> UNION <query>",
        ],
    ),
    (
        "read",
        &[
            "MATCH (n)",
            "MATCH <pattern>",
            "MATCH <pattern> WHERE <condition>",
            "OPTIONAL MATCH <pattern>",
            "UNWIND <list> AS x MATCH (n)",
            "MATCH p = <pattern>",
        ],
    ),
    (
        "pattern",
        &[
            "(n)",
            "(n:File)",
            "(n)-[r]->(m)",
            "(n:Function)-[r:CALLS]->(m)",
            "(n)-[:CALLS*1..3]->(m)",
            "(n)<-[:CONTAINS|IMPORTS]-(m:File)",
            "(n {name: <value>})",
            "(n)--(m)--(o)",
            "(n), (m)",
        ],
    ),
    (
        "with",
        &[
            "WITH n",
            "WITH n, count(*) AS k",
            "WITH DISTINCT n ORDER BY n.name LIMIT 3",
            "WITH n, <value> AS v WHERE <condition>",
            "WITH collect(n) AS ns UNWIND ns AS n",
        ],
    ),
    (
        "return",
        &[
            "RETURN n.name AS c0",
            "RETURN <value> AS c0",
            "RETURN DISTINCT n, <value> AS c1 ORDER BY <value> SKIP 1",
            "RETURN count(*) AS c0, collect(<value>) AS c1",
            "RETURN * LIMIT 2",
            "RETURN <aggregate> AS c0, <value> AS c1",
        ],
    ),
    (
        "condition",
        &[
            "true",
            "n.name = <value>",
            "<value> <compare> <value>",
            "NOT (<condition>)",
            "<condition> AND <condition>",
            "<condition> OR <condition>",
            "<value> IS NULL",
            "<value> IN <list>",
            "EXISTS { MATCH <pattern> }",
            "n:File",
            "(n)-->()",
            "any(y IN <list> WHERE y = <value>)",
        ],
    ),
    ("compare", &["=", "<>", "< ", ">=", "STARTS WITH", "CONTAINS", "=~"]),
    (
        "value",
        &[
            "1",
            "n.name",
            "n.lines",
            "'a'",
            "null",
            "true",
            "1.5",
            "-9223372036854775807",
            "$p",
            "<value> + <value>",
            "<value> / 0",
            "<value> % 3",
            "<list>",
            "{a: <value>}",
            "<function>",
            "CASE WHEN <condition> THEN <value> ELSE <value> END",
            "<list>[<value>]",
            "<list>[0..<value>]",
            "[y IN <list> WHERE <condition> | <value>]",
            "-<value>",
            "2 ^ <value>",
        ],
    ),
    (
        "list",
        &[
            "[1, 2]",
            "[]",
            "[<value>, <value>]",
            "range(0, 3)",
            "keys(n)",
            "labels(n)",
            "n.tags",
            "split('a,b', ',')",
            "<list> + <value>",
        ],
    ),
    (
        "function",
        &[
            "size('a')",
            "coalesce(<value>, <value>)",
            "toString(<value>)",
            "toInteger(<value>)",
            "toFloat(<value>)",
            "head(<list>)",
            "last(<list>)",
            "reverse(<list>)",
            "abs(<value>)",
            "round(<value>)",
            "substring('abc', <value>)",
            "replace('aa', 'a', 'b')",
            "properties(n)",
            "reduce(s = 0, y IN <list> | s + y)",
            "size(<list>)",
            "id(n)",
            "sqrt(<value>)",
            "left('abc', <value>)",
        ],
    ),
    (
        "aggregate",
        &[
            "count(n)",
            "sum(<value>)",
            "min(<value>)",
            "max(<value>)",
            "avg(<value>)",
            "collect(DISTINCT <value>)",
            "count(DISTINCT <value>)",
            "stDev(<value>)",
        ],
    ),
];

thread_local! {
    static GRAPH: Result<TestGraph, ToolError> = graph();
}

/// A few files and functions, with every kind of value as a property.
fn graph() -> Result<TestGraph, ToolError> {
    let mut graph = TestGraph::new()?;
    graph.limit(&FactLimits {
        rows: Some(200),
        time: Some(Duration::from_millis(300)),
        hops: Some(8),
        ..FactLimits::default()
    });
    let one = graph.node(&["File"], &json!({"path": "src/a.ts", "name": "a", "lines": 10}))?;
    let two = graph.node(&["File"], &json!({"path": "src/b.ts", "name": "b", "broken": true}))?;
    let three = graph.node(&["Function", "Symbol"], &json!({"name": "main", "line": 1, "weight": 1.5}))?;
    let four = graph.node(&["Function"], &json!({"name": "ünï", "tags": ["x", "y"]}))?;
    for (from, kind, to) in [
        (one, "CONTAINS", three),
        (two, "CONTAINS", four),
        (three, "CALLS", four),
        (four, "CALLS", three),
        (one, "IMPORTS", two),
    ] {
        graph.relationship(from, kind, to, &json!({"line": 3}))?;
    }
    graph.name("HEAD", 0);
    Ok(graph)
}

fn check(input: &[u8]) -> Result<(), String> {
    let text = text(input);
    GRAPH.with(|graph| match graph {
        Ok(graph) => compare(graph, &text),
        Err(error) => Err(format!("there is no graph: {error}")),
    })
}

fn ask(graph: &TestGraph, text: &str) -> Result<GraphRows, ToolError> {
    graph.query(&GraphQuery::new(text).param("p", json!(["a", 1])))
}

fn compare(graph: &TestGraph, text: &str) -> Result<(), String> {
    let announced = query_columns(text);
    let answer = ask(graph, text);
    if let Err(error) = &announced {
        refused(text, error)?;
    }
    match &answer {
        Err(error) => refused(text, error)?,
        Ok(rows) => {
            ensure!(
                rows.rows.iter().all(|row| row.len() == rows.columns.len()),
                "a row has not the width of the columns"
            );
            if let Ok(columns) = &announced {
                same("other columns than announced", &rows.columns, columns)?;
            }
            let unique: std::collections::BTreeSet<&String> = rows.columns.iter().collect();
            same("two columns have one name", &unique.len(), &rows.columns.len())?;
        }
    }
    // The queries of a random number or of the time are few, and a budget depends on the machine.
    let lower = text.to_lowercase();
    let varies = ["rand", "time", "date"].iter().any(|word| lower.contains(word));
    if let (Ok(rows), false) = (&answer, varies) {
        let commented = format!("/* a */ {text}\n// b");
        match ask(graph, &commented) {
            Ok(again) => same(
                "comments change the answer",
                &(&again.columns.len(), &again.rows),
                &(&rows.columns.len(), &rows.rows),
            )?,
            Err(error) if error.code == Code::Budget => {}
            Err(error) => return Err(format!("with comments it is refused: {error}")),
        }
    }
    let unchanged = ask(graph, "MATCH (n) RETURN count(n) AS nodes, sum(size(keys(n))) AS properties");
    let unchanged = unchanged.map_err(|error| format!("the graph cannot be asked any more: {error}"))?;
    same("the graph has changed", &json!(unchanged.rows), &json!([[4, 11]]))
}

/// A refusal is the caller's fault or a bound, never a statement that SQLite could not run, and its place exists.
fn refused(text: &str, error: &ToolError) -> Result<(), String> {
    let usual = [Code::Validation, Code::Budget, Code::NotFound];
    ensure!(usual.contains(&error.code), "the query fails inside: {error}");
    ensure!(
        !error.message.chars().any(|letter| letter.is_control() && letter != '\n'),
        "a message has a control character: {:?}",
        error.message
    );
    let Some(place) = error.place_of() else { return Ok(()) };
    let line = (place.line as usize).checked_sub(1).and_then(|line| text.split('\n').nth(line));
    let line = line.ok_or_else(|| format!("the line of {place} does not exist: {error}"))?;
    ensure!(
        (1..=line.chars().count() + 1).contains(&(place.column as usize)),
        "the column of {place} does not exist: {error}"
    );
    Ok(())
}
