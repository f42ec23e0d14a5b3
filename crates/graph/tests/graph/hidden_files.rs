//! Callers who may not see every file: what belongs to a hidden one is left out before anything is matched.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp_contract::{Change, FileFilter, Graph, GraphQuery, GraphRows, RelativePath, Visibility};
use tgp_graph::{GraphStore, TestGraph};

use crate::support::{Project, ingest, run};

/// Everything but what begins so.
fn without(prefixes: &'static [&'static str]) -> Visibility {
    let filter: FileFilter =
        Arc::new(move |_, path, _| !prefixes.iter().any(|prefix| path.as_str().starts_with(prefix)));
    Visibility::new(None, Some(filter))
}

fn ask(store: &GraphStore, query: &str, commit: Option<&str>, visible: &Visibility) -> GraphRows {
    let mut question = GraphQuery::new(query).seen_by(visible);
    question.commit = commit.map(str::to_owned);
    run(store.query(question)).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// The values of the first column.
fn column(answer: &GraphRows) -> Vec<Value> {
    answer.rows.iter().map(|row| row[0].clone()).collect()
}

/// Questions that would notice a hidden file by any way that a query has.
const QUERIES: &[&str] = &[
    "MATCH (f:File) RETURN f.path ORDER BY f.path",
    "MATCH (f:File) RETURN count(*) AS n, sum(f.lines) AS lines, max(f.bytes) AS most",
    "MATCH (n) RETURN labels(n)[0] AS l, count(*) AS n ORDER BY l",
    "MATCH ()-[r]->() RETURN type(r) AS t, count(*) AS n ORDER BY t",
    "MATCH (s:Symbol) RETURN s.name ORDER BY s.name",
    "MATCH (p:Package) RETURN p.name ORDER BY p.name",
    "MATCH (a)-[:CALLS]->(b) RETURN a.name, b.name ORDER BY a.name, b.name",
    "MATCH (a:File)-[:IMPORTS*1..3]->(b:File) RETURN DISTINCT a.path, b.path ORDER BY a.path, b.path",
    "MATCH p = (a:File)-[*1..2]-(b:File) RETURN count(p) AS n",
    "MATCH (f:File) WHERE NOT EXISTS { MATCH (f)<-[:IMPORTS]-() } RETURN f.path ORDER BY f.path",
    "MATCH (f:File) WITH f ORDER BY f.bytes DESC LIMIT 2 RETURN f.path",
    "MATCH (f:File) WHERE exists_at(f, 'HEAD') RETURN count(*) AS n",
    "MATCH (f:File)-[r:CHANGED_IN]->(c) RETURN f.path, c.message ORDER BY f.path, c.message",
];

fn lay_public(project: &Project) {
    project.write(
        "src/app.ts",
        "import { help } from './help';\nimport 'left-pad';\nexport const app = help();\n",
    );
    project.write("src/help.ts", "export const help = () => 1;\n");
    project.write("package.json", "{\"name\": \"shop\"}\n");
}

/// A graph with hidden files answers as a graph that never had them.
#[test]
fn an_answer_is_the_same_as_if_hidden_files_had_never_been_there() {
    let mut with = Project::new();
    let mut never = Project::new();
    for (project, has_secret) in [(&mut with, true), (&mut never, false)] {
        lay_public(project);
        project.commit("first");
        if has_secret {
            project.write(
                "secret/key.ts",
                "import { help } from '../src/help';\nimport { app } from '../src/app';\nimport 'hush-pad';\nexport const key = () => help() + app;\n",
            );
            project.write("secret/package.json", "{\"name\": \"hush\", \"version\": \"1.0.0\"}\n");
            project.write("secret/big.ts", "export const big = 1;\n".repeat(200));
        }
        project.write("src/late.ts", "import { app } from './app';\nexport const late = app;\n");
        project.commit("second");
    }
    let hidden = without(&["secret/"]);
    let (with, never) = (with.open(), never.open());
    for store in [&with, &never] {
        ingest(store, "HEAD");
        ingest(store, "WORKTREE");
    }
    assert!(run(with.hides(&hidden)).unwrap() && !run(never.hides(&hidden)).unwrap());
    let everything = Visibility::everything();
    for query in QUERIES {
        for commit in [None, Some("HEAD~1"), Some("WORKTREE")] {
            let seen = ask(&with, query, commit, &hidden);
            assert_eq!(seen.rows, ask(&never, query, commit, &everything).rows, "{query} at {commit:?}");
            assert!(!json!(seen.rows).to_string().contains("hush"), "{query}: {:?}", seen.rows);
        }
    }
    // A caller that may see everything still does, before and after.
    let all = ask(
        &with,
        "MATCH (f:File) WHERE f.path STARTS WITH 'secret' RETURN count(*) AS n",
        None,
        &everything,
    );
    assert_eq!(column(&all), [json!(3)]);
}

/// A condition that fails on a row does not fail on a hidden one.
#[test]
fn a_hidden_row_makes_no_query_fail() {
    let mut project = Project::new();
    lay_public(&project);
    project.write("secret/key.ts", "import { help } from '../src/help';\nexport const key = help();\n");
    project.commit("all");
    let store = project.open();
    ingest(&store, "HEAD");
    let hidden = without(&["secret/"]);
    for query in [
        "MATCH (f:File) WHERE f.path STARTS WITH 'secret' AND 1 / (f.bytes - f.bytes) = 1 RETURN f.path",
        "MATCH (f:File {path: 'secret/key.ts'}) WHERE 1 / 0 = f.bytes RETURN f.path",
        "MATCH (f:File) WITH f WHERE f.path STARTS WITH 'secret' RETURN 1 % (f.lines - f.lines) AS x",
        "MATCH (h:File {path: 'src/help.ts'})<-[r:IMPORTS]-(f) WHERE CASE WHEN r.specifier = '../src/help' THEN 1 / 0 = 1 ELSE true END RETURN f.path",
        "MATCH (s:Symbol {name: 'key'}) WHERE 1 / (s.line - s.line) = 1 RETURN s",
        "MATCH (f:File)-[:IMPORTS*1..]->(g:File) WHERE f.path STARTS WITH 'secret' RETURN 1 / 0 AS x",
        "MATCH (f:File {name: 'key.ts'})--(x) WHERE 1 / (f.lines - f.lines) = 1 RETURN x",
    ] {
        let mut question = GraphQuery::new(query).seen_by(&hidden);
        let seen = run(store.query(question.clone()));
        question.visible = Visibility::everything();
        assert!(run(store.query(question)).is_err(), "it fails where the row may be seen: {query}");
        assert!(seen.is_ok(), "{query}: {seen:?}");
    }
}

/// A file that was moved into hiding is hidden under its old name, too.
#[test]
fn a_file_is_hidden_under_all_names_that_it_had() {
    let mut project = Project::new();
    lay_public(&project);
    project.write(
        "src/open.ts",
        "export const treasure = 'a long line so that git sees a rename';\nexport const more = 2;\n",
    );
    project.commit("open");
    project.rename("src/open.ts", "src/middle.ts");
    project.commit("renamed once");
    project.rename("src/middle.ts", "secret/key.ts");
    project.commit("hidden");
    project.write("src/open.ts", "export const other = 3;\n");
    project.commit("another file of the old name");
    let store = project.open();
    ingest(&store, "HEAD");
    let hidden = without(&["secret/"]);
    let files = "MATCH (f:File) WHERE f.path STARTS WITH 'src/' RETURN f.path ORDER BY f.path";
    let symbols =
        "MATCH (s:Symbol) WHERE s.name IN ['treasure', 'more', 'other'] RETURN s.name ORDER BY s.name";
    let public = [json!("src/app.ts"), json!("src/help.ts")];
    for commit in ["HEAD~3", "HEAD~2", "HEAD~1"] {
        assert_eq!(column(&ask(&store, files, Some(commit), &hidden)), public, "{commit}");
        assert!(column(&ask(&store, symbols, Some(commit), &hidden)).is_empty(), "{commit}");
    }
    // The file that has the name now was never hidden.
    let now = [json!("src/app.ts"), json!("src/help.ts"), json!("src/open.ts")];
    assert_eq!(column(&ask(&store, files, None, &hidden)), now);
    assert_eq!(column(&ask(&store, symbols, None, &hidden)), [json!("other")]);
    let before = "MATCH (f:File {path: 'src/open.ts'}) RETURN exists_at(f, 'HEAD~3')";
    assert_eq!(column(&ask(&store, before, None, &hidden)), [json!(false)]);
    let renames = "MATCH (n:File)-[:WAS_RENAMED_FROM]->(o:File) RETURN o.path";
    assert!(column(&ask(&store, renames, None, &hidden)).iter().all(|path| path != "src/middle.ts"));
    assert_eq!(column(&ask(&store, renames, None, &Visibility::everything())).len(), 2);
}

/// A file that was hidden and is not any more keeps its hidden past to itself.
#[test]
fn a_file_that_left_its_hiding_place_is_seen_from_then_on() {
    let mut project = Project::new();
    lay_public(&project);
    project.write("secret/old.ts", "export const freed = 'a long line so that git sees a rename';\n");
    project.commit("hidden");
    project.rename("secret/old.ts", "src/new.ts");
    project.commit("shown");
    let store = project.open();
    ingest(&store, "HEAD");
    let hidden = without(&["secret/"]);
    let named = "MATCH (s:Symbol {name: 'freed'}) RETURN s.path";
    assert_eq!(column(&ask(&store, named, None, &hidden)), [json!("src/new.ts")]);
    assert!(column(&ask(&store, named, Some("HEAD~1"), &hidden)).is_empty());
    let renames = "MATCH (n:File)-[r:WAS_RENAMED_FROM]->(o:File) RETURN o.path";
    assert!(column(&ask(&store, renames, None, &hidden)).is_empty());
}

/// What is cached for one caller or one state is not taken for another.
#[test]
fn what_is_hidden_follows_the_caller_and_the_store() {
    let mut project = Project::new();
    lay_public(&project);
    project.commit("first");
    let store = project.open();
    ingest(&store, "HEAD");
    let count = "MATCH (f:File) RETURN count(*) AS n";
    let (secret, source) = (without(&["secret/"]), without(&["src/"]));
    for (visible, expected) in [(&secret, 3), (&source, 1), (&secret, 3), (&Visibility::everything(), 3)] {
        assert_eq!(column(&ask(&store, count, None, visible)), [json!(expected)]);
    }
    project.write("secret/key.ts", "export const key = 1;\n");
    project.commit("second");
    ingest(&store, "HEAD");
    for (visible, expected) in [(&secret, 3), (&source, 2), (&Visibility::everything(), 4), (&secret, 3)] {
        assert_eq!(column(&ask(&store, count, None, visible)), [json!(expected)]);
    }
    // A file that is only proposed is hidden in the answer about the proposal.
    let path = RelativePath::new("secret/new.ts").unwrap();
    let change = Change::Write { path, content: b"export const fresh = 1;\n".as_slice().into() };
    let question = GraphQuery::new("MATCH (s:Symbol) RETURN count(*) AS n").seen_by(&secret);
    let answers = run(store.propose(&[change], &[question])).unwrap();
    assert_eq!(answers[0].0.rows, answers[0].1.rows);
}

/// A name that no call can spell is shown only to callers that see everything.
#[test]
fn a_graph_of_stated_facts_hides_as_a_store_does() {
    let mut facts = TestGraph::new().unwrap();
    let hidden = facts.node(&["File"], &json!({ "path": "secret/a.ts", "name": "a.ts" })).unwrap();
    let odd = facts.node(&["File"], &json!({ "path": "src/../secret/b.ts", "name": "b.ts" })).unwrap();
    let shown = facts.node(&["File"], &json!({ "path": "src/c.ts", "name": "c.ts" })).unwrap();
    facts.relationship(shown, "IMPORTS", hidden, &json!({})).unwrap();
    facts.relationship(odd, "IMPORTS", shown, &json!({})).unwrap();
    let visible = without(&["secret/"]);
    let count = |query: &str| facts.query(&GraphQuery::new(query).seen_by(&visible)).unwrap().rows;
    assert_eq!(count("MATCH (f:File) RETURN f.path"), [[json!("src/c.ts")]]);
    assert_eq!(count("MATCH ()-[r]->() RETURN count(r) AS n"), [[json!(0)]]);
    assert_eq!(count("MATCH (f:File) RETURN size([(f)--(x) | x]) AS n"), [[json!(0)]]);
}
