//! A shop with a kernel inside: it offers a function to tools, forges a tool that uses the function and the database of the
//! project, and prints what the tool returns.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tgp::contract::{Effect, HostFunction, HostTools, TddMode};
use tgp::prelude::*;

const TOOL: &str = "\
import { exchange_rate } from 'host:shop';

/** The sum of all open orders in a currency. */
export default async function openOrders(args: { currency: string }): Promise<number> {
  const rows = await tgp.exec_sql('SELECT sum(price) AS total FROM orders WHERE paid = ?', [0]);
  return rows[0].total * (await exchange_rate({ currency: args.currency }));
}
";

/// The functions of this program that tools may call.
#[derive(Debug)]
struct Shop;

#[async_trait]
impl HostTools for Shop {
    fn functions(&self) -> Vec<HostFunction> {
        vec![HostFunction {
            module: "shop".to_owned(),
            name: "exchange_rate".to_owned(),
            description: "The value of one euro in a currency.".to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": { "currency": { "type": "string" } },
                "required": ["currency"],
            }),
            output_schema: Some(json!({ "type": "number" })),
            effect: Effect::Read,
        }]
    }

    async fn call(
        &self,
        _module: &str,
        _name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, ToolError> {
        match arguments.get("currency").and_then(Value::as_str) {
            Some("EUR") => Ok(json!(1.0)),
            Some("USD") => Ok(json!(1.25)),
            _ => Err(ToolError::new(Code::NotFound, "the currency is not known")),
        }
    }
}

fn main() -> Result<ExitCode> {
    // The program starts itself again as sandbox worker.
    if let Some(code) = worker_main() {
        return Ok(code);
    }
    let project = std::env::args().nth(1).map_or_else(|| PathBuf::from("shop"), PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!("{}", runtime.block_on(open_orders(project))?);
    Ok(ExitCode::SUCCESS)
}

async fn open_orders(project: PathBuf) -> Result<Value> {
    std::fs::create_dir_all(&project)?;
    initialise(&project)?;
    let mut options = BootOptions::new(project);
    options.host_tools = Some(Arc::new(Shop));
    // A tool may be written without a failing test.
    options.tdd_mode = Some(TddMode::Explore);
    let kernel = Kernel::boot(options).await?;
    let total = forge_and_run(&kernel).await;
    kernel.shutdown().await;
    Ok(total?)
}

async fn forge_and_run(kernel: &Kernel) -> Result<Value, ToolError> {
    let calls = [
        ("exec_sql", json!({ "sql": "CREATE TABLE IF NOT EXISTS orders (price REAL, paid INTEGER)" })),
        ("exec_sql", json!({ "sql": "DELETE FROM orders" })),
        ("exec_sql", json!({ "sql": "INSERT INTO orders VALUES (10, 0), (20, 1), (30, 0)" })),
        ("write_file", json!({ "path": "tools/open_orders.ts", "content": TOOL })),
    ];
    for (tool, arguments) in calls {
        kernel.call(tool, arguments).await.into_result()?;
    }
    let arguments = json!({ "path": "tools/open_orders.ts", "args": { "currency": "USD" } });
    let data = kernel.call("exec_tool", arguments).await.into_result()?;
    Ok(data.get("result").cloned().unwrap_or_default())
}
