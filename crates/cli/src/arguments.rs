//! The words of the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands;

#[derive(Debug, Parser)]
#[command(name = "tgp", version, about = ABOUT, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Option<Command>,
}

const ABOUT: &str = "\
The kernel that an AI agent runs on: it forges typed tools, checks them,
and runs them in a locked sandbox";

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 refused by a gate,
4 halted or integrity broken, 130 interrupted.";

/// What `tgp` alone says.
pub const GREETING: &str = "\
TGP is the kernel that an AI agent runs on: it forges typed tools, checks them,
and runs them in a locked sandbox.

  tgp demo     see the whole story in a few seconds, with no set-up
  tgp init     make this folder a project
  tgp doctor   see what this machine offers and what is missing

`tgp --help` lists every command.";

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Run as if started in DIR.
    #[arg(id = "run_directory", short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Print exactly one JSON document on standard output.
    #[arg(long, global = true)]
    pub json: bool,
    /// Use this file instead of tgp.config.{ts,js,json}.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make this folder a project.
    Init(commands::init::InitArgs),
    /// The whole story with no key, no network and no set-up.
    Demo(commands::demo::DemoArgs),
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
    /// Show and set where test-driven work stands.
    State(commands::state::StateArgs),
    /// Make and narrow capability tokens.
    Token(commands::token::TokenArgs),
    /// Serve the tools to local programs over a socket.
    Serve(commands::serve::ServeArgs),
    /// Explain what this machine offers and what is missing.
    Doctor(commands::doctor::DoctorArgs),
    /// Print a completion script for a shell.
    Completions(commands::completions::CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_words_fit_together() {
        super::Cli::command().debug_assert();
    }
}
