//! Names that the code graph does not have are refused, with a place and what may have been meant.

use serde_json::json;
use tgp_contract::{Code, Graph, GraphQuery};
use tgp_graph::{GraphStore, TestGraph};

use crate::page;
use crate::support::{Project, ingest, rows, run};

fn store(project: &mut Project) -> GraphStore {
    project.write("a.ts", "import { b } from './b';\nimport 'left-pad';\ninterface I {}\nclass B {}\nexport class A extends B implements I { m() { b(); } }\n");
    project.write("b.ts", "export function b() {}\n");
    project.write("package.json", "{\"name\": \"own\", \"version\": \"1.0.0\"}\n");
    project.commit("first");
    project.rename("b.ts", "c.ts");
    project.write("a.ts", "import { b } from './c';\nimport 'left-pad';\ninterface I {}\nclass B {}\nexport class A extends B implements I { m() { b(); } }\n");
    project.commit("second");
    let store = project.open();
    ingest(&store, "HEAD");
    store
}

#[test]
fn a_misspelt_name_is_refused_with_its_place() {
    let mut project = Project::new();
    let store = store(&mut project);
    let table = [
        ("MATCH (f:Fil) RETURN f.path", "UnknownLabel", 1, 10, "did you mean `File`?"),
        ("MATCH (f:File)\n-[:IMPORT]->(g) RETURN g", "UnknownRelationshipType", 2, 4, "`IMPORTS`"),
        ("MATCH (f:File) RETURN f.pth", "UnknownProperty", 1, 25, "did you mean `path`?"),
        ("MATCH (f:File {pth: 'a'}) RETURN f", "UnknownProperty", 1, 16, "`path`"),
        ("MATCH ({pth: 'a'}) RETURN 1", "UnknownProperty", 1, 9, "`path`"),
        ("MATCH (f:File) RETURN f.qualifiedName", "UnknownProperty", 1, 25, "there are: blob, broken"),
        ("MATCH (f) RETURN f.lnes", "UnknownProperty", 1, 20, "`lines`"),
        ("MATCH ()-[c:CALLS]->() RETURN c.specifier", "UnknownProperty", 1, 33, "there are: bestEffort"),
        ("MATCH ()-[c:DEFINES {line: 1}]->() RETURN 1", "UnknownProperty", 1, 22, "no properties"),
        ("MATCH ()-[:CALLS* {lin: 1}]->() RETURN 1", "UnknownProperty", 1, 20, "`line`"),
        ("MATCH (f:File|Symbo) RETURN f", "UnknownLabel", 1, 15, "`Symbol`"),
        ("MATCH (f) WHERE f:Fil RETURN f", "UnknownLabel", 1, 19, "`File`"),
        ("MATCH (f) WHERE NOT (f)-[:CALL]->() RETURN f", "UnknownRelationshipType", 1, 27, "`CALLS`"),
        (
            "MATCH (f:File) WHERE EXISTS { MATCH (f)-->(g:Pckage) } RETURN f",
            "UnknownLabel",
            1,
            46,
            "`Package`",
        ),
        ("MATCH (f:File) RETURN [(f)-->(g:Symbol) | g.nme]", "UnknownProperty", 1, 45, "`name`"),
        ("MATCH (f:File) WITH f AS g RETURN g.pth", "UnknownProperty", 1, 37, "`path`"),
        ("MATCH (f:File) MATCH (f)-->(s) RETURN f.sha", "UnknownProperty", 1, 41, "there are"),
        ("MATCH (f:File) RETURN f {.pth}", "UnknownProperty", 1, 27, "`path`"),
        ("MATCH (f:File) RETURN f.path ORDER BY f.lnes", "UnknownProperty", 1, 41, "`lines`"),
        ("MATCH (f:file) RETURN f", "UnknownLabel", 1, 10, "did you mean `File`?"),
    ];
    for (query, kind, line, column, help) in table {
        let error = run(store.query(GraphQuery::new(query))).unwrap_err();
        assert_eq!(
            (error.code, &error.details["kind"]),
            (Code::Validation, &json!(kind)),
            "{query}: {error}"
        );
        let place = error.place_of().unwrap();
        assert_eq!((place.line, place.column), (line, column), "{query}: {error}");
        assert!(error.help_of().unwrap().contains(help), "{query}: {:?}", error.help_of());
    }
    // A graph of facts has any names.
    let facts = TestGraph::new().unwrap();
    for (query, ..) in table {
        facts.query(&GraphQuery::new(query)).unwrap();
    }
}

