//! Queries as they are sent: whatever was asked, every node and every relationship has the moment in its condition.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use open_cypher::ast::visit::{self, Visitor};
use open_cypher::ast::{
    BinaryOperator, Clause, ClauseKind, Expr, ExprKind, PathFactorKind, PathPattern, Pattern,
};
use serde_json::json;
use tgp_contract::{Code, Graph, GraphQuery};
use tgp_graph_bolt::{BoltGraph, BoltOptions};

use crate::peer::{Heard, Peer, packed, record, success};
use crate::support::{Project, run};

/// Fewer accepted queries than this say that the queries were not found, or that too much is refused.
const LEAST: usize = 600;

/// Queries in all shapes that openCypher has: those of its own test kit, where it is.
fn queries() -> Option<Vec<String>> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/opencypher-tck");
    let folder = std::env::var_os("TGP_TCK_DIR").map_or(beside, PathBuf::from);
    let mut features = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()? {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "feature") {
                features.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut queries = BTreeSet::new();
    for feature in features {
        for step in feature.split("executing query:").skip(1) {
            queries.extend(step.split("\"\"\"").nth(1).map(|query| query.trim().to_owned()));
        }
    }
    Some(queries.into_iter().collect())
}

/// Checks every place of a query that matches something.
struct Check<'q> {
    text: &'q str,
    patterns: usize,
}

impl<'q> Check<'q> {
    fn words(&self, expression: &Expr) -> &'q str {
        expression.span.text(self.text).unwrap()
    }

    /// All that must hold together.
    fn conjuncts(&self, condition: &Expr, found: &mut Vec<&'q str>) {
        match &condition.kind {
            ExprKind::Binary { left, operator, right } if operator.kind == BinaryOperator::And => {
                self.conjuncts(left, found);
                self.conjuncts(right, found);
            }
            _ => found.push(self.words(condition)),
        }
    }

    fn pattern(&mut self, path: &PathPattern, conjuncts: &[&str]) {
        let has = |condition: String| {
            assert!(conjuncts.contains(&condition.as_str()), "no `{condition}` in {}", self.text);
        };
        let seen =
            |alias: &str| [format!("{alias}._since <= $tgp_moment"), format!("{alias}._until > $tgp_moment")];
        for factor in &path.kind.factors {
            match &factor.kind {
                PathFactorKind::Node(node) => {
                    let alias = node.variable.as_ref().unwrap().span.text(self.text).unwrap();
                    seen(alias).into_iter().for_each(has);
                    if path.kind.factors.len() == 1 {
                        has(format!("{alias}._ghost = false"));
                    }
                }
                PathFactorKind::Relationship(link) => {
                    let alias = link.variable.as_ref().unwrap().span.text(self.text).unwrap();
                    if link.legacy_quantifier.is_none() {
                        seen(alias).into_iter().for_each(has);
                    } else {
                        let all = conjuncts.iter().find_map(|condition| {
                            condition.strip_prefix("all(")?.split_once(&format!(" IN {alias} WHERE "))
                        });
                        let (step, rest) =
                            all.unwrap_or_else(|| panic!("no `all` for {alias} in {}", self.text));
                        assert_eq!(rest, format!("{})", seen(step).join(" AND ")));
                    }
                }
                other => panic!("{other:?} in {}", self.text),
            }
        }
        self.patterns += 1;
    }

    fn place(&mut self, pattern: &Pattern, condition: Option<&Expr>) {
        let mut conjuncts = Vec::new();
        self.conjuncts(condition.unwrap_or_else(|| panic!("no condition in {}", self.text)), &mut conjuncts);
        for part in &pattern.parts {
            self.pattern(&part.kind.path, &conjuncts);
        }
    }
}

impl<'ast> Visitor<'ast> for Check<'_> {
    fn visit_clause(&mut self, clause: &'ast Clause) {
        match &clause.kind {
            ClauseKind::Match(matched) => self.place(&matched.pattern, matched.where_clause.as_ref()),
            ClauseKind::Unwind(_) | ClauseKind::With(_) | ClauseKind::Return(_) => {}
            other => panic!("{other:?} in {}", self.text),
        }
        visit::walk_clause(self, clause);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match &expression.kind {
            ExprKind::PatternComprehension(found) => self.place(&found.pattern, found.predicate.as_deref()),
            ExprKind::Pattern(_) => panic!("a pattern without a condition in {}", self.text),
            _ => {}
        }
        visit::walk_expr(self, expression);
    }

    fn visit_error(&mut self, _: open_cypher::Span) {
        panic!("{} is not a query", self.text);
    }
}

#[test]
fn whatever_is_asked_every_pattern_sees_one_moment() {
    let Some(queries) = queries() else {
        println!("skipped: the openCypher TCK is not here");
        return;
    };
    const RUN: u8 = 0x10;
    let peer = Peer::start(vec![0, 0, 4, 5], |heard: &Heard| match heard.tag {
        RUN => vec![success(&json!({ "fields": ["n", "c"] }))],
        0x3f => vec![record(&[packed(&json!(7)), packed(&json!("abc"))]), success(&json!({}))],
        _ => vec![success(&json!({}))],
    });
    let project = Project::new();
    let mut options = BoltOptions::parse(&peer.address).unwrap();
    // The kit has its own names.
    options.any_names = true;
    let graph = run(BoltGraph::open(project.options(), options)).unwrap();
    let (mut accepted, mut refused, mut patterns) = (0, 0, 0);
    run(async {
        for query in &queries {
            peer.heard.lock().unwrap().clear();
            if let Err(error) = graph.query(GraphQuery::new(query)).await {
                assert!(matches!(error.code, Code::Validation | Code::Budget), "{query}: {error}");
                let heard = peer.heard();
                assert!(heard.is_empty(), "{query} was refused after it was sent: {heard:?}");
                refused += 1;
                continue;
            }
            let heard = peer.heard();
            let text = heard.iter().rfind(|heard| heard.tag == RUN).unwrap().fields[0].clone();
            let text = text.as_str().unwrap();
            let parsed =
                open_cypher::parse(text).unwrap_or_else(|errors| panic!("{text}: {}", errors.render(text)));
            let mut check = Check { text, patterns: 0 };
            check.visit_program(&parsed.program);
            patterns += check.patterns;
            accepted += 1;
        }
    });
    println!("bolt: {accepted} queries of the TCK are sent with {patterns} patterns, {refused} are refused");
    assert!(accepted >= LEAST && patterns >= LEAST, "{accepted} queries, {patterns} patterns");
}
