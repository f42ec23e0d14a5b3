//! A tool as one line of TypeScript.

use oxc::ast::ast::{Expression, FormalParameter, TSSignature, TSType, TSTypeName, TSTypeOperatorOperator};
use oxc::span::GetSpan;
use serde_json::Value;

use super::Source;
use super::arguments::{Arguments, Contract, contract};
use super::declarations::TypeDeclaration;
use super::entry::{Callable, Kind, Tool};
use super::outcome::Outcome;
use super::schema::{Env, Side, schema};
use super::values::peel;

/// The longest signature; it stands on one line of a list.
const MAX_SIGNATURE: usize = 300;

/// A type of the file is written out where it is used when it is not longer than this.
const MAX_EXPANDED: usize = 160;

/// How many types within types of the file are written out.
const MAX_NAMES: usize = 2;

/// How many types are printed; more would be cut off anyway.
const MAX_TYPES: usize = 400;

/// How deep a type is printed.
const MAX_DEPTH: usize = 16;

pub(super) fn signature<'a>(
    source: &Source<'a>,
    tool: &Tool<'a>,
    arguments: &Arguments<'a>,
    outcome: &Outcome<'a>,
) -> String {
    if tool.kind == Kind::Nothing {
        return String::new();
    }
    let mut printer = Printer { source, left: MAX_TYPES, open: Vec::new() };
    let first = match &arguments.annotation {
        Some((value, env)) => printer.print(value, env, 0),
        None => schema_text(&arguments.schema, MAX_DEPTH),
    };
    let contract = contract(source, tool);
    let parameters = match tool.callable {
        Some(callable) => printer.parameters(callable, &first, contract.as_ref()),
        None => format!("args: {first}"),
    };
    let result = match &outcome.annotation {
        Some((value, env)) => printer.print(value, env, 0),
        None => {
            let text = schema_text(&outcome.schema, MAX_DEPTH);
            let is_promise = tool.callable.is_some_and(Callable::is_async) && !text.starts_with("Promise");
            if is_promise { format!("Promise<{text}>") } else { text }
        }
    };
    tgp_text::truncate(&format!("({parameters}) => {result}"), MAX_SIGNATURE).into_owned()
}

struct Printer<'t, 'a> {
    source: &'t Source<'a>,
    left: usize,
    /// Types of the file that are being written out.
    open: Vec<&'a str>,
}

