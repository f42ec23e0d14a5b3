//! Lines and columns: they move with every line that is inserted, and what is known of the code does not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use tgp_contract::{Change, Graph, GraphQuery, RelativePath};
use tgp_graph::mirroring::pieces;

use crate::support::{Project, arrows, export, ingest, picture, rows, run, without_history};

/// A module with a class, and one that uses it.
const MODULE: &str = "\
class Shape:
    def area(self):
        return helper(self)


def helper(shape):
    return shape
";
const USER: &str = "\
from module import helper

def use():
    helper(1)
";

/// The two files, then one line above each, then one line in the class.
fn moved() -> (Project, [String; 3]) {
    let mut project = Project::new();
    project.write("module.py", MODULE);
    project.write("user.py", USER);
    let first = project.commit("first");
    project.write("module.py", format!("# a line\n{MODULE}"));
    project.write("user.py", format!("# a line\n{USER}"));
    let second = project.commit("second");
    project.write("module.py", format!("# a line\n{MODULE}").replace("        return", "\n        return"));
    let third = project.commit("third");
    (project, [first, second, third])
}

fn one(commit: &str, store: &tgp_graph::GraphStore, query: &str) -> Value {
    let rows = rows(store, commit, query);
    assert_eq!(rows.len(), 1, "{query}");
    Value::Array(rows[0].clone())
}

#[test]
fn every_way_to_ask_for_a_line_gives_the_one_of_its_commit() {
    let (project, commits) = moved();
    // Both ways: from the newest commit backwards, and one commit after the other.
    let backwards = project.fresh("backwards.sqlite");
    ingest(&backwards, &commits[2]);
    let forwards = project.fresh("forwards.sqlite");
    for commit in &commits {
        ingest(&forwards, commit);
    }
    for store in [&backwards, &forwards] {
        let symbol = "MATCH (s:Symbol {name: 'helper'})";
        for (commit, line) in commits.iter().zip([6, 7, 8]) {
            let wanted = json!([line, 1, line + 1]);
            let one = |query: &str| one(commit, store, query);
            assert_eq!(one(&format!("{symbol} RETURN s.line, s.column, s.endLine")), wanted);
            assert_eq!(one(&format!("{symbol} WITH s RETURN s.line, s.column, s.endLine")), wanted);
            assert_eq!(one(&format!("{symbol} RETURN s['line'], s['column'], s['endLine']")), wanted);
            assert_eq!(
                one(&format!("{symbol} WITH properties(s) AS p RETURN p.line, p.column, p.endLine")),
                wanted
            );
            assert_eq!(
                one(&format!(
                    "{symbol} WITH [s] AS many RETURN many[0].line, many[0].column, many[0].endLine"
                )),
                wanted
            );
            assert_eq!(
                one(&format!(
                    "{symbol} WITH s {{.line, .column, .endLine}} AS m RETURN m.line, m.column, m.endLine"
                )),
                wanted
            );
            assert_eq!(one(&format!("{symbol} WHERE s.line = {line} RETURN count(s)")), json!([1]));
            assert_eq!(one(&format!("MATCH (s:Symbol {{line: {line}}}) RETURN s.name")), json!(["helper"]));
            let names = one(&format!("{symbol} RETURN keys(s)"));
            for name in ["name", "line", "column", "endLine"] {
                assert!(names[0].as_array().unwrap().contains(&json!(name)), "{names}");
            }
            let whole = one(&format!("{symbol} RETURN s"));
            assert_eq!(json!([whole[0]["line"], whole[0]["column"], whole[0]["endLine"]]), wanted);
        }
        let call = "MATCH (:Symbol {name: 'use'})-[c:CALLS]->(:Symbol {name: 'helper'})";
        let import = "MATCH (:File {path: 'user.py'})-[c:IMPORTS]->(:File {path: 'module.py'})";
        for (commit, moved) in commits.iter().zip([0, 1, 1]) {
            for (pattern, line) in [(call, 4 + moved), (import, 1 + moved)] {
                assert_eq!(one(commit, store, &format!("{pattern} RETURN c.line")), json!([line]));
                assert_eq!(one(commit, store, &format!("{pattern} RETURN c"))[0]["line"], json!(line));
                assert_eq!(
                    one(commit, store, &format!("{pattern} WITH collect(c) AS many RETURN many[0].line")),
                    json!([line])
                );
            }
            let path =
                "MATCH p = (:Symbol {name: 'use'})-[:CALLS*1..2 {line: $line}]->(:Symbol) RETURN length(p)";
            let question = GraphQuery::new(path).param("line", 4 + moved).at(commit);
            assert_eq!(run(store.query(question)).unwrap().rows, [[json!(1)]]);
        }
        let order = "MATCH (s:Symbol {path: 'module.py'}) RETURN s.name ORDER BY s.line";
        assert_eq!(rows(store, &commits[1], order), [[json!("Shape")], [json!("area")], [json!("helper")]]);
    }
    for commit in &commits {
        let picture = |store| without_history(picture(store, commit));
        assert_eq!(picture(&backwards), picture(&forwards));
    }
}

