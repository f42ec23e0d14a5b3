//! Steps, kind by kind.

use tgp_contract::{Effect, ToolDefinition};
use tgp_text::{LineCol, nearest};

use super::arguments::{ParsedArgs, nothing};
use super::embedded::{Parameter, cypher_parameters, is_select, sql_parameters};
use super::fields::INPUTS;
use super::options::{AROUND, EFFECT};
use super::schema;
use super::scope::CheckContext;
use crate::plan::{Agent, Input, Kind, MAX_NESTING};
use crate::suggest::hint;
use crate::syntax::text::Span;
use crate::syntax::token::Unescaped;
use crate::syntax::tree::{Body, ExprForm, Object, Step};
use crate::{Field, QueryPlan, QueryType, Record};

/// Turns of an agent that says nothing of it.
const DEFAULT_TURNS: u64 = 16;

/// What a step of some kind came to.
pub(super) struct LoweredStep<'t> {
    pub kind: Kind,
    pub ty: QueryType,
    pub given: ParsedArgs<'t>,
    /// Why it cannot be cached; `None` when it can.
    pub changes: Option<String>,
}

fn with_effect<'o>(own: &[&'o str]) -> Vec<&'o str> {
    own.iter().copied().chain(EFFECT).collect()
}

fn object_of(step: &Step) -> Option<&Object> {
    match &step.body {
        Some(Body::Object(object)) => Some(object),
        _ => None,
    }
}