/// A newcomer asked such questions, and took the empty answer for one.
#[test]
fn bug_a_pattern_that_nothing_fits_was_answered_with_nothing() {
    let mut project = Project::new();
    let store = store(&mut project);
    let table = [
        (
            "MATCH (s:Symbol)-[:IMPORTS]->(f:File) RETURN f",
            17,
            "`IMPORTS` never leads from Symbol to File",
            "`IMPORTS` leads from File to File, Package, Unresolved",
        ),
        (
            "MATCH (c:Commit)-[:CHANGED_IN]->(f:File) RETURN f",
            17,
            "from Commit to File",
            "from File to Commit",
        ),
        ("MATCH (f:File)<-[:DEFINES]-(s:Symbol) RETURN s", 15, "from Symbol to File", "from File to Symbol"),
        ("MATCH (f:File)-[:DEFINES]->(s)-[:IMPORTS]->(g) RETURN g", 31, "from Symbol to anything", "IMPORTS"),
        ("MATCH (f:File)-[:CALLS|EXTENDS*1..]->(g:File) RETURN g", 15, "`CALLS|EXTENDS`", "; `CALLS`"),
        ("MATCH (t:Tool)--(f:File) RETURN t", 15, "a relationship never leads from Tool to File", "graph.md"),
        ("MATCH (f:File) WHERE NOT (f)-[:PARENT]->() RETURN f", 29, "from File to anything", "Commit"),
        ("MATCH (p:Package)-[:CONTAINS]->(s:Symbol) RETURN s", 18, "from Package to Symbol", "CONTAINS"),
        ("MATCH (f:File) MATCH (f)-[:EXTENDS]->(s) RETURN s", 25, "from File to anything", "Symbol"),
    ];
    for (query, column, message, help) in table {
        let error = run(store.query(GraphQuery::new(query))).unwrap_err();
        assert_eq!(
            (error.code, &error.details["kind"]),
            (Code::Validation, &json!("ImpossiblePattern")),
            "{query}: {error}"
        );
        assert_eq!(error.place_of().unwrap().column, column, "{query}: {error}");
        assert!(error.message.contains(message), "{query}: {error}");
        assert!(error.help_of().unwrap().contains(help), "{query}: {:?}", error.help_of());
    }
    for possible in [
        "MATCH (f:File)-[:IMPORTS*0..]->(g) RETURN g",
        "MATCH (f:File)-[:IMPORTS]-(g:File) RETURN g",
        "MATCH (p:Package)-[:CONTAINS]->(f:File)-[:DEFINES]->(s)-[:CALLS]->(t) RETURN t",
        "MATCH (c:Commit)<-[:CHANGED_IN]-(f)-[:DEFINES|IMPORTS]->(x) RETURN x",
        "MATCH (a)-[r]->(b) RETURN r",
    ] {
        run(store.query(GraphQuery::new(possible))).unwrap();
    }
    let facts = TestGraph::new().unwrap();
    facts.query(&GraphQuery::new(table[0].0)).unwrap();
}

/// Everything that ingest writes can be asked for.
#[test]
fn what_is_there_is_known() {
    let mut project = Project::new();
    let store = store(&mut project);
    run(store.set_tools(vec![tgp_graph::ToolFact {
        path: "tools/t".to_owned(),
        name: "t".to_owned(),
        description: "a tool".to_owned(),
    }]))
    .unwrap();
    let export = run(store.export(Some("HEAD"), 10_000)).unwrap();
    let mut asked = 0;
    for node in &export.nodes {
        for (label, property) in
            node.labels.iter().flat_map(|label| node.properties.keys().map(move |key| (label, key)))
        {
            let found =
                rows(&store, "HEAD", &format!("MATCH (n:{label}) WHERE n.{property} IS NOT NULL RETURN 1"));
            assert!(!found.is_empty(), "{label} {property}");
            asked += 1;
        }
    }
    for edge in &export.relationships {
        let label = |id: i64| export.nodes.iter().find(|node| node.id == id).unwrap().labels[0].as_str();
        let (from, to) = (label(edge.from), label(edge.to));
        let query = format!("MATCH (a:{from})-[r:{}]->(b:{to}) RETURN count(r)", edge.kind);
        assert!(rows(&store, "HEAD", &query)[0][0].as_u64() > Some(0), "{query}");
        for property in edge.properties.keys() {
            let query = format!("MATCH ()-[r:{}]->() WHERE r.{property} IS NOT NULL RETURN 1", edge.kind);
            assert!(!rows(&store, "HEAD", &query).is_empty(), "{query}");
            asked += 1;
        }
    }
    assert!(asked > 40, "{asked}");
    let types: std::collections::BTreeSet<&str> =
        export.relationships.iter().map(|edge| edge.kind.as_str()).collect();
    assert_eq!(types.len(), 11, "{types:?}");
    // Maps and what is only known when the query runs are free.
    let free = rows(&store, "HEAD", "WITH {pth: 1} AS m UNWIND [m] AS x RETURN m.pth, x.pth, {a: 2}.a");
    assert_eq!(free, [[json!(1), json!(1), json!(2)]]);
    let free = rows(&store, "HEAD", "MATCH (n) WHERE n:File OR n:Symbol RETURN count(n.qualifiedName) > 0");
    assert_eq!(free, [[json!(true)]]);
}

