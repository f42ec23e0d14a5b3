//! `tgp check`.

use clap::Args;
use clap_complete::ArgValueCandidates;
use console::Style;
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::contract::{CheckReport, Code, Severity, ToolError, TypeCheck};

use super::done;
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::text::count;
use crate::{screen, session};

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Tools to check; all of tools/ when there is none.
    #[arg(add = ArgValueCandidates::new(candidates::tools))]
    paths: Vec<String>,
}

pub async fn run(arguments: CheckArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let single = arguments.paths.len() == 1;
    let paths = if arguments.paths.is_empty() { all_tools(&kernel).await? } else { arguments.paths };
    let mut reports = Vec::new();
    for path in paths {
        let data =
            session::call(&kernel, "check_tool", json!({ "path": path }), session::typed(false)).await?;
        let report: CheckReport = serde_json::from_value(data).map_err(|error| {
            ToolError::new(Code::Internal, format!("check_tool answered nonsense: {error}"))
        })?;
        if !printer.json() {
            show(&kernel, &path, &report, printer);
        }
        reports.push((path, report));
    }
    kernel.shutdown().await;
    let valid = reports.iter().all(|(_, report)| report.valid);
    if printer.json() {
        let mut tools: Vec<Value> = reports.iter().map(|(path, report)| document(path, report)).collect();
        // A user who names one tool gets its report; the number of tools that exist does not change the shape.
        let one = if single { tools.pop() } else { None };
        printer.document(&done(one.unwrap_or_else(|| json!({ "valid": valid, "tools": tools }))));
    } else if reports.is_empty() {
        printer.note("there is no tool to check yet; `tgp write tools/NAME.ts` makes one");
    } else if reports.len() > 1 {
        let refused = reports.iter().filter(|(_, report)| !report.valid).count();
        printer.note(&format!("{} checked, {refused} not valid", count(reports.len(), "tool")));
    }
    if valid { Ok(()) } else { Err(Failure::Silent(Code::Compile)) }
}

fn document(path: &str, report: &CheckReport) -> Value {
    let mut value = serde_json::to_value(report).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("path".to_owned(), json!(path));
    }
    value
}

async fn all_tools(kernel: &Kernel) -> Result<Vec<String>, Failure> {
    let data = session::call(kernel, "list_files", json!({ "dir": "tools" }), session::typed(false)).await?;
    let is_tool = |path: &&str| (path.ends_with(".ts") && !path.ends_with(".d.ts")) || path.ends_with(".js");
    Ok(data
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(is_tool)
        .map(str::to_owned)
        .collect())
}

fn show(kernel: &Kernel, path: &str, report: &CheckReport, printer: &Printer) {
    let source = session::source_of(kernel, path);
    for finding in &report.findings {
        printer.lines(screen::finding(finding, source.as_deref(), printer.look_err()).trim_end());
        printer.note("");
    }
    let findings = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let types = match report.types {
        TypeCheck::Checked => "checked",
        TypeCheck::Skipped => "skipped",
    };
    let (word, style) =
        if report.valid { ("valid", Style::new().green()) } else { ("not valid", Style::new().red()) };
    printer.line(&format!(
        "{path}: {} ({}, {}; types: {types})",
        printer.paint_out(&style, word),
        count(findings(Severity::Error), "error"),
        count(findings(Severity::Warning), "warning"),
    ));
}
