//! The names that the code graph has. A query that uses another one is refused: it would be empty, and look like an
//! answer.

use open_cypher::Span;
use open_cypher::ast::{
    Expr, ExprKind, LabelExpression, LabelExpressionKind, LiteralKind, MapEntry, Name, ParameterName,
};
use serde_json::Value;

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;

use super::Compiler;
use super::scope::Scope;

/// How much of a value is shown that a property never has.
const MOST_SHOWN: usize = 40;

/// A label or a type, and the properties of what has it. What ingest writes is listed here.
type Entry = (&'static str, &'static [&'static str]);

const NODES: [Entry; 6] = [
    (
        "File",
        &["path", "name", "extension", "language", "blob", "bytes", "lines", "test", "broken", "unparsed"],
    ),
    ("Symbol", &["name", "qualifiedName", "kind", "path", "line", "column", "endLine", "exported"]),
    ("Package", &["name", "version", "ecosystem", "path", "external"]),
    ("Unresolved", &["specifier", "target", "computed"]),
    ("Commit", &["sha", "short", "author", "time", "message"]),
    ("Tool", &["path", "name", "description"]),
];

/// Every label.
pub(super) fn labels() -> impl Iterator<Item = &'static str> {
    NODES.iter().map(|(label, _)| *label)
}

const RELATIONSHIPS: [Entry; 11] = [
    ("DEFINES", &[]),
    ("CONTAINS", &[]),
    ("IMPORTS", &["specifier", "names", "line", "typeOnly"]),
    ("EXPORTS", &["name"]),
    ("EXTENDS", &[]),
    ("IMPLEMENTS", &[]),
    ("REFERENCES", &[]),
    ("CALLS", &["line", "count", "bestEffort", "how"]),
    ("CHANGED_IN", &["change"]),
    ("PARENT", &["order"]),
    ("WAS_RENAMED_FROM", &["commit"]),
];

/// A property whose values are a fixed list: the label or type, the property, what ingest writes there.
type Values = (&'static str, &'static str, &'static [&'static str]);

/// All of them. `docs/graph.md` has the same lists, and a test compares both with what ingest writes.
pub(crate) const VALUES: [Values; 5] = [
    (
        "File",
        "language",
        &[
            "typescript",
            "javascript",
            "rust",
            "python",
            "go",
            "java",
            "vue",
            "svelte",
            "astro",
            "json",
            "markdown",
            "toml",
            "yaml",
            "html",
            "css",
            "shell",
            "sql",
            "c",
            "c++",
            "xml",
        ],
    ),
    (
        "Symbol",
        "kind",
        &[
            "function",
            "method",
            "class",
            "interface",
            "type",
            "enum",
            "struct",
            "trait",
            "const",
            "variable",
            "module",
        ],
    ),
    ("Package", "ecosystem", &["npm", "cargo", "pypi", "go", "maven"]),
    ("CALLS", "how", &["same-file", "import", "namespace", "package", "receiver-type", "method-name"]),
    ("CHANGED_IN", "change", &["added", "modified", "deleted", "renamed"]),
];

/// What a name belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Node,
    Relationship,
    /// One of both.
    Either,
}

impl Sort {
    fn entries(self) -> impl Iterator<Item = &'static Entry> {
        let nodes = NODES.iter().filter(move |_| self != Self::Relationship);
        nodes.chain(RELATIONSHIPS.iter().filter(move |_| self != Self::Node))
    }

    fn of(kind: &Type) -> Option<Self> {
        match kind {
            Type::Node => Some(Self::Node),
            Type::Relationship => Some(Self::Relationship),
            _ => None,
        }
    }
}

/// The labels of which something has at least one; none where that is not said.
pub(super) fn said(labels: &LabelExpression) -> Option<Vec<String>> {
    match &labels.kind {
        LabelExpressionKind::Name(name) => Some(vec![name.kind.text.clone()]),
        LabelExpressionKind::Parenthesized(inner) => said(inner),
        LabelExpressionKind::And(parts) => {
            let all: Vec<String> = parts.iter().filter_map(said).flatten().collect();
            (!all.is_empty()).then_some(all)
        }
        LabelExpressionKind::Or(parts) => {
            parts.iter().map(said).collect::<Option<Vec<_>>>().map(|all| all.concat())
        }
        _ => None,
    }
}

