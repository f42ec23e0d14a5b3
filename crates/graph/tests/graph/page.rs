//! `docs/cypher.md` says nothing that is not so: every example of it is run.

use serde_json::{Value, json};
use tgp_contract::GraphQuery;
use tgp_graph::{RevisionRange, TestGraph};

pub fn page() -> String {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cypher.md");
    std::fs::read_to_string(file).unwrap()
}

/// The graph of the page. `v1` is moment 1, `v2` is moment 2.
fn graph(page: &str) -> TestGraph {
    let mut facts = TestGraph::new().unwrap();
    facts.name("v1", 1);
    facts.name("v2", 2);
    facts.see(2);
    let block = page.split("```graph\n").nth(1).unwrap().split("```").next().unwrap();
    let mut edge = 100;
    for line in block.lines() {
        let (head, rest) = line.split_at(line.find('{').unwrap());
        let (props, when) = rest.split_at(rest.rfind('}').unwrap() + 1);
        let stretch = match when.trim() {
            "" => RevisionRange::new(0, i64::MAX),
            "since v2" => RevisionRange::new(2, i64::MAX),
            "until v2" => RevisionRange::new(0, 2),
            other => panic!("{other}"),
        };
        let props: Value = serde_json::from_str(props).unwrap();
        match head.split_whitespace().collect::<Vec<_>>().as_slice() {
            [id, label] => {
                let id = id.parse().unwrap();
                facts.node_during(id, &[label], &props, stretch).unwrap();
                if when.contains("until") {
                    facts
                        .ghost(id, &[label], &json!({"path": props["path"], "name": props["name"]}))
                        .unwrap();
                }
            }
            [from, kind, to] => {
                edge += 1;
                let ends = (from.parse().unwrap(), *kind, to.parse().unwrap());
                facts.relationship_during(edge, ends, &props, stretch).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    facts
}

/// The rows of all tables with this header.
pub fn tables(page: &str, header: &[&str]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if !line.starts_with('|') {
            inside = false;
            continue;
        }
        let cells: Vec<String> = line
            .replace("\\|", "\u{1}")
            .trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().replace('\u{1}', "|"))
            .collect();
        if inside && !line.starts_with("| ---") {
            rows.push(cells);
        } else if cells.iter().skip(1).map(String::as_str).eq(header.iter().copied()) || cells == header {
            inside = true;
        }
    }
    rows
}

pub fn code(cell: &str) -> &str {
    cell.strip_prefix('`')
        .and_then(|cell| cell.strip_suffix('`'))
        .unwrap_or_else(|| panic!("no code: {cell}"))
}

fn question(query: &str) -> GraphQuery {
    GraphQuery::new(query)
        .param("path", "src/lib.ts")
        .param("names", json!(["util.ts", "none"]))
        .param("since", "v1")
}

#[test]
fn every_example_of_the_page_gives_its_rows() {
    let page = page();
    let facts = graph(&page);
    let examples = tables(&page, &["query", "rows"]);
    let commits = tables(&page, &["query", "commit", "rows"]);
    assert!(examples.len() > 60 && commits.len() > 7, "{} {}", examples.len(), commits.len());
    let check = |question: &GraphQuery, rows: &str| {
        let expected: Value = serde_json::from_str(rows).unwrap_or_else(|error| panic!("{rows}: {error}"));
        let answer = facts.query(question).unwrap_or_else(|error| panic!("{}: {error}", question.query));
        assert_eq!(json!(answer.rows), expected, "{}", question.query);
    };
    for row in &examples {
        check(&question(code(&row[1])), code(&row[2]));
    }
    for row in &commits {
        check(&question(code(&row[1])).at(code(&row[2])), code(&row[3]));
    }
}

#[test]
fn every_refusal_of_the_page_is_one() {
    let page = page();
    let facts = graph(&page);
    let refusals = tables(&page, &["query", "code", "kind", "it says"]);
    assert!(refusals.len() > 15, "{}", refusals.len());
    for row in refusals {
        let query = code(&row[0]);
        let error = match facts.query(&GraphQuery::new(query)) {
            Ok(answer) => panic!("{query}: {:?}", answer.rows),
            Err(error) => error,
        };
        assert_eq!(error.code.as_str(), row[1], "{query}: {error}");
        assert_eq!(error.details["kind"].as_str(), Some(row[2].as_str()), "{query}: {error}");
        let said = format!("{} {}", error.message, error.help_of().unwrap_or_default());
        assert!(said.contains(&row[3]), "{query}: {said}");
        if row[2] != "MissingParameter" && error.details["phase"] == "compile" {
            assert!(error.place_of().is_some(), "{query}: {error:?}");
        }
    }
}
