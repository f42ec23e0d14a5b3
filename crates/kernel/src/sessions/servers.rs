//! Which server a resumed session may go on with.
//!
//! The file of a session is in the project, and a project may be a copy from elsewhere. So an address in it gets the conversation
//! only if this user began the session with it, if the settings name it, or if a person names it now.

use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};

use super::provider::{ModelChoice, NAMED, ResolvedModel, SCRIPT};
use super::store::Head;
use crate::kernel::Kernel;
use crate::trust::{Trust, TrustStore};

impl Kernel {
    /// Notes in the user's state with which server a session begins. Where that fails, a person names it again.
    pub(super) fn note_server(&self, head: &Head) {
        let is_usual = head.base_url.is_none() && sends_to_nobody_else(&head.provider);
        if let (false, Some(store)) = (is_usual, self.trust_store()) {
            let _ = store.note_server(self.project(), &head.id, &server(head));
        }
    }

    /// # Errors
    /// `ECONFIG` where only the file of the session names the server.
    pub(super) fn check_server(&self, head: &Head, named: &ModelChoice) -> Result<(), ToolError> {
        let is_other = named.provider.as_ref().is_some_and(|provider| *provider != head.provider);
        let provider_is_known = named.provider.is_some() || sends_to_nobody_else(&head.provider);
        let address_is_known = head.base_url.is_none() || named.base_url.is_some() || is_other;
        let of_settings = || {
            let usual = ResolvedModel::new(&ModelChoice::default(), self.config(), self.environment());
            usual.is_ok_and(|usual| usual.name == head.provider && usual.base_url == head.base_url)
        };
        let of_user = || {
            self.trust_store()
                .is_some_and(|store| store.knows_server(self.project(), &head.id, &server(head)))
        };
        let is_vouched_for = matches!(self.trust(), Trust::Everything);
        if is_vouched_for || (provider_is_known && address_is_known) || of_settings() || of_user() {
            return Ok(());
        }
        let address = head.base_url.as_ref().unwrap_or(&head.provider);
        let flags = match &head.base_url {
            Some(url) => format!("--provider {} --base-url {url}", head.provider),
            None => format!("--provider {}", head.provider),
        };
        let message = format!("the session began with `{address}`, which only its file in the project names");
        Err(ToolError::new(Code::Config, message)
            .detail("field", "llm.provider")
            .detail("session", head.id.clone())
            .help(format!("if it may get the conversation, add `{flags}`")))
    }

    fn trust_store(&self) -> Option<&TrustStore> {
        match self.trust() {
            Trust::Confirmed(confirmations) => confirmations.store.as_ref(),
            Trust::Nothing | Trust::Everything => None,
        }
    }
}

/// Whether this is the name of a provider, whose address no file says, or a script, which sends nothing.
fn sends_to_nobody_else(provider: &str) -> bool {
    provider.starts_with(SCRIPT) || NAMED.iter().any(|(name, _)| *name == provider)
}

fn server(head: &Head) -> Value {
    json!({ "provider": head.provider, "baseUrl": head.base_url })
}
