//! From the configuration to what outlives the process: the tool repository, the search, the database.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use tgp_builtins::PACKAGE_STAGING;
use tgp_contract::{Code, Database, ToolError};
use tgp_fs::{DATABASE_FILE, explain_permission, first_special_file, real_place, search_variable};
use tgp_git::{Author, GeneratedFile, GitEnv, Provider, Remote, Strategy, ToolRepoOptions};
use tgp_net::Secret;
use tgp_registry::{Calibration, Embedder, OpenAiCompatible, Searcher};
use tgp_sql::{DatabaseUrl, SqlOptions};
use tgp_tool_runtime::BytecodeCache;

use super::default_database::{DatabasePlace, find_default_database};
use super::refused_database::RefusedDatabase;
use crate::boot::Environment;
use crate::config::{Config, GitAuth, GitConfig, GitProvider, OnDuplicate, WriteStrategy};
use crate::project_access::ProjectAccess;
use crate::state_directory::StateDirectory;

/// Refuses state that leads out of its directory. The kernel alone makes it, and it makes no link: one comes from a clone or an
/// archive, and would be written through.
///
/// # Errors
/// `ESECURITY`, and `EPERMISSION` for a directory that cannot be read.
pub(crate) fn check_state(state: &Path) -> Result<(), ToolError> {
    let refused = |path: &Path, what: &str| {
        Err(ToolError::new(Code::Security, format!("`{}` {what}", path.display())).help(
            "find out where it comes from, and rename it; the rest of the state holds the audit and stays",
        ))
    };
    if std::fs::symlink_metadata(state).is_ok_and(|found| !found.is_dir()) {
        return refused(state, "is not a directory");
    }
    // Trees of packages have links. They wait there for their place, or were left by a kernel that was killed.
    let packages = state.join(PACKAGE_STAGING);
    match first_special_file(state, &|path| path.parent() == Some(packages.as_path())) {
        Ok(None) => Ok(()),
        Ok(Some(path)) => refused(&path, "is a link, a pipe or a device, which the kernel never makes there"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let message = format!("cannot read the kernel's state in `{}`: {error}", state.display());
            Err(ToolError::new(Code::Permission, message).help(explain_permission(state)))
        }
        Err(error) => {
            let message = format!("cannot read the kernel's state in `{}`: {error}", state.display());
            Err(ToolError::new(Code::Internal, message).help("check the file system that it is on"))
        }
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

/// The database of `exec_sql`.
pub(crate) struct OpenedDatabase {
    pub(crate) database: Arc<dyn Database>,
    /// Where it is, without a password.
    pub(crate) name: String,
    /// What a person should know.
    pub(crate) notice: Option<String>,
}

impl OpenedDatabase {
    /// That of an embedding program.
    pub(crate) fn of_host(database: &Arc<dyn Database>) -> Self {
        let name = format!("{} (of the embedding program)", database.dialect());
        Self { database: Arc::clone(database), name, notice: None }
    }

    fn refused(database: RefusedDatabase, name: &str) -> Self {
        Self { database: Arc::new(database), name: name.to_owned(), notice: None }
    }
}

/// Where the default database is: in the tool repository, or with the state of a project of another user.
fn default_place(root: &Path, access: &ProjectAccess) -> Result<DatabasePlace, ToolError> {
    match access.check_kernel_files() {
        Ok(()) => find_default_database(root),
        Err(_) => Ok(DatabasePlace { file: access.state().join(DATABASE_FILE), notice: None }),
    }
}

/// The database of the configuration; a file of the kernel's own when none is named.
pub(crate) async fn database(
    config: &Config,
    project: &Path,
    root: &Path,
    access: &ProjectAccess,
) -> Result<OpenedDatabase, ToolError> {
    if config.ignored.contains(&"db.url") {
        let refused = RefusedDatabase::unconfirmed();
        return Ok(OpenedDatabase::refused(refused, "db.url, which was not confirmed"));
    }
    let config = &config.db;
    let mut notice = None;
    let url = match &config.url {
        Some(text) => DatabaseUrl::parse(text)?.below(project),
        None => match default_place(root, access) {
            Ok(place) => {
                notice = place.notice;
                DatabaseUrl::sqlite(place.file)
            }
            // Everything else works without it, and a person has to look into both.
            Err(error) if error.code == Code::Config => {
                let name = format!("not opened: {}", error.message);
                return Ok(OpenedDatabase::refused(RefusedDatabase::new(error), &name));
            }
            Err(error) => return Err(error),
        },
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
    Ok(OpenedDatabase { database, name, notice })
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
pub(crate) fn searcher(config: &Config, state: &StateDirectory) -> Result<Searcher, ToolError> {
    let state = state.path().to_owned();
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
