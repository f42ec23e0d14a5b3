//! The arguments of a tool, checked against the types that it declares before it runs.

mod shown;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tgp_contract::{
    Actor, Code, DeclaredObject, DeclaredType, DeclaredTypes, RelativePath, ToolError, canonical,
};
use tgp_router::Invocation;
use tgp_text::{did_you_mean, nearest};

use super::ToolRuntime;
use super::program::CompiledTool;
use shown::{kind, literal, path_of, spell};

/// Problems that one error lists. One wrong object can be wrong in any number of ways.
const MAX_PROBLEMS: usize = 10;

/// Types inside of each other that arguments are compared with; types may mention themselves. Deeper arguments are
/// refused. JSON of callers has at most 128 levels, each of which may be one of several types.
const MAX_DEPTH: usize = 260;

/// Comparisons for one call. Types that are alternatives of each other at
/// every level would need more than anyone waits for; such arguments are refused.
const MAX_STEPS: usize = 1_000_000;

/// Steps that a name takes which is compared with a misspelt one.
const HINT_STEPS: usize = 20;

/// Bytes of the type that the help of an error shows.
const MAX_TYPE_BYTES: usize = 300;

/// Names of fields that an error lists.
const MAX_NAMES: usize = 12;

impl ToolRuntime {
    /// Whether a tool can be called with these arguments. Returns what the caller should know about them.
    ///
    /// # Errors
    /// `EVALIDATION` for arguments that do not fit, `ECOMPILE` with the findings for a tool that no caller can call.
    pub(super) async fn check_call(
        &self,
        invocation: Invocation<'_>,
        path: &RelativePath,
        prepared: &CompiledTool,
        arguments: &Value,
    ) -> Result<Vec<String>, ToolError> {
        prepared.must_be_runnable(path)?;
        refuse_inexact(arguments)?;
        let Some(types) = prepared.declared() else { return Ok(Vec::new()) };
        if types.more_parameters {
            return Err(self.uncallable(invocation, path).await);
        }
        check_arguments(types, path, arguments, &invocation.context.actor)
    }

    /// What the checker says of a tool with several parameters.
    async fn uncallable(&self, invocation: Invocation<'_>, path: &RelativePath) -> ToolError {
        let message = format!(
            "`{path}` has more than one parameter: a tool is called with one argument, so the others would be `undefined`"
        );
        let error = ToolError::new(Code::Compile, message)
            .help("take one object and name what is in it: `(args: { first: string; second: number })`");
        let source = invocation.visible_tools().await.read_text(path);
        let Ok(source) = source else { return error };
        match self.check_source(path, &source).await {
            Ok(findings) => error.detail("findings", json!(findings)),
            Err(_) => error,
        }
    }
}

/// JavaScript would silently round an integer beyond 2^53.
fn refuse_inexact(arguments: &Value) -> Result<(), ToolError> {
    canonical::check(arguments).map_err(|error| {
        ToolError::new(Code::Validation, format!("the tool's arguments: {error}")).help("pass it as a string")
    })
}

/// Checks the arguments of a call. Returns what a person should know about fields that the tool does not declare.
///
/// # Errors
/// `EVALIDATION` with the place of the first value that does not fit.
fn check_arguments(
    types: &DeclaredTypes,
    tool: &RelativePath,
    arguments: &Value,
    actor: &Actor,
) -> Result<Vec<String>, ToolError> {
    if types.parameters == DeclaredType::Any || (types.may_be_empty && is_empty(arguments)) {
        return Ok(Vec::new());
    }
    let mut check = ArgumentCheck { types, path: Vec::new(), depth: 0, left: MAX_STEPS };
    let mut found = Found::default();
    check.value(&types.parameters, arguments, &mut found);
    if check.left == 0 {
        let message = format!("the arguments of `{tool}` are too large to be compared with its types");
        return Err(ToolError::new(Code::Validation, message)
            .help("pass less at a time, or give the alternatives of the type a field with a constant each"));
    }
    let mut problems = found.wrong;
    let mut warnings = Vec::new();
    match actor {
        // Values of another tool may have more fields, as in TypeScript.
        Actor::Tool(_) => {}
        Actor::Person(_) => warnings = found.unknown,
        Actor::Agent(_) => problems.extend(found.unknown),
    }
    if problems.is_empty() {
        return Ok(warnings);
    }
    let hidden = problems.len().saturating_sub(MAX_PROBLEMS);
    problems.truncate(MAX_PROBLEMS);
    if hidden > 0 {
        problems.push("more does not fit".to_owned());
    }
    let message = format!("the arguments of `{tool}` do not fit: {}", problems.join("; "));
    let problems: Vec<Value> = problems.iter().map(|problem| json!({ "message": problem })).collect();
    let declared = spell(types, &types.parameters, MAX_TYPE_BYTES);
    Err(ToolError::new(Code::Validation, message)
        .detail("problems", json!(problems))
        .help(format!("nothing ran; pass what the tool declares: {declared}")))
}

