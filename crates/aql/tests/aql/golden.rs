//! Golden folders, one a stage: `NAME.aql` beside `NAME.out`. A file more is a case more; `UPDATE_GOLDEN=1`
//! regenerates the outputs.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use serde_json::json;
use tgp_aql::{
    Expression, ExpressionForm, Kind, OnError, PlanBlock, QueryPlan, Step, compile, explain, format,
};
use tgp_contract::Code;

use crate::execute_world::{Fake, options, refuse, reply, watch};
use crate::support::{QueryHost, golden, rendered};

fn check(folder: &str, least: usize, render: impl Fn(&str, &str) -> String) {
    let path = golden().join(folder);
    let mut inputs: Vec<_> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "aql"))
        .collect();
    inputs.sort();
    assert!(inputs.len() >= least, "only {} inputs in {folder}", inputs.len());
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for input in inputs {
        let name = input.file_name().unwrap().to_str().unwrap();
        let text = render(name, &fs::read_to_string(&input).unwrap());
        let output = input.with_extension("out");
        if update {
            fs::write(&output, &text).unwrap();
        } else if fs::read_to_string(&output).unwrap_or_default() != text {
            wrong.push(format!("{folder}/{name}\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "run with UPDATE_GOLDEN=1 and read the difference:\n{}", wrong.join("\n"));
}

#[test]
fn what_cannot_be_parsed_is_told_with_all_that_is_wrong() {
    check("syntax", 20, |name, text| match format(name, text) {
        Ok(_) => panic!("{name} can be parsed"),
        Err(problems) => rendered(&problems),
    });
}

#[test]
fn what_does_not_fit_is_told_before_anything_runs() {
    check("check", 60, |name, text| {
        let formatted = format(name, text);
        assert!(formatted.is_ok(), "{name} belongs into `syntax`: {}", rendered(&formatted.unwrap_err()));
        match compile(name, text, &QueryHost::default()) {
            Ok(_) => panic!("{name} has no problem"),
            Err(problems) => rendered(&problems),
        }
    });
}

#[test]
fn a_mistake_of_syntax_hides_nothing_else() {
    check("recover", 5, |name, text| {
        assert!(format(name, text).is_err(), "{name} belongs into `check`");
        rendered(&compile(name, text, &QueryHost::default()).unwrap_err())
    });
}

/// The last query of a source with tools that echo their arguments and agents that echo their prompts; a path that says
/// so fails. What is reported, what is kept, and what comes out.
#[test]
fn a_plan_that_is_executed_tells_keeps_and_answers() {
    check("execute", 3, |name, text| {
        let compiled = compile(name, text, &QueryHost::default());
        let plan =
            compiled.unwrap_or_else(|problems| panic!("{}", rendered(&problems))).queries.pop().unwrap();
        // Time stands still unless all tasks wait, so how long something took is the same each time.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let fake = Arc::new(Fake::new(|call| match call.arguments["path"].as_str() {
                Some("fails") => refuse(Code::Fetch),
                Some("fails once") if call.id.ends_with("#1") => refuse(Code::Fetch),
                _ => reply(call.arguments.clone()),
            }));
            let (report, events) = watch(&fake, &plan, options()).await;
            let line = |value: serde_json::Value| format!("{value}\n");
            let told: String = events.iter().map(|event| line(json!(event))).collect();
            let kept: String = fake.lines().iter().map(|kept| line(json!(kept))).collect();
            format!("{told}\njournal:\n{kept}\noutputs: {:#}\n", report.outputs)
        })
    });
}

#[test]
fn what_is_right_becomes_a_plan() {
    check("plan", 6, |name, text| match compile(name, text, &QueryHost::default()) {
        Ok(compiled) => compiled.queries.iter().map(|plan| plan_text(plan, Places::Shown)).collect(),
        Err(problems) => panic!("{}", rendered(&problems)),
    });
}

#[test]
fn formatting_has_one_way_to_write_everything() {
    check("format", 4, |name, text| {
        format(name, text).unwrap_or_else(|problems| panic!("{}", rendered(&problems)))
    });
}

#[test]
fn explanations_say_what_would_happen() {
    check("explain", 2, |name, text| match compile(name, text, &QueryHost::default()) {
        Ok(compiled) => {
            let mut output = String::new();
            for plan in &compiled.queries {
                let explanation = explain(plan);
                let (text, mermaid, dot) = (explanation.text(), explanation.mermaid(), explanation.dot());
                writeln!(output, "{text}\n{mermaid}\n{dot}").unwrap();
            }
            output
        }
        Err(problems) => panic!("{}", rendered(&problems)),
    });
}

/// Whether a plan is shown with the positions of its steps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Places {
    Shown,
    Hidden,
}

/// A plan, readable: steps with what they wait for and their types.
pub fn plan_text(plan: &QueryPlan, places: Places) -> String {
    let mut text = format!("query {} -> {}\n", plan.name, plan.ty);
    for (at, input) in plan.inputs.iter().enumerate() {
        let default = input.default.as_ref().map(|value| format!(" = {value}")).unwrap_or_default();
        writeln!(text, "  input {at} {}: {}{default}", input.name, input.ty).unwrap();
    }
    let budget = plan.budget;
    if budget != tgp_aql::Budget::default() {
        writeln!(text, "  {budget:?}").unwrap();
    }
    block(&plan.body, 1, places, &mut text);
    text
}

