//! Expressions.

use open_cypher::Span;
use open_cypher::ast::{
    CaseExpression, Expr, ExprKind, IntegerLiteral, IntegerRadix, IsPredicate, LiteralKind, MapProjection,
    MapProjectionItemKind, Name, ParameterName, UnaryOperator,
};

use crate::cypher::error::{CypherError, CypherResult};
use crate::cypher::types::Type;
use crate::cypher::value::{Value, kind};
use crate::tables::positions;

use super::scope::{Scope, Variable};
use super::visible::PropertyRow;
use super::{Bind, Compiler};

/// How an expression is represented in the SQL.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// A value of Cypher.
    Value,
    /// 1, 0 or null.
    Truth,
    /// The row of a node or a relationship, with its id and its properties.
    Entity { id: String, props: PropertyRow },
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Sql {
    pub text: String,
    pub kind: Type,
    pub form: Form,
}

impl Sql {
    pub fn value(kind: Type, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind, form: Form::Value }
    }

    pub fn truth(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Type::Bool, form: Form::Truth }
    }

    pub fn variable(variable: &Variable) -> Self {
        let form = match &variable.props {
            Some(props) => Form::Entity { id: variable.id.clone(), props: props.clone() },
            None => Form::Value,
        };
        Self { text: variable.value.clone(), kind: variable.type_of(), form }
    }
}

/// The most arguments that SQLite takes in one call.
const MAX_ARGUMENTS: usize = 100;

