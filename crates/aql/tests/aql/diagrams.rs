//! Strict little readers of the diagrams, so that what is drawn can be drawn.

use std::collections::BTreeSet;

use tgp_aql::explain;

use crate::support::compiled;

/// `flowchart TD`, nodes `sN["…"]`, nested `subgraph sN["…"]` … `end`, and arrows between nodes that exist.
pub fn check_mermaid(text: &str) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("flowchart TD"));
    let mut nodes = BTreeSet::new();
    let mut open = 0_usize;
    for line in lines {
        let line = line.trim_start();
        if line == "end" {
            open = open.checked_sub(1).expect("`end` without a subgraph");
        } else if let Some((from, to)) = line.split_once(" --> ") {
            assert!(nodes.contains(from) && nodes.contains(to), "{line} in {text}");
            assert_eq!(open, 0, "arrows stand at the end");
        } else {
            let node = line.strip_prefix("subgraph ").inspect(|_| open += 1).unwrap_or(line);
            let (id, label) = node.split_once("[\"").unwrap_or_else(|| panic!("{line}"));
            let label = label.strip_suffix("\"]").unwrap_or_else(|| panic!("{line}"));
            assert!(id.strip_prefix('s').is_some_and(|number| number.parse::<usize>().is_ok()), "{line}");
            assert!(nodes.insert(id.to_owned()), "{id} is there twice");
            for part in label.split("<br/>") {
                assert!(!part.contains(['"', '<', '>', '`', '[', ']', '{', '}', '(', ')', '&']), "{line}");
                for entity in part.split('#').skip(1) {
                    let (number, _) = entity.split_once(';').unwrap_or_else(|| panic!("{line}"));
                    assert!(
                        number.parse::<u32>().is_ok_and(|number| char::from_u32(number).is_some()),
                        "{line}"
                    );
                }
            }
        }
    }
    assert_eq!(open, 0, "a subgraph is not closed: {text}");
}

/// A `digraph` with quoted labels whose quotes and backslashes are escaped, and arrows between nodes that exist.
pub fn check_dot(text: &str) {
    let body = text.strip_prefix("digraph \"").and_then(|rest| rest.strip_suffix("}\n")).expect("a digraph");
    let (_, body) = body.split_once("\" {\n").expect("a name");
    let mut nodes = BTreeSet::new();
    for line in body.lines().skip(2) {
        let line = line.trim().strip_suffix(';').unwrap_or_else(|| panic!("{line}"));
        if let Some((from, to)) = line.split_once(" -> ").filter(|(from, _)| !from.contains('[')) {
            let to = to.split(' ').next().unwrap();
            assert!(nodes.contains(from) && nodes.contains(to), "{line}");
            continue;
        }
        let (id, label) = line.split_once(" [label=\"").unwrap_or_else(|| panic!("{line}"));
        let label = label.strip_suffix("\"]").unwrap_or_else(|| panic!("{line}"));
        assert!(nodes.insert(id.to_owned()), "{id} is there twice");
        let mut letters = label.chars();
        while let Some(letter) = letters.next() {
            assert!(letter != '"' && !letter.is_control(), "{line}");
            if letter == '\\' {
                assert!(matches!(letters.next(), Some('n' | '"' | '\\')), "{line}");
            }
        }
    }
}

#[test]
fn hostile_labels_stay_labels() {
    let text = r#"query X {
        a: agent(model: "m\"]; end --> s0 <script>`#quot; \\ \u{7} [](){}|&") { prompt: "x" }
        b: graph("MATCH (n {a: \"\\\"\"}) // \"]\n RETURN n.a AS a")
        c: map(i in b) { d: when(i.a == "\"><b>") { e: merge(x: "]\"") } else { e: merge(x: i) } }
    }"#;
    let compiled =
        compiled(text).unwrap_or_else(|problems| panic!("{}", crate::support::rendered(&problems)));
    let explanation = explain(&compiled.queries[0]);
    let (mermaid, dot) = (explanation.mermaid(), explanation.dot());
    check_mermaid(&mermaid);
    check_dot(&dot);
    assert_eq!(mermaid.matches("subgraph").count(), 2, "{mermaid}");
    assert!(mermaid.contains("m#34;#93;#59; end --#62; s0 #60;script#62;#96;#35;quot#59;"), "{mermaid}");
    assert!(dot.contains(r#"m\"]; end --> s0"#), "{dot}");
}
