//! `shell_exec`: a command line, in its own jail and on its own layer.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tgp_contract::{Access, Code, Effect, ExecutionPath, RelativePath, Root, Target, ToolError, background};
use tgp_jail::{Captured, CommandExit, Exit, Template};

use super::apply::{Changes, CommandChange};
use super::command_files::CommandFiles;
use super::command_runner::{CommandRequest, CommandRunner, MissingPackage, Network};
use tgp_router::{Invocation, Preview, Tool, ToolOutcome, ToolSpec};

/// The longest command line; longer ones are scripts, and belong into a file.
const MAX_COMMAND: usize = 64 * 1024;
const MAX_STDIN: usize = 1024 * 1024;

pub(super) struct ShellExec(pub(super) Arc<CommandRunner>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShellExecArgs {
    /// For sh -c.
    #[schemars(length(min = 1, max = MAX_COMMAND))]
    command: String,
    /// Directory below the project to start in.
    #[serde(default)]
    cwd: String,
    /// `build`: more time and memory; writes build output directly.
    template: Option<CommandTemplate>,
    /// Shorter than the configured limit.
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
    /// Ask for the network.
    #[serde(default)]
    network: bool,
    #[serde(default)]
    #[schemars(length(max = MAX_STDIN))]
    stdin: String,
    /// Apply changes at any exit code.
    #[serde(default)]
    keep_on_failure: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CommandTemplate {
    Shell,
    Build,
}

/// How a command ended and what it printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandOutput {
    /// 128 and more for a signal; nothing when the kernel ended it.
    pub exit_code: Option<i32>,
    pub ended: CommandEnd,
    /// Its beginning and its end, when it is long.
    pub stdout: String,
    /// Its beginning and its end, when it is long.
    pub stderr: String,
    pub stdout_bytes: StreamBytes,
    pub stderr_bytes: StreamBytes,
    pub duration_ms: u64,
    /// What the command lacks, and what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Why a command is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    Exit,
    Signal,
    Deadline,
    Killed,
    LayerFull,
    MemoryFull,
    TooManyProcesses,
}

impl CommandEnd {
    /// As it is on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Deadline => "deadline",
            Self::Killed => "killed",
            Self::LayerFull => "layer_full",
            Self::MemoryFull => "memory_full",
            Self::TooManyProcesses => "too_many_processes",
        }
    }
}

/// How much a command printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamBytes {
    pub total: u64,
    /// How much of it is left out.
    pub omitted: u64,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandResult {
    #[serde(flatten)]
    pub output: CommandOutput,
    /// True when nothing was changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The files it changed; nothing when they could not be read, and it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<CommandChange>>,
    /// Whether the project has these changes now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
}

#[async_trait]
impl Tool for ShellExec {
    type Args = ShellExecArgs;
    type Output = CommandResult;

    const INFO: ToolSpec = ToolSpec {
        name: "shell_exec",
        aliases: &["shell.exec", "Bash"],
        description: "Run a command line with sh in a jail: it reads the project, writes to a private layer, has no network unless granted, and leaves no process behind. If it exits with 0, the files it changed are judged like `fs_write` and applied together; otherwise none is applied.",
        effect: Effect::Execute,
        path: ExecutionPath::Sandbox,
        dry_run: true,
    };

    fn targets(&self, args: &ShellExecArgs) -> Result<Vec<Target>, ToolError> {
        let path = RelativePath::new(&args.cwd)?;
        let mut targets = vec![Target::Command { command: args.command.clone() }];
        if !path.is_root() {
            targets.push(Target::File { root: Root::Project, path, access: Access::Read });
        }
        if args.network {
            targets.push(Target::Network);
        }
        Ok(targets)
    }

    /// The files that the command line names. No program of the command is started.
    async fn preview(&self, args: ShellExecArgs, invocation: Invocation<'_>) -> Result<Preview, ToolError> {
        let files = self.files(&args, invocation).await?;
        Ok(files.preview(&invocation))
    }

    async fn run(
        &self,
        args: ShellExecArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<CommandResult>, ToolError> {
        if args.command.contains('\0') {
            return Err(ToolError::new(Code::Validation, "a command line cannot hold a NUL")
                .detail("field", "command")
                .help("write such bytes with printf inside the command"));
        }
        if invocation.context.dry_run && args.network {
            return Err(ToolError::new(Code::Permission, "a dry run changes nothing, so it has no network")
                .help("run it without dry_run, or without network"));
        }
        if args.network {
            // What a command sends is sent, whatever becomes of the files it changes.
            invocation.testify()?;
            return self.run_command(args, invocation).await.map_err(ToolError::of_unknown_outcome);
        }
        self.run_command(args, invocation).await
    }
}

impl ShellExec {
    /// The files of the project that the command line names, as they are now.
    async fn files(
        &self,
        args: &ShellExecArgs,
        invocation: Invocation<'_>,
    ) -> Result<CommandFiles, ToolError> {
        let files = invocation.workspace.project_files();
        let filter = invocation.router.file_filter(invocation).await;
        let (command, directory) = (args.command.clone(), RelativePath::new(&args.cwd)?);
        let project = self.0.options.project.to_string_lossy().into_owned();
        let read = move || CommandFiles::read(&command, &directory, &project, &files, filter.as_ref());
        background::run(read).await
    }

