//! A small reader of Cypher over a handful of nodes: one chain of a pattern, conjunctions, plain columns.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Nodes by id, and edges by type, source and target.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestGraph {
    pub(crate) nodes: BTreeMap<String, Value>,
    pub(crate) edges: Vec<(String, String, String)>,
}

type Bindings = BTreeMap<String, Value>;

#[derive(Clone, Debug)]
struct Hop {
    kind: String,
    forward: bool,
    most: usize,
    node: (String, Option<String>),
}

struct Reader {
    tokens: Vec<String>,
    at: usize,
}

/// Columns and rows, or what cannot be read.
pub(crate) fn answer(
    facts: &TestGraph,
    query: &str,
    params: &Map<String, Value>,
) -> Result<(Vec<String>, Vec<Vec<Value>>), String> {
    let mut reader = Reader { tokens: tokens(query), at: 0 };
    let mut found: Vec<Bindings> = vec![Bindings::new()];
    loop {
        if reader.eat("UNWIND") {
            let list = reader.expression()?;
            reader.expect("AS")?;
            let name = reader.next()?;
            let mut more = Vec::new();
            for bindings in found {
                for item in value(&list, &bindings, params)?.as_array().cloned().unwrap_or_default() {
                    let mut one = bindings.clone();
                    one.insert(name.clone(), item);
                    more.push(one);
                }
            }
            found = more;
        } else if reader.eat("MATCH") {
            let first = reader.node()?;
            let mut hops = Vec::new();
            while let Some(hop) = reader.hop()? {
                hops.push(hop);
            }
            found = found.into_iter().flat_map(|bindings| walk(facts, &bindings, &first, &hops)).collect();
        } else if reader.eat("WITH") {
            reader.next()?;
        } else if reader.eat("WHERE") {
            loop {
                let is_negative = reader.eat("NOT");
                let left = reader.expression()?;
                let operator = reader.next()?.to_uppercase();
                if operator == "STARTS" {
                    reader.expect("WITH")?;
                }
                let right = reader.expression()?;
                let mut kept = Vec::new();
                for bindings in found {
                    let (left, right) = (value(&left, &bindings, params)?, value(&right, &bindings, params)?);
                    if holds(&left, &operator, &right)? != is_negative {
                        kept.push(bindings);
                    }
                }
                found = kept;
                if !reader.eat("AND") {
                    break;
                }
            }
        } else {
            break;
        }
    }
    reader.expect("RETURN")?;
    let is_distinct = reader.eat("DISTINCT");
    let mut columns = Vec::new();
    let mut expressions = Vec::new();
    loop {
        let expression = reader.expression()?;
        columns.push(if reader.eat("AS") { reader.next()? } else { expression.clone() });
        expressions.push(expression);
        if !reader.eat(",") {
            break;
        }
    }
    if reader.at != reader.tokens.len() {
        return Err(format!("`{}` is not expected here", reader.tokens[reader.at]));
    }
    if expressions[0].starts_with("count") {
        return Ok((columns, vec![vec![json!(found.len())]]));
    }
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for bindings in &found {
        let row: Vec<Value> =
            expressions.iter().map(|one| value(one, bindings, params)).collect::<Result<_, _>>()?;
        if !is_distinct || seen.insert(json!(row).to_string()) {
            rows.push(row);
        }
    }
    Ok((columns, rows))
}

fn walk(
    facts: &TestGraph,
    bindings: &Bindings,
    first: &(String, Option<String>),
    hops: &[Hop],
) -> Vec<Bindings> {
    let mut found: Vec<(String, Bindings)> = facts
        .nodes
        .iter()
        .filter(|(_, node)| has_label(node, first.1.as_ref()))
        .map(|(id, node)| {
            let mut one = bindings.clone();
            one.insert(first.0.clone(), node.clone());
            (id.clone(), one)
        })
        .collect();
    for hop in hops {
        let mut next = Vec::new();
        for (id, bindings) in found {
            let mut reached: BTreeSet<String> = BTreeSet::new();
            let mut edge: BTreeSet<String> = BTreeSet::from([id]);
            for _ in 0..hop.most {
                edge = facts
                    .edges
                    .iter()
                    .filter(|(kind, ..)| *kind == hop.kind)
                    .map(|(_, source, target)| if hop.forward { (source, target) } else { (target, source) })
                    .filter(|(from, _)| edge.contains(*from))
                    .map(|(_, to)| to.clone())
                    .collect();
                reached.extend(edge.iter().cloned());
            }
            for id in reached {
                let node = &facts.nodes[&id];
                if has_label(node, hop.node.1.as_ref()) {
                    let mut one = bindings.clone();
                    one.insert(hop.node.0.clone(), node.clone());
                    next.push((id, one));
                }
            }
        }
        found = next;
    }
    found.into_iter().map(|(_, bindings)| bindings).collect()
}

