//! Calls of other programs: what they may say about themselves, and what the kernel makes of it.

use tgp_contract::{
    Actor, CallContext, CapabilityToken, ClientEntry, Code, Consent, ToolError, client_actor, client_session,
};

use crate::Kernel;
use crate::sessions::Sessions;

/// The longest name that a client gives itself, in bytes. Behind an identity it still fits a record.
const MAX_NAME_BYTES: usize = 200;

/// What a client says about itself.
#[derive(Clone, Debug, Default)]
pub struct ClientClaim {
    /// The token it shows. Without one it is the command line.
    pub token: Option<CapabilityToken>,
    /// What it calls itself.
    pub actor: Option<String>,
    /// What it calls its work.
    pub session: Option<String>,
}

impl Kernel {
    /// The context of a client's calls. Who it is follows from its token alone: the names it has chosen come after that
    /// and are for people, so that no client is taken for an agent, another client or a person, and none gets a new
    /// past by a new name.
    ///
    /// # Errors
    /// `EPOLICY` when the token is none of this kernel; `EVALIDATION` for a name that cannot be one; `EPERMISSION` for
    /// the name of an agent's session.
    pub fn client_context(
        &self,
        entry: ClientEntry,
        claim: ClientClaim,
        consent: Consent,
    ) -> Result<CallContext, ToolError> {
        for (field, name) in [("actor", &claim.actor), ("session", &claim.session)] {
            if let Some(name) = name {
                check_name(field, name)?;
            }
        }
        let grant = claim.token.as_ref().map(|token| self.check_token(token)).transpose()?;
        let family = grant.as_ref().map(|grant| grant.family_id().to_owned());
        // A token that is made for one session names it, so that its holder need not.
        let made_for = grant.as_ref().and_then(|grant| grant.session()).map(str::to_owned);
        let session = claim.session.or(made_for);
        if session.as_deref().is_some_and(|name| self.is_agent_session(name)) {
            return Err(ToolError::new(Code::Permission, "a client cannot name the session of an agent")
                .detail("field", "session")
                .help("choose another name, or leave it out"));
        }
        Ok(CallContext {
            actor: Actor::Agent(client_actor(entry, family.as_deref(), claim.actor.as_deref())),
            session: client_session(entry, family.as_deref(), session.as_deref()),
            consent,
            dry_run: false,
            depth: 0,
            token: claim.token,
        })
    }

    /// Whether a name is that of an agent's session or run, or could be one. Asked by its form first, so that the answer
    /// does not say which sessions there are.
    fn is_agent_session(&self, name: &str) -> bool {
        Sessions::is_id(name) || self.sessions().has(name)
    }
}

fn check_name(field: &str, name: &str) -> Result<(), ToolError> {
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let message = format!("`{field}` has 1 to {MAX_NAME_BYTES} bytes and no control characters");
    Err(ToolError::new(Code::Validation, message)
        .detail("field", field)
        .help("choose a shorter, printable name"))
}
