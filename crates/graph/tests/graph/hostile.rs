//! Queries that mean harm, or only too much: each ends soon, with an error that has a code and says what to do.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tgp_contract::{Code, GraphQuery, ToolError};
use tgp_graph::{FactLimits, TestGraph};

/// Far more than any of these takes, and far less than a hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A graph in which everything is joined with everything.
fn clique(size: i64) -> TestGraph {
    let mut facts = TestGraph::new().unwrap();
    let nodes: Vec<i64> =
        (0..size).map(|at| facts.node(&["N"], &json!({"v": at, "name": "n"})).unwrap()).collect();
    for from in &nodes {
        for to in &nodes {
            facts.relationship(*from, "R", *to, &json!({})).unwrap();
        }
    }
    facts.limit(&FactLimits { time: Some(Duration::from_millis(500)), ..FactLimits::default() });
    facts
}

fn refused(facts: &TestGraph, query: &str) -> ToolError {
    let shown: String = query.chars().take(80).collect();
    let begin = Instant::now();
    let error = match facts.query(&GraphQuery::new(query)) {
        Ok(answer) => panic!("{shown}: {:?}", answer.rows.first()),
        Err(error) => error,
    };
    assert!(begin.elapsed() < PATIENCE, "{shown}: {:?}", begin.elapsed());
    assert!(
        error.help_of().is_some_and(|help| !help.is_empty())
            || error.place_of().is_some()
            || error.code == Code::Validation,
        "{shown}: {error:?}"
    );
    error
}

#[test]
fn text_that_would_exhaust_a_parser_is_refused_before_it() {
    let facts = clique(2);
    let shapes: Vec<(String, Code)> = vec![
        (format!("RETURN {}1{}", "(".repeat(50_000), ")".repeat(50_000)), Code::Budget),
        (format!("RETURN {}1{}", "(".repeat(3_000), ")".repeat(3_000)), Code::Budget),
        ("(".repeat(60_000), Code::Budget),
        ("(".repeat(7_000), Code::Budget),
        (")".repeat(7_000), Code::Budget),
        (format!("RETURN {}1{}", "[".repeat(2_000), "]".repeat(2_000)), Code::Budget),
        (format!("RETURN {}1{}", "{a:".repeat(2_000), "}".repeat(2_000)), Code::Budget),
        (format!("RETURN 1{}", "+1".repeat(30_000)), Code::Budget),
        (format!("RETURN 1{}", "+1".repeat(3_000)), Code::Budget),
        (format!("RETURN {}true", "NOT ".repeat(3_000)), Code::Budget),
        (format!("RETURN {}1", "-".repeat(3_000)), Code::Budget),
        (format!("RETURN {}1", "- ".repeat(3_000)), Code::Budget),
        (format!("WITH {{a: 1}} AS a RETURN a{}", ".a".repeat(3_000)), Code::Budget),
        (format!("WITH [1] AS a RETURN a{}", "[0]".repeat(2_000)), Code::Budget),
        (format!("RETURN {}1{}", "CASE WHEN true THEN ".repeat(1_000), " END".repeat(1_000)), Code::Budget),
        (format!("MATCH (n:{}A) RETURN n", "!".repeat(3_000)), Code::Budget),
        (format!("RETURN {}1", "size(".repeat(1_500)), Code::Budget),
        (format!("MATCH {} RETURN 1", "()-->".repeat(1_000)), Code::Budget),
        (format!("MATCH (){} RETURN 1", "-->()".repeat(40)), Code::Budget),
        (format!("RETURN '{}'", "x".repeat(70_000)), Code::Budget),
        (format!("RETURN [{}1]", "1,".repeat(5_000)), Code::Budget),
        (format!("RETURN {}", "all ".repeat(2_000)), Code::Budget),
        (format!("RETURN {}", "/*".repeat(2_000)), Code::Validation),
        (String::new(), Code::Validation),
        ("\u{0}".to_owned(), Code::Validation),
        ("RETURN 'open".to_owned(), Code::Validation),
        ("RETURN 1; RETURN 2".to_owned(), Code::Validation),
        ("RETURN 1; DROP TABLE node".to_owned(), Code::Validation),
    ];
    for (query, code) in shapes {
        let error = refused(&facts, &query);
        assert_eq!(error.code, code, "{}: {error}", query.chars().take(60).collect::<String>());
    }
}