/// No arguments at all: a call without any gives an empty object.
fn is_empty(arguments: &Value) -> bool {
    arguments.is_null() || arguments.as_object().is_some_and(Map::is_empty)
}

/// One step on the way to a value.
#[derive(Clone, Copy)]
enum Step<'v> {
    Field(&'v str),
    Index(usize),
}

/// What does not fit.
#[derive(Default)]
struct Found {
    wrong: Vec<String>,
    /// Fields that are not declared.
    unknown: Vec<String>,
}

impl Found {
    fn is_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }
}

struct ArgumentCheck<'v> {
    types: &'v DeclaredTypes,
    path: Vec<Step<'v>>,
    depth: usize,
    /// Comparisons that are left.
    left: usize,
}

impl<'v> ArgumentCheck<'v> {
    fn value(&mut self, ty: &'v DeclaredType, value: &'v Value, found: &mut Found) {
        self.left = self.left.saturating_sub(1);
        // One more than is listed is enough to count on.
        if self.left == 0 || found.wrong.len() > MAX_PROBLEMS {
            return;
        }
        if self.depth >= MAX_DEPTH {
            found.wrong.push(format!("{} is nested too deeply", self.place()));
            return;
        }
        self.depth += 1;
        self.compare(self.types.resolve(ty), value, found);
        self.depth -= 1;
    }

    fn compare(&mut self, ty: &'v DeclaredType, value: &'v Value, found: &mut Found) {
        let fits = match (ty, value) {
            (DeclaredType::Any, _)
            | (DeclaredType::String, Value::String(_))
            | (DeclaredType::Number, Value::Number(_))
            | (DeclaredType::Boolean, Value::Bool(_))
            | (DeclaredType::Null | DeclaredType::Absent, Value::Null)
            // Text is what JSON has for a date; the bridge between tools may carry more.
            | (DeclaredType::Date, Value::String(_) | Value::Object(_)) => true,
            (DeclaredType::Literal(wanted), value) => is_same(wanted, value),
            (DeclaredType::List(item), Value::Array(values)) => {
                self.items(values.iter().map(|value| (&**item, value)), found);
                true
            }
            (DeclaredType::Tuple { items, required, rest }, Value::Array(values)) => {
                let most = if rest.is_some() { usize::MAX } else { items.len() };
                if (*required..=most).contains(&values.len()) {
                    let rest = rest.as_deref().unwrap_or(&DeclaredType::Any);
                    let all = items.iter().chain(std::iter::repeat(rest));
                    self.items(all.zip(values), found);
                    true
                } else {
                    false
                }
            }
            (DeclaredType::Object(object), Value::Object(fields)) => {
                self.object(object, fields, found);
                true
            }
            (DeclaredType::OneOf(options), value) => {
                self.one_of(ty, options, value, found);
                true
            }
            (DeclaredType::AllOf(parts), value) => {
                for part in parts {
                    let mut inner = Found::default();
                    self.value(part, value, &mut inner);
                    // A field that one part does not have may be one of another.
                    found.wrong.extend(inner.wrong);
                }
                true
            }
            _ => false,
        };
        if !fits {
            found.wrong.push(self.misfit(ty, value));
        }
    }

    fn misfit(&self, ty: &DeclaredType, value: &Value) -> String {
        let (found, declared) = (kind(self.types, ty, value), spell(self.types, ty, MAX_TYPE_BYTES));
        format!("{} is {found}, the tool declares {declared}", self.place())
    }

