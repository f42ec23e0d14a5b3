//! Random queries on random graphs: our answers are those of another engine that passes the TCK.

use marsdb::Database;
use serde_json::{Value, json};
use tgp_contract::GraphQuestion;
use tgp_graph::Facts;

use crate::oracle;
use crate::queries::{Random, query};

/// Graphs, and queries on each. Deterministic, so a failure names its seed and its query.
const GRAPHS: u64 = 60;
const QUERIES: u64 = 40;

/// What the oracle refuses though it is Cypher, by a part of its message.
const EXCLUDED: &[&str] = &[
    // It takes two variables that are compared for nodes, also when they are numbers.
    "only = and <> are meaningful for comparing two nodes/relationships",
];

/// A statement that makes a graph of a few nodes, each with a number of its own.
fn graph(random: &mut Random) -> String {
    let nodes = 2 + random.below(5);
    let mut parts = Vec::new();
    for at in 0..nodes {
        let labels = random.pick(&["", ":A", ":B", ":A:B"]);
        let mut props = vec![format!("i: {at}")];
        if random.below(4) > 0 {
            props.push(format!("v: {}", random.pick(&["0", "1", "2", "1.0", "2.5", "-1", "true", "'x'", "[1, 2]"])));
        }
        if random.below(3) > 0 {
            props.push(format!("name: {}", random.pick(&["'a'", "'b'", "'ab'", "''"])));
        }
        parts.push(format!("(n{at}{labels} {{{}}})", props.join(", ")));
    }
    for at in 0..random.below(9) {
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

fn check(seed: u64, setup: &str, database: &Database, facts: &Facts, text: &str, ordered: bool) -> bool {
    let theirs = database.execute(text);
    let ours = facts.query(&GraphQuestion::new(text));
    let place = || format!("seed {seed}\n{setup}\n{text}");
    match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => {
            let theirs = theirs.rows.iter().map(|row| row.iter().map(|value| oracle::json(value).unwrap()).collect());
            let (mut theirs, mut ours) = (lines(theirs), lines(ours.rows.into_iter()));
            if !ordered {
                theirs.sort();
                ours.sort();
            }
            assert_eq!(ours, theirs, "{}", place());
            true
        }
        (Err(_), Err(error)) => {
            assert_ne!(error.code, tgp_contract::Code::Sql, "{}: {error}", place());
            false
        }
        (Ok(theirs), Err(error)) => panic!("{}\nours: {error}\ntheirs: {:?}", place(), theirs.rows),
        (Err(error), Ok(_)) if EXCLUDED.iter().any(|part| error.to_string().contains(part)) => false,
        (Err(error), Ok(ours)) => panic!("{}\ntheirs: {error}\nours: {:?}", place(), json!(ours.rows)),
    }
}

#[test]
fn random_queries_are_answered_as_by_the_oracle() {
    let (mut same, mut refused) = (0, 0);
    let first = std::env::var("TGP_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    for seed in first..first + GRAPHS {
        let mut random = Random::new(seed);
        let setup = graph(&mut random);
        let database = Database::in_memory().unwrap();
        database.execute(&setup).unwrap();
        let mut facts = Facts::new().unwrap();
        oracle::copy(&database, &mut facts).unwrap();
        for _ in 0..QUERIES {
            let query = query(&mut random);
            if check(seed, &setup, &database, &facts, &query.text, query.ordered) {
                same += 1;
            } else {
                refused += 1;
            }
        }
    }
    println!("fuzz: {same} answers are the same, {refused} queries are refused by both");
    assert!(same > refused * 4, "{same} {refused}");
}