fn block(of: &PlanBlock, level: usize, places: Places, text: &mut String) {
    for (at, one) in of.steps.iter().enumerate() {
        step(at, one, level, places, text);
    }
    writeln!(text, "{}= {} : {}", "  ".repeat(level), shown(&of.value), of.ty).unwrap();
}

fn step(at: usize, step: &Step, level: usize, places: Places, text: &mut String) {
    let blanks = "  ".repeat(level);
    let needs = if step.needs.is_empty() { String::new() } else { format!(" needs {:?}", step.needs) };
    let place = match places {
        Places::Shown => format!(" at {}:{}", step.place.line, step.place.column),
        Places::Hidden => String::new(),
    };
    writeln!(text, "{blanks}{at} {}{place}{needs} : {}", step.name, step.ty).unwrap();
    let inner = "  ".repeat(level + 1);
    let mut options = String::new();
    if step.options.retry > 0 {
        write!(options, " retry {}", step.options.retry).unwrap();
    }
    if let Some(timeout) = step.options.timeout {
        write!(options, " timeout {timeout:?}").unwrap();
    }
    match &step.options.on_error {
        OnError::Fail => {}
        OnError::Skip => options.push_str(" or skip"),
        OnError::Default(value) => write!(options, " or {}", shown(value)).unwrap(),
    }
    if step.options.cache {
        options.push_str(" cached");
    }
    if let Some(ty) = &step.checked {
        write!(options, " as {ty}").unwrap();
    }
    match &step.kind {
        Kind::Agent(agent) => {
            let system = agent.system.as_ref().map(shown);
            writeln!(
                text,
                "{inner}agent {:?} tools {:?} system {system:?} temperature {:?} turns {}{options}\n{inner}  {}",
                agent.model,
                agent.tools,
                agent.temperature,
                agent.max_steps,
                shown(&agent.prompt)
            )
            .unwrap();
        }
        Kind::Tool { tool, arguments } => {
            writeln!(text, "{inner}tool {tool} {}{options}", shown(arguments)).unwrap()
        }
        Kind::Exec { path, arguments } => {
            writeln!(text, "{inner}exec {path} {}{options}", shown(arguments)).unwrap()
        }
        Kind::Graph { cypher, commit, params } => {
            let commit = commit.as_ref().map(shown);
            writeln!(text, "{inner}graph {cypher:?} at {commit:?} {}{options}", shown(params)).unwrap();
        }
        Kind::Sql { sql, params } => writeln!(text, "{inner}sql {sql:?} {}{options}", shown(params)).unwrap(),
        Kind::Merge { how, parts } => {
            let parts: Vec<String> =
                parts.iter().map(|part| format!("{}: {}", part.name, shown(&part.value))).collect();
            writeln!(text, "{inner}merge {how:?} {}{options}", parts.join(", ")).unwrap();
        }
        Kind::Map { list, concurrency, body } => {
            writeln!(text, "{inner}map {} by {concurrency}{options}", shown(list)).unwrap();
            block(body, level + 2, places, text);
        }
        Kind::When { condition, then, otherwise } => {
            writeln!(text, "{inner}when {}{options}", shown(condition)).unwrap();
            block(then, level + 2, places, text);
            if let Some(otherwise) = otherwise {
                writeln!(text, "{inner}else").unwrap();
                block(otherwise, level + 2, places, text);
            }
        }
        Kind::Query { query, inputs } => {
            let inputs: Vec<String> =
                inputs.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
            writeln!(text, "{inner}query {} {}{options}", query.name, inputs.join(", ")).unwrap();
        }
    }
}

pub fn shown(expression: &Expression) -> String {
    let all = |parts: &[Expression]| parts.iter().map(shown).collect::<Vec<_>>().join(" ");
    match &expression.form {
        ExpressionForm::Value(value) => value.to_string(),
        ExpressionForm::Input(at) => format!("$({at})"),
        ExpressionForm::Step { up, index } => format!("step({up} {index})"),
        ExpressionForm::Item { up } => format!("item({up})"),
        ExpressionForm::Field(of, name) => format!("{}.{name}", shown(of)),
        ExpressionForm::Element(of, index) => format!("{}[{}]", shown(of), shown(index)),
        ExpressionForm::Text(parts) => format!("(text {})", all(parts)),
        ExpressionForm::List(items) => format!("(list {})", all(items)),
        ExpressionForm::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(name, value)| format!("{name}: {}", shown(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        ExpressionForm::Or(one, other) => format!("(?? {} {})", shown(one), shown(other)),
        ExpressionForm::Compare(comparison, one, other) => {
            format!("({comparison:?} {} {})", shown(one), shown(other))
        }
        ExpressionForm::All(parts) => format!("(and {})", all(parts)),
        ExpressionForm::Some(parts) => format!("(or {})", all(parts)),
        ExpressionForm::Not(inner) => format!("(not {})", shown(inner)),
        ExpressionForm::Length(of) => format!("(length {})", shown(of)),
        ExpressionForm::Join(list, between) => format!("(join {} {})", shown(list), shown(between)),
        ExpressionForm::Contains(of, wanted) => format!("(contains {} {})", shown(of), shown(wanted)),
    }
}
