//! From the configuration to what outlives the process: the tool repository, the search, the database.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tgp_builtins::PACKAGE_STAGING;
use tgp_contract::{Code, Database, ToolError};
use tgp_fs::{first_special_file, real_place, search_variable};
use tgp_git::{Author, GeneratedFile, GitEnv, Provider, Remote, Strategy, ToolRepoOptions};
use tgp_net::Secret;
use tgp_registry::{Calibration, Embedder, OpenAiCompatible, Searcher};
use tgp_sql::{DatabaseUrl, SqlOptions};
use tgp_tool_runtime::{BytecodeCache, STATE_DIRECTORY};

use super::unconfirmed_database::UnconfirmedDatabase;
use crate::boot::Environment;
use crate::config::{Config, GitAuth, GitConfig, GitProvider, OnDuplicate, WriteStrategy};

/// The embedded database, in the kernel's own state.
const DATABASE_FILE: &str = "data.sqlite";

/// Where the kernel keeps what is not source.
pub(crate) fn state_directory(root: &Path) -> PathBuf {
    root.join(STATE_DIRECTORY)
}

/// Refuses state that leads out of its directory. The kernel alone makes it, and it makes no link: one comes from a clone or an
/// archive, and would be written through.
///
/// # Errors
/// `ESECURITY`.
pub(crate) fn check_state(root: &Path) -> Result<(), ToolError> {
    let state = state_directory(root);
    let refused = |path: &Path, what: &str| {
        Err(ToolError::new(Code::Security, format!("`{}` {what}", path.display()))
            .help("look where it comes from; remove it, and the kernel makes its state anew"))
    };
    if std::fs::symlink_metadata(&state).is_ok_and(|found| !found.is_dir()) {
        return refused(&state, "is not a directory");
    }
    // Trees of packages have links. They wait there for their place, or were left by a kernel that was killed.
    let packages = state.join(PACKAGE_STAGING);
    match first_special_file(&state, &|path| path.parent() == Some(packages.as_path())) {
        Ok(None) => Ok(()),
        Ok(Some(path)) => refused(&path, "is a link, a pipe or a device, which the kernel never makes there"),
        Err(error) => refused(&state, &format!("cannot be looked through: {error}")),
    }
}

/// Where bytecode is kept: not in the project, where an agent could write it, nor where another user could.
#[must_use]
pub fn usable_cache(directory: Option<PathBuf>, project: &Path) -> Option<PathBuf> {
    // Whoever asks may name it from where they are.
    let project = project.canonicalize().unwrap_or_else(|_| real_place(project));
    directory.filter(|directory| {
        directory.is_absolute()
            && !real_place(directory).starts_with(&project)
            && BytecodeCache::accepts(directory)
    })
}

/// The database of the configuration, and its name without a password; a file of the kernel's own when none is named.
pub(crate) async fn database(
    config: &Config,
    project: &Path,
    root: &Path,
) -> Result<(Arc<dyn Database>, String), ToolError> {
    if config.ignored.contains(&"db.url") {
        return Ok((Arc::new(UnconfirmedDatabase), "db.url, which was not confirmed".to_owned()));
    }
    let config = &config.db;
    let url = match &config.url {
        Some(text) => DatabaseUrl::parse(text)?.below(project),
        None => DatabaseUrl::sqlite(state_directory(root).join(DATABASE_FILE)),
    };
    // Where it leads now, before any agent works: a link that is made later is not followed.
    let url = match url.sqlite_file() {
        Some(file) => DatabaseUrl::sqlite(real_place(file)),
        None => url,
    };
    let name = url.to_string();
    let database = tgp_sql::connect(SqlOptions {
        statement_timeout: config.statement_timeout,
        max_rows: config.max_rows,
        max_bytes: config.max_bytes,
        read_only: config.read_only,
        pool: config.pool,
        ..SqlOptions::new(url)
    })
    .await?;
    Ok((database, name))
}

/// How the tool repository is kept.
pub(crate) fn git_options(
    config: Option<&GitConfig>,
    project: &Path,
    root: &Path,
    environment: &Environment,
    derived: Arc<dyn GeneratedFile>,
) -> ToolRepoOptions {
    let defaults = GitAuth::default();
    let auth = config.map_or(&defaults, |config| &config.auth);
    let author = Author { name: auth.user.clone(), email: auth.email.clone() };
    let mut options = ToolRepoOptions::new(root, author, derived);
    options.surroundings = surroundings(environment, project);
    if let Some(config) = config {
        options.remote = remote(config, project);
        options.branch.clone_from(&config.branch);
        options.token = config.auth.token.clone().map(Secret::new);
        options.strategy = match config.write_strategy {
            WriteStrategy::Direct => Strategy::Direct,
            WriteStrategy::PullRequest => Strategy::Request,
        };
    }
    options
}

fn remote(config: &GitConfig, project: &Path) -> Option<Remote> {
    let url = config.url.as_deref().map(|url| beside(url, project));
    let hosted = config.provider.zip(config.repo.clone()).map(|(provider, repo)| Remote::Hosted {
        provider: match provider {
            GitProvider::GitHub => Provider::GitHub,
            GitProvider::GitLab => Provider::GitLab,
            GitProvider::Bitbucket => Provider::Bitbucket,
        },
        repo,
        api_base_url: config.api_base_url.clone(),
        clone_url: url.clone(),
    });
    hosted.or_else(|| url.map(Remote::Url))
}

/// A path is relative to the project, as every other path of the configuration is; a URL stays as it is.
fn beside(url: &str, project: &Path) -> String {
    let is_relative = url.starts_with("./") || url.starts_with("../") || matches!(url, "." | "..");
    if !is_relative {
        return url.to_owned();
    }
    let mut path = project.to_owned();
    for part in Path::new(url).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.display().to_string()
}

/// What git needs of this machine, and nothing else of the environment. Programs of the project are not found.
fn surroundings(environment: &Environment, project: &Path) -> GitEnv {
    let mut surroundings = GitEnv {
        home: environment("HOME").map(PathBuf::from),
        ssh_auth_sock: environment("SSH_AUTH_SOCK").map(Into::into),
        proxy: environment("https_proxy").or_else(|| environment("HTTPS_PROXY")),
        certificates: environment("SSL_CERT_FILE").map(PathBuf::from),
        ..GitEnv::default()
    };
    if let Some(path) = environment("PATH") {
        surroundings.path = search_variable(path.as_ref(), |entry| entry.starts_with(project));
    }
    surroundings
}

/// The search of the configuration: by the model inside the binary unless it names an endpoint.
pub(crate) fn searcher(config: &Config, root: &Path) -> Result<Searcher, ToolError> {
    let state = state_directory(root);
    match &config.registry.embeddings {
        Some(endpoint) => {
            let embedder: Arc<dyn Embedder> = Arc::new(OpenAiCompatible::new(
                &endpoint.base_url,
                endpoint.model.clone(),
                endpoint.api_key.clone().map(Secret::new),
            )?);
            Ok(Searcher::new(Some(embedder), Calibration::builtin(), Some(state)))
        }
        None => Ok(Searcher::new(tgp_registry::embedded(), Calibration::builtin(), Some(state))),
    }
}

impl From<OnDuplicate> for tgp_tool_runtime::DuplicatePolicy {
    fn from(choice: OnDuplicate) -> Self {
        match choice {
            OnDuplicate::Confirm => Self::Confirm,
            OnDuplicate::Warn => Self::Warn,
            OnDuplicate::Refuse => Self::Refuse,
        }
    }
}
