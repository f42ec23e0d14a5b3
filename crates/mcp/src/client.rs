//! One connection: who it is, and what is kept for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tgp::Kernel;
use tgp::gates::attenuate_token;
use tgp::project::ClientClaim;
use tgp_contract::{CallContext, CapabilityToken, ClientEntry, ToolCall, ToolError, ToolResult};
use tgp_text::one_line;

use crate::answer::AnswerStore;
use crate::approval;
use crate::form::Forms;
use crate::options::ServerOptions;
use crate::runs::RunTable;
use crate::tools::Forging;

/// Characters of the name that a host gives itself. It is for people; who it is follows from the token.
const MAX_NAME_CHARS: usize = 48;

/// What all connections of a server share.
pub(crate) struct Shared {
    pub(crate) kernel: Arc<Kernel>,
    pub(crate) options: ServerOptions,
    /// The names of [`ServerOptions::allowed_tools`].
    pub(crate) allowed: Vec<String>,
    pub(crate) forms: Forms,
}

impl Shared {
    /// # Errors
    /// `EVALIDATION` when the options name a tool that the kernel does not have; when the system gives no randomness.
    pub(crate) fn new(kernel: Arc<Kernel>, options: ServerOptions) -> Result<Self, ToolError> {
        options.check(&kernel)?;
        let allowed = options.allowed_tools();
        let forms = Forms::new()?;
        Ok(Self { kernel, options, allowed, forms })
    }

    /// Narrows a token to what this server offers, whoever made it: a server that offers less than an earlier one allows
    /// less with the same token.
    ///
    /// # Errors
    /// `EPOLICY` when the token is malformed or holds no further caveat.
    pub(crate) fn bounded(&self, token: &CapabilityToken) -> Result<CapabilityToken, ToolError> {
        attenuate_token(token, &self.options.caveats("mcp http"))
    }

    pub(crate) fn is_allowed(&self, tool: &str) -> bool {
        self.allowed.iter().any(|name| name == tool)
    }
}

/// One host with its token. Its runs and stored answers end with it.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    token: CapabilityToken,
    /// The family of the token, which is the identity.
    pub(crate) family: String,
    pub(crate) runs: RunTable,
    pub(crate) answers: AnswerStore,
    pub(crate) forging: Forging,
    calls: AtomicU64,
}

impl Client {
    /// # Errors
    /// `EPOLICY` when the token is none of this kernel.
    pub(crate) fn new(shared: &Arc<Shared>, token: CapabilityToken) -> Result<Self, ToolError> {
        let family = shared.kernel.check_token(&token)?.family_id().to_owned();
        Ok(Self {
            shared: Arc::clone(shared),
            token,
            family,
            runs: RunTable::default(),
            answers: AnswerStore::default(),
            forging: Forging::default(),
            calls: AtomicU64::new(1),
        })
    }

    /// A caller of the router: this connection under the name that its host gives itself.
    ///
    /// # Errors
    /// `EPOLICY` when the token has expired.
    pub(crate) fn caller(self: &Arc<Self>, host: Option<&str>) -> Result<Caller, ToolError> {
        let name = host.map(|name| one_line(name, MAX_NAME_CHARS)).filter(|name| !name.is_empty());
        let claim = ClientClaim { token: Some(self.token.clone()), actor: name, session: None };
        let consent = self.shared.options.consent;
        let context = self.shared.kernel.client_context(ClientEntry::Mcp, claim, consent)?;
        Ok(Caller { client: Arc::clone(self), context })
    }
}

/// Makes router calls for one request of a host.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) client: Arc<Client>,
    context: CallContext,
}

/// Whether a call takes effect or shows what it would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effects {
    #[default]
    Real,
    Preview,
}

impl Effects {
    pub(crate) fn of(dry_run: bool) -> Self {
        if dry_run { Self::Preview } else { Self::Real }
    }
}

impl Caller {
    pub(crate) fn shared(&self) -> &Shared {
        &self.client.shared
    }

    /// Takes a call through the router.
    pub(crate) async fn call(&self, tool: &str, arguments: Value, effects: Effects) -> ToolResult {
        let number = self.client.calls.fetch_add(1, Ordering::Relaxed);
        let call = ToolCall { id: format!("mcp-{number}"), tool: tool.to_owned(), arguments };
        let context = CallContext { dry_run: effects == Effects::Preview, ..self.context.clone() };
        let result = self.client.shared.kernel.call_with(call, context).await;
        match result {
            ToolResult::Failed(error) => {
                ToolResult::Failed(approval::explain(&self.client.shared, tool, error))
            }
            done @ ToolResult::Done(_) => done,
        }
    }

    /// The session of its calls, by which its questions are told from those of others.
    pub(crate) fn session(&self) -> &str {
        &self.context.session
    }

    /// The same for a call that takes effect, as a result.
    ///
    /// # Errors
    /// The error of the call.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.call(tool, arguments, Effects::Real).await.into_result()
    }
}
