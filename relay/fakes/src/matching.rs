//! What a snapshot has as nodes and relationships, and the rows of a question about them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};

use crate::cypher::{ChainQuery, Comparison, Condition, LinkPattern};
use crate::imports;
use crate::repository::Snapshot;

/// Rows and steps of one answer; a fake that needs more was meant to be a real one.
const MAX_STEPS: usize = 1_000_000;
const RENAMED: &str = "WAS_RENAMED_FROM";

struct Node {
    label: &'static str,
    properties: BTreeMap<&'static str, String>,
    /// Whether it is there only as an end of `WAS_RENAMED_FROM`.
    is_gone: bool,
}

/// The nodes of one snapshot, and which leads to which.
#[derive(Default)]
pub(crate) struct Facts {
    nodes: Vec<Node>,
    links: Vec<(usize, &'static str, usize)>,
}

impl Facts {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let mut facts = Self::default();
        let mut files = BTreeMap::new();
        for path in &snapshot.files {
            files.insert(path.as_str(), facts.file(path, false));
        }
        for path in snapshot.renames.iter().flat_map(|(new, old)| [new, old]) {
            if !files.contains_key(path.as_str()) {
                files.insert(path, facts.file(path, true));
            }
        }
        let at = |path: &str| files.get(path).copied();
        for (new, old) in &snapshot.renames {
            facts.links.extend(at(new).zip(at(old)).map(|(new, old)| (new, RENAMED, old)));
        }
        for (source, code) in &snapshot.sources {
            let Some(file) = at(source) else { continue };
            let found =
                code.imports.iter().filter_map(|text| imports::resolve(source, text, &snapshot.files));
            let imported: BTreeSet<usize> = found.filter_map(|path| at(&path)).collect();
            facts.links.extend(imported.into_iter().map(|imported| (file, "IMPORTS", imported)));
            for name in &code.symbols {
                let properties = BTreeMap::from([("name", name.clone()), ("path", source.clone())]);
                let symbol = facts.add(Node { label: "Symbol", properties, is_gone: false });
                facts.links.push((file, "DEFINES", symbol));
            }
        }
        facts
    }

    fn file(&mut self, path: &str, is_gone: bool) -> usize {
        let name = path.rsplit('/').next().unwrap_or(path);
        let properties = BTreeMap::from([("path", path.to_owned()), ("name", name.to_owned())]);
        self.add(Node { label: "File", properties, is_gone })
    }

    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The rows of a question.
    ///
    /// # Errors
    /// `EBUDGET` when there are too many.
    pub(crate) fn rows(&self, question: &ChainQuery) -> Result<Vec<Vec<Value>>, ToolError> {
        let mut search = Search { facts: self, question, left: MAX_STEPS, rows: Vec::new() };
        for node in 0..self.nodes.len() {
            search.extend(&mut vec![node], &mut Vec::new())?;
        }
        let mut rows = search.rows;
        if question.is_distinct {
            let mut seen = BTreeSet::new();
            rows.retain(|row| seen.insert(row.iter().map(Value::to_string).collect::<Vec<_>>()));
        }
        Ok(rows)
    }
}

struct Search<'s> {
    facts: &'s Facts,
    question: &'s ChainQuery,
    left: usize,
    rows: Vec<Vec<Value>>,
}

impl Search<'_> {
    /// Continues a chain whose last node was just put there. No relationship is used twice.
    fn extend(&mut self, chain: &mut Vec<usize>, used: &mut Vec<usize>) -> Result<(), ToolError> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            ToolError::new(Code::Budget, format!("the answer takes more than {MAX_STEPS} steps"))
                .help("ask for less, or use the real graph")
        })?;
        let Some(last) = chain.last().copied() else { return Ok(()) };
        if !self.fits(chain.len() - 1, last) {
            return Ok(());
        }
        let Some(link) = self.question.links.get(chain.len() - 1) else {
            self.rows.push(self.row(chain));
            return Ok(());
        };
        for (target, steps) in self.targets(last, link, used)? {
            let before = used.len();
            used.extend(steps);
            chain.push(target);
            self.extend(chain, used)?;
            chain.pop();
            used.truncate(before);
        }
        Ok(())
    }

    /// Where a link leads from a node, and over which relationships.
    fn targets(
        &mut self,
        from: usize,
        link: &LinkPattern,
        used: &[usize],
    ) -> Result<Vec<(usize, Vec<usize>)>, ToolError> {
        let mut found = Vec::new();
        let mut open = vec![(from, Vec::<usize>::new())];
        while let Some((node, steps)) = open.pop() {
            for (number, (start, kind, end)) in self.facts.links.iter().enumerate() {
                let (start, end) = if link.is_reversed { (end, start) } else { (start, end) };
                if *start != node || *kind != link.kind || used.contains(&number) || steps.contains(&number) {
                    continue;
                }
                self.left = self.left.checked_sub(1).ok_or_else(|| {
                    ToolError::new(Code::Budget, format!("the answer takes more than {MAX_STEPS} steps"))
                        .help("ask for less, or use the real graph")
                })?;
                let mut steps = steps.clone();
                steps.push(number);
                if link.is_repeated {
                    open.push((*end, steps.clone()));
                }
                found.push((*end, steps));
            }
        }
        Ok(found)
    }

    fn fits(&self, position: usize, node: usize) -> bool {
        let Some((pattern, node)) = self.question.nodes.get(position).zip(self.facts.nodes.get(node)) else {
            return false;
        };
        let beside = position.checked_sub(1).into_iter().chain([position]);
        let may_be_gone =
            beside.filter_map(|link| self.question.links.get(link)).any(|link| link.kind == RENAMED);
        let own = self.question.conditions.iter().filter(|condition| condition.node == position);
        (may_be_gone || !node.is_gone)
            && pattern.label.as_ref().is_none_or(|label| label == node.label)
            && own.into_iter().all(|condition| holds(condition, node))
    }

    fn row(&self, chain: &[usize]) -> Vec<Value> {
        let value = |node: usize, property: &str| {
            let node = chain.get(node).and_then(|node| self.facts.nodes.get(*node))?;
            node.properties.get(property)
        };
        let columns = self.question.columns.iter();
        columns.map(|column| json!(value(column.node, &column.property))).collect()
    }
}

fn holds(condition: &Condition, node: &Node) -> bool {
    let Some(value) = node.properties.get(condition.property.as_str()) else { return false };
    condition.values.iter().any(|wanted| match condition.comparison {
        Comparison::Equals | Comparison::In => value == wanted,
        Comparison::StartsWith => value.starts_with(wanted.as_str()),
        Comparison::EndsWith => value.ends_with(wanted.as_str()),
        Comparison::Contains => value.contains(wanted.as_str()),
    })
}
