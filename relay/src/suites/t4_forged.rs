//! T4: a forged tool takes what it declares, whoever looks at it first: the check of a query, or the tools when it runs.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tgp_contract::Code;

use super::Running;
use super::t4_aql::{carried_out, planned_with};
use crate::conversation::{Counted, call, context, end, say};
use crate::fault::{Expecting, Fault, holds, same};
use crate::world::World;

/// The tool that runs forged ones, and the one that forges them.
const EXEC: &str = "exec_tool";
const FORGE: &str = "write_file";
/// A forged tool, and its source where it can be forged.
const TWICE: &str = "tools/relay/twice.ts";
const SOURCE: &str = "/** Twice a number. */\n\
    export default function twice(args: { count: number; label?: string }): number {\n  return args.count * 2;\n}\n";

/// What the tool declares, as a schema.
fn declared() -> Value {
    json!({
        "type": "object",
        "properties": { "count": { "type": "number" }, "label": { "type": "string" } },
        "required": ["count"],
        "additionalProperties": false,
    })
}

/// Arguments that do not fit, as a query writes them, and the field that is wrong.
const WRONG: [(&str, &str); 5] = [
    ("{ count: 1, times: 1 }", "times"),
    ("{ count: 1, lable: \"x\" }", "lable"),
    ("{ count: \"1\" }", "count"),
    ("{ label: \"x\" }", "count"),
    ("{ count: 1, label: 2 }", "label"),
];

fn query(arguments: &str) -> String {
    format!("query X {{ made: exec(\"{TWICE}\") {arguments} }}")
}

pub(super) fn forged_schema(world: &World) -> Running<'_> {
    Box::pin(async move {
        let tools = Arc::new(Counted::new(world.tools()?));
        // Where the declaration is known, nothing is called.
        for (arguments, field) in WRONG {
            let text = query(arguments);
            let Err(error) = planned_with(tools.as_ref(), &text, Some((TWICE, declared()))) else {
                return Err(Fault::new(format!("`{text}` to be refused for `{field}`"), "a plan"));
            };
            same(&format!("the code for `{text}`"), &error.code, &Code::Validation)?;
            holds(error.place_of().is_some(), format!("the place of the error in `{text}`"), &error)?;
            let is_named = error.message.contains(field);
            holds(is_named, format!("an error that names `{field}`"), &error.message)?;
        }
        let right = query("{ count: 21, label: \"x\" }");
        planned_with(tools.as_ref(), &right, Some((TWICE, declared()))).expecting("arguments that fit")?;
        same("the calls that were made", &tools.made(), &Vec::new())?;
        forge(world).await?;
        // Where nothing is known of it, the query is a plan, and the run is refused.
        let model = world.model(&[vec![say("ok:hi"), end()]]).await?;
        let agents = world.agents(model)?;
        for (arguments, field) in WRONG {
            let text = query(arguments);
            let plan = planned_with(tools.as_ref(), &text, Some((TWICE, Value::Bool(true))));
            let plan = plan.expecting("a query about a tool of which nothing is known to compile")?;
            let report = carried_out(&plan, tools.clone(), Arc::clone(&agents), Map::new()).await?;
            let code = report.error.as_ref().map(|error| error.code);
            same(&format!("the code of the run of `{text}`"), &code, &Some(Code::Validation))?;
            let told = report.error.map(|error| error.message).unwrap_or_default();
            let is_named = told.contains(field);
            holds(is_named, format!("an error of the run of `{text}` that names {field}"), &told)?;
        }
        let plan = planned_with(tools.as_ref(), &right, Some((TWICE, Value::Bool(true))));
        let plan = plan.expecting("arguments that fit to compile")?;
        let report = carried_out(&plan, tools, agents, Map::new()).await?;
        holds(report.error.is_none(), "arguments that fit to be run", &report.error)?;
        same("what the tool gives", &report.outputs.pointer("/made").and_then(Value::as_f64), &Some(42.0))
    })
}

/// Forges the tool, where the tools can. Others have it from the beginning, or cannot be tried.
async fn forge(world: &World) -> Result<(), Fault> {
    let tools = world.tools()?;
    let has = |name: &str| tools.definitions().iter().any(|tool| tool.name.as_str() == name);
    if !has(EXEC) {
        return Err(Fault::unable(format!(
            "the check holds, but no run was tried: the tools have no `{EXEC}`, which is not required of them"
        )));
    }
    if has(FORGE) {
        let record =
            call(tools.as_ref(), FORGE, json!({ "path": TWICE, "content": SOURCE }), context()).await;
        record.result.into_result().expecting("a tool to be forged")?;
    }
    Ok(())
}
