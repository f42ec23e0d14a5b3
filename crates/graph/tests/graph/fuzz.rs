//! Random queries on random graphs: our answers are those of another engine that passes the TCK.

use marsdb::Database;
use serde_json::{Value, json};
use tgp_contract::GraphQuery;
use tgp_graph::TestGraph;

use crate::oracle;
use crate::queries::{Random, query};

/// Graphs, and queries on each. Deterministic, so a failure names its seed and its query.
const GRAPHS: u64 = 24;
const QUERIES: u64 = 25;

/// What the oracle refuses though it is Cypher, by a part of its message.
const EXCLUDED: &[&str] = &[
    // It takes two variables that are compared for nodes, also when they are numbers.
    "only = and <> are meaningful for comparing two nodes/relationships",
    // It knows EXISTS and patterns as conditions of WHERE, but not inside of other expressions there.
    "no viable alternative",
    "can only be used inside WHERE",
    "mismatched input",
    "extraneous input",
    // It forgets a variable that is null in every row, where groups come after.
    "unbound variable",
];

/// A statement that makes a graph of a few nodes, each with its own number.
fn graph(random: &mut Random) -> String {
    let nodes = 2 + random.below(5);
    let mut parts = Vec::new();
    for at in 0..nodes {
        let labels = random.pick(&["", ":A", ":B", ":A:B"]);
        let mut props = vec![format!("i: {at}")];
        if random.below(4) > 0 {
            props.push(format!("v: {}", random.pick(&["0", "1", "2", "2.5", "-1", "true", "'x'", "[1, 2]"])));
        }
        if random.below(3) > 0 {
            props.push(format!("name: {}", random.pick(&["'a'", "'b'", "'ab'", "''"])));
        }
        parts.push(format!("(n{at}{labels} {{{}}})", props.join(", ")));
    }
    for at in 0..2 + random.below(9) {
        let (from, to) = (random.below(nodes), random.below(nodes));
        let kind = random.pick(&["X", "Y"]);
        parts.push(format!("(n{from})-[:{kind} {{w: {}, e: {at}}}]->(n{to})", random.below(3)));
    }
    format!("CREATE {}", parts.join(", "))
}

/// A value without ids, with numbers and lists as they are, except that lists without an order are sorted.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(plain).collect();
            if !items.iter().any(Value::is_object) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::Object(map) => {
            let mut map: serde_json::Map<String, Value> = map
                .iter()
                .filter(|(key, value)| !matches!(key.as_str(), "_id" | "_from" | "_to") && !value.is_null())
                .map(|(key, value)| (key.clone(), plain(value)))
                .collect();
            map.sort_keys();
            Value::Object(map)
        }
        other => other.clone(),
    }
}

fn lines(rows: impl Iterator<Item = Vec<Value>>) -> Vec<String> {
    rows.map(|row| Value::Array(row.iter().map(plain).collect()).to_string()).collect()
}

fn check(
    seed: u64,
    setup: &str,
    database: &Database,
    facts: &TestGraph,
    text: &str,
    ordered: bool,
) -> Option<usize> {
    let theirs = database.execute(text);
    let ours = facts.query(&GraphQuery::new(text));
    let place = || format!("seed {seed}\n{setup}\n{text}");
    match (theirs, ours) {
        // More rows than our cap; the oracle has none.
        (Ok(_), Ok(ours)) if ours.truncated => None,
        (Ok(theirs), Ok(ours)) => {
            let theirs =
                theirs.rows.iter().map(|row| row.iter().map(|value| oracle::json(value).unwrap()).collect());
            let (mut theirs, mut ours) = (lines(theirs), lines(ours.rows.into_iter()));
            if !ordered {
                theirs.sort();
                ours.sort();
            }
            assert_eq!(ours, theirs, "{}", place());
            Some(ours.len())
        }
        (Err(_), Err(error)) => {
            assert_ne!(error.code, tgp_contract::Code::Sql, "{}: {error}", place());
            None
        }
        (Ok(theirs), Err(error)) => panic!("{}\nours: {error}\ntheirs: {:?}", place(), theirs.rows),
        (Err(error), Ok(_)) if EXCLUDED.iter().any(|part| error.to_string().contains(part)) => None,
        (Err(error), Ok(ours)) => panic!("{}\ntheirs: {error}\nours: {:?}", place(), json!(ours.rows)),
    }
}