#[test]
fn what_moves_is_the_same_fact() {
    let (project, commits) = moved();
    for (name, first) in [("backwards.sqlite", &commits[2]), ("forwards.sqlite", &commits[0])] {
        let store = project.fresh(name);
        ingest(&store, first);
        ingest(&store, &commits[2]);
        let connection = rusqlite::Connection::open(project.options_at(name, &project.root()).file).unwrap();
        let count = |sql: &str| -> i64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
        // Four symbols, one row each in three commits.
        assert_eq!(
            count("SELECT count(*) FROM node AS n JOIN label AS l ON l.node = n.id WHERE l.name = 'Symbol'"),
            4
        );
        assert_eq!(count("SELECT count(*) FROM edge WHERE type = 'CALLS'"), 2);
        assert_eq!(count("SELECT count(*) FROM edge WHERE type = 'IMPORTS'"), 1);
        // One file moved twice, the other once.
        assert_eq!(count("SELECT count(*) FROM position"), 5);
    }
}

#[test]
fn a_proposed_change_moves_lines_and_leaves_no_trace() {
    let (project, commits) = moved();
    let store = project.open();
    ingest(&store, &commits[2]);
    let before = picture(&store, &commits[2]);
    let question = GraphQuery::new("MATCH (s:Symbol {name: 'helper'}) RETURN s.line");
    let content = format!("# one\n# two\n# three\n{MODULE}").into_bytes().into();
    let change = Change::Write { path: RelativePath::new("module.py").unwrap(), content };
    let answers = run(store.propose(&[change], std::slice::from_ref(&question))).unwrap();
    assert_eq!(answers[0].0.rows, [[json!(8)]]);
    assert_eq!(answers[0].1.rows, [[json!(9)]]);
    assert_eq!(picture(&store, &commits[2]), before);
    // The work tree has lines of its own, until it is as it was.
    project.write("module.py", format!("# one\n# two\n# three\n{MODULE}"));
    assert_eq!(run(store.query_worktree(question.clone())).unwrap().rows, [[json!(9)]]);
    assert_eq!(run(store.query(question.clone().at(&commits[2]))).unwrap().rows, [[json!(8)]]);
    project.write("module.py", format!("# a line\n{MODULE}").replace("        return", "\n        return"));
    assert_eq!(run(store.query_worktree(question)).unwrap().rows, [[json!(8)]]);
    assert_eq!(picture(&store, &commits[2]), before);
}