#[test]
fn every_name_that_the_page_refuses_is_refused() {
    let mut project = Project::new();
    let store = store(&mut project);
    let page = page::page();
    let refusals = page::tables(&page, &["query to a code graph", "code", "kind", "it says"]);
    assert!(refusals.len() > 3, "{}", refusals.len());
    for row in refusals {
        let query = page::code(&row[0]);
        let error = run(store.query(GraphQuery::new(query))).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.details["kind"].as_str()),
            (&*row[1], Some(&*row[2])),
            "{query}"
        );
        let said = format!("{} {}", error.message, error.help_of().unwrap_or_default());
        assert!(said.contains(&row[3]) && error.place_of().is_some(), "{query}: {said}");
    }
}

/// The lists of `docs/graph.md`: owner, property, values.
fn listed_values() -> Vec<(String, String, Vec<String>)> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/graph.md");
    let page = std::fs::read_to_string(file).unwrap();
    let rows = page::tables(&page, &["property", "values"]);
    rows.iter()
        .map(|row| {
            let name = row[0].split('`').nth(1).unwrap();
            let (owner, property) = name.split_once('.').unwrap();
            let values = row[1].split('`').skip(1).step_by(2).map(str::to_owned).collect();
            (owner.to_owned(), property.to_owned(), values)
        })
        .collect()
}

#[test]
fn the_listed_values_are_those_that_queries_may_name() {
    let mut project = Project::new();
    let store = store(&mut project);
    let lists = listed_values();
    assert_eq!(lists.len(), 5, "{lists:?}");
    for (owner, property, values) in lists {
        let pattern = match owner.as_str() {
            "CALLS" | "CHANGED_IN" => format!("()-[x:{owner}]->()"),
            _ => format!("(x:{owner})"),
        };
        let ask = |value: &str| {
            let query = format!("MATCH {pattern} WHERE x.{property} = '{value}' RETURN count(x)");
            run(store.query(GraphQuery::new(query)))
        };
        for value in &values {
            ask(value).unwrap_or_else(|error| panic!("{owner}.{property} {value}: {error}"));
        }
        let error = ask("zzzzzzzzzzzz").unwrap_err();
        assert_eq!(error.details["kind"], json!("UnknownValue"), "{error}");
        assert_eq!(error.help_of().unwrap(), format!("there are: {}", values.join(", ")));
    }
}

/// Everything that ingest writes into a property with a list of values is in the list: every language, and every change.
#[test]
fn what_ingest_writes_is_in_the_lists() {
    let mut project = Project::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graph/fixtures");
    let mut open = vec![folder.clone()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                project.write(path.strip_prefix(&folder).unwrap().to_str().unwrap(), text);
            }
        }
    }
    for name in [
        "a.vue",
        "a.svelte",
        "a.astro",
        "a.json",
        "a.md",
        "a.toml",
        "a.yml",
        "a.html",
        "a.css",
        "a.sh",
        "a.sql",
        "a.c",
        "a.cpp",
        "a.xml",
        "a.unknown",
    ] {
        project.write(name, "x\n");
    }
    project.write("gone.md", "to be deleted\n");
    project.commit("all languages");
    project.rename("a.md", "b.md");
    project.remove("gone.md");
    project.write("a.css", "changed\n");
    project.commit("all changes");
    let store = project.open();
    ingest(&store, "HEAD");
    let mut found = 0;
    for (owner, property, values) in listed_values() {
        let pattern = match owner.as_str() {
            "CALLS" | "CHANGED_IN" => format!("()-[x:{owner}]->()"),
            _ => format!("(x:{owner})"),
        };
        let query = format!("MATCH {pattern} WHERE x.{property} IS NOT NULL RETURN DISTINCT x.{property}");
        for row in rows(&store, "HEAD", &query) {
            let value = row[0].as_str().unwrap();
            assert!(values.iter().any(|known| known == value), "{owner}.{property} is `{value}`");
            found += 1;
        }
    }
    assert!(found > 35, "{found}");
}

