//! Logins to servers over HTTP: OAuth as rmcp has it, over our client, with the tokens in a private file.

mod exchange;
mod store;
mod tokens;

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::transport::AuthError;
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationRequest, AuthorizationSession, OAuthClientConfig,
};
use tgp_contract::{Code, ToolError};
use tgp_fetch::{AllowList, FetchClient, FetchLimits};
use tgp_text::{truncate, visible_json};
use tokio::time::timeout;
use url::Url;

use super::{MAX_CLEANED, MAX_QUOTED, START_TIMEOUT, failed, needs_login, quoted};
use exchange::LoginHttpClient;
use store::LoginStore;
pub(crate) use tokens::{HIDDEN_TOKEN, KnownTokens};

/// What an authorization server shows to the person who logs in.
const CLIENT_NAME: &str = "TGP";

/// A server over HTTP, and the login that it may need.
pub(crate) struct Account {
    server: String,
    url: Url,
    fetch: Arc<FetchClient>,
    store: LoginStore,
    tokens: KnownTokens,
}

impl Account {
    /// # Errors
    /// `ECONFIG` for a URL that cannot be used.
    pub(crate) fn new(server: &str, url: &str, file: PathBuf) -> Result<Self, ToolError> {
        let wrong = |why: String| {
            ToolError::new(Code::Config, format!("`{server}` has a URL that cannot be used: {why}"))
        };
        let url = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        // The user has named this host, so that it may be one of this machine or network; the hosts that it names may not.
        let list = AllowList::parse(&[url.origin().ascii_serialization()])
            .map_err(|error| wrong(error.problem().to_owned()))?;
        let tokens = KnownTokens::default();
        Ok(Self {
            server: server.to_owned(),
            store: LoginStore::new(file, url.to_string(), tokens.clone()),
            url,
            fetch: Arc::new(FetchClient::new(list, FetchLimits::default())),
            tokens,
        })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn tokens(&self) -> &KnownTokens {
        &self.tokens
    }

    pub(super) async fn http_client(&self) -> Result<reqwest::Client, ToolError> {
        self.fetch.http_client(&self.url).await
    }

    /// For a server that is given a key in a header.
    pub(super) async fn without_login(&self) -> Result<AuthorizationManager, ToolError> {
        let exchange = LoginHttpClient {
            fetch: Arc::clone(&self.fetch),
            server: self.url.clone(),
            tokens: self.tokens.clone(),
        };
        AuthorizationManager::new_with_oauth_http_client(self.url.as_str(), Arc::new(exchange))
            .await
            .map_err(|error| self.failed("its login cannot be prepared", &error))
    }

    /// With the login of the user, where there is one.
    pub(super) async fn with_login(&self) -> Result<AuthorizationManager, ToolError> {
        let mut manager = self.without_login().await?;
        manager.set_credential_store(self.store.clone());
        let restored = async {
            if manager.initialize_from_store().await?
                && let Some((client, secret)) = self.store.client().await?
            {
                let config = OAuthClientConfig::new(client, self.url.as_str());
                manager.configure_client(config.with_client_secret(secret))?;
            }
            Ok(())
        };
        restored.await.map_err(|error| self.failed("the login cannot be used", &error))?;
        Ok(manager)
    }

    /// Begins a login that ends with a redirect to `redirect_uri`.
    ///
    /// # Errors
    /// `EUPSTREAM` when the server has no login, or registers no clients.
    pub(crate) async fn log_in(self, redirect_uri: &str) -> Result<Login, ToolError> {
        let begun = timeout(START_TIMEOUT, self.begin(redirect_uri)).await.unwrap_or_else(|_| {
            Err(AuthError::InternalError(format!("no answer within {} s", START_TIMEOUT.as_secs())))
        });
        let session = begun.map_err(|error| {
            let failed = self.failed("the login cannot begin", &error);
            match error {
                AuthError::RegistrationFailed(_) => failed.help(format!(
                    "if the server has keys, add it again with `tgp upstream add {} {} --header \
                     Authorization=secret:NAME`",
                    self.server, self.url
                )),
                _ => failed,
            }
        })?;
        // A person opens this address: it must be one of a page.
        let url = Url::parse(session.get_authorization_url())
            .map_err(|error| failed(&self.server, &format!("the login cannot begin: {error}")))?;
        exchange::check_url(&url, &self.url).map_err(|why| failed(&self.server, &why))?;
        Ok(Login { account: self, session, url })
    }

    async fn begin(&self, redirect_uri: &str) -> Result<AuthorizationSession, AuthError> {
        let internal = |error: ToolError| AuthError::InternalError(error.message);
        let mut manager = self.without_login().await.map_err(internal)?;
        manager.set_credential_store(self.store.clone());
        let found = manager.resolve_metadata().await?;
        manager.set_metadata(found.metadata);
        let scopes = manager.select_initial_scopes(&[]).await;
        let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
        // rmcp registers too, but it does not tell the secret that a later refresh needs.
        let client = manager.register_client(CLIENT_NAME, redirect_uri, &names).await?;
        self.store.with_client_secret(client.client_secret.clone());
        let mut request = AuthorizationRequest::new(redirect_uri)
            .with_preregistered_client(client.client_id)
            .with_initial_scope_selection()
            .with_scopes(scopes);
        request.client_secret = client.client_secret;
        AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)
    }

    /// An error in our words, and those of rmcp without tokens.
    fn failed(&self, what: &str, error: &AuthError) -> ToolError {
        if matches!(error, AuthError::AuthorizationRequired) {
            return needs_login(&self.server, "it needs a login");
        }
        let said = self.tokens.clean_text(&truncate(&error.to_string(), MAX_CLEANED));
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        failed(&self.server, &format!("{what}: {}", visible_json(&truncate(&said, MAX_QUOTED))))
    }
}

/// A login that waits for a person.
pub struct Login {
    account: Account,
    session: AuthorizationSession,
    url: Url,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Login").field("server", &self.account.server).finish_non_exhaustive()
    }
}

impl Login {
    /// The page that the person opens.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Whether the page has redirected to this address, and no other page: it carries the state of this login.
    #[must_use]
    pub fn is_answered_by(&self, redirect: &str) -> bool {
        let answered = Url::parse(redirect).ok().and_then(|url| parameter(&url, "state"));
        answered.is_some() && answered == parameter(&self.url, "state")
    }

    /// Ends the login with the address that the page has redirected to, and keeps the tokens.
    ///
    /// # Errors
    /// `EUPSTREAM` when the address belongs to another login, when the person has refused, and when there is no token for
    /// it. An address that belongs to another login does not end this one.
    pub async fn finish(&self, redirect: &str) -> Result<(), ToolError> {
        let server = &self.account.server;
        let url = Url::parse(redirect).ok().filter(|_| self.is_answered_by(redirect));
        let url = url.ok_or_else(|| failed(server, "the address does not belong to this login"))?;
        if let Some(refused) = parameter(&url, "error_description").or_else(|| parameter(&url, "error")) {
            return Err(failed(server, &format!("the login was refused: {}", quoted(&refused))));
        }
        let ended = self.session.handle_callback_url(redirect).await;
        ended.map(drop).map_err(|error| self.account.failed("there is no token for the login", &error))
    }
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Removes the login of a server; false when there was none.
///
/// # Errors
/// When its file cannot be removed.
pub(crate) fn forget(file: &std::path::Path) -> Result<bool, ToolError> {
    store::forget(file)
}