impl CheckContext<'_> {
    pub fn agent<'t>(&mut self, step: &'t Step) -> Option<LoweredStep<'t>> {
        let own = ["model", "tools", "system", "temperature", "max_steps"];
        let given = self.given(step, &with_effect(&own), false);
        if let Some(plain) = given.plain.first() {
            let help = "write `agent(model: \"…\") { prompt: \"…\" }`";
            self.tell(plain.span, "wrong-arguments", "what an agent is given has a name", help);
        }
        let model = given.get("model").and_then(|expr| {
            let model = self.constant_text(expr, "the model")?;
            if model.text.trim().is_empty() {
                self.tell(
                    expr.span,
                    "wrong-value",
                    "the model has no name",
                    "write a name, `\"provider/name\"` or `\"script:FILE\"`",
                );
            }
            Some(model.text)
        });
        let (tools, changes) = self.agent_tools(&given);
        let system =
            given.get("system").map(|expr| self.fitting(expr, &QueryType::String, "`system`").expression);
        let temperature = self.temperature(&given);
        let max_steps = self.max_steps(&given).unwrap_or(DEFAULT_TURNS);
        let (mut prompt, mut meant) = (None, false);
        let empty = Object { entries: Vec::new(), span: step.span };
        let body = object_of(step).unwrap_or(&empty);
        self.entries(body, |scope, name, value| {
            if name.text == "prompt" {
                let typed = scope.fitting(value, &QueryType::String, "`prompt`");
                prompt = Some(typed.expression);
            } else {
                let problem = scope.problem(
                    name.span,
                    "unknown-field",
                    format!("`agent` has no field `{}`", name.text),
                );
                let help = if own.contains(&name.text.as_str()) || EFFECT.contains(&name.text.as_str()) {
                    Some(format!("`{0}` belongs in the parentheses: `agent({0}: …)`", name.text))
                } else {
                    meant |= nearest(&name.text, ["prompt"]).is_some();
                    hint(&name.text, ["prompt"])
                };
                scope.findings.add(problem.maybe_help(help));
            }
            scope.wrong(value.span)
        });
        let Some(prompt) = prompt else {
            if !meant {
                self.tell(
                    step.kind.span,
                    "missing-prompt",
                    "an agent needs a `prompt`",
                    "write `agent(…) { prompt: \"what it should do\" }`",
                );
            }
            return None;
        };
        let agent = Agent { model, tools, system, temperature, max_steps, prompt };
        Some(LoweredStep { kind: Kind::Agent(agent), ty: QueryType::String, given, changes })
    }

    fn agent_tools(&mut self, given: &ParsedArgs<'_>) -> (Vec<String>, Option<String>) {
        let Some(expr) = given.get("tools") else { return (Vec::new(), None) };
        let ExprForm::List(items) = &expr.form else {
            self.tell(
                expr.span,
                "wrong-type",
                "`tools` is a list of names",
                "write `tools: [fs_read, search_grep]`",
            );
            return (Vec::new(), None);
        };
        let mut tools = Vec::new();
        let mut changes = None;
        for item in items {
            let Some(name) = self.word(item, "a tool") else { continue };
            if let Some(tool) = self.tool_named(&name, item.span) {
                changes = changes.or_else(|| changing(tool));
                tools.push(tool.name.as_str().to_owned());
            }
        }
        tools.sort();
        tools.dedup();
        (tools, changes)
    }

    /// A built-in tool by its own name or another.
    fn tool_named(&mut self, name: &str, span: Span) -> Option<&ToolDefinition> {
        let catalogue = self.catalogue;
        let own = catalogue.tools().iter().find(|tool| tool.name.as_str() == name);
        let found = own
            .or_else(|| catalogue.tools().iter().find(|tool| tool.aliases.iter().any(|alias| alias == name)));
        if found.is_none() {
            let problem = self.problem(span, "unknown-tool", format!("there is no tool `{name}`"));
            let names: Vec<&str> = catalogue.tools().iter().map(|tool| tool.name.as_str()).collect();
            let help = if name.contains('/') {
                Some(format!("a forged tool is run with `exec(\"{name}\")`"))
            } else {
                hint(name, names)
            };
            self.findings.add(problem.maybe_help(help));
        }
        found
    }

    pub fn tool<'t>(&mut self, step: &'t Step) -> Option<LoweredStep<'t>> {
        let given = self.given(step, &with_effect(&[]), false);
        let argument = self.only(&given, "the name of a tool", "write `tool(fs_read) { path: \"…\" }`")?;
        let name = self.word(&argument.value, "a tool")?;
        let tool = self.tool_named(&name, argument.value.span).cloned();
        let Some(tool) = tool else {
            object_of(step).map(|object| self.free(object));
            return None;
        };
        self.code_of(&tool, object_of(step));
        let owner = format!("`{}`", tool.name);
        let arguments = self.arguments(step, object_of(step), &tool.input_schema, &owner);
        let changes = changing(&tool);
        let kind = Kind::Tool { tool: tool.name.into(), arguments };
        Some(LoweredStep { kind, ty: QueryType::Any, given, changes })
    }

    pub fn exec<'t>(&mut self, step: &'t Step) -> Option<LoweredStep<'t>> {
        let given = self.given(step, &with_effect(&[]), false);
        let argument =
            self.only(&given, "the path of a forged tool", "write `exec(\"tools/name.ts\") { … }`")?;
        let path = self.constant_text(&argument.value, "the path of a forged tool")?.text;
        let Some(forged) = self.catalogue.forged(&path) else {
            let problem = self.problem(
                argument.value.span,
                "unknown-forged-tool",
                format!("there is no forged tool `{path}`"),
            );
            let paths = self.catalogue.forged_paths();
            let help = hint(&path, paths.iter().map(String::as_str));
            let help = help.or(Some("`tgp list` shows the tools that there are".to_owned()));
            self.findings.add(problem.maybe_help(help));
            object_of(step).map(|object| self.free(object));
            return None;
        };
        let owner = format!("`{path}`");
        let arguments = self.arguments(step, object_of(step), &forged.parameters, &owner);
        let ty = schema::to_type(&forged.result);
        Some(LoweredStep { kind: Kind::Exec { path, arguments }, ty, given, changes: None })
    }

    pub fn graph<'t>(&mut self, step: &'t Step) -> Option<LoweredStep<'t>> {
        let given = self.given(step, &with_effect(&["commit"]), false);
        let argument =
            self.only(&given, "a query in Cypher", "write `graph(\"MATCH (n) RETURN n.name\")`")?;
        let commit =
            given.get("commit").map(|expr| self.fitting(expr, &QueryType::String, "`commit`").expression);
        let cypher = self.constant_text(&argument.value, "the query");
        let params = match object_of(step) {
            Some(object) => self.free(object).expression,
            None => self.expression(nothing(), step.kind.span),
        };
        let cypher = cypher?;
        let mut row = QueryType::Any;
        match self.catalogue.cypher(&cypher.text) {
            Ok(Some(columns)) => {
                row = QueryType::record(columns.into_iter().map(|column| (column, QueryType::Any)))
            }
            Ok(None) => {}
            Err(error) => {
                let span = match error.place_of() {
                    Some(place) => within(&cypher, place.line, place.column),
                    None => argument.value.span,
                };
                let problem = self.problem(span, "wrong-cypher", error.message.clone());
                self.findings.add(problem.maybe_help(error.help_of().map(str::to_owned)));
                return None;
            }
        }
        if let Some(used) = cypher_parameters(&cypher.text) {
            self.parameters(&cypher, &used, object_of(step), "$", step.kind.span);
        }
        let kind = Kind::Graph { cypher: cypher.text, commit, params };
        Some(LoweredStep { kind, ty: QueryType::list(row), given, changes: None })
    }

    pub fn sql<'t>(&mut self, step: &'t Step) -> Option<LoweredStep<'t>> {
        let given = self.given(step, &with_effect(&[]), false);
        let argument = self.only(&given, "a statement", "write `sql(\"SELECT …\")`")?;
        let sql = self.constant_text(&argument.value, "the statement");
        let params = match object_of(step) {
            Some(object) => self.free(object).expression,
            None => self.expression(nothing(), step.kind.span),
        };
        let sql = sql?;
        if sql.text.trim().is_empty() {
            self.tell(
                argument.value.span,
                "wrong-value",
                "the statement is empty",
                "write `sql(\"SELECT …\")`",
            );
        }
        if let Some(used) = sql_parameters(&sql.text) {
            self.parameters(&sql, &used, object_of(step), ":", step.kind.span);
        }
        let changes = (!is_select(&sql.text)).then(|| "the statement is not a plain `SELECT`".to_owned());
        let field = |ty| Field { ty, optional: false };
        let fields = [
            ("rows", QueryType::list(QueryType::Any)),
            ("columns", QueryType::list(QueryType::String)),
            ("changed", QueryType::Int),
            ("truncated", QueryType::Bool),
        ];
        let fields = fields.into_iter().map(|(name, ty)| (name.to_owned(), field(ty))).collect();
        let ty = QueryType::Record(Record { fields, open: true });
        Some(LoweredStep { kind: Kind::Sql { sql: sql.text, params }, ty, given, changes })
    }

    /// Parameters that are used have to be given, and those that are given to be used.
    fn parameters(
        &mut self,
        text: &Unescaped,
        used: &[Parameter],
        object: Option<&Object>,
        sign: &str,
        kind: Span,
    ) {
        let given: Vec<&str> = object
            .into_iter()
            .flat_map(|object| &object.entries)
            .map(|entry| entry.key.text.as_str())
            .collect();
        let mut told: Vec<&str> = Vec::new();
        for parameter in used {
            if given.contains(&parameter.name.as_str()) || told.contains(&parameter.name.as_str()) {
                continue;
            }
            told.push(&parameter.name);
            let span = Span::new(text.origin(parameter.range.start), text.origin(parameter.range.end));
            let span = if span.end > span.start { span } else { kind };
            let message = format!("the parameter `{sign}{}` is not given", parameter.name);
            let problem = self.problem(span, "missing-parameter", message);
            let near = hint(&parameter.name, given.iter().copied()).filter(|help| help.starts_with("did"));
            let help = near.unwrap_or_else(|| format!("add `{{ {}: … }}` behind it", parameter.name));
            self.findings.add(problem.help(help));
        }
        for entry in object.into_iter().flat_map(|object| &object.entries) {
            if !used.iter().any(|parameter| parameter.name == entry.key.text) {
                let message = format!("the parameter `{}` is given and not used", entry.key.text);
                let help = format!("use it as `{sign}{}`, or leave it out", entry.key.text);
                self.tell(entry.key.span, "unused-parameter", message, &help);
            }
        }
    }

    pub fn query<'t>(&mut self, step: &'t Step) -> Option<LoweredStep<'t>> {
        let given = self.given(step, &AROUND, false);
        let argument = self.only(&given, "the name of a query", "write `query(Name) { input: value }`")?;
        let ExprForm::Name(name) = &argument.value.form else {
            self.tell(
                argument.value.span,
                "wrong-type",
                "a query is named without quotes",
                "write `query(Name)`",
            );
            return None;
        };
        let Some(id) = self.declarations.query(self.unit, name) else {
            if self.declarations.may_be_lost(self.unit, name) {
                object_of(step).map(|object| self.free(object));
                return None;
            }
            let problem =
                self.problem(argument.value.span, "unknown-query", format!("there is no query `{name}`"));
            self.findings.add(problem.maybe_help(hint(name, self.declarations.queries(self.unit))));
            object_of(step).map(|object| self.free(object));
            return None;
        };
        let Some(plan) = self.plans.get(&id).cloned() else {
            // It is in a cycle or could not be parsed, which was already reported.
            object_of(step).map(|object| self.free(object));
            return None;
        };
        let nesting = self.frames.len() + self.nesting.get(&id).copied().unwrap_or(0);
        if nesting > MAX_NESTING {
            let message = format!("with `{name}` there are {nesting} blocks inside of each other");
            let help = format!("at most {MAX_NESTING} can be; call some of the queries side by side");
            self.tell(argument.value.span, "too-deep", message, &help);
        } else {
            self.deepest = self.deepest.max(nesting);
        }
        let wanted = inputs_of(&plan);
        let none = Object { entries: Vec::new(), span: step.kind.span };
        let inputs =
            self.named(object_of(step).unwrap_or(&none), &wanted, &format!("the query `{name}`"), INPUTS);
        let ty = plan.ty.clone();
        Some(LoweredStep { kind: Kind::Query { query: plan, inputs }, ty, given, changes: None })
    }
}

/// What a query wants to be given, as a record.
fn inputs_of(plan: &QueryPlan) -> Record {
    let field = |input: &Input| Field { ty: input.ty.clone(), optional: input.default.is_some() };
    let fields = plan.inputs.iter().map(|input| (input.name.clone(), field(input)));
    Record { fields: fields.collect(), open: false }
}

fn changing(tool: &ToolDefinition) -> Option<String> {
    (tool.effect != Effect::Read)
        .then(|| format!("the effect of `{}` is `{}`", tool.name, tool.effect.as_str()))
}

/// The word at a line and column of a text, in the source.
fn within(text: &Unescaped, line: u32, column: u32) -> Span {
    let offset = LineCol { line, column }.offset_in(&text.text);
    let rest = text.text.get(offset..).unwrap_or_default();
    let width = rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')).unwrap_or(rest.len());
    let at = text.origin(offset);
    Span::new(at, at + width.max(1))
}