fn has_label(node: &Value, label: Option<&String>) -> bool {
    label.is_none_or(|label| node["_labels"][0] == json!(label))
}

fn holds(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let texts = left.as_str().zip(right.as_str());
    match operator {
        "=" => Ok(left == right),
        "IN" => Ok(right.as_array().is_some_and(|items| items.contains(left))),
        "STARTS" => Ok(texts.is_some_and(|(left, right)| left.starts_with(right))),
        "CONTAINS" => Ok(texts.is_some_and(|(left, right)| left.contains(right))),
        other => Err(format!("`{other}` is not known")),
    }
}

fn value(expression: &str, bindings: &Bindings, params: &Map<String, Value>) -> Result<Value, String> {
    if let Some(name) = expression.strip_prefix('$') {
        return params.get(name).cloned().ok_or_else(|| format!("the parameter `{name}` is missing"));
    }
    if let Some(text) = expression.strip_prefix('\'') {
        return Ok(json!(text));
    }
    if expression == "true" {
        return Ok(json!(true));
    }
    let (name, property) = expression.split_once('.').unwrap_or((expression, ""));
    let bound = bindings.get(name).ok_or_else(|| format!("`{name}` is not defined"))?;
    Ok(if property.is_empty() { bound.clone() } else { bound.get(property).cloned().unwrap_or(Value::Null) })
}

impl Reader {
    fn next(&mut self) -> Result<String, String> {
        let token = self.tokens.get(self.at).cloned().ok_or("the query ends too soon")?;
        self.at += 1;
        Ok(token)
    }

    fn eat(&mut self, word: &str) -> bool {
        let is_next = self.tokens.get(self.at).is_some_and(|token| token.eq_ignore_ascii_case(word));
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.eat(word) { Ok(()) } else { Err(format!("`{word}` is missing after token {}", self.at)) }
    }

    fn expression(&mut self) -> Result<String, String> {
        let mut text = self.next()?;
        if text == "$" || self.tokens.get(self.at).is_some_and(|token| token == "(") && text == "count" {
            text.push_str(&self.next()?);
            if text.starts_with("count") {
                text.push_str(&self.next()?);
                self.expect(")")?;
            }
        }
        Ok(text)
    }

    fn node(&mut self) -> Result<(String, Option<String>), String> {
        self.expect("(")?;
        let name = self.next()?;
        let label = if self.eat(":") { Some(self.next()?) } else { None };
        self.expect(")")?;
        Ok((name, label))
    }

    fn hop(&mut self) -> Result<Option<Hop>, String> {
        let backward = self.eat("<");
        if !self.eat("-") {
            return Ok(None);
        }
        self.expect("[")?;
        self.expect(":")?;
        let kind = self.next()?;
        let most = if self.eat("*") { self.next()?.rsplit("..").next().unwrap().parse().unwrap() } else { 1 };
        self.expect("]")?;
        self.expect("-")?;
        if !backward {
            self.expect(">")?;
        }
        Ok(Some(Hop { kind, forward: !backward, most, node: self.node()? }))
    }
}

fn tokens(query: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut letters = query.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_whitespace() {
            continue;
        }
        let mut token = String::from(letter);
        if letter == '\'' {
            while let Some(letter) = letters.next_if(|letter| *letter != '\'') {
                token.push(letter);
            }
            letters.next();
        } else if letter.is_alphanumeric() || letter == '$' || letter == '_' {
            while let Some(letter) = letters.next_if(|one| one.is_alphanumeric() || "._".contains(*one)) {
                token.push(letter);
            }
        }
        tokens.push(token);
    }
    tokens
}
