//! Which nodes a relationship of the code graph leads from and to. A pattern that no relationship fits is refused: it would
//! be empty, and look like an answer.

use std::collections::BTreeSet;

use crate::cypher::error::{CypherError, CypherResult};

use super::Compiler;
use super::pattern::{Direction, Graph, Link};
use super::vocabulary::labels;

/// A relationship type, the labels it leads from, and those it leads to.
type Ends = (&'static str, &'static [&'static str], &'static [&'static str]);

/// What ingest writes, as `docs/graph.md` has it; a test compares both.
const ENDS: [Ends; 11] = [
    ("DEFINES", &["File"], &["Symbol"]),
    ("CONTAINS", &["Symbol", "Package"], &["Symbol", "File"]),
    ("IMPORTS", &["File"], &["File", "Package", "Unresolved"]),
    ("EXPORTS", &["File"], &["Symbol", "File", "Package", "Unresolved"]),
    ("EXTENDS", &["Symbol"], &["Symbol"]),
    ("IMPLEMENTS", &["Symbol"], &["Symbol"]),
    ("REFERENCES", &["Symbol", "File"], &["Symbol"]),
    ("CALLS", &["Symbol", "File"], &["Symbol"]),
    ("CHANGED_IN", &["File"], &["Commit"]),
    ("PARENT", &["Commit"], &["Commit"]),
    ("WAS_RENAMED_FROM", &["File"], &["File"]),
];

/// Labels that a node may have.
type Possible = BTreeSet<&'static str>;

impl Compiler<'_> {
    /// Refuses a pattern with a relationship between nodes that it never connects.
    pub(super) fn check_ends(&self, graph: &Graph<'_>) -> CypherResult<()> {
        if !self.vocabulary {
            return Ok(());
        }
        let said = |said: &[String]| -> Possible {
            labels().filter(|label| said.is_empty() || said.iter().any(|one| one == label)).collect()
        };
        let mut possible: Vec<Possible> = graph.nodes.iter().map(|node| said(&node.said())).collect();
        // What one relationship says of a node counts for the next one; it only ever becomes less.
        loop {
            let mut is_narrowed = false;
            for link in &graph.links {
                let (Some(left), Some(right)) = (possible.get(link.left), possible.get(link.right)) else {
                    continue;
                };
                let (lefts, rights) = fitting(link, left, right);
                if lefts.is_empty() || rights.is_empty() {
                    return Err(refused(link, left, right));
                }
                is_narrowed |= lefts.len() < left.len() || rights.len() < right.len();
                for (at, labels) in [(link.left, lefts), (link.right, rights)] {
                    if let Some(node) = possible.get_mut(at) {
                        node.retain(|label| labels.contains(label));
                    }
                }
            }
            if !is_narrowed {
                return Ok(());
            }
        }
    }
}

/// The labels that both ends can have, of those they may have.
fn fitting(link: &Link<'_>, left: &Possible, right: &Possible) -> (Possible, Possible) {
    let types = link.said();
    let is_type = |ends: &&Ends| types.is_empty() || types.iter().any(|name| name == ends.0);
    let (mut lefts, mut rights) = (Possible::new(), Possible::new());
    if let Some(length) = link.length {
        // Between the ends may be any others; of no relationships at all both are the same node.
        if length.least == 0 {
            return (left.clone(), right.clone());
        }
        for (_, from, to) in ENDS.iter().filter(is_type) {
            if link.direction != Direction::Left {
                lefts.extend(from.iter().filter(|label| left.contains(*label)));
                rights.extend(to.iter().filter(|label| right.contains(*label)));
            }
            if link.direction != Direction::Right {
                lefts.extend(to.iter().filter(|label| left.contains(*label)));
                rights.extend(from.iter().filter(|label| right.contains(*label)));
            }
        }
        return (lefts, rights);
    }
    for (name, from, to) in ENDS.iter().filter(is_type) {
        for (source, target) in from.iter().flat_map(|source| to.iter().map(move |target| (*source, *target)))
        {
            if !connects(name, source, target) {
                continue;
            }
            let (rightwards, leftwards) = ((source, target), (target, source));
            let seen = match link.direction {
                Direction::Right => &[rightwards][..],
                Direction::Left => &[leftwards],
                Direction::Either => &[rightwards, leftwards],
            };
            for (a, b) in seen.iter().filter(|(a, b)| left.contains(a) && right.contains(b)) {
                lefts.insert(a);
                rights.insert(b);
            }
        }
    }
    (lefts, rights)
}

/// A symbol contains symbols, and a package files; the other types connect all that they lead from and to.
fn connects(name: &str, from: &str, to: &str) -> bool {
    name != "CONTAINS" || (from == "Symbol") == (to == "Symbol")
}

fn refused(link: &Link<'_>, left: &Possible, right: &Possible) -> Box<CypherError> {
    let types = link.said();
    let any = |possible: &Possible| match possible.len() {
        count if count == labels().count() => "anything".to_owned(),
        _ => possible.iter().copied().collect::<Vec<_>>().join(" or "),
    };
    let name = if types.is_empty() { "a relationship".to_owned() } else { format!("`{}`", types.join("|")) };
    let (from, to) = if link.direction == Direction::Left { (right, left) } else { (left, right) };
    let message = format!("{name} never leads from {} to {}", any(from), any(to));
    let known = ENDS.iter().filter(|ends| types.iter().any(|name| name == ends.0));
    let known: Vec<String> = known
        .map(|(name, from, to)| format!("`{name}` leads from {} to {}", from.join(" or "), to.join(", ")))
        .collect();
    let refusal = CypherError::new("ImpossiblePattern", link.span, message);
    if known.is_empty() {
        refusal.help("see docs/graph.md for what leads where")
    } else {
        refusal.help(known.join("; "))
    }
}
