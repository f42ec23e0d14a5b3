//! Which tools a host gets, and what the token of its connection allows.

use std::time::Duration;

use tgp::Kernel;
use tgp::gates::Caveats;
use tgp_contract::{Code, Consent, ToolError};
use tgp_text::did_you_mean;

/// How long a request waits for its run before it is answered with a handle. Hosts give up after 30 to 60 seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Which MCP tools a host sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The fixed set: programs are run, tools are forged and found.
    Code,
    /// Search and invoke, for hosts with a code mode of their own.
    Search,
    /// These tools only, each as an MCP tool: paths of forged tools, and names of kernel tools.
    Direct(Vec<String>),
}

/// How a server treats its hosts.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub mode: Mode,
    /// Whether the tools for the project's own files are offered.
    pub files: bool,
    /// Whether commands and the project's tests are offered.
    pub shell: bool,
    /// Whether effects are agreed to within the token, or a person is asked.
    pub consent: Consent,
    /// Whether a form of the host may answer what the defaults ask: a person has chosen so when they installed the server.
    pub forms: bool,
    /// How long a request waits for its run before it is answered with a handle.
    pub patience: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Code,
            files: false,
            shell: false,
            consent: Consent::Ask,
            forms: false,
            patience: PATIENCE,
        }
    }
}

/// The kernel tools that every host may call.
const BASE: [&str; 18] = [
    "audit_tail",
    "check_tool",
    "chronicle_append",
    "chronicle_read",
    "exec_code",
    "exec_sql",
    "exec_tool",
    "fetch",
    "graph_ingest",
    "graph_query",
    "list_files",
    "log",
    "patch_file",
    "read_file",
    "review_plan",
    "search",
    "test_tool",
    "write_file",
];
/// The tool that runs programs.
const PROGRAMS: &str = "exec_code";
/// What a host needs in order to run and describe forged tools that were selected for it.
const DIRECT_BASE: [&str; 2] = ["exec_tool", "read_file"];
/// The tools for the project's own files.
const FILES: [&str; 8] =
    ["fs_delete", "fs_edit", "fs_exists", "fs_list", "fs_read", "fs_write", "search_glob", "search_grep"];
/// The tools that start processes.
const SHELL: [&str; 3] = ["package_install", "shell_exec", "test_run"];

/// The file extension of a forged tool.
const EXTENSION: &str = ".ts";
/// The folder of forged tools in the tool repository.
const FOLDER: &str = "tools/";

/// The option that offers a tool which is off by default.
pub(crate) fn option_of(tool: &str) -> Option<&'static str> {
    match tool {
        _ if FILES.contains(&tool) => Some("--files"),
        _ if SHELL.contains(&tool) => Some("--shell"),
        _ => None,
    }
}

impl ServerOptions {
    /// The kernel tools that a connection may call, sorted.
    pub(crate) fn allowed_tools(&self) -> Vec<String> {
        let mut allowed: Vec<String> = match &self.mode {
            Mode::Code => BASE.iter().map(ToString::to_string).collect(),
            // Such a host runs programs itself.
            Mode::Search => BASE.iter().filter(|name| **name != PROGRAMS).map(ToString::to_string).collect(),
            Mode::Direct(only) => {
                let named = only.iter().filter(|name| !is_forged(name)).cloned();
                DIRECT_BASE.iter().map(ToString::to_string).chain(named).collect()
            }
        };
        let optional = [(self.files, &FILES[..]), (self.shell, &SHELL[..])];
        for (_, names) in optional.iter().filter(|(wanted, _)| *wanted) {
            allowed.extend(names.iter().map(ToString::to_string));
        }
        allowed.sort();
        allowed.dedup();
        allowed
    }