impl<'a> Printer<'_, 'a> {
    fn parameters(&mut self, callable: Callable<'a>, first: &str, contract: Option<&Contract<'a>>) -> String {
        let params = callable.params();
        let mut parts = Vec::new();
        for (at, parameter) in params.items.iter().enumerate() {
            let outside = contract.and_then(|contract| {
                let known = contract.params.items.get(at)?.type_annotation.as_deref()?;
                Some(self.print(&known.type_annotation, &contract.env, 0))
            });
            let text = if at == 0 { first.to_owned() } else { self.other(parameter, outside) };
            let name = match parameter.pattern.get_identifier_name() {
                Some(name) => name.to_string(),
                None if at == 0 => "args".to_owned(),
                None => format!("argument{}", at + 1),
            };
            let is_optional = parameter.optional || parameter.initializer.is_some();
            let mark = if is_optional { "?" } else { "" };
            parts.push(format!("{name}{mark}: {text}"));
        }
        if let Some(rest) = &params.rest {
            let name = rest.rest.argument.get_identifier_name().map_or("rest", |name| name.as_str());
            let known = rest.type_annotation.as_deref();
            let text = known
                .map_or("any[]".to_owned(), |known| self.print(&known.type_annotation, &Env::default(), 0));
            parts.push(format!("...{name}: {text}"));
        }
        parts.join(", ")
    }

    fn other(&mut self, parameter: &'a FormalParameter<'a>, outside: Option<String>) -> String {
        if let Some(known) = parameter.type_annotation.as_deref() {
            return self.print(&known.type_annotation, &Env::default(), 0);
        }
        let initial = parameter.initializer.as_deref().map(peel);
        outside.unwrap_or_else(|| {
            let kind = match initial {
                Some(Expression::NumericLiteral(_)) => "number",
                Some(Expression::StringLiteral(_) | Expression::TemplateLiteral(_)) => "string",
                Some(Expression::BooleanLiteral(_)) => "boolean",
                _ => "any",
            };
            kind.to_owned()
        })
    }

    fn print(&mut self, value: &'a TSType<'a>, env: &Env<'a>, depth: usize) -> String {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || depth > MAX_DEPTH {
            return "…".to_owned();
        }
        // A type in a comment has no text in the source.
        if env.foreign {
            return schema_text(&schema(self.source, Side::Parameters, value, env), MAX_DEPTH);
        }
        let depth = depth + 1;
        match value {
            TSType::TSParenthesizedType(inner) => {
                format!("({})", self.print(&inner.type_annotation, env, depth))
            }
            TSType::TSTypeLiteral(literal) => self.members(&literal.members, env, depth),
            TSType::TSUnionType(union) => self.list(&union.types, " | ", env, depth),
            TSType::TSIntersectionType(intersection) => self.list(&intersection.types, " & ", env, depth),
            TSType::TSArrayType(array) => {
                let element = self.print(&array.element_type, env, depth);
                let is_simple = matches!(
                    array.element_type,
                    TSType::TSParenthesizedType(_) | TSType::TSTypeLiteral(_) | TSType::TSArrayType(_)
                ) || !element.contains([' ', '='])
                    || is_bracketed(&element);
                if is_simple { format!("{element}[]") } else { format!("({element})[]") }
            }
            TSType::TSTypeReference(reference) => {
                let arguments = reference.type_arguments.as_deref();
                if let TSTypeName::IdentifierReference(name) = &reference.type_name {
                    let name = name.name.as_str();
                    if let Some(bound) = env.get(name).cloned() {
                        let known = bound.value.map(|value| self.print(value, &bound.env, depth));
                        return known.unwrap_or_else(|| name.to_owned());
                    }
                    if let Some(written_out) = self.written_out(value, env, depth) {
                        return written_out;
                    }
                }
                if let TSTypeName::QualifiedName(_) = &reference.type_name
                    && arguments.is_some()
                {
                    // `z.infer<typeof schema>` names no type that anyone could look up.
                    let known = schema(self.source, Side::Parameters, value, env);
                    if known != Value::Bool(true) {
                        return schema_text(&known, MAX_DEPTH);
                    }
                }
                let name = one_line(self.source.text(reference.type_name.span()));
                match arguments {
                    Some(arguments) => format!("{name}<{}>", self.list(&arguments.params, ", ", env, depth)),
                    None => name,
                }
            }
            TSType::TSTypeOperatorType(operator) if operator.operator == TSTypeOperatorOperator::Readonly => {
                format!("readonly {}", self.print(&operator.type_annotation, env, depth))
            }
            other => one_line(self.source.text(other.span())),
        }
    }

    fn list(&mut self, types: &'a [TSType<'a>], between: &str, env: &Env<'a>, depth: usize) -> String {
        let parts: Vec<String> =
            types.iter().take(self.left).map(|part| self.print(part, env, depth)).collect();
        parts.join(between)
    }

    /// A type of the file in place of its name, when it is short.
    fn written_out(&mut self, value: &'a TSType<'a>, env: &Env<'a>, depth: usize) -> Option<String> {
        let TSType::TSTypeReference(reference) = value else { return None };
        let TSTypeName::IdentifierReference(name) = &reference.type_name else { return None };
        let name = name.name.as_str();
        if self.open.len() >= MAX_NAMES || self.open.contains(&name) {
            return None;
        }
        let arguments = reference.type_arguments.as_deref();
        let source = self.source;
        let [declaration] = source.declarations.types(name) else { return None };
        self.open.push(name);
        let text = match declaration {
            TypeDeclaration::Alias { value, parameters, foreign } => {
                let mut inner = Env::bind(*parameters, arguments, env);
                inner.foreign = *foreign;
                Some(self.print(value, &inner, depth))
            }
            TypeDeclaration::Interface(interface) if interface.extends.is_empty() => {
                let inner = Env::bind(interface.type_parameters.as_deref(), arguments, env);
                Some(self.members(&interface.body.body, &inner, depth))
            }
            // What it inherits is written nowhere as a whole.
            TypeDeclaration::Interface(_) => {
                Some(schema_text(&schema(source, Side::Parameters, value, env), MAX_DEPTH))
            }
            TypeDeclaration::Enum(_) => None,
        };
        self.open.pop();
        text.filter(|text| text.chars().count() <= MAX_EXPANDED && !text.contains('…'))
    }

    fn members(&mut self, members: &'a [TSSignature<'a>], env: &Env<'a>, depth: usize) -> String {
        let mut parts = Vec::new();
        for member in members.iter().take(self.left) {
            parts.push(match member {
                TSSignature::TSPropertySignature(property) if !property.computed => {
                    let key = one_line(self.source.text(property.key.span()));
                    let mark = if property.optional { "?" } else { "" };
                    let known = property.type_annotation.as_deref();
                    let text = known
                        .map_or("any".to_owned(), |known| self.print(&known.type_annotation, env, depth));
                    format!("{key}{mark}: {text}")
                }
                other => one_line(self.source.text(other.span()).trim_end_matches([';', ','])),
            });
        }
        if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join("; ")) }
    }
}

