//! What an embedding program decides before a kernel boots.

use std::path::PathBuf;
use std::sync::Arc;

use tgp_audit::Redaction;
use tgp_contract::{Approver, Database, Gate, HostFiles, HostTools, Recorder, TddMode};
use tgp_router::DenyAll;

use crate::first_worker::FirstWorker;
use crate::trust::Trust;

/// Looks an environment variable up by name.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How to boot. Start from [`BootOptions::new`] and change what you need.
pub struct BootOptions {
    /// The project directory.
    pub directory: PathBuf,
    /// A configuration file other than `tgp.config.{ts,js,json}` of the project.
    pub config_file: Option<PathBuf>,
    /// The program that serves as sandbox worker; the running binary itself when there is none.
    pub worker: Option<PathBuf>,
    pub first_worker: FirstWorker,
    /// Where bytecode is cached on this machine; in memory only when there is none.
    pub cache_directory: Option<PathBuf>,
    /// What a configuration file sees of the environment, by name.
    pub environment: Environment,
    /// Gates in addition to the kernel's own. The strictest verdict wins, so a gate can only tighten.
    pub gates: Vec<Arc<dyn Gate>>,
    pub approver: Arc<dyn Approver>,
    /// Receives every call in addition to the audit; a call that it cannot record has failed.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// How strictly code has to follow tests, instead of what the configuration says.
    pub tdd_mode: Option<TddMode>,
    /// A database of the embedding program, instead of the configured one.
    pub database: Option<Arc<dyn Database>>,
    /// Functions of the embedding program that tools import from `host:MODULE`.
    pub host_tools: Option<Arc<dyn HostTools>>,
    /// Where the embedding program keeps the tools, instead of the repository of the project.
    pub host_files: Option<Arc<dyn HostFiles>>,
    /// Environment variables that sessions may send as keys, besides those that the configuration names.
    pub key_variables: Vec<String>,
    /// Whether sensitive fields of the configuration take effect, and rules of the tool repository may loosen.
    pub trust: Trust,
    /// Given what takes the secrets of the configuration out of a text, as soon as the configuration is read: what is shown
    /// of a kernel that never starts must not hold them either.
    pub secrets_listener: Option<SecretsListener>,
}

/// See [`BootOptions::secrets_listener`].
pub type SecretsListener = Arc<dyn Fn(Arc<Redaction>) + Send + Sync>;

impl BootOptions {
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            config_file: None,
            worker: None,
            first_worker: FirstWorker::default(),
            cache_directory: None,
            environment: Arc::new(|_| None),
            gates: Vec::new(),
            approver: Arc::new(DenyAll),
            recorder: None,
            tdd_mode: None,
            database: None,
            host_tools: None,
            host_files: None,
            key_variables: Vec::new(),
            trust: Trust::Nothing,
            secrets_listener: None,
        }
    }
}

impl std::fmt::Debug for BootOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("BootOptions").field("directory", &self.directory).finish_non_exhaustive()
    }
}
