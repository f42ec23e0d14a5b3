//! `tgp.config.ts`: every field optional, every wrong one named by its path.

mod fields;
mod load;

use std::time::Duration;

use serde_json::Value;
use tgp_contract::{Code, ToolError};
use tgp_sandbox::{AllowList, Limits};

use fields::Fields;
pub(crate) use load::{ConfigSource, find, kept_files};

/// The configuration of one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The agent's root, relative to the project.
    pub root_dir: String,
    pub git: Option<GitConfig>,
    pub fs: FsConfig,
    pub allowed_imports: Vec<String>,
    pub allowed_fetch_urls: Vec<String>,
    pub sandbox: SandboxConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitProvider {
    GitHub,
    GitLab,
    Bitbucket,
}

/// How a forged tool reaches the remote branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteStrategy {
    Direct,
    PullRequest,
}

#[derive(Clone, PartialEq, Eq)]
pub struct GitAuth {
    pub token: Option<String>,
    pub user: String,
    pub email: String,
}

impl std::fmt::Debug for GitAuth {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token must not reach a log.
        let token = self.token.as_ref().map(|_| "[redacted]");
        formatter
            .debug_struct("GitAuth")
            .field("token", &token)
            .field("user", &self.user)
            .field("email", &self.email)
            .finish()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitConfig {
    pub provider: Option<GitProvider>,
    pub repo: Option<String>,
    /// Any URL or local path, instead of provider and repo.
    pub url: Option<String>,
    pub branch: String,
    pub api_base_url: Option<String>,
    pub auth: GitAuth,
    pub write_strategy: WriteStrategy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsConfig {
    /// Directories tools may write to, relative to the project.
    pub allowed_dirs: Vec<String>,
    pub block_upward_traversal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SandboxConfig {
    pub limits: Limits,
    /// Warm workers kept ready.
    pub pool: usize,
    pub seed: Option<u64>,
    /// Stops the clock of every run, in milliseconds since the epoch.
    pub clock_ms: Option<f64>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self { limits: Limits::default(), pool: 2, seed: None, clock_ms: None }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            root_dir: "./.tgp".to_owned(),
            git: None,
            fs: FsConfig { allowed_dirs: vec!["./tmp".to_owned()], block_upward_traversal: true },
            allowed_imports: ["@tgp/std", "zod", "date-fns"].map(str::to_owned).to_vec(),
            allowed_fetch_urls: Vec::new(),
            sandbox: SandboxConfig::default(),
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
                    // A syntax error brings its own advice.
                    Code::Compile | Code::Security => tool_error,
                    _ => tool_error.help("correct the file; it runs in a sandbox and must give an object"),
                }
            }
            ConfigError::Json { .. } => tool_error.help("correct the JSON at that line and column"),
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
            git: None,
            fs: defaults.fs,
            allowed_imports: root.texts("allowedImports").unwrap_or(defaults.allowed_imports),
            allowed_fetch_urls: root.texts("allowedFetchUrls").unwrap_or_default(),
            sandbox: defaults.sandbox,
        };
        if config.root_dir.is_empty() {
            root.problem("rootDir", "must not be empty");
        }
        if let Some(git) = root.section("git") {
            config.git = Some(git_config(git));
        }
        if let Some(mut fs) = root.section("fs") {
            if let Some(directories) = fs.texts("allowedDirs") {
                config.fs.allowed_dirs = directories;
            }
            if let Some(blocked) = fs.flag("blockUpwardTraversal") {
                config.fs.block_upward_traversal = blocked;
            }
            fs.done();
        }
        if let Some(sandbox) = root.section("sandbox") {
            config.sandbox = sandbox_config(sandbox);
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

fn git_config(mut git: Fields<'_>) -> GitConfig {
    let provider = git.choice(
        "provider",
        &[
            ("github", GitProvider::GitHub),
            ("gitlab", GitProvider::GitLab),
            ("bitbucket", GitProvider::Bitbucket),
        ],
    );
    let repo = git.text("repo");
    let url = git.text("url");
    if url.is_none() && provider.is_some() != repo.is_some() {
        git.problem("repo", "provider and repo go together; or give url instead of both");
    }
    if url.is_some() && (provider.is_some() || repo.is_some()) {
        git.problem("url", "give either url or provider and repo");
    }
    if let Some(repo) = &repo
        && !repo.contains('/')
    {
        git.problem("repo", "must be owner/name");
    }
    let mut auth = GitAuth {
        token: None,
        user: "tgp-bot[bot]".to_owned(),
        email: "tgp-bot@users.noreply.github.com".to_owned(),
    };
    if let Some(mut fields) = git.section("auth") {
        auth.token = fields.text("token").filter(|token| !token.is_empty());
        auth.user = fields.text("user").unwrap_or(auth.user);
        auth.email = fields.text("email").unwrap_or(auth.email);
        if !auth.email.contains('@') {
            fields.problem("email", "must be an e-mail address");
        }
        fields.done();
    }
    let config = GitConfig {
        provider,
        repo,
        url,
        branch: git.text("branch").unwrap_or_else(|| "main".to_owned()),
        api_base_url: git.text("apiBaseUrl"),
        auth,
        write_strategy: git
            .choice("writeStrategy", &[("direct", WriteStrategy::Direct), ("pr", WriteStrategy::PullRequest)])
            .unwrap_or(WriteStrategy::Direct),
    };
    git.done();
    config
}

fn sandbox_config(mut sandbox: Fields<'_>) -> SandboxConfig {
    let defaults = SandboxConfig::default();
    let mut limits = defaults.limits;
    if let Some(megabytes) =
        sandbox.number("memoryMb", (Limits::HEAP_BYTES.0 >> 20, Limits::HEAP_BYTES.1 >> 20))
    {
        limits.heap_bytes = megabytes << 20;
    }
    if let Some(milliseconds) = sandbox.number("cpuMs", Limits::CPU_MS) {
        limits.cpu = Duration::from_millis(milliseconds);
    }
    if let Some(milliseconds) = sandbox.number("wallMs", Limits::WALL_MS) {
        limits.wall = Duration::from_millis(milliseconds);
    }
    for (name, slot, bounds) in [
        ("outputBytes", &mut limits.output_bytes, Limits::OUTPUT_BYTES),
        ("logLines", &mut limits.log_lines, Limits::LOG_LINES),
        ("logBytes", &mut limits.log_bytes, Limits::LOG_BYTES),
        ("bridgeCalls", &mut limits.bridge_calls, Limits::BRIDGE_CALLS),
    ] {
        if let Some(number) = sandbox.number(name, bounds) {
            *slot = number;
        }
    }
    let pool =
        sandbox.number("pool", (1, 64)).and_then(|size| usize::try_from(size).ok()).unwrap_or(defaults.pool);
    let seed = sandbox.number("seed", (0, 1 << 53));
    let clock_ms = sandbox.moment("clock");
    sandbox.done();
    SandboxConfig { limits, pool, seed, clock_ms }
}
