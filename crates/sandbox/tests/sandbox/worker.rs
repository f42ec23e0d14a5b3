//! Workers for tests: a front end that compiles JavaScript as it is, and runs with limits that no speed can reach.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};
use tgp_sandbox::{
    Bridge, CompileFailure, EmitRequest, Frontend, FrontendReply, ModuleCode, ModuleKind, Program, RunError,
    RunInput, RunLimits, Sandbox, SandboxOptions, ToolRunOptions, ToolRunReport, WorkerCommand,
};
use tokio::runtime::Runtime;

pub type Tested = Result<(), Box<dyn Error>>;

const ENTRY: &str = "tools/test.js";

#[derive(Serialize, Deserialize)]
struct Script {
    id: String,
    common_js: bool,
    code: String,
    keep_debug_info: bool,
}

impl Script {
    fn request(emit: EmitRequest) -> Vec<u8> {
        let EmitRequest { id, kind, code, keep_debug_info } = emit;
        let script = Self { id, common_js: kind == ModuleKind::CommonJs, code, keep_debug_info };
        serde_json::to_vec(&script).unwrap_or_default()
    }
}

/// The front end in the compile worker: every request is a script to be compiled as it is.
pub struct ScriptFrontend;

impl Frontend for ScriptFrontend {
    fn handle(&self, request: &[u8]) -> FrontendReply {
        let emit = serde_json::from_slice::<Script>(request).ok().map(|script| EmitRequest {
            id: script.id,
            kind: if script.common_js { ModuleKind::CommonJs } else { ModuleKind::Module },
            code: script.code,
            keep_debug_info: script.keep_debug_info,
        });
        FrontendReply { answer: Vec::new(), emit }
    }
}

/// A kernel that answers every request with what it was asked.
#[derive(Default)]
pub struct Echo {
    pub calls: Mutex<Vec<(String, Vec<Value>)>>,
}

#[async_trait]
impl Bridge for Echo {
    async fn call(&self, name: &str, arguments: Vec<Value>) -> Result<Value, ToolError> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), arguments.clone()));
        let request = arguments.into_iter().next().unwrap_or_default();
        match (name, request.get("url").and_then(Value::as_str)) {
            ("fetch", Some("https://denied.test/")) => Err(ToolError::new(Code::Policy, "denied")),
            ("fetch", Some("https://bytes.test/")) => Ok(json!({
                "status": 201, "statusText": "Created", "url": "https://bytes.test/", "redirected": false,
                "headers": [["content-type", "application/octet-stream"], ["set-cookie", "a=1"], ["set-cookie", "b=2"]],
                "body": "AAH/", "bodyEncoding": "base64",
            })),
            ("fetch", Some(url)) => Ok(json!({
                "status": 200, "statusText": "OK", "url": url, "redirected": false,
                "headers": [["content-type", "application/json"]],
                "body": request.to_string(), "bodyEncoding": "utf8",
            })),
            _ => Ok(request),
        }
    }
}

/// A sandbox whose workers are this binary.
pub struct Workers {
    runtime: Runtime,
    sandbox: Sandbox,
}

impl Workers {
    pub fn start() -> Result<Self, Box<dyn Error>> {
        Self::start_with(WorkerCommand::this_binary())
    }

