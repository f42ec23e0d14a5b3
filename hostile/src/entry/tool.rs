//! A forged tool that makes the call: the person has run it, and it does what it likes.

use anyhow::Result;
use serde_json::{Value, json};

use super::cli::result_of;
use crate::case::{CaseFile, Step};
use crate::expected::OK;
use crate::outcome::Outcome;
use crate::project::Project;

/// What `tgp` in the sandbox has.
pub(super) const FUNCTIONS: [&str; 6] =
    ["read_file", "write_file", "list_files", "exec_tool", "exec_sql", "fetch"];

/// Where the tool is, in the tool repository.
const PATH: &str = "tools/hostile/attack.ts";

/// Makes one call and says what came of it, whatever it was.
const SOURCE: &str = r"/** Makes one call that it is given, and says what came of it. */
export default async function attack(args: { name: string; list: unknown[] }): Promise<unknown> {
  try {
    const value = await (tgp as any)[args.name](...args.list);
    if (args.name === 'fetch') return { ok: true, data: { status: value.status, url: value.url, text: await value.text() } };
    return { ok: true, data: value === undefined ? null : value };
  } catch (error) {
    const told = error as { code?: string; message?: string };
    return { ok: false, error: { code: told.code ?? 'none', message: String(told.message ?? error) } };
  }
}
";

/// Makes one step in its own run. With an approver an agent has it run (`tgp call exec_tool --yes`), without one a
/// person does (`tgp exec`).
pub(super) fn step(project: &Project, case: &CaseFile, step: &Step) -> Result<Outcome> {
    let (name, arguments) = step.as_call().unwrap_or_default();
    project.write(&format!(".tgp/{PATH}"), SOURCE)?;
    let given = json!({ "name": name, "list": positional(name, &arguments) });
    let limit = project.step_limit(case);
    let ran = if step.approve {
        let call = json!({ "path": PATH, "args": given }).to_string();
        project.tgp(&["call", "exec_tool", &call, "--yes"], limit)?
    } else {
        project.tgp(&["exec", PATH, "--args", &given.to_string(), "--json"], limit)?
    };
    let outer = result_of(&ran);
    if outer.code != OK {
        return Ok(outer);
    }
    let result: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let inner = result.pointer("/data/result").cloned().unwrap_or_default();
    Ok(Outcome { text: ran.said(), ..Outcome::of_result(&inner, "") })
}

/// The arguments as `tgp.*` takes them: in order instead of by name.
fn positional(name: &str, arguments: &Value) -> Vec<Value> {
    let field = |field: &str| arguments.get(field).cloned().unwrap_or_default();
    match name {
        "write_file" => vec![field("path"), field("content")],
        "list_files" => vec![field("dir")],
        "exec_tool" => vec![field("path"), field("args")],
        "exec_sql" => vec![field("sql"), field("params")],
        "fetch" => vec![field("url"), arguments.clone()],
        _ => vec![field("path")],
    }
}
