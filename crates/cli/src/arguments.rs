//! The words of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use tgp::FirstWorker;

use crate::commands;
use crate::logging::Log;
use crate::session::BootedKernels;

#[derive(Debug, Parser)]
#[command(name = "tgp", version, about = ABOUT, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Puts `run` before a task: `tgp "fix the parser"`. A task has blanks, which no command has, so that a mistyped command
/// stays a mistyped command.
pub fn with_run(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        match word {
            "-C" | "--config" | "--log" => at += 2,
            "--" => break,
            _ if word.starts_with('-') => at += 1,
            _ => {
                if word.trim().contains(char::is_whitespace) {
                    words.insert(at, "run".into());
                }
                break;
            }
        }
    }
    words
}

const ABOUT: &str = "Run an AI agent on your project: every action is checked, sandboxed and recorded";

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 refused by a gate,
4 halted or integrity broken, 130 interrupted, 143 ended by SIGTERM.";

/// What `tgp` alone says.
pub const GREETING: &str = "\
TGP is the kernel that an AI agent runs on: it forges typed tools, checks them,
and runs them in a locked sandbox.

  tgp demo       see the whole story in a few seconds, with no set-up
  tgp init       make this folder a project
  tgp \"<task>\"   have an agent work on it
  tgp doctor     see what this machine offers and what is missing

`tgp --help` lists every command.";

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Run as if started in DIR (not for --log and --bundle).
    #[arg(id = "run_directory", short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Print JSON: one document, or one line an event.
    #[arg(long, global = true)]
    pub json: bool,
    /// Use this file instead of tgp.config.{ts,js,json}.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// Write a log to FILE, or - for stderr (.jsonl: as JSON).
    #[arg(long = "log", value_name = "FILE", global = true)]
    pub log_file: Option<PathBuf>,
    /// What is logged, once it has begun.
    #[arg(skip)]
    pub log: Log,
    /// The kernels that the command has booted.
    #[arg(skip)]
    pub kernels: BootedKernels,
    /// What the command is likely to need first.
    #[arg(skip)]
    pub first_worker: FirstWorker,
    /// The variable that the command names for the key of a model.
    #[arg(skip)]
    pub key_variable: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make this folder a project.
    Init(commands::init::InitArgs),
    /// The whole story with no key, no network and no set-up.
    Demo(commands::demo::DemoArgs),
    /// Have an agent work on a task; `tgp "<task>"` is the same.
    Run(Box<commands::run::RunArgs>),
    /// List, show, resume and export what agents have worked on.
    Sessions(commands::sessions::SessionsArgs),
    /// Play a session again from its transcript, and compare.
    Replay(commands::replay::ReplayArgs),
    /// Put back the files that a session has changed.
    Undo(commands::undo::UndoArgs),
    /// List the models that a provider offers.
    Models(commands::models::ModelsArgs),
    /// Call any registered tool through the router and print its result.
    Call(commands::call::CallArgs),
    /// List the tools an agent can call.
    Tools(commands::tools::ToolsArgs),
    /// List the files of the tool repository.
    List(commands::list::ListArgs),
    /// Print a file of the tool repository.
    Read(commands::read::ReadArgs),
    /// Write a file of the tool repository.
    Write(commands::write::WriteArgs),
    /// Replace one piece of text in a file.
    Patch(commands::patch::PatchArgs),
    /// Check tools: syntax, globals, imports, standards, types.
    Check(commands::check::CheckArgs),
    /// Run a tool in the sandbox and print its result.
    Exec(commands::exec::ExecArgs),
    /// Run the tests of forged tools.
    Test(commands::test::TestArgs),
    /// Find a tool by what it does.
    Search(commands::search::SearchArgs),
    /// Run one SQL statement on the configured database.
    Sql(commands::sql::SqlArgs),
    /// Exchange tools with the remote repository.
    Sync(commands::sync::SyncArgs),
    /// Show the versions of the tools.
    Log(commands::log::LogArgs),
    /// Verify and read the record of every call.
    Audit(commands::audit::AuditArgs),
    /// Check the rules, try them, and ask why a call is judged as it is.
    Policy(commands::policy::PolicyArgs),
    /// Answer calls that wait for an approval.
    Approve(commands::approve::ApproveArgs),
    /// Confirm what the configuration executes, sends or opens.
    Trust(commands::trust::TrustArgs),
    /// Show and set where test-driven work stands.
    State(commands::state::StateArgs),
    /// Append, read and verify events about the files of the project.
    Chronicle(commands::chronicle::ChronicleArgs),
    /// Ask the code, at any commit.
    Graph(commands::graph::GraphArgs),
    /// Review plans, check invariants, and find contradictions.
    Guardian(commands::guardian::GuardianArgs),
    /// Agents as queries: check, explain and run them.
    Aql(commands::aql::AqlArgs),
    /// Turn changes of files into events, and events into work.
    Valve(commands::valve::ValveArgs),
    /// Prove parts against the contracts, ours or any program's.
    Relay(commands::relay::RelayArgs),
    /// Make and narrow capability tokens.
    Token(commands::token::TokenArgs),
    /// Serve the tools to local programs over a socket.
    Serve(commands::serve::ServeArgs),
    /// Serve the tools to MCP hosts, and enter them there.
    Mcp(commands::mcp::McpArgs),
    /// Let tools call MCP servers of others: add, show and pin them.
    Upstream(commands::upstream::UpstreamArgs),
    /// Explain what this machine offers and what is missing.
    Doctor(commands::doctor::DoctorArgs),
    /// Print a completion script for a shell.
    Completions(commands::completions::CompletionsArgs),
    /// Print the manual page.
    Man(commands::man::ManArgs),
}

impl Command {
    /// The variable that the command line names for the key of a model.
    pub fn key_variable(&self) -> Option<&String> {
        match self {
            Self::Run(run) => run.key_variable(),
            Self::Models(models) => models.key_variable(),
            Self::Aql(aql) => aql.key_variable(),
            Self::Valve(valve) => valve.key_variable(),
            _ => None,
        }
    }

    /// The worker that is started while the kernel of this command boots.
    pub fn first_worker(&self) -> FirstWorker {
        match self {
            Self::Run(_)
            | Self::Exec(_)
            | Self::Test(_)
            | Self::Serve(_)
            | Self::Mcp(_)
            | Self::Demo(_)
            | Self::Valve(_) => FirstWorker::Run,
            Self::Check(_) | Self::Write(_) | Self::Patch(_) => FirstWorker::Compile,
            Self::Call(call) if call.runs_a_tool() => FirstWorker::Run,
            _ => FirstWorker::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_words_fit_together() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn a_task_is_told_from_a_command() {
        let cases = [
            ("tgp|fix it", "tgp|run|fix it"),
            ("tgp|-C|some where|fix it|--yes", "tgp|-C|some where|run|fix it|--yes"),
            ("tgp|--json|--config|a b|fix it", "tgp|--json|--config|a b|run|fix it"),
            ("tgp|--log|run.log|fix it", "tgp|--log|run.log|run|fix it"),
            ("tgp|lits", "tgp|lits"),
            ("tgp|search|two words", "tgp|search|two words"),
            ("tgp| list ", "tgp| list "),
            ("tgp", "tgp"),
            ("tgp|--|fix it", "tgp|--|fix it"),
        ];
        for (typed, meant) in cases {
            let words = super::with_run(typed.split('|').map(Into::into));
            let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
            assert_eq!(words.join("|"), meant, "{typed}");
        }
    }
}
