//! `tgp.config.ts`: every field optional, every wrong one named by its path.

mod database;
mod fields;
mod found;
mod gates;
mod git;
mod jail;
mod key_variable;
mod knowledge;
mod llm;
mod load;
mod registry;
mod sandbox;
mod secrets;
mod user;

use std::path::PathBuf;

use serde_json::Value;
use tgp_contract::{Code, ToolError};
use tgp_fetch::AllowList;
use tgp_fs::RepositoryAccess;
use tgp_router::files::{ToolDirectories, UpwardTraversal};

pub use database::DatabaseConfig;
use fields::Fields;
pub(crate) use found::Found;
pub use gates::{AuditConfig, AuditDurability, PolicyConfig, TddConfig};
pub use git::{GitAuth, GitConfig, GitProvider, WriteStrategy};
pub use jail::JailConfig;
pub(crate) use key_variable::check_key_variable;
pub use knowledge::{ChronicleConfig, ChronicleDurability, GraphConfig, GuardianConfig};
pub use llm::{LlmConfig, LlmPatience};
use load::{ConfigSource, find};
pub(crate) use load::{kept_files, names};
pub use registry::{EmbeddingsConfig, OnDuplicate, RegistryConfig};
pub use sandbox::SandboxConfig;
pub use secrets::{SecretConfig, SecretOrigin};
pub use user::{Permissions, Theme, UserConfig};

/// The configuration of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The agent's root, relative to the project.
    pub root_dir: String,
    /// The main work tree whose root is used, where the project is another work tree of its repository.
    pub main_tree: Option<PathBuf>,
    /// The places outside of the project that its repository uses, found in git's own files, and once they are confirmed.
    pub repository: RepositoryAccess,
    pub git: Option<GitConfig>,
    pub fs: FsConfig,
    pub allowed_imports: Vec<String>,
    pub allowed_fetch_urls: Vec<String>,
    pub secrets: Vec<SecretConfig>,
    pub sandbox: SandboxConfig,
    pub db: DatabaseConfig,
    pub registry: RegistryConfig,
    pub audit: AuditConfig,
    pub policy: PolicyConfig,
    pub tdd: TddConfig,
    pub jail: JailConfig,
    pub llm: LlmConfig,
    pub chronicle: ChronicleConfig,
    pub graph: GraphConfig,
    pub guardian: GuardianConfig,
    /// Fields of the file that take no effect because no person has confirmed them, see [`crate::Trust`].
    pub ignored: Vec<&'static str>,
    /// What the user has set up for all projects. It is not in the file.
    pub user: UserConfig,
    /// Variables whose values are sent as keys because the program that boots the kernel says so. They are not in the file.
    pub key_variables: Vec<String>,
}

/// The section `fs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsConfig {
    /// Directories tools may write to, relative to the project.
    pub allowed_dirs: Vec<String>,
    /// Directories tools may read and not write, relative to the project.
    pub read_dirs: Vec<String>,
    pub block_upward_traversal: bool,
}

impl Config {
    /// The directories that forged tools may use, and those of the project's repository.
    pub(crate) fn directories(&self) -> ToolDirectories<'_> {
        let FsConfig { allowed_dirs, read_dirs, block_upward_traversal } = &self.fs;
        let upward =
            if *block_upward_traversal { UpwardTraversal::Blocked } else { UpwardTraversal::Allowed };
        let repository = Some(&self.repository);
        ToolDirectories { writable: allowed_dirs, readable: read_dirs, upward, repository }
    }
}

impl Default for FsConfig {
    fn default() -> Self {
        Self { allowed_dirs: vec!["./tmp".to_owned()], read_dirs: Vec::new(), block_upward_traversal: true }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            root_dir: "./.tgp".to_owned(),
            main_tree: None,
            repository: RepositoryAccess::default(),
            git: None,
            fs: FsConfig::default(),
            allowed_imports: ["@tgp/std", "zod", "date-fns"].map(str::to_owned).to_vec(),
            allowed_fetch_urls: Vec::new(),
            secrets: Vec::new(),
            sandbox: SandboxConfig::default(),
            db: DatabaseConfig::default(),
            registry: RegistryConfig::default(),
            audit: AuditConfig::default(),
            policy: PolicyConfig::default(),
            tdd: TddConfig::default(),
            jail: JailConfig::default(),
            llm: LlmConfig::default(),
            chronicle: ChronicleConfig::default(),
            graph: GraphConfig::default(),
            guardian: GuardianConfig::default(),
            ignored: Vec::new(),
            user: UserConfig::default(),
            key_variables: Vec::new(),
        }
    }
}

/// One wrong field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Such as `git.auth.email` or `allowedImports[2]`.
    pub path: String,
    pub message: String,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{file} has {}: {}", count(.problems), summary(.problems))]
    Fields { file: String, problems: Vec<ConfigProblem> },
    #[error("{file} cannot be evaluated: {error}")]
    Evaluate { file: String, error: Box<ToolError> },
    #[error("{file} cannot be read: {reason}")]
    Read { file: String, reason: String },
    #[error("{file} is a link that leads out of the project, to {}", place.display())]
    Outside { file: String, place: PathBuf },
    #[error("{file} is not valid JSON: {reason}")]
    Json { file: String, reason: String },
}

