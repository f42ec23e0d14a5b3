//! The schema of a tool's arguments: from types, else from patterns, comments and what the body reads.

use oxc::ast::ast::{
    BindingPattern, Declaration, Expression, FormalParameter, FormalParameters, Statement, TSSignature,
    TSType, TSTypeName,
};
use serde_json::{Map, Value, json};

use super::Source;
use super::declarations::{TypeDeclaration, parse_type};
use super::doc::{Doc, ParameterTag};
use super::entry::{Callable, Kind, MAX_STEPS, Tool, cast};
use super::reads::{Read, Subject, pattern_names, reads};
use super::schema::{Env, Side, annotate, object, peel_type, schema, stated};
use super::values::peel;

/// How deep `@param args.one.two` may reach.
const MAX_PATH: usize = 4;

/// A type with what its names stand for.
pub(super) type Typed<'a> = (&'a TSType<'a>, Env<'a>);

/// What is known of the arguments.
pub(super) struct Arguments<'a> {
    pub(super) schema: Value,
    /// The type as it is written, unless it says nothing.
    pub(super) annotation: Option<Typed<'a>>,
}

/// The head of a function type.
pub(super) struct Contract<'a> {
    pub(super) params: &'a FormalParameters<'a>,
    pub(super) return_type: Option<&'a TSType<'a>>,
    pub(super) env: Env<'a>,
}

pub(super) fn arguments<'a>(source: &Source<'a>, tool: &Tool<'a>, docs: &[Doc]) -> Arguments<'a> {
    let parameter = tool.callable.and_then(|callable| callable.params().items.first());
    let typed = annotation(source, tool, parameter);
    let mut known =
        typed.as_ref().map_or(Value::Bool(true), |(value, env)| schema(source, Side::Parameters, value, env));
    let (found, parsed) = found(source, tool, parameter);
    if known == Value::Bool(true) {
        known = parsed.unwrap_or(known);
    }
    let is_typed = known != Value::Bool(true);
    let tags: Vec<ParameterTag> = docs.iter().flat_map(Doc::parameters).collect();
    let tagged = Tagged::new(source, tool, parameter);
    if !is_typed {
        known = tagged.whole(&tags);
    }
    known = if is_typed { with_defaults(known, found) } else { with_names(known, found) };
    for tag in &tags {
        tagged.apply(&mut known, tag, is_typed);
    }
    let says_nothing =
        |value: &TSType<'_>| matches!(value, TSType::TSAnyKeyword(_) | TSType::TSUnknownKeyword(_));
    Arguments { schema: known, annotation: typed.filter(|(value, _)| !says_nothing(value)) }
}

/// The type of the arguments, wherever it is given.
fn annotation<'a>(
    source: &Source<'a>,
    tool: &Tool<'a>,
    parameter: Option<&'a FormalParameter<'a>>,
) -> Option<Typed<'a>> {
    if tool.kind == Kind::Script {
        return script_annotation(source);
    }
    let own = parameter.and_then(|parameter| parameter.type_annotation.as_deref());
    if let Some(own) = own {
        let generics = tool.callable.and_then(Callable::type_parameters);
        return Some((&own.type_annotation, Env::bind(generics, None, &Env::default())));
    }
    let contract = contract(source, tool)?;
    let outside = contract.params.items.first()?.type_annotation.as_deref()?;
    Some((&outside.type_annotation, contract.env))
}

/// `declare const args: T`, `const { … }: T = args`, `args as T`, or a function that is given all of `args`.
fn script_annotation<'a>(source: &Source<'a>) -> Option<Typed<'a>> {
    let is_args =
        |value: &Expression<'_>| matches!(peel(value), Expression::Identifier(name) if name.name == "args");
    let declarations = source.program.body.iter().filter_map(|statement| match statement {
        Statement::ExportDeclaration(export) => Some(&export.declaration),
        statement => statement.as_declaration(),
    });
    for declaration in declarations {
        let Declaration::VariableDeclaration(variables) = declaration else { continue };
        for declarator in &variables.declarations {
            let annotation = declarator.type_annotation.as_deref().map(|known| &known.type_annotation);
            let is_declared =
                variables.declare && declarator.id.get_identifier_name().is_some_and(|name| name == "args");
            let known = match &declarator.init {
                Some(value) if is_args(value) => annotation.or_else(|| cast(value)),
                _ => annotation.filter(|_| is_declared),
            };
            if let Some(known) = known {
                return Some((known, Env::default()));
            }
        }
    }
    for (name, position) in reads(source, Subject::Script).passed_to {
        let function = source.declarations.function(name).map(|declared| declared.callable);
        let function =
            function.or_else(|| match peel(source.declarations.variable(name)?.0.init.as_ref()?) {
                Expression::ArrowFunctionExpression(arrow) => Some(Callable::Arrow(arrow)),
                Expression::FunctionExpression(function) => Some(Callable::Function(function)),
                _ => None,
            });
        let parameter = function.and_then(|function| function.params().items.get(position));
        if let Some(known) = parameter.and_then(|parameter| parameter.type_annotation.as_deref()) {
            let generics = function.and_then(Callable::type_parameters);
            return Some((&known.type_annotation, Env::bind(generics, None, &Env::default())));
        }
    }
    None
}

