//! Capability tokens: an HMAC chain of caveats. Its holder can narrow it, but not widen it.
//!
//! A token is `tgp1.` and the base64url of its id, its caveat blocks and a signature. The first signature is the
//! HMAC-SHA256 of the id under the kernel's key; each block is signed under the signature before it, which is then
//! forgotten. So a block can be added without the key, and none can be taken away, changed or moved.

mod chain;
mod grant;
mod ledger;

use std::fmt;

use serde::{Deserialize, Serialize};
use tgp_contract::{CapabilityToken, Code, ToolError, canonical};

use self::chain::{Chain, Secret};
pub use self::grant::Grant;
use self::grant::Scope;
pub use self::ledger::{Reservation, TokenLedger};

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenFault {
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    #[error("the token is forged or was made for another kernel")]
    Forged,
    #[error("the token has a caveat that is not known here: `{0}`")]
    UnknownCaveat(String),
    #[error("the token has {0}")]
    Full(&'static str),
    #[error("the token has expired")]
    Expired,
    #[error("the token does not cover this call: {0}")]
    Outside(String),
    #[error("the token's {0} calls are used up")]
    Spent(u64),
    #[error("the token has too many counted descendants")]
    TooManyCounters,
}

impl From<TokenFault> for ToolError {
    fn from(fault: TokenFault) -> Self {
        let (kind, help) = match &fault {
            TokenFault::Malformed(_) => ("malformed", "pass the token exactly as it was given"),
            TokenFault::Forged => ("forged", "ask the kernel for a token of its own"),
            TokenFault::UnknownCaveat(_) => ("unknown", "use a kernel that knows the caveat"),
            TokenFault::Full(_) => ("full", "ask for a token with fewer caveats"),
            TokenFault::Expired => ("expired", "ask for a new token"),
            TokenFault::Outside(_) => ("scope", "ask for a token that covers the call"),
            TokenFault::Spent(_) => ("spent", "ask for a new token"),
            TokenFault::TooManyCounters => ("full", "derive fewer tokens with a number of calls"),
        };
        ToolError::new(Code::Policy, fault.to_string()).help(help).detail("token", kind)
    }
}

/// The secret that only the kernel has.
pub struct TokenKey(Secret);

impl TokenKey {
    /// # Errors
    /// `EINTERNAL` when the operating system gives no randomness.
    pub fn generate() -> Result<Self, ToolError> {
        random().map(Self)
    }

    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, to be kept where no other user can read them.
    #[must_use]
    pub fn reveal(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TokenKey([redacted])")
    }
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], ToolError> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| {
        ToolError::new(Code::Internal, format!("the operating system gives no randomness: {error}"))
            .help("try again; a token without randomness would be guessable")
    })?;
    Ok(bytes)
}

/// What narrows a token. Every field that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caveats {
    /// Names, globs and `effect:…`, as in a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What else forged tools may call, when one of `tools` runs them: the same patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Vec<String>>,
    /// Globs for every file of a call. `tools:…`, `project:…` and `host:…` name a root; a glob without one means the
    /// tool repository and the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    /// Milliseconds since the epoch at which the token ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// How many calls may be made with it and with everything derived from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The run of a query: its own session and those of its agents. Only the kernel makes such tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// For people; it decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Keeps two tokens apart that are derived from one with the same number of calls. Leave it empty: it is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<String>,
}

impl Caveats {
    const FIELDS: [&'static str; 9] =
        ["tools", "inner", "paths", "expires_ms", "calls", "session", "run", "note", "salt"];

    /// The bytes that are signed.
    fn to_block(&self) -> Result<Vec<u8>, ToolError> {
        Scope::new(self).map_err(|problem| invalid(&problem))?;
        let mut caveats = self.clone();
        if caveats.calls.is_some() && caveats.salt.is_none() {
            let salt: [u8; 8] = random()?;
            caveats.salt = Some(canonical::hex(&salt));
        }
        let value = serde_json::to_value(&caveats).map_err(|error| invalid(&error.to_string()))?;
        canonical::to_string(&value).map(String::into_bytes).map_err(|error| invalid(&error.to_string()))
    }

    fn from_block(block: &[u8]) -> Result<Self, TokenFault> {
        // A list of values would be taken for the fields in their order.
        if block.first() != Some(&b'{') {
            return Err(TokenFault::Malformed("a caveat is not an object"));
        }
        serde_json::from_slice(block).map_err(|_| {
            let value: serde_json::Value = serde_json::from_slice(block).unwrap_or_default();
            let foreign = value.as_object().and_then(|fields| {
                fields
                    .keys()
                    .find(|key| !Self::FIELDS.contains(&key.as_str()))
                    .map(|key| key.escape_debug().to_string())
            });
            foreign.map_or(
                TokenFault::Malformed("a caveat has a value that means nothing"),
                TokenFault::UnknownCaveat,
            )
        })
    }
}

fn invalid(problem: &str) -> ToolError {
    ToolError::new(Code::Validation, format!("the restrictions of the token are wrong: {problem}"))
        .help("correct the caveat that is named")
}

/// A new token.
///
/// # Errors
/// `EVALIDATION` for caveats that mean nothing, `EPOLICY` for more than a token holds, `EINTERNAL` without randomness.
pub fn mint(key: &TokenKey, caveats: &Caveats) -> Result<CapabilityToken, ToolError> {
    let block = caveats.to_block()?;
    let mut chain = Chain::begin(&key.0, random()?)?;
    chain.add(block)?;
    Ok(chain.encode()?)
}

/// A narrower token made from another, without the key.
///
/// # Errors
/// `EPOLICY` when the token is malformed or full, `EVALIDATION` for caveats that mean nothing.
pub fn attenuate(token: &CapabilityToken, caveats: &Caveats) -> Result<CapabilityToken, ToolError> {
    let mut chain = Chain::decode(token)?;
    chain.add(caveats.to_block()?)?;
    Ok(chain.encode()?)
}

/// What a token grants, if it is one of ours.
///
/// # Errors
/// `EPOLICY`: malformed, forged, or with a caveat that is not known.
pub fn verify(key: &TokenKey, token: &CapabilityToken) -> Result<Grant, ToolError> {
    let chain = Chain::decode(token)?;
    let signatures = chain.verify(&key.0)?;
    let mut scopes = Vec::new();
    for block in chain.blocks() {
        let caveats = Caveats::from_block(block)?;
        let scope = Scope::new(&caveats);
        scopes.push(scope.map_err(|_| TokenFault::Malformed("a caveat has a value that means nothing"))?);
    }
    Ok(Grant::new(&chain, &signatures, scopes)?)
}