#[test]
fn a_file_that_a_machine_wrote_has_all_its_lines() {
    let constants: String =
        (0..3_000).map(|number| format!("export const C{number} = {number};\n")).collect();
    let mut project = Project::new();
    project.write("constants.ts", &constants);
    let first = project.commit("first");
    project.write("constants.ts", format!("// a line\n{constants}"));
    let second = project.commit("second");
    let store = project.open();
    ingest(&store, &second);
    for (commit, moved) in [(&first, 1), (&second, 2)] {
        let query = "MATCH (s:Symbol) RETURN s.name, s.line ORDER BY s.line";
        for (number, row) in rows(&store, commit, query).into_iter().enumerate() {
            assert_eq!(row, [json!(format!("C{number}")), json!(number + moved)]);
        }
    }
}

#[test]
fn a_class_that_gets_another_base_concerns_those_who_use_it() {
    let mut project = Project::new();
    project.write(
        "bases.py",
        "class Left:\n    def run(self):\n        pass\n\n\nclass Right:\n    def run(self):\n        pass\n",
    );
    let shape = |base: &str| format!("from bases import Left, Right\n\n\nclass Shape({base}):\n    pass\n");
    project.write("shape.py", shape("Left"));
    project.write("user.py", "from shape import Shape\n\n\ndef use(shape: Shape):\n    shape.run()\n");
    let left = project.commit("left");
    project.write("shape.py", shape("Right"));
    let right = project.commit("right");
    for (name, order) in [("forwards.sqlite", [&left, &right]), ("backwards.sqlite", [&right, &left])] {
        let store = project.fresh(name);
        for commit in order {
            ingest(&store, commit);
        }
        for (commit, base) in [(&left, "Left"), (&right, "Right")] {
            assert_eq!(
                arrows(&store, commit, "CALLS"),
                [format!("Symbol user.py#function use -> Symbol bases.py#method {base}.run")],
                "{name}"
            );
        }
    }
}

#[test]
fn pieces_have_at_every_commit_what_the_store_shows() {
    let (project, commits) = moved();
    let store = project.open();
    ingest(&store, &commits[2]);
    let connection = tgp_graph::mirroring::reader(&project.options().file).unwrap();
    tgp_graph::mirroring::prepare(&connection).unwrap();
    let count = |table: &str| -> i64 {
        let sql = format!("{} SELECT count(*) FROM seen_{table} WHERE at IS NOT NULL", pieces());
        connection.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    // In the third commit `Shape` and `area` get longer and `helper` moves, while `use` stays, with its call and the import.
    assert_eq!((count("node"), count("edge")), (3 + 3 + 3 + 2, 3 + 2 + 2));
    for commit in &commits {
        let sql = "SELECT number FROM moment WHERE commit_id = ?1";
        let moment: i64 = connection.query_row(sql, [commit], |row| row.get(0)).unwrap();
        let at = |table: &str| -> BTreeMap<i64, Map<String, Value>> {
            let sql = format!(
                "{} SELECT id, props, at FROM seen_{table} WHERE since <= ?1 AND until > ?1",
                pieces()
            );
            let mut statement = connection.prepare(&sql).unwrap();
            let rows = statement.query_map([moment], |row| {
                let mut known: Map<String, Value> = serde_json::from_str(&row.get::<_, String>(1)?).unwrap();
                let at: Option<String> = row.get(2)?;
                known.extend(
                    at.map(|at| serde_json::from_str::<Map<String, Value>>(&at).unwrap()).unwrap_or_default(),
                );
                Ok((row.get(0)?, known))
            });
            rows.unwrap().map(Result::unwrap).collect()
        };
        let shown = export(&store, commit);
        let nodes = shown.nodes.into_iter().map(|node| (node.id, node.properties));
        assert_eq!(at("node"), nodes.collect());
        let is_shown: BTreeSet<i64> = shown.relationships.iter().map(|edge| edge.id).collect();
        let edges = shown.relationships.into_iter().map(|edge| (edge.id, edge.properties));
        // What has an end that is not visible is not shown.
        let seen = at("edge").into_iter().filter(|(id, _)| is_shown.contains(id));
        assert_eq!(seen.collect::<BTreeMap<_, _>>(), edges.collect());
    }
}
