//! The arguments in the parentheses of a step, and tool arguments checked against their schemas.

use serde_json::{Map, Value};
use tgp_contract::ToolDefinition;

use super::expression::{Typed, constant, object_form};
use super::fields::{ARGUMENTS, FieldLabels};
use super::schema;
use super::scope::CheckContext;
use crate::plan::ExpressionForm;
use crate::suggest::hint;
use crate::syntax::text::Span;
use crate::syntax::token::Unescaped;
use crate::syntax::tree::{Argument, Entry, Expr, ExprForm, Name, Object, Step};
use crate::{Expression, QueryType};

/// The most problems a schema reports for one constant. One wrong object can be wrong in any number of ways.
const MAX_SCHEMA_PROBLEMS: usize = 10;

/// Words of a schema that say something of one property alone. With others beside them, a part of the arguments cannot
/// be judged without the rest.
const LOCAL: [&str; 10] = [
    "$schema",
    "$id",
    "$defs",
    "definitions",
    "title",
    "description",
    "type",
    "properties",
    "required",
    "additionalProperties",
];

/// The arguments of built-in tools that are run, or say what is run, and how a value gets there instead.
const CODE: [(&str, &str, &str); 6] = [
    ("exec_sql", "sql", "give the value as a parameter: `sql(\"… :name …\") { name: … }`"),
    ("graph_query", "query", "give the value as a parameter: `graph(\"… $name …\") { name: … }`"),
    ("shell_exec", "command", "write the command out; a value reaches it by `stdin: …`"),
    ("exec_tool", "path", "write the path out: `exec(\"tools/name.ts\") { … }`; values are its arguments"),
    ("exec_code", "code", "write the program out; values are its `args`"),
    ("test_tool", "path", "write the path out; a value never says which code runs"),
];

/// The parentheses of a step.
pub(super) struct ParsedArgs<'t> {
    pub kind: &'t Name,
    /// Without a name.
    pub plain: Vec<&'t Argument>,
    pub named: Vec<(&'t Name, &'t Argument)>,
}

impl<'t> ParsedArgs<'t> {
    pub fn get(&self, name: &str) -> Option<&'t Expr> {
        self.named.iter().find(|(given, _)| given.text == name).map(|(_, argument)| &argument.value)
    }

    /// Where a problem with what is missing is reported.
    pub fn span(&self) -> Span {
        self.kind.span
    }
}

/// Options that belong to other places than the parentheses.
fn elsewhere(kind: &str, name: &str) -> Option<String> {
    match (kind, name) {
        ("agent", "prompt") => Some("the prompt belongs in the braces: `{ prompt: \"…\" }`".to_owned()),
        ("agent", "as" | "schema" | "output") => {
            Some("a type belongs after the parentheses: `agent(…) as Type`".to_owned())
        }
        (
            "tool" | "exec" | "graph" | "sql" | "query",
            "args" | "arguments" | "params" | "parameters" | "inputs",
        ) => Some("arguments belong in the braces: `{ name: value }`".to_owned()),
        _ => None,
    }
}