#[test]
fn a_value_that_a_property_never_has_is_refused_with_its_place() {
    let mut project = Project::new();
    let store = store(&mut project);
    let table = [
        ("MATCH (s:Symbol {kind: 'Function'}) RETURN s", 24, "did you mean `function`?"),
        ("MATCH (f:File) WHERE f.language = 'TypeScript' RETURN f", 35, "did you mean `typescript`?"),
        ("MATCH (f:File) WHERE 'ts' = f.language RETURN f", 22, "there are: typescript"),
        ("MATCH (f:File) WHERE NOT f.language <> 'Rust' RETURN f", 40, "`rust`"),
        ("MATCH (n) WHERE n.kind IN ['class', 'klass'] RETURN n", 37, "`class`"),
        ("MATCH ()-[c:CHANGED_IN {change: 'changed'}]->() RETURN c", 33, "added"),
        ("MATCH ()-[c:CALLS]->() WHERE (c.how = ('imports')) RETURN c", 40, "`import`"),
        ("MATCH ()-[:CALLS* {how: 'name'}]->() RETURN 1", 25, "method-name"),
    ];
    for (query, column, help) in table {
        let error = run(store.query(GraphQuery::new(query))).unwrap_err();
        assert_eq!(
            (error.code, &error.details["kind"]),
            (Code::Validation, &json!("UnknownValue")),
            "{query}"
        );
        assert_eq!(error.place_of().unwrap().column, column, "{query}: {error}");
        assert!(error.help_of().unwrap().contains(help), "{query}: {:?}", error.help_of());
    }
    let free = [
        "MATCH (s:Symbol) WHERE s.name = $kind RETURN s",
        "MATCH (s:Symbol) WHERE s.kind STARTS WITH 'F' RETURN s",
        "MATCH (s:Symbol) WHERE s.name = 'Function' RETURN s",
        "WITH {kind: 'any'} AS m WHERE m.kind = 'other' RETURN m",
        "MATCH (s:Symbol) WHERE s.kind = 'func' + 'tion' RETURN s",
    ];
    for query in free {
        run(store.query(GraphQuery::new(query).param("kind", "Function")))
            .unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}

/// What is given as a parameter is known only when the query runs, and is refused there.
#[test]
fn a_parameter_that_a_property_never_has_is_refused() {
    let mut project = Project::new();
    let store = store(&mut project);
    let in_list = "MATCH (s:Symbol) WHERE s.kind IN $kinds RETURN s.name";
    let kinds = |value: serde_json::Value| GraphQuery::new(in_list).param("kinds", value);
    let refused = [
        (GraphQuery::new("MATCH (s:Symbol {kind: $kind}) RETURN s").param("kind", json!("Function")), 24),
        (
            GraphQuery::new("MATCH (s:Symbol) WHERE s.kind = $kind RETURN s")
                .param("kind", json!("Function")),
            33,
        ),
        (kinds(json!(["class", "Function"])), 34),
    ];
    for (query, column) in refused {
        let error = run(store.query(query)).unwrap_err();
        assert_eq!(
            (error.code, &error.details["kind"]),
            (Code::Validation, &json!("UnknownValue")),
            "{error}"
        );
        assert_eq!(error.place_of().unwrap().column, column, "{error}");
        assert_eq!(error.help_of(), Some("did you mean `function`?"));
    }
    for (value, rows) in [(json!(["class", "interface"]), 3), (json!([]), 0)] {
        assert_eq!(run(store.query(kinds(value))).unwrap().rows.len(), rows);
    }
    // The same program, compiled once, is asked with either value.
    run(store.query(kinds(json!(["klass"])))).unwrap_err();
    assert_eq!(run(store.query(kinds(json!(["class"])))).unwrap().rows.len(), 2);
}

/// `(File)` is a variable that means every node: who writes it forgot the colon.
#[test]
fn a_variable_that_is_called_as_a_label_is_refused() {
    let mut project = Project::new();
    let store = store(&mut project);
    let table = [
        ("MATCH (File) RETURN count(*)", 8, "write `:File`"),
        ("MATCH (f:File)-[IMPORTS]->(g) RETURN g", 17, "write `:IMPORTS`"),
        ("MATCH (f:File) WHERE EXISTS { (f)-->(Symbol) } RETURN f", 38, "write `:Symbol`"),
    ];
    for (query, column, help) in table {
        let error = run(store.query(GraphQuery::new(query))).unwrap_err();
        assert_eq!(error.details["kind"], json!("MissingColon"), "{query}: {error}");
        assert_eq!((error.place_of().unwrap().column, error.help_of()), (column, Some(help)), "{query}");
    }
    for query in ["MATCH (File:File) RETURN File.path", "MATCH (file)-[imports]->() RETURN file"] {
        run(store.query(GraphQuery::new(query))).unwrap_or_else(|error| panic!("{query}: {error}"));
    }
}
