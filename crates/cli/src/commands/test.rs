//! `tgp test`: the tests of forged tools.

use std::sync::Arc;

use clap::Args;
use console::Style;
use serde_json::{Value, json};
use tgp::contract::Code;

use super::{done, text_of};
use crate::approval::TerminalApprover;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{count, hang, visible};

#[derive(Debug, Args)]
pub struct TestArgs {
    /// A test file, its tool, or a folder; all tests when there is none.
    path: Option<String>,
}

pub async fn run(arguments: TestArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, Some(Arc::new(TerminalApprover)), printer).await?;
    let call = arguments.path.map_or_else(|| json!({}), |path| json!({ "path": path }));
    let data = session::call(&kernel, "test_tool", call, session::typed(false)).await;
    kernel.shutdown().await;
    let data = data?;
    let number = |name: &str| data.get(name).and_then(Value::as_u64).unwrap_or_default();
    let failed = number("failed");
    if printer.json() {
        printer.document(&done(data));
    } else {
        let files = data.get("files").and_then(Value::as_array).cloned().unwrap_or_default();
        files.iter().for_each(|file| show(file, printer));
        if files.is_empty() {
            printer.note("there is no test yet; `tgp write tools/NAME.test.ts` makes one for tools/NAME.ts");
        } else {
            let passed = usize::try_from(number("passed")).unwrap_or(usize::MAX);
            printer.note(&format!(
                "{} passed, {failed} failed in {} ms",
                count(passed, "test"),
                data.get("durationMs").map_or_else(String::new, Value::to_string)
            ));
        }
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Silent(Code::Runtime)) }
}

fn show(file: &Value, printer: &Printer) {
    printer.line(&text_of(file, "path"));
    for test in file.get("tests").and_then(Value::as_array).into_iter().flatten() {
        let good = test.get("ok").and_then(Value::as_bool).unwrap_or_default();
        let (word, style) = if good { ("ok", Style::new().green()) } else { ("failed", Style::new().red()) };
        printer.line(&format!("  {} {}", printer.paint_out(&style, word), text_of(test, "name")));
        if let Some(error) = test.get("error") {
            show_error(error, printer);
        }
    }
    // The file itself did not come to run.
    if let Some(error) = file.get("error") {
        printer.line(&format!("  {}", printer.paint_out(&Style::new().red(), "failed to run")));
        show_error(error, printer);
    }
    printer.logs(file.get("logs"));
}

fn show_error(error: &Value, printer: &Printer) {
    printer.line(&format!("    {}", hang(&text_of(error, "message"), 4)));
    for name in ["expected", "received"] {
        if let Some(value) = error.get(name) {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            printer.line(&format!("    {name:9} {}", hang(&visible(&shown), 14)));
        }
    }
    if let Some(place) = error.get("place") {
        let number = |name: &str| place.get(name).and_then(Value::as_u64).unwrap_or_default();
        printer.line(&format!("    at {}:{}:{}", text_of(place, "file"), number("line"), number("column")));
    }
}
