//! The chapters about what an agent may not do, and about the record of all of it.

use std::time::Instant;

use serde_json::{Value, json};
use tgp::contract::{Actor, CallContext, Code, Consent, TddMode, ToolCall, ToolError, ToolResult};
use tgp::{BootOptions, Kernel};

use super::{Demo, shown};
use crate::exit::Failure;
use crate::session;
use crate::text::visible;

const TEST: &str = "\
import { expect, test } from '@tgp/test';
import greet from './greet.ts';

test('greets by name', () => {
  expect(greet({ name: 'Ada' })).toBe('Hello, Ada!');
});
";

const GREET: &str = "\
/** A greeting for somebody. */
export default function greet(args: { name: string }): string {
  return `Hello, ${args.name}!`;
}
";

impl Demo<'_> {
    /// A second kernel on the same project, this one as strict as it is by default.
    pub(super) async fn hold_to_the_rules(&mut self) -> Result<(), Failure> {
        let directory = self.kernel.project().to_owned();
        let options =
            BootOptions { tdd_mode: Some(TddMode::Strict), ..session::boot_options(directory.clone()) };
        let kernel = Kernel::boot(options).await.map_err(ToolError::from)?;
        let held = self.hold(&kernel, &directory).await;
        kernel.shutdown().await;
        held
    }

    async fn hold(&mut self, kernel: &Kernel, directory: &std::path::Path) -> Result<(), Failure> {
        self.chapter("Held to its tests, an agent writes no tool before its test has failed");
        let early = ask(kernel, "write_file", json!({ "path": "tools/greet.ts", "content": GREET })).await;
        self.refused(&early, Code::State, "the tool without a test")?;
        let test = json!({ "path": "tools/greet.test.ts", "content": TEST });
        ask(kernel, "write_file", test).await.into_result()?;
        self.source(TEST);
        let red = ask(kernel, "test_tool", json!({ "path": "tools/greet.test.ts" })).await.into_result()?;
        self.expect(number(&red, "failed") == 1, "the failing test")?;
        self.say("test_tool: 1 failed, so the code may be written");
        ask(kernel, "write_file", json!({ "path": "tools/greet.ts", "content": GREET }))
            .await
            .into_result()?;
        let started = Instant::now();
        let green = ask(kernel, "test_tool", json!({ "path": "tools/greet.ts" })).await.into_result()?;
        self.expect(number(&green, "passed") == 1, "the passing test")?;
        self.say(&format!("test_tool: 1 passed after {}", shown(started.elapsed())));

        self.chapter("Secrets and history are out of reach, also for a command");
        let written = std::fs::write(directory.join(".env"), "API_KEY=not-for-agents\n");
        self.expect(written.is_ok(), "the secret of the demo")?;
        let secret = ask(kernel, "fs_read", json!({ "path": ".env" })).await;
        self.refused(&secret, Code::Policy, "the reading of a secret")?;
        if tgp::process_support().complete() {
            let sneaky = "python3 -c 'open(\"main.py\",\"w\").write(\"x\")' 2>/dev/null || echo x > main.py";
            let command = ask(kernel, "shell_exec", json!({ "command": sneaky })).await;
            self.refused(&command, Code::State, "the command that writes code")?;
            self.expect(!directory.join("main.py").exists(), "the file of the refused command")?;
        } else {
            self.say(
                "this machine cannot jail commands, so shell_exec refuses them all (tgp doctor says why)",
            );
        }
        self.verify_the_record(kernel).await?;
        self.steps.push(json!({ "step": "hold" }));
        Ok(())
    }

    async fn verify_the_record(&mut self, kernel: &Kernel) -> Result<(), Failure> {
        kernel.flush().await?;
        let options = session::boot_options(kernel.project().to_owned());
        let report = tgp::open_records(&options).await.map_err(ToolError::from)?.verify()?;
        self.say(&format!("the audit is intact: {} entries, each bound to the one before", report.entries));
        Ok(())
    }

    fn refused(&self, result: &ToolResult, code: Code, what: &str) -> Result<(), Failure> {
        match result.error() {
            Some(error) if error.code == code => {
                self.say(&visible(&error.to_string()));
                Ok(())
            }
            _ => self.expect(false, &format!("the refusal of {what}: {result:?}")),
        }
    }
}

fn number(data: &Value, name: &str) -> u64 {
    data.get(name).and_then(Value::as_u64).unwrap_or_default()
}

async fn ask(kernel: &Kernel, tool: &str, arguments: Value) -> ToolResult {
    let call = ToolCall { id: "demo-gates".to_owned(), tool: tool.to_owned(), arguments };
    let context = CallContext {
        actor: Actor::Agent("demo".to_owned()),
        session: "demo".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    };
    kernel.call_with(call, context).await
}
