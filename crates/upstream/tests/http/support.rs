//! The servers of a user, and one test that must end in time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tgp_audit::{Audit, AuditOptions, FileAnchor, RecordedDecision};
use tgp_contract::{Actor, CallContext, CallRecord, Code, Consent, ToolCall, ToolError, ToolResult};
use tgp_net::Secret;
use tgp_upstream::{
    HttpServer, Pin, ServerDefinition, UpstreamOptions, UpstreamStore, Upstreams, ValueProvider, ValueSource,
};

/// The name of the server in all tests.
pub const NAME: &str = "remote";
/// The value of the secret that the project has.
pub const SECRET: &str = "s3cret-of-the-project";

/// A test that hangs fails.
pub async fn watched<T>(test: impl Future<Output = T>) -> T {
    watched_for(Duration::from_secs(100), test).await
}

pub async fn watched_for<T>(limit: Duration, test: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, test).await.expect("the test ends in time")
}

struct Values;

#[async_trait]
impl ValueProvider for Values {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    async fn secret(&self, _name: &str) -> Result<Secret, ToolError> {
        Ok(Secret::new(SECRET))
    }

    async fn header_secret(&self, name: &str, _header: &str, _url: &url::Url) -> Result<Secret, ToolError> {
        self.secret(name).await
    }
}

/// A user with one server.
pub struct User {
    home: TempDir,
    pub definition: ServerDefinition,
    pub servers: Arc<Upstreams>,
}

impl User {
    pub fn new(url: &str) -> Self {
        Self::with_headers(url, &[])
    }

    pub fn with_headers(url: &str, headers: &[(&str, ValueSource)]) -> Self {
        let headers: BTreeMap<String, ValueSource> =
            headers.iter().map(|(name, source)| ((*name).to_owned(), source.clone())).collect();
        let definition = ServerDefinition::Http(HttpServer { url: url.to_owned(), headers });
        let home = TempDir::new().unwrap();
        let servers = open(&home);
        Self { home, definition, servers }
    }

    /// The same user in another process.
    pub fn again(&mut self) {
        self.servers = open(&self.home);
    }

    pub fn login_file(&self) -> PathBuf {
        self.home.path().join("homes/remote.oauth.json")
    }

    /// Looks at the tools and accepts them.
    pub async fn add(&self) -> Result<Pin, ToolError> {
        let pin = Pin::of(&self.servers.inspect(NAME, &self.definition).await?);
        self.servers.store().keep(NAME, &self.definition, &pin, recorded().await)?;
        Ok(pin)
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
        self.servers.call(NAME, tool, arguments).await
    }
}

fn open(home: &TempDir) -> Arc<Upstreams> {
    Arc::new(Upstreams::new(UpstreamOptions {
        store: UpstreamStore::new(home.path().join("store")),
        homes: home.path().join("homes"),
        writable: Vec::new(),
        values: Arc::new(Values),
        shared_pins: None,
    }))
}

/// The message of an error of a server.
pub fn message<T: std::fmt::Debug>(ended: Result<T, ToolError>) -> String {
    let error = ended.expect_err("it fails");
    assert_eq!(error.code, Code::Upstream, "{error}");
    assert!(error.message.len() < 1_500, "{error}");
    error.message
}

/// The proof that a decision is in an audit.
pub async fn recorded() -> RecordedDecision {
    let folder = TempDir::new().unwrap();
    let anchor = Arc::new(FileAnchor::new(folder.path().join("anchor")));
    let audit = Audit::open(AuditOptions::new(folder.path().join("audit.sqlite")), anchor).unwrap();
    let call = ToolCall { id: "1".to_owned(), tool: "test".to_owned(), arguments: Value::Null };
    let context = CallContext {
        actor: Actor::Person("ada".to_owned()),
        session: "test".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    };
    let record = CallRecord::ended(call, context, ToolResult::Done(Value::Null));
    let recorded = audit.record_decision(record).await.unwrap();
    audit.close().await.unwrap();
    recorded
}
