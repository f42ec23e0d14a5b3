//! Patterns: the only place where a query gets at nodes and relationships.

use open_cypher::ast::{
    LabelExpression, LabelExpressionKind, Name, NodePattern, PathFactorKind, PathPattern, Pattern,
    Quantifier, QuantifierKind, RelationshipDirection, RelationshipPattern,
};

use super::{MOMENT, Writer, name, unsupported, word};
use tgp_graph::mirroring::{CypherError, CypherResult};

/// What a path leads over.
enum Step {
    Node(String),
    Relationship,
    /// Relationships that may be none at all.
    Optional(String),
}

impl Writer<'_> {
    /// The text of a pattern; what must hold of it is added to `conditions`.
    pub(super) fn pattern(
        &mut self,
        pattern: &Pattern,
        conditions: &mut Vec<String>,
    ) -> CypherResult<String> {
        let mut parts = Vec::new();
        for part in &pattern.parts {
            if let Some(selector) = &part.kind.selector {
                return unsupported(selector.span, "a path selector");
            }
            let path = self.path(&part.kind.path, conditions)?;
            parts.push(match &part.kind.binding {
                Some(binding) => format!("{} = {path}", name(binding)?),
                None => path,
            });
        }
        Ok(parts.join(", "))
    }

    fn path(&mut self, path: &PathPattern, conditions: &mut Vec<String>) -> CypherResult<String> {
        let mut text = String::new();
        let mut steps = Vec::new();
        for factor in &path.kind.factors {
            let (part, step) = match &factor.kind {
                PathFactorKind::Node(node) => self.node(node, conditions)?,
                PathFactorKind::Relationship(relationship) => self.relationship(relationship, conditions)?,
                PathFactorKind::LegacyShortest { .. } => return unsupported(factor.span, "a shortest path"),
                _ => return unsupported(factor.span, "this part of a path"),
            };
            text.push_str(&part);
            steps.push(step);
        }
        conditions.extend(gone(&steps));
        Ok(text)
    }

    fn node(&mut self, node: &NodePattern, conditions: &mut Vec<String>) -> CypherResult<(String, Step)> {
        let alias = self.alias(node.variable.as_ref())?;
        conditions.push(at_moment(&alias));
        let labels = node.labels.as_ref().map(conjunction).transpose()?.unwrap_or_default();
        let properties = self.properties(node.properties.as_deref())?;
        if let Some(condition) = &node.where_clause {
            conditions.push(format!("({})", self.expression(condition)?));
        }
        Ok((format!("({alias}{labels}{properties})"), Step::Node(alias)))
    }

    fn relationship(
        &mut self,
        relationship: &RelationshipPattern,
        conditions: &mut Vec<String>,
    ) -> CypherResult<(String, Step)> {
        let alias = self.alias(relationship.variable.as_ref())?;
        if let Some(quantifier) = &relationship.graph_quantifier {
            return unsupported(quantifier.span, "a quantifier after a relationship");
        }
        let (length, step) = match &relationship.legacy_quantifier {
            Some(quantifier) => {
                let each = self.fresh();
                conditions.push(format!("all({each} IN {alias} WHERE {})", at_moment(&each)));
                let (least, most) = length(quantifier, self.hops)?;
                let step = if least == 0 { Step::Optional(alias.clone()) } else { Step::Relationship };
                (format!("*{least}..{most}"), step)
            }
            None => {
                conditions.push(at_moment(&alias));
                (String::new(), Step::Relationship)
            }
        };
        let types = relationship.labels.as_ref().map(alternatives).transpose()?.unwrap_or_default();
        let properties = self.properties(relationship.properties.as_deref())?;
        if let Some(condition) = &relationship.where_clause {
            conditions.push(format!("({})", self.expression(condition)?));
        }
        let inside = format!("[{alias}{types}{length}{properties}]");
        let text = match relationship.direction.kind {
            RelationshipDirection::Left => format!("<-{inside}-"),
            RelationshipDirection::Right => format!("-{inside}->"),
            RelationshipDirection::Undirected | RelationshipDirection::Both => format!("-{inside}-"),
            _ => return unsupported(relationship.direction.span, "this direction"),
        };
        Ok((text, step))
    }

    fn alias(&mut self, variable: Option<&Name>) -> CypherResult<String> {
        match variable {
            Some(variable) => name(variable),
            None => Ok(self.fresh()),
        }
    }

    fn properties(&mut self, properties: Option<&open_cypher::ast::Expr>) -> CypherResult<String> {
        properties.map_or_else(|| Ok(String::new()), |map| Ok(format!(" {}", self.expression(map)?)))
    }
}