/// The function type that a tool is given from outside, past its names.
pub(super) fn contract<'a>(source: &Source<'a>, tool: &Tool<'a>) -> Option<Contract<'a>> {
    let mut value = tool.contract?;
    let mut env = Env::default();
    for _ in 0..MAX_STEPS {
        match peel_type(value) {
            TSType::TSFunctionType(function) => {
                let return_type = Some(&function.return_type.type_annotation);
                return Some(Contract { params: &function.params, return_type, env });
            }
            TSType::TSTypeLiteral(literal) => return call_signature(&literal.members, &env),
            TSType::TSTypeReference(reference) => {
                let TSTypeName::IdentifierReference(name) = &reference.type_name else { return None };
                let arguments = reference.type_arguments.as_deref();
                if let Some(bound) = env.get(name.name.as_str()).cloned() {
                    (value, env) = (bound.value?, bound.env);
                    continue;
                }
                match source.declarations.types(name.name.as_str()).first()? {
                    TypeDeclaration::Alias { value: alias, parameters, foreign } => {
                        env = Env::bind(*parameters, arguments, &env);
                        env.foreign = *foreign;
                        value = alias;
                    }
                    TypeDeclaration::Interface(interface) => {
                        let env = Env::bind(interface.type_parameters.as_deref(), arguments, &env);
                        return call_signature(&interface.body.body, &env);
                    }
                    TypeDeclaration::Enum(_) => return None,
                }
            }
            _ => return None,
        }
    }
    None
}

fn call_signature<'a>(members: &'a [TSSignature<'a>], env: &Env<'a>) -> Option<Contract<'a>> {
    members.iter().find_map(|member| match member {
        TSSignature::TSCallSignatureDeclaration(call) => {
            let return_type = call.return_type.as_deref().map(|known| &known.type_annotation);
            Some(Contract { params: &call.params, return_type, env: env.clone() })
        }
        _ => None,
    })
}

/// The names that the pattern of the parameter, or the body, reads of the arguments, and the schema that the body
/// parses them with.
fn found(
    source: &Source<'_>,
    tool: &Tool<'_>,
    parameter: Option<&FormalParameter<'_>>,
) -> (Vec<Read>, Option<Value>) {
    let subject = match parameter.map(|parameter| &parameter.pattern) {
        _ if tool.kind == Kind::Script => Some(Subject::Script),
        Some(BindingPattern::ObjectPattern(pattern)) => return (pattern_names(pattern), None),
        Some(BindingPattern::BindingIdentifier(name)) => name.symbol_id.get().map(Subject::Symbol),
        _ => None,
    };
    let Some(subject) = subject else { return (Vec::new(), None) };
    let reads = reads(source, subject);
    (reads.found, reads.parsed)
}

/// Adds the defaults to a schema that types gave.
fn with_defaults(known: Value, found: Vec<Read>) -> Value {
    let mut known = known;
    for read in found {
        let (Some(default), Some(fields)) = (read.default, known.as_object_mut()) else { continue };
        if let Some(property) =
            fields.get_mut("properties").and_then(|properties| properties.get_mut(&read.name))
        {
            *property = with_default(property.take(), default);
            drop_required(fields, &read.name);
        }
    }
    known
}

/// What the code does decides, whatever a comment says.
fn with_default(schema: Value, default: Value) -> Value {
    match annotate(schema, "default", default.clone()) {
        Value::Object(mut fields) => {
            fields.insert("default".to_owned(), default);
            Value::Object(fields)
        }
        other => other,
    }
}

/// Adds names of which nothing else is known.
fn with_names(known: Value, found: Vec<Read>) -> Value {
    // Lists and strings have a length too.
    let is_only_length = found.iter().all(|read| read.name == "length");
    let is_open = known == Value::Bool(true) || known.get("type") == Some(&json!("object"));
    if is_only_length || !is_open {
        return known;
    }
    let mut properties = Map::new();
    for read in found {
        let value = read.default.map_or(Value::Bool(true), |default| json!({ "default": default }));
        properties.insert(read.name, value);
    }
    match known {
        Value::Object(mut fields) => {
            // What a comment says of a property is more than that it is read.
            if let Some(Value::Object(more)) = fields.get("properties") {
                properties.extend(more.clone());
            }
            fields.insert("properties".to_owned(), Value::Object(properties));
            Value::Object(fields)
        }
        _ => object(properties, Vec::new(), None),
    }
}