impl Compiler<'_> {
    /// The SQL of an expression as a value.
    pub(super) fn value_of(&mut self, expression: &Expr, scope: &Scope) -> CypherResult<String> {
        let sql = self.expression(expression, scope)?;
        Ok(self.as_value(sql))
    }

    /// The SQL of an expression as a condition.
    pub(super) fn truth_of(&mut self, expression: &Expr, scope: &Scope) -> CypherResult<String> {
        let sql = self.expression(expression, scope)?;
        self.as_truth(sql, expression.span)
    }

    pub(super) fn as_value(&self, sql: Sql) -> String {
        match (sql.form, sql.kind) {
            (Form::Value, _) => sql.text,
            (Form::Truth, _) => match sql.text.as_str() {
                "1" => "x'0101'".to_owned(),
                "0" => "x'0100'".to_owned(),
                _ => format!("cy_bool({})", sql.text),
            },
            (Form::Entity { id, .. }, Type::Relationship) => format!("cy_rel({}, {id})", sql.text),
            (Form::Entity { id, .. }, _) => format!("cy_node({}, {id})", sql.text),
        }
    }

    pub(super) fn as_truth(&mut self, sql: Sql, span: Span) -> CypherResult<String> {
        if !sql.kind.may_be_bool() {
            let message = format!("a boolean is needed, this is {}", sql.kind.noun());
            return Err(CypherError::new("InvalidArgumentType", span, message));
        }
        Ok(match sql.form {
            Form::Truth => sql.text,
            _ => {
                self.site("cy_truth", span);
                format!("cy_truth({})", self.as_value(sql))
            }
        })
    }

    pub(super) fn expression(&mut self, expression: &Expr, scope: &Scope) -> CypherResult<Sql> {
        if let Some((_, variable)) = scope.spans.iter().find(|(span, _)| *span == expression.span) {
            return Ok(Sql::variable(variable));
        }
        if !scope.spellings.is_empty() {
            let spelling = self.spelling(expression.span);
            if let Some((_, variable)) = scope.spellings.iter().find(|(known, _)| *known == spelling) {
                return Ok(Sql::variable(variable));
            }
        }
        let span = expression.span;
        // Only the words between a condition and its patterns keep the leave to hold one.
        let inner = if scope.predicate { &scope.predicates(false) } else { scope };
        match &expression.kind {
            ExprKind::Parenthesized(within) => self.expression(within, scope),
            ExprKind::Literal(literal) => self.written(&literal.kind, span, Sign::Plus),
            ExprKind::Variable(name) => self.named(name, scope),
            ExprKind::Parameter(parameter) => match &parameter.name {
                ParameterName::Named(name) | ParameterName::Positional(name) => {
                    Ok(Sql::value(Type::Any, self.bind_at(Bind::Parameter(name.clone()), span)))
                }
                _ => Err(CypherError::unsupported(span, "this parameter")),
            },
            ExprKind::List(items) => self.list(items, inner),
            ExprKind::Map(entries) => {
                let entries: Vec<_> = entries.iter().map(|entry| (&entry.key, &entry.value)).collect();
                self.map(&entries, inner)
            }
            ExprKind::MapProjection(projection) => self.map_projection(projection, inner),
            ExprKind::Unary { operator, operand } => match operator.kind {
                UnaryOperator::Not => Ok(Sql::truth(format!("(NOT {})", self.truth_of(operand, scope)?))),
                UnaryOperator::Minus => self.negative(operand, span, inner),
                UnaryOperator::Plus => self.expression(operand, inner),
                _ => Err(CypherError::unsupported(operator.span, "this operator")),
            },
            ExprKind::Binary { left, operator, right } => self.binary(left, operator, right, span, scope),
            ExprKind::Is { expression, negated, predicate } => {
                self.is(expression, *negated, predicate, span, inner)
            }
            ExprKind::Property { expression, key } => {
                let subject = self.expression(expression, inner)?;
                self.check_access(expression, &subject.kind, key, inner)?;
                self.property(subject, &key.kind.text, span)
            }
            ExprKind::Index { expression, index } | ExprKind::DynamicProperty { expression, key: index } => {
                self.index(expression, index, inner)
            }
            ExprKind::Slice { expression, lower, upper } => {
                let subject = self.expression(expression, inner)?;
                let kind = subject.kind.clone();
                let subject = self.as_value(subject);
                let lower = lower.as_ref().map_or(Ok("0".to_owned()), |lower| self.value_of(lower, inner))?;
                let upper =
                    upper.as_ref().map_or(Ok(i64::MAX.to_string()), |upper| self.value_of(upper, inner))?;
                self.site("cy_slice", span);
                Ok(Sql::value(kind, format!("cy_slice({subject}, {lower}, {upper})")))
            }
            ExprKind::Function(call) => self.call(call, span, scope),
            ExprKind::Case(case) => self.case(case, inner),
            ExprKind::ListComprehension(comprehension) => self.comprehension(comprehension, inner),
            ExprKind::PatternComprehension(comprehension) => self.pattern_comprehension(comprehension, inner),
            ExprKind::Reduce(reduce) => self.reduce(reduce, inner),
            ExprKind::QuantifiedPredicate(quantified) => self.quantified(quantified, inner),
            ExprKind::Subquery(subquery) => self.subquery(subquery, inner),
            ExprKind::Pattern(pattern) if scope.predicate => self.pattern_exists(pattern, inner),
            ExprKind::Pattern(_) => {
                Err(CypherError::new("UnexpectedSyntax", span, "a pattern is a condition, it has no value")
                    .help("write exists(...), or a comprehension: [(a)-->(b) | b]"))
            }
            _ => Err(CypherError::unsupported(span, "this expression")),
        }
    }

    fn named(&mut self, name: &Name, scope: &Scope) -> CypherResult<Sql> {
        match scope.find(&name.kind.text) {
            Some(variable) => Ok(Sql::variable(variable)),
            None => Err(self.undefined(&name.kind.text, name.span, scope)),
        }
    }

    fn written(&mut self, literal: &LiteralKind, span: Span, sign: Sign) -> CypherResult<Sql> {
        Ok(match literal {
            LiteralKind::Null => Sql::value(Type::Null, "NULL"),
            LiteralKind::Boolean(value) => Sql::truth(if *value { "1" } else { "0" }),
            LiteralKind::Integer(literal) => {
                let number = integer(literal, sign).ok_or_else(|| {
                    CypherError::new("IntegerOverflow", span, format!("`{}` is beyond 64 bits", literal.text))
                })?;
                Sql::value(Type::Int, self.literal(Value::Int(number)))
            }
            LiteralKind::Float(literal) => {
                let number: f64 = literal.text.replace('_', "").parse().unwrap_or(f64::INFINITY);
                if number.is_infinite() {
                    let message = format!("`{}` is beyond what a float can hold", literal.text);
                    return Err(CypherError::new("FloatingPointOverflow", span, message));
                }
                let number = if sign == Sign::Minus { -number } else { number };
                Sql::value(Type::Float, self.literal(Value::Float(number)))
            }
            LiteralKind::String(literal) => Sql::value(Type::Text, self.text(&literal.value)),
            _ => return Err(CypherError::unsupported(span, "this literal")),
        })
    }

    /// The lowest integer has no positive counterpart, so a sign belongs to its literal.
    fn negative(&mut self, operand: &Expr, span: Span, scope: &Scope) -> CypherResult<Sql> {
        if let ExprKind::Literal(literal) = &operand.kind
            && matches!(literal.kind, LiteralKind::Integer(_) | LiteralKind::Float(_))
        {
            return self.written(&literal.kind, span, Sign::Minus);
        }
        let sql = self.expression(operand, scope)?;
        if !sql.kind.may_be_number() {
            let message = format!("`-` needs a number, this is {}", sql.kind.noun());
            return Err(CypherError::new("InvalidArgumentType", span, message));
        }
        let kind = sql.kind.clone();
        self.site("cy_neg", span);
        Ok(Sql::value(kind, format!("cy_neg({})", self.as_value(sql))))
    }

    fn list(&mut self, items: &[Expr], scope: &Scope) -> CypherResult<Sql> {
        let mut kind = None;
        let mut parts = Vec::new();
        for item in items {
            let sql = self.expression(item, scope)?;
            let known = sql.kind.clone();
            kind = Some(match kind {
                None => known,
                Some(before) => Type::or(before, known),
            });
            parts.push(self.as_value(sql));
        }
        let lists = parts.chunks(MAX_ARGUMENTS).map(|chunk| format!("cy_list({})", chunk.join(", ")));
        let text = lists.reduce(|one, other| format!("cy_add({one}, {other})"));
        let kind = kind.unwrap_or(Type::Null);
        Ok(Sql::value(Type::list(kind), text.unwrap_or_else(|| "cy_list()".to_owned())))
    }

    pub(super) fn map(&mut self, entries: &[(&Name, &Expr)], scope: &Scope) -> CypherResult<Sql> {
        let mut parts = Vec::new();
        for (key, value) in entries {
            let value = self.value_of(value, scope)?;
            parts.push(format!("{}, {value}", self.text(&key.kind.text)));
        }
        Ok(Sql::value(Type::Map, mapped(&parts)))
    }

    fn map_projection(&mut self, projection: &MapProjection, scope: &Scope) -> CypherResult<Sql> {
        let base = self.expression(&projection.base, scope)?;
        let span = projection.base.span;
        if !base.kind.may_have_properties() {
            let message =
                format!("only nodes, relationships and maps have properties, this is {}", base.kind.noun());
            return Err(CypherError::new("InvalidArgumentType", span, message));
        }
        let mut text = "cy_map()".to_owned();
        for item in &projection.items {
            let part = match &item.kind {
                MapProjectionItemKind::AllProperties => self.properties(base.clone(), span)?.text,
                MapProjectionItemKind::Property(name) => {
                    self.check_access(&projection.base, &base.kind, name, scope)?;
                    let value = self.property(base.clone(), &name.kind.text, span)?;
                    let value = self.as_value(value);
                    mapped(&[format!("{}, {value}", self.text(&name.kind.text))])
                }
                MapProjectionItemKind::Variable(name) => {
                    let value = self.named(name, scope)?;
                    let value = self.as_value(value);
                    mapped(&[format!("{}, {value}", self.text(&name.kind.text))])
                }
                MapProjectionItemKind::Entry(entry) => self.map(&[(&entry.key, &entry.value)], scope)?.text,
                _ => return Err(CypherError::unsupported(item.span, "this part of a map projection")),
            };
            text = format!("cy_merge({text}, {part})");
        }
        let base = match base.form {
            Form::Entity { .. } => base.text,
            _ => self.as_value(base),
        };
        Ok(Sql::value(Type::Map, format!("CASE WHEN {base} IS NOT NULL THEN {text} END")))
    }

    /// A property of a row.
    pub(super) fn property_of(&mut self, row: &PropertyRow, name: &str) -> String {
        let plain = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let bound = self.text(name);
        // SQLite reads other names as paths.
        if positions::PROPERTIES.contains(&name) {
            row.position(&bound)
        } else if plain {
            format!("cy_json({})", row.json(&bound))
        } else {
            format!("cy_get({}, {bound})", row.map())
        }
    }

    pub(super) fn property(&mut self, subject: Sql, name: &str, span: Span) -> CypherResult<Sql> {
        if !subject.kind.may_have_properties() {
            let message = format!(
                "only nodes, relationships and maps have properties, this is {}",
                subject.kind.noun()
            );
            return Err(CypherError::new("InvalidArgumentType", span, message));
        }
        if let Form::Entity { props, .. } = &subject.form {
            return Ok(Sql::value(Type::Any, self.property_of(props, name)));
        }
        let kind = subject.kind.clone();
        let text = self.as_value(subject);
        let bound = self.text(name);
        self.site("cy_get", span);
        let sql = match kind {
            Type::Map => format!("cy_get({text}, {bound})"),
            _ => self.once(&text, |compiler, value| {
                let [node, edge] = rows_of(value);
                let (node, edge) = (compiler.property_of(&node, name), compiler.property_of(&edge, name));
                by_kind(value, &node, &edge, &format!("cy_get({value}, {bound})"))
            }),
        };
        Ok(Sql::value(Type::Any, sql))
    }

    fn index(&mut self, subject: &Expr, index: &Expr, scope: &Scope) -> CypherResult<Sql> {
        let subject = self.expression(subject, scope)?;
        self.site("cy_index", index.span);
        let index = self.value_of(index, scope)?;
        if let Form::Entity { props, .. } = &subject.form {
            return Ok(Sql::value(Type::Any, format!("cy_index({}, {index})", props.map())));
        }
        let kind = subject.kind.clone();
        let text = self.as_value(subject);
        Ok(match kind {
            Type::List(item) => Sql::value(*item, format!("cy_index({text}, {index})")),
            Type::Map => Sql::value(Type::Any, format!("cy_index({text}, {index})")),
            _ => {
                let sql = self.once(&text, |_, value| {
                    let [node, edge] = rows_of(value);
                    let of = |row: &PropertyRow| format!("cy_index({}, {index})", row.map());
                    by_kind(value, &of(&node), &of(&edge), &format!("cy_index({value}, {index})"))
                });
                Sql::value(Type::Any, sql)
            }
        })
    }

    /// Uses a value several times while it is computed once.
    pub(super) fn once(&mut self, text: &str, make: impl FnOnce(&mut Self, &str) -> String) -> String {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '?');
        if text.chars().all(plain) {
            return make(self, text);
        }
        let table = self.name("t");
        let body = make(self, &format!("{table}.v"));
        format!("(SELECT {body} FROM (SELECT {text} AS v) AS {table})")
    }

    fn case(&mut self, case: &CaseExpression, scope: &Scope) -> CypherResult<Sql> {
        let operand = case.operand.as_ref().map(|operand| self.value_of(operand, scope)).transpose()?;
        let table = self.name("t");
        let mut kind = Type::Null;
        let mut arms = String::new();
        let conditions = scope.predicates(true);
        for alternative in &case.alternatives {
            let mut tests = Vec::new();
            for when in &alternative.when {
                tests.push(match &operand {
                    Some(_) => format!("cy_eq({table}.v, {})", self.value_of(when, scope)?),
                    None => self.truth_of(when, &conditions)?,
                });
            }
            let then = self.expression(&alternative.then, scope)?;
            kind = kind.or(then.kind.clone());
            let then = self.as_value(then);
            arms.push_str(&format!(" WHEN {} THEN {then}", tests.join(" OR ")));
        }
        if let Some(otherwise) = &case.else_expression {
            let otherwise = self.expression(otherwise, scope)?;
            kind = kind.or(otherwise.kind.clone());
            arms.push_str(&format!(" ELSE {}", self.as_value(otherwise)));
        }
        Ok(Sql::value(
            kind,
            match operand {
                Some(operand) => format!("(SELECT CASE{arms} END FROM (SELECT {operand} AS v) AS {table})"),
                None => format!("(CASE{arms} END)"),
            },
        ))
    }

    fn is(
        &mut self,
        subject: &Expr,
        negated: bool,
        predicate: &IsPredicate,
        span: Span,
        scope: &Scope,
    ) -> CypherResult<Sql> {
        let subject_sql = self.expression(subject, scope)?;
        let sql = match predicate {
            IsPredicate::Null => {
                let text = match &subject_sql.form {
                    Form::Value => self.as_value(subject_sql),
                    _ => subject_sql.text,
                };
                let not = if negated { " NOT" } else { "" };
                return Ok(Sql::truth(format!("({text} IS{not} NULL)")));
            }
            IsPredicate::Label(labels) => self.labelled(subject_sql, labels, subject.span)?,
            _ => return Err(CypherError::unsupported(span, "this test")),
        };
        Ok(if negated { Sql::truth(format!("(NOT {sql})")) } else { Sql::truth(sql) })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

fn integer(literal: &IntegerLiteral, sign: Sign) -> Option<i64> {
    let text = literal.text.replace('_', "");
    let (digits, radix) = match literal.radix {
        IntegerRadix::Hexadecimal => (text.get(2..)?, 16),
        IntegerRadix::Octal => (text.get(2..)?, 8),
        _ => (text.as_str(), 10),
    };
    let number = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if sign == Sign::Minus { -number } else { number }).ok()
}

/// A map of pairs `key, value`.
fn mapped(pairs: &[String]) -> String {
    let maps = pairs.chunks(MAX_ARGUMENTS / 2).map(|chunk| format!("cy_map({})", chunk.join(", ")));
    maps.reduce(|one, other| format!("cy_merge({one}, {other})")).unwrap_or_else(|| "cy_map()".to_owned())
}

/// The rows of a value that may be a node or a relationship.
pub(super) fn rows_of(value: &str) -> [PropertyRow; 2] {
    [
        PropertyRow::Node(format!("cy_row({value}, {})", kind::NODE)),
        PropertyRow::Relationship(format!("cy_row({value}, {})", kind::RELATIONSHIP)),
    ]
}

/// One of three expressions, by what a value is.
pub(super) fn by_kind(value: &str, node: &str, edge: &str, other: &str) -> String {
    format!(
        "CASE cy_kind({value}) WHEN {} THEN {node} WHEN {} THEN {edge} ELSE {other} END",
        kind::NODE,
        kind::RELATIONSHIP
    )
}