#[test]
fn random_queries_are_answered_as_by_the_oracle() {
    let (mut same, mut full, mut refused) = (0, 0, 0);
    let graphs = std::env::var("TGP_FUZZ_GRAPHS").ok().and_then(|count| count.parse().ok()).unwrap_or(GRAPHS);
    let first = std::env::var("TGP_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    for seed in first..first + graphs {
        let mut random = Random::new(seed);
        let setup = graph(&mut random);
        let database = Database::in_memory().unwrap();
        database.execute(&setup).unwrap();
        let mut facts = TestGraph::new().unwrap();
        oracle::copy(&database, &mut facts).unwrap();
        for _ in 0..QUERIES {
            let query = query(&mut random);
            match check(seed, &setup, &database, &facts, &query.text, query.ordered) {
                Some(rows) => {
                    same += 1;
                    full += usize::from(rows > 0);
                }
                None => refused += 1,
            }
        }
    }
    println!(
        "fuzz: {same} answers are the same, {full} of them with rows; {refused} were refused by both or not compared"
    );
    assert!(same > refused * 4 && full * 3 > same, "{same} {full} {refused}");
}

/// Where only the ends of a way are asked for, the compiler asks what can be reached. A name for the relationships makes
/// it walk every trail; both give the same.
#[test]
fn what_is_reached_is_where_a_trail_ends() {
    let forms = [
        "MATCH (a)-[NAME:X*]->(b) RETURN DISTINCT a.i, b.i",
        "MATCH (a)-[NAME*]->(b) RETURN DISTINCT a.i, b.i",
        "MATCH (a)<-[NAME*0..]-(b) RETURN DISTINCT a.i, b.i",
        "MATCH (a)-[NAME*1..2]->(b) RETURN a.i, count(DISTINCT b), max(b.i)",
        "MATCH (a)-[NAME:Y*0..3]->(b)-[:X]->(c) RETURN DISTINCT a.i, c.i",
        "MATCH (a {i: 0})-[NAME*]->(a) RETURN DISTINCT a.i",
        "MATCH (a), (b) WHERE EXISTS { MATCH (a)-[NAME:X*..3]->(b) } RETURN a.i, b.i",
        "MATCH (a) OPTIONAL MATCH (a)-[NAME:X*]->(b {i: 1}) WITH DISTINCT a, b RETURN a.i, b.i",
        "MATCH (a)-[NAME:X|Y* {w: 1}]->(b) WITH DISTINCT a, b WHERE b.i > 0 RETURN a.i, b.i",
    ];
    for seed in 0..20 {
        let database = Database::in_memory().unwrap();
        database.execute(&graph(&mut Random::new(seed))).unwrap();
        let mut facts = TestGraph::new().unwrap();
        oracle::copy(&database, &mut facts).unwrap();
        for form in forms {
            let answer = |text: String| {
                let answer = facts.query(&GraphQuery::new(text.clone()));
                let mut rows =
                    lines(answer.unwrap_or_else(|error| panic!("{text}: {error}")).rows.into_iter());
                rows.sort();
                rows
            };
            assert_eq!(
                answer(form.replace("NAME", "")),
                answer(form.replace("NAME", "r")),
                "seed {seed}: {form}"
            );
        }
    }
    // Every node reaches every other by more ways than can be walked.
    let mut facts = TestGraph::new().unwrap();
    let nodes: Vec<i64> = (0..40).map(|at| facts.node(&[], &json!({"i": at})).unwrap()).collect();
    for from in &nodes {
        for to in &nodes {
            facts.relationship(*from, "X", *to, &json!({})).unwrap();
        }
    }
    let answer = facts.query(&GraphQuery::new("MATCH ({i: 0})-[:X*]->(b) RETURN count(DISTINCT b)")).unwrap();
    assert_eq!(json!(answer.rows), json!([[40]]));
    let exists = "MATCH (a {i: 0}) WHERE (a)-[:X*]->({i: 39}) AND NOT (a)-[:X*]->({i: 40}) RETURN count(a)";
    assert_eq!(json!(facts.query(&GraphQuery::new(exists)).unwrap().rows), json!([[1]]));
}