#[test]
fn what_is_within_the_caps_does_not_break_the_stack() {
    let facts = clique(2);
    // As deep as the caps let it be, on a thread with a small stack.
    let deep = format!("RETURN {}1{} AS x", "(".repeat(230), ")".repeat(230));
    let long = format!("RETURN 1{} AS x", "+1".repeat(230));
    let wide = format!("RETURN size([{}1]) AS x", "1,".repeat(3_000));
    let lists = format!("RETURN {}{} AS x", "[".repeat(60), "]".repeat(60));
    let either = format!("MATCH (n) WHERE n.v = 0{} RETURN count(n) AS x", " OR n.v = 1".repeat(50));
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || {
            for query in [deep, long, wide, lists, either] {
                let answer = facts.query(&GraphQuery::new(query.clone()));
                assert!(answer.is_ok(), "{}: {answer:?}", query.chars().take(60).collect::<String>());
            }
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn work_without_end_is_ended() {
    let facts = clique(9);
    let clauses =
        (0..60).map(|at| format!("WITH a{at} + a{at} AS a{}", at + 1)).collect::<Vec<_>>().join(" ");
    let answer = facts.query(&GraphQuery::new(format!("WITH 1 AS a0 {clauses} RETURN a60")));
    assert_eq!(answer.unwrap().rows, [[json!(1_i64 << 60)]]);

    for query in [
        "MATCH (a)-[*]->(b) RETURN count(*)",
        "MATCH p = (a)-[*]-(b) RETURN collect(p)",
        "MATCH (a), (b), (c), (d), (e), (f), (g), (h), (i) RETURN count(*)",
        "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b RETURN count(*)",
        "RETURN reduce(s = 0, x IN range(1, 1000000) | s + size(range(1, 1000)))",
        "RETURN size(range(1, 100000000000))",
        "RETURN reduce(a = [], x IN range(1, 1000) | [a])",
        "RETURN reduce(l = [1], x IN range(1, 60) | l + l)",
        "RETURN size(reduce(s = 'x', x IN range(1, 60) | s + s))",
        "RETURN size(reduce(s = 'xx', x IN range(1, 60) | replace(s, 'x', s)))",
        "MATCH (a) WHERE EXISTS { MATCH (b)-[*]-(c) WHERE b.v < 0 OR c.v > 1000 } RETURN a",
        "MATCH (n) RETURN [x IN range(1, 1000000) WHERE [y IN range(1, 1000000) WHERE y = x] = [] | x]",
    ] {
        let error = refused(&facts, query);
        assert_eq!(error.code, Code::Budget, "{query}: {error}");
    }
    let error = refused(&facts, "RETURN 'aaaa' =~ '(((a{1000}){1000}){1000})'");
    assert_eq!(error.code, Code::Validation, "{error}");
}

#[test]
fn caps_are_said() {
    let mut facts = clique(3);
    facts.limit(&FactLimits { rows: Some(2), ..FactLimits::default() });
    let answer = facts.query(&GraphQuery::new("MATCH (n) RETURN n.v ORDER BY n.v")).unwrap();
    assert_eq!((json!(answer.rows), answer.truncated), (json!([[0], [1]]), true));
    let answer = facts.query(&GraphQuery::new("MATCH (n) RETURN n.v ORDER BY n.v LIMIT 2")).unwrap();
    assert!(!answer.truncated);

    facts.limit(&FactLimits { bytes: Some(100), ..FactLimits::default() });
    let answer =
        facts.query(&GraphQuery::new("UNWIND range(1, 50) AS x RETURN 'twenty letters long.'")).unwrap();
    assert!(answer.truncated && answer.rows.len() < 10, "{}", answer.rows.len());

    let mut chain = TestGraph::new().unwrap();
    let nodes: Vec<i64> = (0..9).map(|at| chain.node(&[], &json!({"v": at})).unwrap()).collect();
    for pair in nodes.windows(2) {
        chain.relationship(pair[0], "R", pair[1], &json!({})).unwrap();
    }
    let query = GraphQuery::new("MATCH ({v: 0})-[r*]->(b) RETURN max(b.v)");
    assert_eq!(chain.query(&query).unwrap().rows, [[json!(8)]]);
    // A cap that no path reaches does nothing, one that a path would pass is an error.
    chain.limit(&FactLimits { hops: Some(8), ..FactLimits::default() });
    assert_eq!(chain.query(&query).unwrap().rows, [[json!(8)]]);
    chain.limit(&FactLimits { hops: Some(7), ..FactLimits::default() });
    assert_eq!(chain.query(&query).unwrap_err().code, Code::Budget);
    let bounded = GraphQuery::new("MATCH ({v: 0})-[r*..7]->(b) RETURN max(b.v)");
    assert_eq!(chain.query(&bounded).unwrap().rows, [[json!(7)]]);
}

#[test]
fn names_and_values_are_never_sql() {
    let mut facts = TestGraph::new().unwrap();
    let odd = [
        "a'b",
        "a\"b",
        "x'); DROP TABLE node; --",
        "$.path",
        "[0]",
        "?1",
        "%s",
        "a.b",
        "",
        "ä😀",
        "since",
        "row_id",
    ];
    for name in odd {
        let mut props = serde_json::Map::new();
        props.insert(name.to_owned(), json!(name));
        facts.node(&[name], &Value::Object(props)).unwrap();
    }
    for name in odd {
        let quoted = format!("`{}`", name.replace('`', "``"));
        let text = name.replace('\\', "\\\\").replace('\'', "\\'");
        let escaped = if name.is_empty() { "n[$name]".to_owned() } else { format!("n.{quoted}") };
        for query in [
            format!("MATCH (n) WHERE {escaped} = $name RETURN {escaped} AS v, n[$name] AS w"),
            format!(
                "MATCH (n) WHERE n[$name] = '{text}' WITH n AS {} RETURN {}[$name] AS v, $name AS w",
                if name.is_empty() { "m" } else { &quoted },
                if name.is_empty() { "m" } else { &quoted }
            ),
        ] {
            let answer = facts.query(&GraphQuery::new(query.clone()).param("name", name));
            let rows = answer.unwrap_or_else(|error| panic!("{query}: {error}")).rows;
            assert_eq!(json!(rows), json!([[name, name]]), "{query}");
        }
        if !name.is_empty() {
            let labelled =
                facts.query(&GraphQuery::new(format!("MATCH (n:{quoted}) RETURN labels(n)"))).unwrap();
            assert_eq!(json!(labelled.rows), json!([[[name]]]));
            let typed = facts
                .query(&GraphQuery::new(format!("MATCH ()-[r:{quoted} {{{quoted}: '{text}'}}]->() RETURN r")))
                .unwrap();
            assert!(typed.rows.is_empty());
        }
    }
    let missing = facts.query(&GraphQuery::new("RETURN $x")).unwrap_err();
    assert_eq!(
        (missing.code, missing.details["kind"].as_str()),
        (Code::Validation, Some("MissingParameter"))
    );
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    let error = facts.query(&GraphQuery::new("RETURN $x").param("x", deep)).unwrap_err();
    assert_eq!(error.code, Code::Budget);
}

#[test]
fn clauses_that_are_not_on_the_list_are_named() {
    let facts = clique(1);
    let before = facts.query(&GraphQuery::new("MATCH (n) RETURN count(n)")).unwrap().rows;
    for (query, clause) in [
        ("CREATE (n)", "CREATE"),
        ("MATCH (n) SET n.v = 2 RETURN n", "SET"),
        ("MATCH (n) REMOVE n.v RETURN n", "REMOVE"),
        ("MATCH (n) DELETE n", "DELETE"),
        ("MATCH (n) DETACH DELETE n", "DELETE"),
        ("MERGE (n:N) RETURN n", "MERGE"),
        ("FOREACH (x IN [1] | CREATE (n))", "FOREACH"),
        ("LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line", "LOAD CSV"),
        ("CALL db.labels()", "CALL"),
        ("CALL db.labels() YIELD label RETURN label", "CALL"),
        ("CALL { MATCH (n) RETURN n } IN TRANSACTIONS RETURN n", "CALL"),
        ("PROFILE MATCH (n) RETURN n", "PROFILE"),
        ("RETURN date()", "date"),
        ("RETURN datetime().year", "datetime"),
    ] {
        let error = refused(&facts, query);
        assert_eq!(error.code, Code::Validation, "{query}");
        assert_eq!(error.details["kind"], "Unsupported", "{query}: {error}");
        assert!(error.message.contains(clause), "{query}: {error}");
        assert!(error.place_of().is_some(), "{query}");
        assert!(error.help_of().is_some(), "{query}");
    }
    assert_eq!(facts.query(&GraphQuery::new("MATCH (n) RETURN count(n)")).unwrap().rows, before);
}

/// Statements that are large in every way the caps leave open: each is answered or refused, and soon.
#[test]
fn statements_of_every_shape_are_prepared_soon() {
    let facts = clique(2);
    let repeated =
        |count: usize, part: &dyn Fn(usize) -> String| (0..count).map(part).collect::<Vec<_>>().join(" ");
    let shapes = [
        format!("{} RETURN 1", repeated(100, &|at| format!("MATCH (a{at})-->(b{at})"))),
        format!("{} RETURN 1", repeated(40, &|at| format!("OPTIONAL MATCH (a{at})-->(b{at})"))),
        format!("{} RETURN 1", repeated(100, &|at| format!("MATCH (a)--(b{at})"))),
        format!("MATCH (a){} RETURN 1", "--()".repeat(24)),
        format!("MATCH (a){} RETURN 1", "-[*1..2]-()".repeat(24)),
        format!("RETURN 1 AS x{}", " UNION RETURN 1 AS x".repeat(600)),
        format!("RETURN 1 AS x{}", " UNION ALL RETURN 1 AS x".repeat(600)),
        format!(
            "MATCH (a) WHERE {}true{} RETURN 1",
            "EXISTS { MATCH (a)-->(b) WHERE ".repeat(30),
            " }".repeat(30)
        ),
        format!("RETURN {}1{}", "[x IN [1] | ".repeat(60), "]".repeat(60)),
        format!("WITH [1] AS x RETURN {}x{}", "[y IN ".repeat(60), " | y]".repeat(60)),
        format!("{} RETURN x", repeated(300, &|_| "WITH 1 AS x".to_owned())),
        format!("WITH 1 AS x {} RETURN x", repeated(300, &|_| "WITH x + 1 AS x ORDER BY x".to_owned())),
        format!("{} RETURN 1", repeated(300, &|at| format!("UNWIND [1] AS x{at}"))),
        format!("MATCH (a) WITH a{} RETURN 1", repeated(120, &|at| format!(", [(a)-->(b) | b.v] AS x{at}"))),
        format!(
            "MATCH (n) RETURN {}",
            (0..1_000).map(|at| format!("n.v AS c{at}")).collect::<Vec<_>>().join(", ")
        ),
        format!("RETURN {{{}}}", (0..1_500).map(|at| format!("k{at}: {at}")).collect::<Vec<_>>().join(", ")),
        format!(
            "MATCH (n) WHERE {} RETURN n",
            (0..40).map(|at| format!("(n)-[:R*1..2]->({{v: {at}}})")).collect::<Vec<_>>().join(" OR ")
        ),
        format!("RETURN coalesce({}1)", "null, ".repeat(98)),
    ];
    for query in shapes {
        let shown: String = query.chars().take(70).collect();
        let begin = Instant::now();
        let result = facts.query(&GraphQuery::new(query));
        let took = begin.elapsed();
        assert!(took < PATIENCE, "{shown}: {took:?}");
        if let Err(error) = result {
            assert_eq!(error.code, Code::Budget, "{shown}: {error}");
        }
    }
}

/// What is said of a query: `line:column`, message and help.
fn said(facts: &TestGraph, question: &GraphQuery) -> (String, String) {
    let error = match facts.query(question) {
        Ok(answer) => panic!("{}: {:?}", question.query, answer.rows.first()),
        Err(error) => error,
    };
    // A revision that git does not know is the store's to say, and has no name in openCypher.
    let named = error.code == Code::Validation && error.details["kind"].is_string();
    assert!(named || error.code == Code::NotFound, "{}: {error:?}", question.query);
    let place =
        error.place_of().map_or("none".to_owned(), |place| format!("{}:{}", place.line, place.column));
    let said = format!("{} | {}", error.message, error.help_of().unwrap_or_default());
    for internal in ["identifier", "token", "byte", "ALLSHORTESTPATHS", "hex integer", "(?:", "cy_"] {
        assert!(!said.contains(internal), "{}: {said}", question.query);
    }
    assert!(said.len() < 300, "{}: {said}", question.query);
    (place, said)
}

#[test]
fn a_slip_is_shown_at_its_place_with_what_was_meant() {
    let facts = clique(2);
    let table: &[(&str, &str, &[&str])] = &[
        (
            "RETRUN 1",
            "1:1",
            &["`RETRUN`", "did you mean RETURN?", "MATCH, OPTIONAL MATCH, RETURN, UNWIND or WITH"],
        ),
        ("MTCH (f) RETURN f", "1:1", &["did you mean MATCH?"]),
        ("MATCH (f)\nRETRUN f", "2:1", &["did you mean RETURN?", "a relationship such as `-[:TYPE]->`"]),
        ("MATCH (f:N)\n  WERE f.v = 'a' RETURN f", "2:3", &["`WERE`", "did you mean WHERE?"]),
        ("OPTIONAL MACH (f) RETURN f", "1:10", &["expected MATCH", "did you mean MATCH?"]),
        ("MATCH (f) RETURN f ODER BY f", "1:20", &["did you mean ORDER BY?"]),
        ("MATCH (f) RETURN f ORDERBY f", "1:20", &["did you mean ORDER BY?"]),
        ("MATCH (f) RETURN f ORDER f", "1:26", &["`f`", "expected BY"]),
        ("MATCH (f) RETURN f LIMT 3", "1:20", &["did you mean LIMIT?", "an operator"]),
        ("MATCH (f) RETURN coutn(*)", "1:18", &["no function `coutn`", "did you mean `count`?"]),
        ("MATCH (f) RETURN sum(*)", "1:22", &["`sum` does not take `*`", "count(*)"]),
        ("MATCH (f) RETURN sizee(f.name)", "1:18", &["no function `sizee`", "did you mean `size`?"]),
        ("MATCH (f) RETURN toUper(f.name)", "1:18", &["did you mean `toUpper`?"]),
        ("MATCH (f) RETURN qwertz(f.name)", "1:18", &["no function `qwertz`", "docs/cypher.md"]),
        ("MATCH (f) WHERE f.v == \"a\" RETURN f", "1:21", &["`==`", "use `=`"]),
        ("MATCH (f) WHERE f.v = 1 && f.v = 2 RETURN f", "1:25", &["did you mean AND?"]),
        ("MATCH (f) WHERE f.name LIKE 'a%' RETURN f", "1:24", &["`LIKE`", "CONTAINS", "STARTS WITH", "=~"]),
        ("MATCH (f) WHERE f.name STARTSWITH 'a' RETURN f", "1:24", &["did you mean STARTS WITH?"]),
        ("MATCH (f) WHERE f.name STARTS 'a' RETURN f", "1:31", &["`'a'`", "expected WITH"]),
        ("MATCH (f) WHERE f.v IN (1, 2) RETURN f", "1:26", &["square brackets"]),
        ("SELECT * FROM node", "1:1", &["`SELECT`", "MATCH (f:File) RETURN f.path"]),
        ("MATCH (f) RETURN f.v, count(*) GROUP BY f.v", "1:32", &["no GROUP BY"]),
        ("MATCH (f) RETURN f LIMIT 1 ORDER BY f.v", "1:28", &["write ORDER BY before SKIP and LIMIT"]),
        ("MATCH f RETURN f", "1:9", &["MATCH (f)"]),
        ("MATCH (f)->(g) RETURN f", "1:10", &["`->`", "-->"]),
        ("MATCH (f) WHERE RETURN f", "1:17", &["missing before `RETURN`"]),
        ("RETURN 1; RETURN 2", "1:9", &["one query at a time"]),
        ("RETURN 1 # x", "1:10", &["`#`", "//"]),
        ("RETURN \u{2019}a\u{2019}", "1:8", &["around a string"]),
        ("RETURN 'open", "1:8", &["`'open` is not closed", "add '"]),
        ("RETURN\n \"open", "2:2", &["is not closed", "add \""]),
        ("RETURN `open", "1:8", &["not closed", "backtick"]),
        ("RETURN /* x", "1:8", &["comment is not closed", "*/"]),
        ("RETURN 'a\\q'", "1:8", &["escape", "backslash"]),
        ("MATCH (f:N\nRETURN f", "1:7", &["`(` is not closed", "add `)` before `RETURN` at 2:1"]),
        ("RETURN [1, 2", "1:8", &["`[` is not closed", "add `]` at 1:13"]),
        ("RETURN {a: 1", "1:8", &["`{` is not closed", "add `}` at 1:13"]),
        ("RETURN (1]", "1:10", &["`]` does not close `(` of 1:8", "`)`"]),
        ("RETURN 1)", "1:9", &["`)` closes nothing"]),
        ("RETURN 1 +", "1:11", &["ends too early", "expected an expression"]),
        ("RETURN CASE WHEN true THEN 1", "1:29", &["expected ELSE, END or WHEN"]),
        ("MATCH (f) RETURN f.", "1:20", &["expected a name"]),
        // Literals that cannot be right are refused although no row would meet them.
        (
            "MATCH (f:None) WHERE f.name =~ '(' RETURN f",
            "1:32",
            &["`(` is not a regular expression", "unclosed group"],
        ),
        ("MATCH (f) WHERE f.name =~ 'a)(b' RETURN f", "1:27", &["unopened group"]),
        ("MATCH (f) RETURN f LIMIT 'a'", "1:26", &["LIMIT needs an integer, this is a string"]),
        ("RETURN 9223372036854775808", "1:8", &["beyond 64 bits"]),
        // Values that are met only when it runs.
        ("MATCH (f)\nRETURN length(f.name)", "2:8", &["`length` needs a path, this is a string"]),
        ("MATCH (f) RETURN f.v + 9223372036854775807", "1:22", &["beyond 64 bits"]),
        ("UNWIND [9223372036854775807, 1] AS x RETURN sum(x)", "1:45", &["beyond 64 bits"]),
        ("MATCH (f) RETURN 1 / f.v", "1:20", &["divided by zero"]),
        ("MATCH (f) WHERE f.name RETURN f", "1:17", &["a boolean is needed, this is a string"]),
        ("MATCH (f) WHERE 1 IN f.name RETURN f", "1:19", &["IN needs a list"]),
        ("MATCH (f) WITH f.name AS x UNWIND x AS y RETURN y", "1:35", &["a list is needed"]),
        ("MATCH (f) WHERE f.name =~ '(' + '' RETURN f", "1:24", &["unclosed group"]),
        ("MATCH (f) WHERE exists_at(f, \"nope\") RETURN f", "1:30", &["nope"]),
        ("RETURN 1 + $missing", "1:12", &["the query needs the parameter `missing`"]),
        ("MATCH (f) RETURN f.v / f.v, 1 / f.v", "none", &["divided by zero", "1:22, 1:31"]),
    ];
    for (query, place, words) in table {
        let (at, said) = said(&facts, &GraphQuery::new(*query));
        assert_eq!(at, *place, "{query}: {said}");
        for word in *words {
            assert!(said.contains(word), "{query}: {said}");
        }
    }
}

#[test]
fn a_parameter_that_cannot_be_used_is_named() {
    let facts = clique(2);
    let large: Value = serde_json::from_str("99999999999999999999").unwrap();
    let table: Vec<(&str, Value, &str, &str)> = vec![
        (
            "MATCH (f) RETURN f LIMIT $n",
            json!("3"),
            "1:26",
            "LIMIT needs an integer, parameter `n` is a string",
        ),
        ("MATCH (f) RETURN f SKIP $n", json!([1]), "1:25", "SKIP needs an integer, parameter `n` is a list"),
        ("MATCH (f) RETURN f LIMIT $n", json!(-1), "1:26", "not negative, parameter `n` is -1"),
        ("MATCH (f) RETURN f LIMIT $n", json!(1.5), "1:26", "parameter `n` is a float"),
        ("MATCH (f) RETURN f LIMIT $n", large.clone(), "1:26", "`params.n` is beyond 64 bits"),
        ("RETURN\n$n", json!(i64::MAX as u64 + 1), "2:1", "`params.n` is beyond 64 bits"),
        ("RETURN $n", large.clone(), "1:8", "`params.n` is beyond 64 bits"),
        ("RETURN $n", json!({"a": [1, large]}), "1:8", "`params.n.a[1]` is beyond 64 bits"),
        ("MATCH (f) RETURN exists_at(f, $n)", json!(1), "1:31", "parameter `n` is the name of a revision"),
        ("MATCH (f) RETURN exists_at(f, $n)", json!("nope"), "1:31", "nope"),
        ("MATCH (f) WHERE f.name =~ $n RETURN f", json!("("), "1:24", "`(` is not a regular expression"),
    ];
    for (query, value, place, words) in table {
        let (at, said) = said(&facts, &GraphQuery::new(query).param("n", value));
        assert_eq!(at, place, "{query}: {said}");
        assert!(said.contains(words), "{query}: {said}");
    }
    for value in [json!(i64::MAX), json!(i64::MIN), json!(1.5), json!(9.0e18)] {
        let answer = facts.query(&GraphQuery::new("RETURN $n").param("n", value.clone())).unwrap();
        assert_eq!(answer.rows, [[value]]);
    }
}
