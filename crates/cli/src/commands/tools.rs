//! `tgp tools`: the tool definitions, also in the shapes model providers take.

use clap::{Args, ValueEnum};
use console::Style;
use serde_json::{Value, json};
use tgp::contract::ToolDefinition;

use super::done;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::{hang, single_line, visible, wrap};

/// Columns before a description.
const INDENT: usize = 4;

#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// The shape of the list; plain text when there is none.
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Openai,
    Anthropic,
    Mcp,
}

pub async fn run(arguments: &ToolsArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let tools: Vec<(ToolDefinition, Option<Value>)> = kernel
        .definitions()
        .map(|definition| (definition.clone(), kernel.output_schema(definition.name.as_str())))
        .collect();
    kernel.shutdown().await;
    let format = arguments.format.or_else(|| printer.json().then_some(Format::Json));
    match format {
        None => {
            for (definition, _) in &tools {
                let name = printer.paint_out(&Style::new().bold(), &single_line(definition.name.as_str()));
                printer.line(&format!("{name} ({})", definition.effect.as_str()));
                let width = printer.look_out().width.map(|width| width.saturating_sub(INDENT));
                printer
                    .line(&format!("    {}", hang(&wrap(&visible(&definition.description), width), INDENT)));
            }
        }
        Some(format) => {
            let list: Value =
                tools.iter().map(|(definition, output)| shape(definition, output.as_ref(), format)).collect();
            printer.document(&if printer.json() { done(list) } else { list });
        }
    }
    Ok(())
}

fn shape(definition: &ToolDefinition, output: Option<&Value>, format: Format) -> Value {
    let ToolDefinition { name, description, input_schema, effect, .. } = definition;
    match format {
        Format::Json => {
            let mut whole = json!(definition);
            if let (Some(fields), Some(output)) = (whole.as_object_mut(), output) {
                fields.insert("output_schema".to_owned(), output.clone());
            }
            whole
        }
        Format::Openai => json!({
            "type": "function",
            "function": { "name": name, "description": description, "parameters": input_schema },
        }),
        Format::Anthropic => {
            json!({ "name": name, "description": description, "input_schema": input_schema })
        }
        Format::Mcp => json!({
            "name": name,
            "description": description,
            "inputSchema": input_schema,
            "annotations": { "readOnlyHint": effect.as_str() == "read" },
        }),
    }
}