/// That a row holds at the moment of the question. On the server a relationship holds only while both its ends do.
fn at_moment(alias: &str) -> String {
    format!("{alias}._since <= ${MOMENT} AND {alias}._until > ${MOMENT}")
}

/// A file that was renamed away is there for its renames only, and those are all the relationships it has. So a node
/// without any is not one of them.
fn gone(steps: &[Step]) -> Vec<String> {
    let mut conditions = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let Step::Node(alias) = step else { continue };
        let before = place.checked_sub(1).and_then(|place| steps.get(place));
        let beside: Vec<&Step> = before.into_iter().chain(steps.get(place + 1)).collect();
        let mut ways = vec![format!("{alias}._ghost = false")];
        ways.extend(beside.iter().filter_map(|step| match step {
            Step::Optional(links) => Some(format!("size({links}) > 0")),
            Step::Node(_) | Step::Relationship => None,
        }));
        match ways.as_slice() {
            _ if beside.iter().any(|step| matches!(step, Step::Relationship)) => {}
            [only] => conditions.push(only.clone()),
            several => conditions.push(format!("({})", several.join(" OR "))),
        }
    }
    conditions
}

/// The least and the most relationships of a variable length.
fn length(quantifier: &Quantifier, hops: u32) -> CypherResult<(u32, u32)> {
    let number = |text: &String| {
        let number = text.parse::<u32>().ok().filter(|number| *number <= hops);
        number.ok_or_else(|| {
            let message = format!("a path of {text} relationships, at most {hops} are walked");
            CypherError::new("InvalidArgumentValue", quantifier.span, message).help("ask for shorter paths")
        })
    };
    Ok(match &quantifier.kind {
        QuantifierKind::ZeroOrMore => (1, hops),
        QuantifierKind::Fixed(text) => (number(text)?, number(text)?),
        QuantifierKind::Range { lower, upper } => (
            lower.as_ref().map(number).transpose()?.unwrap_or(1),
            upper.as_ref().map(number).transpose()?.unwrap_or(hops),
        ),
        _ => return unsupported(quantifier.span, "this quantifier"),
    })
}

/// Labels that a node must all have.
pub(super) fn conjunction(labels: &LabelExpression) -> CypherResult<String> {
    match &labels.kind {
        LabelExpressionKind::Name(label) => Ok(format!(":{}", word(&label.kind))),
        LabelExpressionKind::And(parts) => parts.iter().map(conjunction).collect(),
        LabelExpressionKind::Parenthesized(inner) => conjunction(inner),
        _ => unsupported(labels.span, "this expression of labels"),
    }
}

/// Types of which a relationship has one.
fn alternatives(types: &LabelExpression) -> CypherResult<String> {
    match &types.kind {
        LabelExpressionKind::Name(label) => Ok(format!(":{}", word(&label.kind))),
        LabelExpressionKind::Or(parts) => {
            let names = parts.iter().map(alternatives).collect::<CypherResult<Vec<_>>>()?;
            let bare: Vec<&str> = names.iter().map(|name| name.trim_start_matches(':')).collect();
            Ok(format!(":{}", bare.join("|")))
        }
        LabelExpressionKind::Parenthesized(inner) => alternatives(inner),
        _ => unsupported(types.span, "this expression of types"),
    }
}