fn drop_required(fields: &mut Map<String, Value>, name: &str) {
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|known| known != name);
        if required.is_empty() {
            fields.remove("required");
        }
    }
}

/// How `@param` tags speak of one parameter.
struct Tagged<'t, 'a> {
    source: &'t Source<'a>,
    /// The parameter's name; a pattern has none, so any will do.
    name: Option<&'a str>,
    /// The other parameters: their tags say nothing of the arguments.
    others: Vec<&'a str>,
    is_script: bool,
}

impl<'t, 'a> Tagged<'t, 'a> {
    fn new(source: &'t Source<'a>, tool: &Tool<'a>, parameter: Option<&'a FormalParameter<'a>>) -> Self {
        let is_script = tool.kind == Kind::Script;
        let own = parameter.and_then(|parameter| parameter.pattern.get_identifier_name());
        let name = own.map(|name| name.as_str()).or(is_script.then_some("args"));
        let params = tool.callable.map(Callable::params);
        let others = params.into_iter().flat_map(|params| params.items.iter().skip(1));
        let others = others.filter_map(|other| other.pattern.get_identifier_name()).map(|name| name.as_str());
        Self { source, name, others: others.collect(), is_script }
    }

    fn kind(&self, tag: &ParameterTag) -> Option<Value> {
        let value = parse_type(self.source.allocator, tag.kind.as_deref()?)?;
        Some(schema(self.source, Side::Parameters, value, &Env::of_comment()))
    }

    /// What the tag of the parameter itself says.
    fn whole(&self, tags: &[ParameterTag]) -> Value {
        let whole =
            tags.iter().find(|tag| tag.path.len() == 1 && tag.path.first().map(String::as_str) == self.name);
        whole.and_then(|tag| self.kind(tag)).unwrap_or(Value::Bool(true))
    }

    fn apply(&self, schema: &mut Value, tag: &ParameterTag, is_typed: bool) {
        let Some((root, rest)) = tag.path.split_first() else { return };
        let is_root = self.name.is_none_or(|name| name == root);
        let path = match rest {
            [] if self.name == Some(root.as_str()) => {
                if !tag.text.is_empty() {
                    *schema = annotate(schema.take(), "description", Value::String(tag.text.clone()));
                }
                return;
            }
            [] if self.others.contains(&root.as_str()) => return,
            // Many write the properties as if they were parameters.
            [] if self.is_script || has_property(schema, root) => tag.path.as_slice(),
            [] => return,
            rest if is_root => rest,
            _ => return,
        };
        if path.len() <= MAX_PATH {
            let kind = if is_typed { None } else { self.kind(tag) };
            describe_property(schema, path, tag, kind, is_typed);
        }
    }
}

fn has_property(schema: &Value, name: &str) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
}

/// Adds what a tag says of the property at `path`. Types know all properties; comments may name new ones.
fn describe_property(
    schema: &mut Value,
    path: &[String],
    tag: &ParameterTag,
    kind: Option<Value>,
    is_typed: bool,
) {
    let Some((name, rest)) = path.split_first() else { return };
    if *schema == Value::Bool(true) && !is_typed {
        *schema = json!({ "type": "object" });
    }
    let Some(fields) = schema.as_object_mut() else { return };
    // `args.items[].name` speaks of the elements.
    if fields.get("type") == Some(&json!("array")) {
        if let Some(items) = fields.get_mut("items") {
            describe_property(items, path, tag, kind, is_typed);
        }
        return;
    }
    if !is_typed && !fields.contains_key("properties") {
        fields.insert("properties".to_owned(), json!({}));
    }
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    if !properties.contains_key(name) {
        if is_typed {
            return;
        }
        properties.insert(name.clone(), Value::Bool(true));
    }
    let Some(property) = properties.get_mut(name) else { return };
    if !rest.is_empty() {
        return describe_property(property, rest, tag, kind, is_typed);
    }
    if let Some(kind) = kind {
        *property = extended(kind, property.take());
    }
    if !tag.text.is_empty() {
        *property = annotate(property.take(), "description", Value::String(tag.text.clone()));
    }
    if let Some(default) = tag.default.as_deref().and_then(stated) {
        *property = annotate(property.take(), "default", default);
    }
    let is_optional = tag.is_optional || property.get("default").is_some();
    if is_optional {
        drop_required(fields, name);
    } else if !is_typed {
        let required = fields.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required
            && !required.iter().any(|known| known == name)
        {
            required.push(Value::String(name.clone()));
        }
    }
}

/// A schema with the keywords another one has besides.
fn extended(schema: Value, more: Value) -> Value {
    let Value::Object(more) = more else { return schema };
    more.into_iter().fold(schema, |schema, (keyword, value)| annotate(schema, &keyword, value))
}