    /// Workers that are started with another command.
    pub fn start_with(worker: WorkerCommand) -> Result<Self, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let limits = limits();
        let sandbox = Sandbox::new(SandboxOptions { worker, pool_size: 2, limits, ceiling: limits })?;
        runtime.block_on(async {
            sandbox.warm().await?;
            Ok::<_, Box<dyn Error>>(())
        })?;
        Ok(Self { runtime, sandbox })
    }

    /// Takes one worker, to learn how it is locked.
    pub fn lock_report(&self) -> Result<(), tgp_sandbox::SandboxError> {
        self.runtime.block_on(self.sandbox.lock_report()).map(|_| ())
    }

    /// Compiles something, which takes the compile worker.
    pub fn compile(&self) -> Result<(), CompileFailure> {
        let emit = EmitRequest {
            id: "tool".to_owned(),
            kind: ModuleKind::Module,
            code: "export default 1".to_owned(),
            keep_debug_info: false,
        };
        self.runtime.block_on(self.sandbox.compile(Script::request(emit))).map(drop)
    }

    /// Has this process handle the signal that the end of each child sends.
    pub fn handle_ends_of_children(&self) -> Result<tokio::signal::unix::Signal, Box<dyn Error>> {
        let _entered = self.runtime.enter();
        Ok(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child())?)
    }

    /// Runs a module whose default export is called with `arguments`. It may import `tgp:csv`, as the standard library does.
    pub fn run(
        &self,
        code: &str,
        arguments: Value,
        options: ToolRunOptions,
        bridge: &dyn Bridge,
    ) -> ToolRunReport {
        let program = self.runtime.block_on(async {
            let emit = EmitRequest {
                id: ENTRY.to_owned(),
                kind: ModuleKind::Module,
                code: code.to_owned(),
                keep_debug_info: true,
            };
            let compiled = self.sandbox.compile(Script::request(emit)).await;
            compiled.map(|compiled| Program {
                entry: ENTRY.to_owned(),
                modules: vec![Arc::new(ModuleCode {
                    id: ENTRY.to_owned(),
                    kind: ModuleKind::Module,
                    bytecode: compiled.bytecode.unwrap_or_default(),
                    links: vec![("tgp:csv".to_owned(), "tgp:csv".to_owned())],
                })],
            })
        });
        let input = RunInput { arguments, call_default: true, environment: Vec::new() };
        let ran = match program {
            Ok(program) => self
                .runtime
                .block_on(self.sandbox.run(&program, input, options, bridge))
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        ran.unwrap_or_else(|text| ToolRunReport {
            result: Err(RunError {
                kind: tgp_sandbox::RunErrorKind::BadProgram,
                name: String::new(),
                message: text,
                stack: String::new(),
                code: None,
                related: Box::default(),
                stop: Box::default(),
            }),
            logs: Vec::new(),
            stats: tgp_sandbox::RunStats::default(),
        })
    }

    pub fn evaluate(&self, expression: &str) -> ToolRunReport {
        self.evaluate_with(expression, ToolRunOptions { limits: limits(), ..ToolRunOptions::default() })
    }

    pub fn evaluate_with(&self, expression: &str, options: ToolRunOptions) -> ToolRunReport {
        self.run(&module(expression), Value::Null, options, &Echo::default())
    }

    /// What an expression gives.
    pub fn value(&self, expression: &str) -> Result<Value, Box<dyn Error>> {
        let report = self.evaluate(expression);
        report.result.map_err(|error| format!("{expression}\n  {error:?}").into())
    }

    /// Checks that an expression gives this value.
    pub fn check(&self, expression: &str, expected: &Value) -> Tested {
        let value = self.value(expression)?;
        if value == *expected {
            return Ok(());
        }
        Err(format!("{expression}\n  expected: {expected}\n  but was:  {value}").into())
    }

    /// Checks that the run of an expression fails, and gives the error.
    pub fn failure(&self, expression: &str, options: ToolRunOptions) -> Result<RunError, Box<dyn Error>> {
        match self.evaluate_with(expression, options).result {
            Ok(value) => Err(format!("{expression}\n  gave {value} instead of an error").into()),
            Err(error) => Ok(error),
        }
    }
}

/// A module that gives the value of an expression.
pub fn module(expression: &str) -> String {
    format!("export default async () => (\n{expression}\n);")
}

/// Limits that only an endless tool reaches, however slow the machine is.
pub fn limits() -> RunLimits {
    RunLimits {
        cpu: Duration::from_secs(5),
        wall: Duration::from_secs(120),
        heap_bytes: 256 << 20,
        ..RunLimits::default()
    }
}
