//! The login of a server on disk: a private file of the user.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::transport::AuthError;
use rmcp::transport::auth::{CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use tgp_contract::{Code, ToolError, background};
use tgp_fs::append_log::{at, private_directory};
use tgp_fs::{LockKind, LockWait, private_record, take_lock};

use super::tokens::KnownTokens;

/// Bytes of a login: tokens have a few thousand.
const MAX_LOGIN_BYTES: u64 = 256 << 10;
/// How long another process may refresh the same login.
const LOCK_WAIT: LockWait = LockWait {
    patience: Duration::from_secs(40),
    first_pause: Duration::from_millis(20),
    longest_pause: Duration::from_millis(500),
};

/// What is kept of a login.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LoginRecord {
    /// The server that the tokens are for: another one of the same name never gets them.
    url: String,
    /// For an authorization server that gives its clients one. rmcp does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    credentials: StoredCredentials,
}

/// The login of one server.
#[derive(Clone)]
pub(super) struct LoginStore {
    path: PathBuf,
    url: String,
    tokens: KnownTokens,
    /// The secret of a client that was registered a moment ago.
    client_secret: Arc<OnceLock<String>>,
}

impl LoginStore {
    pub(super) fn new(path: PathBuf, url: String, tokens: KnownTokens) -> Self {
        Self { path, url, tokens, client_secret: Arc::default() }
    }

    /// Keeps the secret of a client with the credentials that follow.
    pub(super) fn with_client_secret(&self, secret: Option<String>) {
        if let Some(secret) = secret {
            self.tokens.learn(&secret);
            let _ = self.client_secret.set(secret);
        }
    }

    /// The client that the stored tokens were given to, and its secret.
    pub(super) async fn client(&self) -> Result<Option<(String, String)>, AuthError> {
        let found = self.read().await?;
        Ok(found.and_then(|record| Some((record.credentials.client_id, record.client_secret?))))
    }

    async fn read(&self) -> Result<Option<LoginRecord>, AuthError> {
        let path = self.path.clone();
        let read = move || private_record::read(&path, MAX_LOGIN_BYTES, |why| refused(&path, why));
        let found: Option<LoginRecord> = background::run(read).await.map_err(store_error)?;
        let Some(record) = found.filter(|record| record.url == self.url) else { return Ok(None) };
        // The types of the tokens are not rmcp's; their texts are read as they are written.
        let written = serde_json::to_value(&record.credentials).unwrap_or_default();
        for name in ["access_token", "refresh_token", "id_token"] {
            if let Some(token) =
                written.pointer(&format!("/token_response/{name}")).and_then(|token| token.as_str())
            {
                self.tokens.learn(token);
            }
        }
        if let Some(secret) = &record.client_secret {
            self.tokens.learn(secret);
        }
        Ok(Some(record))
    }
}

#[async_trait]
impl CredentialStore for LoginStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(self.read().await?.map(|record| record.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let kept = match self.client_secret.get() {
            Some(secret) => Some(secret.clone()),
            None => {
                let same = |(client, secret)| (client == credentials.client_id).then_some(secret);
                self.client().await?.and_then(same)
            }
        };
        let (path, record) =
            (self.path.clone(), LoginRecord { url: self.url.clone(), client_secret: kept, credentials });
        background::run(move || private_record::write(&path, &record)).await.map_err(store_error)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let path = self.path.clone();
        background::run(move || forget(&path)).await.map(drop).map_err(store_error)
    }

    /// A refresh token is often good for one use; two processes must not use the same.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let path = self.path.with_extension("lock");
        let lock = background::run_bounded(move || locked(&path)).await.map_err(store_error)?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}

fn locked(path: &Path) -> Result<File, ToolError> {
    if let Some(directory) = path.parent() {
        private_directory().recursive(true).create(directory).map_err(at(directory))?;
    }
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(at(path))?;
    match take_lock(&file, LockKind::Exclusive, LOCK_WAIT).map_err(at(path))? {
        true => Ok(file),
        false => Err(ToolError::new(Code::Conflict, "another process refreshes the login and does not end")),
    }
}

/// Removes a login; false when there was none.
///
/// # Errors
/// When the file cannot be removed.
pub(super) fn forget(path: &Path) -> Result<bool, ToolError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(at(path)(error)),
    }
}

fn store_error(error: ToolError) -> AuthError {
    AuthError::CredentialStoreError(error.message)
}

fn refused(path: &Path, why: &str) -> ToolError {
    ToolError::new(Code::Security, format!("`{}` is not used: {why}", path.display()))
}