impl Compiler<'_> {
    /// Refuses labels and types that nothing has.
    pub(super) fn check_labels(&self, labels: &LabelExpression, sort: Sort) -> CypherResult<()> {
        if !self.vocabulary {
            return Ok(());
        }
        match &labels.kind {
            LabelExpressionKind::Name(name) => check_label(name, sort),
            LabelExpressionKind::Parenthesized(inner) | LabelExpressionKind::Not(inner) => {
                self.check_labels(inner, sort)
            }
            LabelExpressionKind::And(parts) | LabelExpressionKind::Or(parts) => {
                parts.iter().try_for_each(|part| self.check_labels(part, sort))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a variable that is called as a label or a type is: the colon before it was forgotten, and the pattern
    /// would mean everything.
    pub(super) fn check_colon(&self, name: &Name, sort: Sort) -> CypherResult<()> {
        let text = &name.kind.text;
        if !self.vocabulary || !sort.entries().any(|(known, _)| known == text) {
            return Ok(());
        }
        let message = format!("`{text}` is a variable here and says nothing about what is matched");
        Err(CypherError::new("MissingColon", name.span, message).help(format!("write `:{text}`")))
    }

    /// Refuses the names in the map of a pattern that what it describes cannot have.
    pub(super) fn check_entries(
        &self,
        entries: &[&MapEntry],
        labels: &[String],
        sort: Sort,
    ) -> CypherResult<()> {
        if !self.vocabulary {
            return Ok(());
        }
        entries.iter().try_for_each(|entry| {
            check_property(&entry.key, labels, sort)?;
            self.check_value(&entry.key.kind.text, &entry.value, labels, sort)
        })
    }

    /// Refuses to compare a property with a value that it never has: the answer would be the same for every row.
    pub(super) fn check_comparison(&self, left: &Expr, right: &Expr, scope: &Scope) -> CypherResult<()> {
        if !self.vocabulary {
            return Ok(());
        }
        for (subject, value) in [(left, right), (right, left)] {
            let ExprKind::Property { expression, key } = &subject.kind else { continue };
            let Some(variable) = variable(expression).and_then(|name| scope.find(&name.kind.text)) else {
                continue;
            };
            if let Some(sort) = Sort::of(&variable.type_of()) {
                self.check_value(&key.kind.text, value, &variable.labels, sort)?;
            }
        }
        Ok(())
    }

    /// Refuses texts that a property with a fixed list of values never has. `value` is a text or a list of texts; a
    /// parameter is looked at when the query runs, and what is only known then is not checked.
    fn check_value(&self, property: &str, value: &Expr, labels: &[String], sort: Sort) -> CypherResult<()> {
        match &value.kind {
            ExprKind::Parenthesized(inner) => self.check_value(property, inner, labels, sort),
            ExprKind::List(items) => {
                items.iter().try_for_each(|item| self.check_value(property, item, labels, sort))
            }
            ExprKind::Literal(literal) => match (&literal.kind, known_values(property, labels, sort)) {
                (LiteralKind::String(text), Some(known)) => {
                    is_known(property, &text.value, value.span, &known)
                }
                _ => Ok(()),
            },
            ExprKind::Parameter(parameter) => {
                if let ParameterName::Named(name) | ParameterName::Positional(name) = &parameter.name
                    && let Some(known) = known_values(property, labels, sort)
                {
                    let (parameter, property, span) = (name.clone(), property.to_owned(), value.span);
                    self.expected.borrow_mut().push(ExpectedValue { parameter, property, known, span });
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Refuses `subject.key` where the subject is a node or a relationship that cannot have it. Of a map, and of what
    /// only turns out to be something when the query runs, nothing is known.
    pub(super) fn check_access(
        &self,
        subject: &Expr,
        kind: &Type,
        key: &Name,
        scope: &Scope,
    ) -> CypherResult<()> {
        let Some(sort) = Sort::of(kind).filter(|_| self.vocabulary) else { return Ok(()) };
        let labels = match variable(subject).and_then(|name| scope.find(&name.kind.text)) {
            Some(variable) => variable.labels.as_slice(),
            None => &[],
        };
        check_property(key, labels, sort)
    }
}

fn variable(expression: &Expr) -> Option<&Name> {
    match &expression.kind {
        ExprKind::Variable(name) => Some(name),
        ExprKind::Parenthesized(inner) => variable(inner),
        _ => None,
    }
}

fn check_label(name: &Name, sort: Sort) -> CypherResult<()> {
    let wanted = &name.kind.text;
    if sort.entries().any(|(known, _)| known == wanted) {
        return Ok(());
    }
    let (kind, noun) = match sort {
        Sort::Relationship => ("UnknownRelationshipType", "relationship type"),
        _ => ("UnknownLabel", "label"),
    };
    let refusal = CypherError::new(kind, name.span, format!("the graph has no {noun} `{wanted}`"));
    Err(helped(refusal, wanted, &sort.entries().map(|(known, _)| *known).collect::<Vec<_>>()))
}

fn check_property(key: &Name, labels: &[String], sort: Sort) -> CypherResult<()> {
    let wanted = &key.kind.text;
    let of = |entry: &&Entry| labels.is_empty() || labels.iter().any(|label| label == entry.0);
    let mut known: Vec<&str> =
        sort.entries().filter(of).flat_map(|(_, properties)| *properties).copied().collect();
    if known.contains(&wanted.as_str()) {
        return Ok(());
    }
    known.sort_unstable();
    known.dedup();
    let owner = match (labels, sort) {
        ([], Sort::Relationship) => "a relationship".to_owned(),
        ([], _) => "a node".to_owned(),
        (labels, _) => labels.join(" or "),
    };
    let refusal =
        CypherError::new("UnknownProperty", key.span, format!("{owner} has no property `{wanted}`"));
    Err(helped(refusal, wanted, &known))
}

/// A parameter that is compared with a property that has a fixed list of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ExpectedValue {
    parameter: String,
    property: String,
    known: Vec<&'static str>,
    span: Span,
}

impl ExpectedValue {
    /// The same at another place of the query.
    pub(super) fn moved(self, place: impl Fn(Span) -> Span) -> Self {
        Self { span: place(self.span), ..self }
    }

    /// Refuses a text, or a list with a text, that the property never has.
    pub(crate) fn check(&self, value: Option<&Value>) -> CypherResult<()> {
        match value {
            Some(Value::String(text)) => is_known(&self.property, text, self.span, &self.known),
            Some(Value::Array(items)) => items.iter().try_for_each(|item| self.check(Some(item))),
            _ => Ok(()),
        }
    }

    pub(crate) fn parameter(&self) -> &str {
        &self.parameter
    }
}

/// The values that a property may have; none where they are not listed for all that has it.
fn known_values(property: &str, labels: &[String], sort: Sort) -> Option<Vec<&'static str>> {
    let owners = || {
        sort.entries().filter(|(name, properties)| {
            properties.contains(&property) && (labels.is_empty() || labels.iter().any(|label| label == name))
        })
    };
    let listed = |owner: &str| VALUES.iter().find(|(name, listed, _)| *name == owner && *listed == property);
    let mut known = Vec::new();
    for (owner, _) in owners() {
        // Something else that has a property of this name may have any value.
        let (_, _, values) = listed(owner)?;
        known.extend(*values);
    }
    (!known.is_empty()).then_some(known)
}

fn is_known(property: &str, text: &str, span: Span, known: &[&str]) -> CypherResult<()> {
    if known.contains(&text) {
        return Ok(());
    }
    let message = format!("`{property}` is never '{}'", tgp_text::one_line(text, MOST_SHOWN));
    Err(helped(CypherError::new("UnknownValue", span, message), text, known))
}

/// The nearest name, or else all of them.
fn helped(refusal: Box<CypherError>, wanted: &str, known: &[&str]) -> Box<CypherError> {
    match tgp_text::nearest(wanted, known.iter().copied()) {
        Some(near) => refusal.help(format!("did you mean `{near}`?")),
        None if known.is_empty() => refusal.help("it has no properties"),
        None => refusal.help(format!("there are: {}", known.join(", "))),
    }
}
