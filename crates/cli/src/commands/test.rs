//! `tgp test`: the tests of forged tools.

use std::sync::Arc;

use clap::Args;
use clap_complete::ArgValueCandidates;
use console::Style;
use serde_json::json;
use tgp::contract::{Code, SourceLocation};
use tgp::results::{TestFile, TestToolResult};

use super::{done, result_of};
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::candidates;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, hang, visible};

#[derive(Debug, Args)]
pub struct TestArgs {
    /// A test file, its tool, or a folder; all tests when there is none.
    #[arg(add = ArgValueCandidates::new(candidates::tools))]
    path: Option<String>,
}

pub async fn run(arguments: TestArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot_to_run(global, Arc::new(TerminalApprover { has_yes: false }), printer).await?;
    let call = arguments.path.map_or_else(|| json!({}), |path| json!({ "path": path }));
    let data = session::call(&kernel, "test_tool", call, session::typed(false)).await;
    kernel.shutdown().await;
    let data = data?;
    let result: TestToolResult = result_of(data.clone())?;
    if printer.json() {
        printer.document(&done(data));
    } else {
        result.files.iter().for_each(|file| show(file, printer));
        if result.files.is_empty() {
            printer.note("there is no test yet; `tgp write tools/NAME.test.ts` makes one for tools/NAME.ts");
        } else {
            let passed = count(result.passed, "test");
            printer.note(&format!("{passed} passed, {} failed in {} ms", result.failed, result.duration_ms));
        }
    }
    if result.failed == 0 { Ok(()) } else { Err(Failure::Silent(Code::Runtime)) }
}

fn show(file: &TestFile, printer: &Printer) {
    let (path, tests, error) = match file {
        TestFile::Ran(report) => (&report.file, &report.tests, report.error.as_ref()),
        TestFile::NotRun(file) => (&file.path, &file.tests, Some(&file.error)),
    };
    printer.line(&visible(path.as_str()));
    for test in tests {
        let (word, style) =
            if test.ok { ("ok", Style::new().green()) } else { ("failed", Style::new().red()) };
        printer.line(&format!("  {} {}", printer.paint_out(&style, word), visible(&test.name)));
        if let Some(error) = &test.error {
            show_message(&error.message, printer);
            for (name, value) in [("expected", &error.expected), ("received", &error.received)] {
                if let Some(value) = value {
                    printer.line(&format!("    {name:9} {}", hang(&visible(value), 14)));
                }
            }
            show_place(error.place.as_ref(), printer);
        }
    }
    // The file itself did not come to run.
    if let Some(error) = error {
        printer.line(&format!("  {}", printer.paint_out(&Style::new().red(), "failed to run")));
        show_message(&error.message, printer);
    }
    if let TestFile::Ran(report) = file {
        printer.logs(&report.logs);
    }
}

fn show_message(message: &str, printer: &Printer) {
    printer.line(&format!("    {}", hang(&visible(message), 4)));
}

fn show_place(place: Option<&SourceLocation>, printer: &Printer) {
    if let Some(SourceLocation { file, line, column }) = place {
        printer.line(&format!("    at {}:{line}:{column}", visible(file)));
    }
}