    fn items(&mut self, items: impl Iterator<Item = (&'v DeclaredType, &'v Value)>, found: &mut Found) {
        for (at, (ty, value)) in items.enumerate() {
            self.path.push(Step::Index(at));
            self.value(ty, value, found);
            self.path.pop();
        }
    }

    fn object(&mut self, object: &'v DeclaredObject, fields: &'v Map<String, Value>, found: &mut Found) {
        self.left = self.left.saturating_sub(object.fields.len());
        if self.left == 0 {
            return;
        }
        for (name, field) in &object.fields {
            self.path.push(Step::Field(name));
            match fields.get(name) {
                Some(value) => self.value(&field.ty, value, found),
                None if field.optional => {}
                None => {
                    let declared = spell(self.types, &field.ty, MAX_TYPE_BYTES);
                    let misspelt = self.misspelt(name, object, fields);
                    found
                        .wrong
                        .push(format!("{} is missing, the tool declares {declared}{misspelt}", self.place()));
                }
            }
            self.path.pop();
        }
        for (name, value) in fields.iter().filter(|(name, _)| !object.fields.contains_key(*name)) {
            self.path.push(Step::Field(name));
            match &object.others {
                Some(others) => self.value(others, value, found),
                None if found.unknown.len() < MAX_PROBLEMS => {
                    let names = object.fields.keys().map(String::as_str);
                    found.unknown.push(self.unknown(name, &names.collect()));
                }
                None => {}
            }
            self.path.pop();
        }
    }

    /// A given field that may have been meant as the missing one.
    fn misspelt(&mut self, name: &str, object: &DeclaredObject, fields: &Map<String, Value>) -> String {
        self.left = self.left.saturating_sub(fields.len().saturating_mul(HINT_STEPS));
        let others = fields.keys().filter(|given| !object.fields.contains_key(*given));
        match nearest(name, others.map(String::as_str)) {
            Some(given) => format!(" (did you mean it by {}?)", literal(&Value::from(given))),
            None => String::new(),
        }
    }

    fn unknown(&mut self, name: &str, names: &BTreeSet<&str>) -> String {
        // To find a similar name takes longer than to compare a value.
        self.left = self.left.saturating_sub(names.len().saturating_mul(HINT_STEPS));
        let hint = did_you_mean(name, names.iter().copied()).unwrap_or_else(|| {
            let more = if names.len() > MAX_NAMES { ", …" } else { "" };
            let names: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
            format!("there is {}{more}", names.join(", "))
        });
        format!("{} is a field that the tool does not declare; {hint}", self.place())
    }

    fn one_of(
        &mut self,
        whole: &'v DeclaredType,
        options: &'v [DeclaredType],
        value: &'v Value,
        found: &mut Found,
    ) {
        let mut best: Option<Found> = None;
        let mut refused: Option<Found> = None;
        let mut candidates = 0_usize;
        for option in options {
            if self.left == 0 {
                return;
            }
            if !self.is_candidate(option, value) {
                continue;
            }
            candidates += 1;
            let mut inner = Found::default();
            self.value(option, value, &mut inner);
            if inner.is_wrong() {
                refused = Some(inner);
                continue;
            }
            if best.as_ref().is_none_or(|best| inner.unknown.len() < best.unknown.len()) {
                best = Some(inner);
            }
            if best.as_ref().is_some_and(|best| best.unknown.is_empty()) {
                return;
            }
        }
        match (best, refused) {
            // As in TypeScript, a value may have the fields of several of the objects.
            (Some(_), _) if candidates > 1 => self.unknown_in_all(options, value, found),
            (Some(best), _) => found.unknown.extend(best.unknown),
            // Only one was meant: what is wrong with it says more than that nothing fits.
            (None, Some(refused)) if candidates == 1 => found.wrong.extend(refused.wrong),
            _ => {
                let problem = self.discriminated(options, value);
                found.wrong.push(problem.unwrap_or_else(|| self.misfit(whole, value)));
            }
        }
    }

