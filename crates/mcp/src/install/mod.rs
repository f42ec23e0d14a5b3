//! The entry of the server in the configuration files of hosts.
//!
//! Nothing here reads or writes a file: a change is the text before and the text after, and the caller shows it to a person
//! before it writes it.

mod edit;
mod read;

use std::path::{Path, PathBuf};

pub use edit::EditError;
pub use read::{ForeignServer, servers};

/// A program in which agents run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    ClaudeCode,
    Codex,
    Cursor,
    VsCode,
    Zed,
    Gemini,
}

/// Whose configuration is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's own, for all their projects.
    User,
    /// The project's, which its other users get with it.
    Project,
}

/// How a configuration is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// JSON, with comments and trailing commas where the host allows them.
    Jsonc,
    Toml,
}

impl Host {
    pub const ALL: [Self; 6] =
        [Self::ClaudeCode, Self::Codex, Self::Cursor, Self::VsCode, Self::Zed, Self::Gemini];

    /// The name on the command line.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Zed => "zed",
            Self::Gemini => "gemini",
        }
    }

    /// The name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The configuration file, below the home directory or below the project.
    #[must_use]
    pub fn file(self, scope: Scope, home: &Path, project: &Path) -> PathBuf {
        match scope {
            Scope::User => home.join(match self {
                Self::ClaudeCode => ".claude.json",
                Self::Codex => ".codex/config.toml",
                Self::Cursor => ".cursor/mcp.json",
                Self::VsCode => ".config/Code/User/mcp.json",
                Self::Zed => ".config/zed/settings.json",
                Self::Gemini => ".gemini/settings.json",
            }),
            Scope::Project => project.join(match self {
                Self::ClaudeCode => ".mcp.json",
                Self::Codex => ".codex/config.toml",
                Self::Cursor => ".cursor/mcp.json",
                Self::VsCode => ".vscode/mcp.json",
                Self::Zed => ".zed/settings.json",
                Self::Gemini => ".gemini/settings.json",
            }),
        }
    }

    /// What is there when the host is installed for this user: a file or a folder below the home directory.
    #[must_use]
    pub fn traces(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[".claude.json", ".claude"],
            Self::Codex => &[".codex"],
            Self::Cursor => &[".cursor"],
            Self::VsCode => &[".config/Code/User", ".vscode"],
            Self::Zed => &[".config/zed"],
            Self::Gemini => &[".gemini"],
        }
    }

    fn format(self) -> Format {
        if self == Self::Codex { Format::Toml } else { Format::Jsonc }
    }

    /// The field that holds the servers.
    fn field(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::ClaudeCode | Self::Cursor | Self::Gemini => "mcpServers",
        }
    }

    /// Fields of an entry that a host wants beside the command.
    fn extra(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ClaudeCode | Self::VsCode => Some(("type", "stdio")),
            Self::Zed => Some(("source", "custom")),
            Self::Codex | Self::Cursor | Self::Gemini => None,
        }
    }
}

/// The server as a configuration file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    pub name: String,
    pub command: String,
    pub arguments: Vec<String>,
}

/// A configuration with the server in it. The entry of an earlier installation is replaced; everything else, comments and
/// format included, stays as it is.
///
/// # Errors
/// When the text is not a configuration of the host.
pub fn with_server(host: Host, text: &str, entry: &ServerEntry) -> Result<String, EditError> {
    match host.format() {
        Format::Jsonc => edit::jsonc_with(text, host.field(), host.extra(), entry),
        Format::Toml => edit::toml_with(text, host.field(), entry),
    }
}

/// A configuration without the server; `None` when it is not in it.
///
/// # Errors
/// When the text is not a configuration of the host.
pub fn without_server(host: Host, text: &str, name: &str) -> Result<Option<String>, EditError> {
    match host.format() {
        Format::Jsonc => edit::jsonc_without(text, host.field(), name),
        Format::Toml => edit::toml_without(text, host.field(), name),
    }
}