/// An object or a tuple, and nothing beside it: `{ … } | { … }` also begins and ends in brackets.
fn is_bracketed(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut closed = 0;
    for character in text.chars() {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                closed += usize::from(depth == 0);
            }
            _ => {}
        }
    }
    text.starts_with(['{', '[']) && text.ends_with(['}', ']']) && closed == 1
}

/// Code on one line, without comments; strings stay as they are.
fn one_line(code: &str) -> String {
    let mut line = String::new();
    let mut characters = code.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(character) = characters.next() {
        if let Some(open) = quote {
            // A template may hold a line break, which is the same as its escape.
            let mut push = |character: char| match character {
                '\n' => line.push_str("\\n"),
                '\r' => line.push_str("\\r"),
                other => line.push(other),
            };
            push(character);
            if character == '\\' {
                characters.next().into_iter().for_each(push);
            } else if character == open {
                quote = None;
            }
            continue;
        }
        match (character, characters.peek()) {
            ('/', Some('/')) => while characters.next_if(|next| *next != '\n').is_some() {},
            ('/', Some('*')) => {
                let mut before = ' ';
                characters.next();
                for next in characters.by_ref() {
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
            }
            (blank, _) if blank.is_whitespace() => {
                if !line.ends_with(' ') {
                    line.push(' ');
                }
            }
            (other, _) => {
                quote = Some(other).filter(|other| matches!(other, '"' | '\'' | '`'));
                line.push(other);
            }
        }
    }
    line.trim().to_owned()
}

/// A schema as TypeScript, for types that the source does not write down.
fn schema_text(schema: &Value, depth: usize) -> String {
    let any = || "any".to_owned();
    let Some(depth) = depth.checked_sub(1) else { return any() };
    if *schema == Value::Bool(false) {
        return "never".to_owned();
    }
    let Value::Object(fields) = schema else { return any() };
    if let Some(Value::String(path)) = fields.get("$ref") {
        return path.rsplit('/').next().unwrap_or("any").to_owned();
    }
    if let Some(value) = fields.get("const") {
        return literal_text(value);
    }
    let join = |list: &[Value], between: &str, text: &dyn Fn(&Value) -> String| {
        list.iter().map(text).collect::<Vec<_>>().join(between)
    };
    if let Some(Value::Array(values)) = fields.get("enum") {
        return join(values, " | ", &literal_text);
    }
    for (keyword, between) in [("anyOf", " | "), ("allOf", " & ")] {
        if let Some(Value::Array(options)) = fields.get(keyword) {
            return join(options, between, &|option| schema_text(option, depth));
        }
    }
    match fields.get("type") {
        Some(Value::String(kind)) => kind_text(kind, schema, depth),
        Some(Value::Array(kinds)) => {
            join(kinds, " | ", &|kind| kind_text(kind.as_str().unwrap_or("any"), schema, depth))
        }
        _ => any(),
    }
}

fn kind_text(kind: &str, schema: &Value, depth: usize) -> String {
    match kind {
        "integer" => "number".to_owned(),
        "object" => object_text(schema, depth),
        "array" => {
            if let Some(Value::Array(items)) = schema.get("prefixItems") {
                let items: Vec<String> = items.iter().map(|item| schema_text(item, depth)).collect();
                return format!("[{}]", items.join(", "));
            }
            let item = schema.get("items").map_or("any".to_owned(), |items| schema_text(items, depth));
            let is_simple = !item.contains(' ') || is_bracketed(&item);
            if is_simple { format!("{item}[]") } else { format!("({item})[]") }
        }
        other => other.to_owned(),
    }
}

fn object_text(schema: &Value, depth: usize) -> String {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return match schema.get("additionalProperties") {
            Some(rest) => format!("Record<string, {}>", schema_text(rest, depth)),
            None => "object".to_owned(),
        };
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|required| required.iter().any(|known| known == name));
    let parts: Vec<String> = properties
        .iter()
        .take(MAX_SIGNATURE)
        .map(|(name, value)| {
            let mark = if is_required(name) { "" } else { "?" };
            let is_plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
            let key = if is_plain { name.clone() } else { literal_text(&Value::String(name.clone())) };
            format!("{key}{mark}: {}", schema_text(value, depth))
        })
        .collect();
    if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join("; ")) }
}

fn literal_text(value: &Value) -> String {
    match value {
        Value::String(text) if !text.contains(['\'', '\\']) && !text.contains(char::is_control) => {
            format!("'{text}'")
        }
        other => other.to_string(),
    }
}
