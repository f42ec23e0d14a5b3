//! `shell_exec`: a command line, in a jail and on a layer of its own.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tgp_contract::{
    Access, Code, Effect, ExecutionPath, RelativePath, Root, Target, ToolDefinition, ToolError, background,
};
use tgp_jail::{Captured, Exit, Finished, Template};

use super::apply::Changes;
use super::yard::{Network, Wanted, Yard};
use crate::builtin::Definition;
use crate::router::{Invocation, Outcome, Tool};

/// The longest command line; longer ones are scripts, and belong into a file.
const MAX_COMMAND: usize = 64 * 1024;
const MAX_STDIN: usize = 1024 * 1024;

pub(super) struct ShellExec {
    definition: ToolDefinition,
    yard: Arc<Yard>,
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    template: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    stdin: String,
    #[serde(default)]
    keep_on_failure: bool,
}

impl ShellExec {
    pub(super) fn new(yard: Arc<Yard>) -> Result<Self, ToolError> {
        let definition = Definition {
            name: "shell_exec",
            aliases: &["shell.exec", "Bash"],
            description: "Run a command line with sh in a jail: the project to read, a private layer to write, no network unless granted, nothing that outlives it. When it ends with 0 the files it changed are judged like fs_write and applied all together; otherwise none is. Answers {exitCode, stdout, stderr, changes, applied, durationMs}.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "minLength": 1, "maxLength": MAX_COMMAND, "description": "For sh -c." },
                    "cwd": { "type": "string", "description": "Directory below the project to start in." },
                    "template": { "enum": ["shell", "build"], "description": "What it may use; `build` has more time and memory, and writes build output directly." },
                    "timeout_ms": { "type": "integer", "minimum": 1, "description": "Less time than the configuration gives." },
                    "network": { "type": "boolean", "description": "Ask for the network." },
                    "stdin": { "type": "string", "maxLength": MAX_STDIN },
                    "keep_on_failure": { "type": "boolean", "description": "Apply the changes of a command that ends with another code than 0, too." }
                },
                "required": ["command"],
                "additionalProperties": false
            }),
            effect: Effect::Execute,
            path: ExecutionPath::Sandbox,
            dry_run: true,
        };
        Ok(Self { definition: definition.build()?, yard })
    }
}

#[async_trait]
impl Tool for ShellExec {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn targets(&self, arguments: &Value) -> Result<Vec<Target>, ToolError> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = RelativePath::new(text("cwd"))?;
        let mut targets = vec![Target::Command { command: text("command").to_owned() }];
        if !path.is_root() {
            targets.push(Target::File { root: Root::Project, path, access: Access::Read });
        }
        if arguments.get("network").and_then(Value::as_bool) == Some(true) {
            targets.push(Target::Network);
        }
        Ok(targets)
    }

    async fn run(&self, invocation: Invocation<'_>) -> Result<Outcome, ToolError> {
        let arguments: Arguments = invocation.parse()?;
        if arguments.command.contains('\0') {
            return Err(ToolError::new(Code::Validation, "a command line cannot hold a NUL")
                .detail("field", "command")
                .help("write such bytes with printf inside the command"));
        }
        let dry_run = invocation.context.dry_run;
        if dry_run && arguments.network {
            return Err(ToolError::new(Code::Permission, "a dry run changes nothing, so it has no network")
                .help("run it without dry_run, or without network"));
        }
        if arguments.network {
            // What a command sends is sent, whatever becomes of the files it changes.
            invocation.testify()?;
        }
        let build = arguments.template.as_deref() == Some(Template::Build.name());
        let wanted = Wanted {
            template: if build { Template::Build } else { Template::Shell },
            command: arguments.command,
            directory: RelativePath::new(&arguments.cwd)?,
            network: if arguments.network { Network::Granted } else { Network::OfTemplate },
            stdin: arguments.stdin.into_bytes(),
            deadline_ms: arguments.timeout_ms,
            direct: if build && !dry_run { self.yard.free_output(invocation, &[]).await } else { Vec::new() },
            environment: Vec::new(),
            filter: invocation.router.file_filter(invocation).await,
        };
        let started = SystemTime::now();
        let finished = self.yard.run(wanted).await?;
        let mut data = report(&finished);
        let counts = matches!(finished.exit, Exit::Code(0))
            || (arguments.keep_on_failure && matches!(finished.exit, Exit::Code(_)));
        let (yard, files) = (Arc::clone(&self.yard), invocation.workspace.project_files());
        // Reading a layer of many files takes a while, and must not hold up others.
        let (changes, finished) = background::run(move || {
            let changes = Changes::read(&finished.layer, &yard, &files);
            Ok((changes, finished))
        })
        .await?;
        // A command that failed may have left anything; it is not applied, so it need not be readable.
        let changes = match changes {
            Err(_) if !counts => None,
            other => Some(other.map_err(|error| with_output(error, &data))?),
        };
        let mut effects = Vec::new();
        if let (Some(changes), Some(fields)) = (changes, data.as_object_mut()) {
            if dry_run {
                let judged = changes.judge(invocation).await;
                judged.map_err(|error| with_output(error, &Value::Object(fields.clone())))?;
                fields.insert("dry_run".to_owned(), json!(true));
                fields.insert("changes".to_owned(), json!(changes.previews()));
            } else {
                fields.insert("changes".to_owned(), json!(changes.summary()));
                fields.insert("applied".to_owned(), json!(counts));
                if counts {
                    let shown = Value::Object(fields.clone());
                    effects = changes
                        .apply(invocation, &self.yard, started)
                        .await
                        .map_err(|error| with_output(error, &shown))?;
                }
            }
        }
        Ok(Outcome { data, files: effects, exit_code: exit_code(&finished), ..Outcome::default() })
    }
}

/// What a refused command said is still worth knowing.
fn with_output(error: ToolError, data: &Value) -> ToolError {
    ["exitCode", "stdout", "stderr"]
        .into_iter()
        .fold(error, |error, name| error.detail(name, data.get(name).cloned().unwrap_or_default()))
}

pub(super) fn exit_code(finished: &Finished) -> Option<i32> {
    match finished.exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(signal) => Some(128 + signal),
        _ => None,
    }
}

/// How a command ended and what it said.
pub(super) fn report(finished: &Finished) -> Value {
    let ended = match finished.exit {
        Exit::Code(_) => "exit",
        Exit::Signal(_) => "signal",
        Exit::Deadline => "deadline",
        Exit::Killed => "killed",
        Exit::LayerFull => "layer_full",
        Exit::MemoryFull => "memory_full",
        Exit::TooManyProcesses => "too_many_processes",
    };
    let bytes = |stream: &Captured| json!({ "total": stream.total_bytes, "omitted": stream.omitted_bytes() });
    json!({
        "exitCode": exit_code(finished),
        "ended": ended,
        "stdout": finished.stdout.to_text(),
        "stderr": finished.stderr.to_text(),
        "stdoutBytes": bytes(&finished.stdout),
        "stderrBytes": bytes(&finished.stderr),
        "durationMs": u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
    })
}