    /// What is wrong with the field that says which of several objects a value is: each of them has a constant in it.
    fn discriminated(&mut self, options: &'v [DeclaredType], value: &'v Value) -> Option<String> {
        let given = value.as_object()?;
        let constants = |name: &str| -> Option<Vec<&'v Value>> {
            let constant = |option: &'v DeclaredType| match self.types.resolve(option) {
                DeclaredType::Object(object) => match self.types.resolve(&object.fields.get(name)?.ty) {
                    DeclaredType::Literal(wanted) => Some(wanted),
                    _ => None,
                },
                _ => None,
            };
            options.iter().map(constant).collect()
        };
        let DeclaredType::Object(first) = self.types.resolve(options.first()?) else { return None };
        let cost = first.fields.len().saturating_mul(options.len());
        let (name, wanted) = first.fields.keys().find_map(|name| Some((name, constants(name)?)))?;
        self.left = self.left.saturating_sub(cost);
        let found = match given.get(name) {
            Some(value) if wanted.iter().any(|wanted| is_same(wanted, value)) => return None,
            Some(value @ (Value::String(_) | Value::Number(_) | Value::Bool(_))) => literal(value),
            Some(value) => kind(self.types, &DeclaredType::Any, value),
            None => "missing".to_owned(),
        };
        let more = if wanted.len() > MAX_NAMES { ", …" } else { "" };
        let shown: Vec<String> = wanted.iter().take(MAX_NAMES).map(|value| literal(value)).collect();
        self.path.push(Step::Field(name));
        let text = format!("{} is {found}; expected {}{more}", self.place(), shown.join(" or "));
        self.path.pop();
        Some(text)
    }

    /// The fields of a value that none of the objects has.
    fn unknown_in_all(&mut self, options: &'v [DeclaredType], value: &'v Value, found: &mut Found) {
        let mut names = BTreeSet::new();
        for option in options {
            match self.types.resolve(option) {
                DeclaredType::Object(object) if object.others.is_none() => {
                    names.extend(object.fields.keys().map(String::as_str));
                }
                // What has fields in another way may have any.
                DeclaredType::Object(_) | DeclaredType::AllOf(_) | DeclaredType::OneOf(_) => return,
                _ => {}
            }
        }
        for name in value.as_object().into_iter().flat_map(Map::keys) {
            if !names.contains(name.as_str()) && found.unknown.len() < MAX_PROBLEMS {
                self.path.push(Step::Field(name));
                found.unknown.push(self.unknown(name, &names));
                self.path.pop();
            }
        }
    }

    /// Whether a value can be meant as one of these: it is of the same kind, and no constant of it says otherwise.
    fn is_candidate(&mut self, option: &'v DeclaredType, value: &Value) -> bool {
        self.left = self.left.saturating_sub(1);
        match (self.types.resolve(option), value) {
            (DeclaredType::Any | DeclaredType::AllOf(_) | DeclaredType::OneOf(_), _) => true,
            (DeclaredType::String, value) => value.is_string(),
            (DeclaredType::Number, value) => value.is_number(),
            (DeclaredType::Boolean, value) => value.is_boolean(),
            (DeclaredType::Null | DeclaredType::Absent, value) => value.is_null(),
            (DeclaredType::Date, value) => value.is_string() || value.is_object(),
            (DeclaredType::Literal(wanted), value) => is_same(wanted, value),
            (DeclaredType::List(_) | DeclaredType::Tuple { .. }, value) => value.is_array(),
            (DeclaredType::Object(object), Value::Object(fields)) => {
                self.left = self.left.saturating_sub(object.fields.len());
                object.fields.iter().all(|(name, field)| {
                    match (self.types.resolve(&field.ty), fields.get(name)) {
                        (DeclaredType::Literal(wanted), Some(value)) => is_same(wanted, value),
                        _ => true,
                    }
                })
            }
            _ => false,
        }
    }

    fn place(&self) -> String {
        path_of(&self.path)
    }
}

/// Whether two plain values are the same to JavaScript: `1` is `1.0`.
fn is_same(wanted: &Value, value: &Value) -> bool {
    match (wanted, value) {
        (Value::Number(wanted), Value::Number(value)) => wanted.as_f64() == value.as_f64(),
        (wanted, value) => wanted == value,
    }
}