    /// What the token of a connection allows. Forged tools may call what they call everywhere.
    pub(crate) fn caveats(&self, note: &str) -> Caveats {
        Caveats {
            tools: Some(self.allowed_tools()),
            inner: Some(tgp::BRIDGE_TOOLS.map(str::to_owned).to_vec()),
            note: Some(note.to_owned()),
            ..Caveats::default()
        }
    }

    /// Refuses options that name what the kernel does not have.
    ///
    /// # Errors
    /// `EVALIDATION`.
    pub fn check(&self, kernel: &Kernel) -> Result<(), ToolError> {
        let Mode::Direct(only) = &self.mode else { return Ok(()) };
        if only.is_empty() {
            return Err(ToolError::new(Code::Validation, "the mode `direct` needs at least one tool")
                .help("name them: `tgp mcp --mode direct --only math/fib,exec_sql`"));
        }
        for name in only.iter().filter(|name| !is_forged(name)) {
            let known = || kernel.definitions().map(|definition| definition.name.as_str());
            if !known().any(|other| other == name) {
                let help = did_you_mean(name, known()).unwrap_or_else(|| {
                    "`tgp tools` lists the kernel tools; name a forged tool by its path, such as `math/fib`"
                        .to_owned()
                });
                return Err(ToolError::new(Code::Validation, format!("unknown tool `{name}`")).help(help));
            }
        }
        Ok(())
    }
}

/// Whether a name is that of a forged tool: kernel tools have neither folders nor an extension.
pub(crate) fn is_forged(name: &str) -> bool {
    name.contains('/') || name.ends_with(EXTENSION)
}

/// The path of a forged tool in the tool repository: `math/fib`, `tools/math/fib` and `tools/math/fib.ts` are the same.
pub(crate) fn tool_path(name: &str) -> String {
    let folder = if name.starts_with(FOLDER) { "" } else { FOLDER };
    let has_extension =
        [EXTENSION, ".js", ".mts", ".cts", ".mjs", ".cjs"].iter().any(|end| name.ends_with(end));
    format!("{folder}{name}{}", if has_extension { "" } else { EXTENSION })
}

/// The name by which a forged tool is run: its path without the folder and the extension.
pub(crate) fn tool_name(path: &str) -> &str {
    let name = path.strip_prefix(FOLDER).unwrap_or(path);
    name.strip_suffix(EXTENSION).unwrap_or(name)
}

/// The path of the test beside a forged tool.
pub(crate) fn test_path(path: &str) -> String {
    let stem = path.strip_suffix(EXTENSION).unwrap_or(path);
    format!("{stem}.test{EXTENSION}")
}

#[cfg(test)]
mod tests {
    use super::{Mode, ServerOptions, test_path, tool_name, tool_path};

    #[test]
    fn a_tool_has_one_path_however_it_is_named() {
        for name in ["math/fib", "tools/math/fib", "math/fib.ts", "tools/math/fib.ts"] {
            assert_eq!(tool_path(name), "tools/math/fib.ts", "{name}");
        }
        assert_eq!(tool_path("old.js"), "tools/old.js");
        assert_eq!(tool_name("tools/math/fib.ts"), "math/fib");
        assert_eq!(test_path("tools/math/fib.ts"), "tools/math/fib.test.ts");
    }

    #[test]
    fn files_and_commands_are_off_unless_they_are_requested() {
        let plain = ServerOptions::default().allowed_tools();
        assert!(!plain.iter().any(|name| name.starts_with("fs_") || name == "shell_exec"), "{plain:?}");
        let all = ServerOptions { files: true, shell: true, ..ServerOptions::default() }.allowed_tools();
        assert!(all.iter().any(|name| name == "fs_write") && all.iter().any(|name| name == "shell_exec"));
        let only = Mode::Direct(vec!["math/fib".to_owned(), "exec_sql".to_owned()]);
        let direct = ServerOptions { mode: only, ..ServerOptions::default() }.allowed_tools();
        assert_eq!(direct, ["exec_sql", "exec_tool", "read_file"]);
    }
}