impl CheckContext<'_> {
    /// Sorts the arguments in the parentheses and reports those that do not belong there. A `merge` takes any
    /// name.
    pub fn given<'t>(&mut self, step: &'t Step, allowed: &[&str], any_name: bool) -> ParsedArgs<'t> {
        let mut given = ParsedArgs { kind: &step.kind, plain: Vec::new(), named: Vec::new() };
        for argument in step.arguments.iter().flat_map(|arguments| &arguments.items) {
            let Some(name) = &argument.name else {
                given.plain.push(argument);
                continue;
            };
            if let Some((first, _)) = given.named.iter().find(|(given, _)| given.text == name.text) {
                let problem =
                    self.problem(name.span, "duplicate-name", format!("`{}` is there twice", name.text));
                let first = self.text.range(first.span);
                self.findings.add(problem.label(first, "the first one").help("leave one of them out"));
                continue;
            }
            if !allowed.contains(&name.text.as_str()) && !any_name {
                let kind = step.kind.text.as_str();
                let problem = self.problem(
                    name.span,
                    "unknown-option",
                    format!("`{kind}` has no option `{}`", name.text),
                );
                let help = elsewhere(kind, &name.text).or_else(|| hint(&name.text, allowed.iter().copied()));
                self.findings.add(problem.maybe_help(help));
                continue;
            }
            given.named.push((name, argument));
        }
        given
    }

    /// The one thing without a name that a kind takes.
    pub fn only<'t>(&mut self, given: &ParsedArgs<'t>, what: &str, help: &str) -> Option<&'t Argument> {
        if let Some(more) = given.plain.get(1) {
            self.tell(
                more.span,
                "wrong-arguments",
                format!("`{}` takes {what} and nothing else without a name", given.kind.text),
                help,
            );
        }
        let first = given.plain.first().copied();
        if first.is_none() {
            self.tell(given.span(), "wrong-arguments", format!("`{}` needs {what}", given.kind.text), help);
        }
        first
    }

    /// A text that is written out, because it is code or names something.
    pub fn constant_text(&mut self, expr: &Expr, what: &str) -> Option<Unescaped> {
        let help = match what {
            "the query" => "give the value as a parameter: `$name` in the query and `{ name: … }` behind it",
            "the statement" => {
                "give the value as a parameter: `:name` in the statement and `{ name: … }` behind it"
            }
            _ => "write it out; a value never becomes code or a name",
        };
        self.code(expr, what, "write it in quotes; a value never becomes code or a name", help)
    }

    /// Arguments of built-in tools that are code or name some: what holds for the kinds of steps holds for this way too.
    pub fn code_of(&mut self, tool: &ToolDefinition, body: Option<&Object>) {
        for (_, argument, help) in CODE.iter().filter(|(name, _, _)| *name == tool.name.as_str()) {
            let entries = body.into_iter().flat_map(|body| &body.entries);
            for entry in entries.filter(|entry| entry.key.text == *argument) {
                self.code(&entry.value, &format!("`{argument}` of `{}`", tool.name), help, help);
            }
        }
    }

    fn code(&mut self, expr: &Expr, what: &str, unquoted: &str, with_hole: &str) -> Option<Unescaped> {
        let ExprForm::Text(text) = &expr.form else {
            let message = format!("{what} is a text that is written out here");
            self.tell(expr.span, "wrong-type", message, unquoted);
            return None;
        };
        let found = text.constant();
        if found.is_none() {
            let span = text.hole().unwrap_or(text.span);
            self.tell(span, "hole-in-code", format!("{what} holds no `{{{{…}}}}`"), with_hole);
        }
        found
    }

    /// A bare name, a dotted one, or one in quotes.
    pub fn word(&mut self, expr: &Expr, what: &str) -> Option<String> {
        match &expr.form {
            ExprForm::Name(name) => Some(name.clone()),
            ExprForm::Field(of, name) => {
                let of = self.word(of, what)?;
                Some(format!("{of}.{}", name.text))
            }
            ExprForm::Text(_) => self.constant_text(expr, what).map(|cooked| cooked.text),
            _ => {
                self.tell(
                    expr.span,
                    "wrong-type",
                    format!("{what} is a name"),
                    "write it out; a value never becomes a name",
                );
                None
            }
        }
    }

    /// Arguments for something that says by a JSON Schema what it takes.
    pub fn arguments(
        &mut self,
        step: &Step,
        body: Option<&Object>,
        schema: &Value,
        owner: &str,
    ) -> Expression {
        let before = self.findings.len();
        let none = Object { entries: Vec::new(), span: step.kind.span };
        let object = body.unwrap_or(&none);
        let wanted = schema::to_type(schema);
        let typed = match &wanted {
            QueryType::Record(record) => self.object(object, record, owner, ARGUMENTS),
            _ => self.free(object),
        };
        if self.findings.len() == before {
            self.against_schema(object, &typed.expression, schema, owner);
        }
        typed.expression
    }

    /// An object of which nothing is known.
    pub fn free(&mut self, object: &Object) -> Typed {
        let entries = self.entries(object, |scope, _, value| scope.infer(value));
        self.record(entries, object.span)
    }

    /// Named values for a query, each of a type.
    pub fn named(
        &mut self,
        object: &Object,
        wanted: &crate::Record,
        owner: &str,
        words: FieldLabels,
    ) -> Vec<(String, Expression)> {
        let typed = self.object(object, wanted, owner, words);
        match typed.expression.form {
            ExpressionForm::Object(entries) => entries,
            ExpressionForm::Value(Value::Object(values)) => {
                let place = |name: &str| {
                    object
                        .entries
                        .iter()
                        .find(|entry| entry.key.text == name)
                        .map_or(object.span, |entry| entry.value.span)
                };
                values
                    .into_iter()
                    .map(|(name, value)| {
                        let span = place(&name);
                        (name, self.expression(ExpressionForm::Value(value), span))
                    })
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Has a schema judge what is constant: lengths, patterns, and all that types do not say.
    fn against_schema(&mut self, object: &Object, arguments: &Expression, schema: &Value, owner: &str) {
        let whole = constant(arguments);
        let local =
            schema.as_object().is_some_and(|schema| schema.keys().all(|key| LOCAL.contains(&key.as_str())));
        let (instance, schema) = match (whole, &arguments.form) {
            (Some(value), _) => (value, schema.clone()),
            (None, ExpressionForm::Object(entries)) if local => {
                let values: Map<String, Value> = entries
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), constant(value)?)))
                    .collect();
                let mut schema = schema.clone();
                if let Some(schema) = schema.as_object_mut() {
                    schema.remove("required");
                }
                (Value::Object(values), schema)
            }
            _ => return,
        };
        // A schema that cannot be used is the fault of its tool, and its calls will say so.
        let Ok(validator) = jsonschema::validator_for(&schema) else { return };
        for error in validator.iter_errors(&instance).take(MAX_SCHEMA_PROBLEMS) {
            let path = error.instance_path().to_string();
            let span = span_at(object, &path);
            let field = path.trim_start_matches('/').replace('/', ".");
            let what = if field.is_empty() { String::new() } else { format!("`{field}` of ") };
            let said: String = error.to_string().chars().take(200).collect();
            let problem = self.problem(span, "wrong-value", format!("{what}{owner} does not fit: {said}"));
            self.findings.add(problem);
        }
    }
}

/// Where the part of an object at a JSON pointer is written.
fn span_at(object: &Object, pointer: &str) -> Span {
    let mut span = object.span;
    let mut entries: &[Entry] = &object.entries;
    let mut items: &[Expr] = &[];
    for key in pointer.split('/').skip(1) {
        let key = key.replace("~1", "/").replace("~0", "~");
        let named = entries.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value);
        let numbered = key.parse::<usize>().ok().and_then(|at| items.get(at));
        let Some(value) = named.or(numbered) else { break };
        span = value.span;
        (entries, items) = match &value.form {
            ExprForm::Object(object) => (object.entries.as_slice(), [].as_slice()),
            ExprForm::List(list) => ([].as_slice(), list.as_slice()),
            _ => break,
        };
    }
    span
}

/// An object without fields.
pub(super) fn nothing() -> ExpressionForm {
    object_form(Vec::new())
}