    async fn run_command(
        &self,
        args: ShellExecArgs,
        invocation: Invocation<'_>,
    ) -> Result<ToolOutcome<CommandResult>, ToolError> {
        let dry_run = invocation.context.dry_run;
        if let Some(agreement) = invocation.agreement().filter(|_| !dry_run) {
            self.files(&args, invocation).await?.check(&agreement)?;
        }
        let build = args.template == Some(CommandTemplate::Build);
        let wanted = CommandRequest {
            template: if build { Template::Build } else { Template::Shell },
            command: args.command,
            directory: RelativePath::new(&args.cwd)?,
            network: if args.network { Network::Granted } else { Network::OfTemplate },
            stdin: args.stdin.into_bytes(),
            deadline_ms: args.timeout_ms,
            direct: if build && !dry_run { self.0.free_output(invocation, &[]).await } else { Vec::new() },
            environment: Vec::new(),
            cache: None,
            filter: invocation.router.file_filter(invocation).await,
        };
        let started = SystemTime::now();
        let finished = self.0.run(wanted).await?;
        let mut output = command_output(&finished);
        if !args.network {
            let missing = MissingPackage::of(output.exit_code, &output.stdout, &output.stderr);
            output.help = missing.map(|missing| {
                let (what, advice) = (missing.what, missing.advice());
                format!("{what}, and this command has no network; {advice}, or set `network`")
            });
        }
        output.help = output.help.take().or_else(|| git_write_help(&output));
        let counts = matches!(finished.exit, Exit::Code(0))
            || (args.keep_on_failure && matches!(finished.exit, Exit::Code(_)));
        let (yard, files) = (Arc::clone(&self.0), invocation.workspace.project_files());
        // Reading a layer of many files takes a while, and must not hold up others.
        let (changes, finished) = background::run(move || {
            let changes = Changes::read(&finished.layer, &yard, &files);
            Ok((changes, finished))
        })
        .await?;
        // A command that failed may have left anything; it is not applied, so it need not be readable.
        let changes = match changes {
            Err(_) if !counts => None,
            other => Some(other.map_err(|error| with_output(error, &output))?),
        };
        let mut result = CommandResult { output, dry_run: false, changes: None, applied: None };
        let mut effects = Vec::new();
        match changes {
            None => {}
            Some(changes) if dry_run => {
                changes.judge(invocation).await.map_err(|error| with_output(error, &result.output))?;
                result.dry_run = true;
                result.changes = Some(changes.previews());
            }
            Some(changes) => {
                result.changes = Some(changes.summary());
                result.applied = Some(counts);
                if counts {
                    let applied = changes.apply(invocation, &self.0, started, || Ok(())).await;
                    effects = applied.map_err(|error| with_output(error, &result.output))?;
                }
            }
        }
        Ok(ToolOutcome { files: effects, exit_code: exit_code(&finished), ..result.into() })
    }
}

/// What to do instead of a command of git that failed because it writes the repository. Commands see `.git` read-only:
/// what they change is judged file by file, and files of git mean nothing alone.
fn git_write_help(output: &CommandOutput) -> Option<String> {
    // `git mv` and `git commit` name the lock that they cannot make, `git config` the file that it cannot lock.
    let is_refused = |line: &str| line.contains("Read-only file system") && line.contains(".git");
    let failed = output.exit_code.is_none_or(|code| code != 0);
    (failed && output.stderr.lines().chain(output.stdout.lines()).any(is_refused)).then(|| {
        "commands cannot change `.git`: use `mv` and `rm` for files, and commit with `git_commit`; for branches, stashes and \
         settings of git ask the user"
            .to_owned()
    })
}

/// What a refused command printed is still worth knowing.
pub(super) fn with_output(error: ToolError, output: &CommandOutput) -> ToolError {
    error
        .detail("exitCode", output.exit_code)
        .detail("stdout", output.stdout.as_str())
        .detail("stderr", output.stderr.as_str())
}

pub(super) fn exit_code(finished: &CommandExit) -> Option<i32> {
    match finished.exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(signal) => Some(128 + signal),
        _ => None,
    }
}

/// How a command ended and what it printed.
pub(super) fn command_output(finished: &CommandExit) -> CommandOutput {
    let ended = match finished.exit {
        Exit::Code(_) => CommandEnd::Exit,
        Exit::Signal(_) => CommandEnd::Signal,
        Exit::Deadline => CommandEnd::Deadline,
        Exit::Killed => CommandEnd::Killed,
        Exit::LayerFull => CommandEnd::LayerFull,
        Exit::MemoryFull => CommandEnd::MemoryFull,
        Exit::TooManyProcesses => CommandEnd::TooManyProcesses,
    };
    let bytes =
        |stream: &Captured| StreamBytes { total: stream.total_bytes, omitted: stream.omitted_bytes() };
    CommandOutput {
        exit_code: exit_code(finished),
        ended,
        stdout: finished.stdout.to_text(),
        stderr: finished.stderr.to_text(),
        stdout_bytes: bytes(&finished.stdout),
        stderr_bytes: bytes(&finished.stderr),
        duration_ms: u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
        help: None,
    }
}
