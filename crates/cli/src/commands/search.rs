//! `tgp search`.

use clap::Args;
use console::Style;
use serde_json::{Value, json};

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What the tool should do, in your own words.
    #[arg(required = true, num_args = 1.., value_name = "WORDS")]
    query: Vec<String>,
    /// How many tools to show.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    limit: u64,
}

pub async fn run(arguments: SearchArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let call = json!({ "query": arguments.query.join(" "), "limit": arguments.limit });
    let data = session::call(&kernel, "search", call, session::typed(false)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    for warning in data.get("warnings").and_then(Value::as_array).into_iter().flatten() {
        printer.warn(warning.as_str().unwrap_or_default());
    }
    let results = data.get("results").and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, name: &str| visible(value.get(name).and_then(Value::as_str).unwrap_or_default());
    for result in &results {
        let verdict = text(result, "verdict");
        let style = match verdict.as_str() {
            "reuse" => Style::new().green().bold(),
            "review" => Style::new().yellow(),
            _ => Style::new().dim(),
        };
        let score = result.get("score").and_then(Value::as_f64).unwrap_or_default();
        let verdict = printer.paint_out(&style, &format!("{verdict:<6}"));
        printer.line(&format!("{score:.2} {verdict} {}", text(result, "path")));
        for name in ["description", "signature", "why"] {
            let line = text(result, name);
            if !line.is_empty() {
                printer.line(&format!("            {}", line.replace('\n', " ")));
            }
        }
    }
    printer.note(match data.get("verdict").and_then(Value::as_str) {
        Some("reuse") => "the first one does it: use it",
        Some("review") => "one of them may do it: read it before you forge another",
        _ if results.is_empty() => "there are no tools yet: forge one with `tgp write`",
        _ => "none of them does it: forge one",
    });
    Ok(())
}
