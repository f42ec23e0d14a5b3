//! A kernel inside a program: `cargo run --example embed -- FOLDER`, where FOLDER was made by `tgp init`.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::process::ExitCode;

use serde_json::json;
use tgp::{BootOptions, Kernel};

fn main() -> ExitCode {
    // The program starts itself again as sandbox worker.
    if let Some(code) = tgp::worker_main() {
        return code;
    }
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            println!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(folder)) {
        Ok(result) => {
            println!("{result}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(folder: String) -> Result<serde_json::Value, tgp::contract::ToolError> {
    let kernel = Kernel::boot(BootOptions::new(folder)).await?;
    let source =
        "/** Adds. */\nexport default (args: { a: number; b: number }): number => args.a + args.b;\n";
    kernel.call("write_file", json!({ "path": "tools/add.ts", "content": source })).await.into_result()?;
    let result =
        kernel.call("exec_tool", json!({ "path": "tools/add.ts", "args": { "a": 1, "b": 2 } })).await;
    kernel.shutdown().await;
    result.into_result()
}