fn count(problems: &[ConfigProblem]) -> String {
    match problems.len() {
        1 => "a wrong field".to_owned(),
        number => format!("{number} wrong fields"),
    }
}

fn summary(problems: &[ConfigProblem]) -> String {
    let lines: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
    lines.join("; ")
}

impl From<ConfigError> for ToolError {
    fn from(error: ConfigError) -> Self {
        let tool_error = ToolError::new(Code::Config, error.to_string());
        match error {
            ConfigError::Fields { problems, .. } => {
                let all: Vec<Value> = problems
                    .iter()
                    .map(|problem| serde_json::json!({ "path": problem.path, "message": problem.message }))
                    .collect();
                tool_error.detail("problems", all).help("correct the fields named above")
            }
            ConfigError::Evaluate { error, .. } => {
                let mut tool_error = tool_error;
                tool_error.details = error.details;
                match error.code {
                    // The file is not at fault.
                    Code::Capability => {
                        tool_error.code = Code::Capability;
                        tool_error
                    }
                    // A syntax error brings its own advice.
                    Code::Compile | Code::Security => tool_error,
                    _ => tool_error.help("correct the file; it runs in a sandbox and must give an object"),
                }
            }
            ConfigError::Json { .. } => tool_error.help("correct the JSON at that line and column"),
            ConfigError::Outside { .. } => {
                tool_error.help("put the file itself into the project, or name it with `--config`")
            }
            ConfigError::Read { .. } => tool_error.help("check the file and its permissions"),
        }
    }
}

impl Config {
    /// Reads a configuration from the value that its file gives.
    ///
    /// # Errors
    /// Every wrong field, with its path.
    pub fn from_value(file: &str, value: &Value) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        let defaults = Self::default();
        let mut root = Fields::new("", value, &mut problems);
        let mut config = Self {
            root_dir: root.text("rootDir").unwrap_or(defaults.root_dir),
            main_tree: None,
            repository: RepositoryAccess::default(),
            git: None,
            fs: defaults.fs,
            allowed_imports: root.texts("allowedImports").unwrap_or(defaults.allowed_imports),
            allowed_fetch_urls: root.texts("allowedFetchUrls").unwrap_or_default(),
            secrets: root.entries("secrets", secrets::read),
            sandbox: defaults.sandbox,
            db: defaults.db,
            registry: defaults.registry,
            audit: defaults.audit,
            policy: defaults.policy,
            tdd: defaults.tdd,
            jail: defaults.jail,
            llm: defaults.llm,
            chronicle: defaults.chronicle,
            graph: defaults.graph,
            guardian: defaults.guardian,
            ignored: Vec::new(),
            user: UserConfig::default(),
            key_variables: Vec::new(),
        };
        if config.root_dir.is_empty() {
            root.problem("rootDir", "must not be empty");
        }
        if let Some(git) = root.section("git") {
            config.git = Some(git::read(git));
        }
        if let Some(mut fs) = root.section("fs") {
            if let Some(directories) = fs.texts("allowedDirs") {
                config.fs.allowed_dirs = directories;
            }
            if let Some(directories) = fs.texts("readDirs") {
                config.fs.read_dirs = directories;
            }
            if let Some(blocked) = fs.flag("blockUpwardTraversal") {
                config.fs.block_upward_traversal = blocked;
            }
            fs.done();
        }
        if let Some(sandbox) = root.section("sandbox") {
            config.sandbox = sandbox::read(sandbox);
        }
        if let Some(db) = root.section("db") {
            config.db = database::read(db);
        }
        if let Some(registry) = root.section("registry") {
            config.registry = registry::read(registry);
        }
        if let Some(audit) = root.section("audit") {
            config.audit = gates::read_audit(audit);
        }
        if let Some(policy) = root.section("policy") {
            config.policy = gates::read_policy(policy);
        }
        if let Some(tdd) = root.section("tdd") {
            config.tdd = gates::read_tdd(tdd);
        }
        if let Some(jail) = root.section("jail") {
            config.jail = jail::read(jail);
        }
        if let Some(llm) = root.section("llm") {
            config.llm = llm::read(llm);
        }
        if let Some(chronicle) = root.section("chronicle") {
            config.chronicle = knowledge::read_chronicle(chronicle);
        }
        if let Some(graph) = root.section("graph") {
            config.graph = knowledge::read_graph(graph);
        }
        if let Some(guardian) = root.section("guardian") {
            config.guardian = knowledge::read_guardian(guardian);
        }
        for (index, entry) in config.allowed_fetch_urls.iter().enumerate() {
            if let Err(error) = AllowList::parse(std::slice::from_ref(entry)) {
                root.problem(&format!("allowedFetchUrls[{index}]"), error.problem());
            }
        }
        root.done();
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Fields { file: file.to_owned(), problems })
        }
    }
}
