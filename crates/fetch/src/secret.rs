//! Secrets that requests use by name. The value is inserted here, where the request leaves, and nowhere else: a tool, a
//! record and a message know the name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use percent_encoding::percent_decode_str;
use reqwest::Method;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderName, HeaderValue, IF_RANGE, RANGE};
use tgp_contract::{Code, ToolError, background};
use tgp_net::{Secret, SecretRedaction};
use url::Url;

use super::AllowList;
use super::failure::{excerpt, shown};
use super::request::Prepared;

/// A shorter value occurs in ordinary answers, so it could not be kept out of them.
const MIN_SECRET_BYTES: usize = 8;
const MAX_SECRET_BYTES: usize = 16 << 10;
/// Values that are looked for in answers: more than a kernel has. Old ones of a secret make room for newer ones.
const MAX_KNOWN: usize = 64;

/// Headers that ask for a part of an answer, or for how it differs from another.
const PARTIAL: [HeaderName; 3] = [RANGE, IF_RANGE, HeaderName::from_static("a-im")];

/// Where a value is inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// `Authorization: Bearer …`
    Bearer,
    Header(String),
    /// A parameter of the query.
    Query(String),
}

/// One secret: the requests that may use it, and where its value is inserted.
#[derive(Clone, Debug)]
pub struct SecretBinding {
    name: String,
    places: AllowList,
    /// Empty for every method.
    methods: Vec<Method>,
    insertion: Insertion,
    /// What it is for, in words.
    shown: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Insertion {
    Header { name: HeaderName, is_bearer: bool },
    Query(String),
}

impl SecretBinding {
    /// A secret for these hosts over https, below these paths (all of them if none is named), with these methods.
    ///
    /// # Errors
    /// What is wrong, as a sentence for the one who wrote it.
    pub fn new(
        name: &str,
        hosts: &[String],
        paths: &[String],
        methods: &[String],
        place: &SecretPlace,
    ) -> Result<Self, String> {
        if hosts.is_empty() {
            return Err("`hosts` names no host, so it could be used nowhere".to_owned());
        }
        let mut entries = Vec::new();
        for host in hosts {
            if host.contains("://") || host.contains('/') {
                return Err(format!("`{}` is not a host; leave scheme and path out", excerpt(host)));
            }
            if paths.is_empty() {
                entries.push(format!("https://{host}"));
            }
            for path in paths {
                if !path.starts_with('/') {
                    return Err(format!("the path `{}` has to begin with `/`", excerpt(path)));
                }
                entries.push(format!("https://{host}{path}"));
            }
        }
        let places = AllowList::parse(&entries)
            .map_err(|error| format!("`{}` {}", excerpt(error.entry()), error.problem()))?;
        let methods: Vec<Method> = methods
            .iter()
            .map(|method| super::request::method(method).map_err(|error| error.message))
            .collect::<Result<_, _>>()?;
        let insertion = match place {
            SecretPlace::Bearer => Insertion::Header { name: AUTHORIZATION, is_bearer: true },
            SecretPlace::Header(header) => {
                let name = HeaderName::from_bytes(header.as_bytes()).ok();
                let name = name.filter(|name| !super::request::is_reserved(name.as_str()));
                let name = name.ok_or_else(|| format!("`{}` cannot be a header", excerpt(header)))?;
                Insertion::Header { name, is_bearer: false }
            }
            SecretPlace::Query(parameter) if parameter.is_empty() => {
                return Err("the parameter of the query has no name".to_owned());
            }
            SecretPlace::Query(parameter) => Insertion::Query(parameter.clone()),
        };
        let verbs = if methods.is_empty() { "any method".to_owned() } else { names(&methods) };
        let shown = excerpt(&format!("{verbs} to {}", entries.join(", ")));
        Ok(Self { name: name.to_owned(), places, methods, insertion, shown })
    }

    /// The value of a header of every request to an address, when the secret is for it in this place.
    ///
    /// # Errors
    /// Why it is not, as a sentence.
    pub fn header_value(&self, header: &str, url: &Url, value: &Secret) -> Result<Secret, String> {
        if ![Method::GET, Method::POST, Method::DELETE].iter().all(|method| self.covers(method, url)) {
            return Err(format!(
                "it is not for all requests to `{}`: it is for {}",
                shown(url.as_str()),
                self.shown
            ));
        }
        match &self.insertion {
            Insertion::Header { name, is_bearer } if name.as_str().eq_ignore_ascii_case(header) => {
                let value = value.expose().trim();
                Ok(Secret::new(if *is_bearer { format!("Bearer {value}") } else { value.to_owned() }))
            }
            Insertion::Header { name, .. } => Err(format!("it is for the header `{name}`")),
            Insertion::Query(_) => Err("it is for the query of an address, not for a header".to_owned()),
        }
    }

    fn covers(&self, method: &Method, url: &Url) -> bool {
        let is_method = self.methods.is_empty() || self.methods.contains(method);
        is_method && url.scheme() == "https" && self.places.allows(url.as_str())
    }
}

fn names(methods: &[Method]) -> String {
    methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ")
}

/// Gives the values of secrets.
#[async_trait]
pub trait SecretSource: Send + Sync {
    /// # Errors
    /// Why the value cannot be had. It never holds the value.
    async fn value(&self, name: &str) -> Result<Secret, ToolError>;
}

/// A value that was used.
struct KnownValue {
    name: String,
    value: Secret,
    /// Finds it in answers.
    redaction: Arc<SecretRedaction>,
}

/// The secrets of a kernel, by their names.
#[derive(Clone)]
pub struct SecretBroker {
    bindings: BTreeMap<String, Arc<SecretBinding>>,
    source: Arc<dyn SecretSource>,
    /// The values that were used so far, in the order of their first use.
    known: Arc<Mutex<Vec<KnownValue>>>,
}

impl fmt::Debug for SecretBroker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.bindings.keys()).finish()
    }
}

impl SecretBroker {
    #[must_use]
    pub fn new(bindings: Vec<SecretBinding>, source: Arc<dyn SecretSource>) -> Self {
        let bindings = bindings.into_iter().map(|binding| (binding.name.clone(), Arc::new(binding)));
        Self { bindings: bindings.collect(), source, known: Arc::default() }
    }

    /// What finds the values that were used so far, in the answer to whatever request.
    pub(super) fn redactions(&self) -> Vec<Arc<SecretRedaction>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|known| Arc::clone(&known.redaction)).collect()
    }

    /// Returns what finds a value in answers; `None` when it cannot be looked for. Made once for each value: a long one takes
    /// its time.
    async fn redaction(&self, name: &str, value: &Secret) -> Option<Arc<SecretRedaction>> {
        let known = |broker: &Self| {
            let known = broker.known.lock().unwrap_or_else(PoisonError::into_inner);
            let same = known.iter().find(|known| known.value == *value);
            same.map(|known| Arc::clone(&known.redaction))
        };
        if let Some(redaction) = known(self) {
            return Some(redaction);
        }
        let secret = value.clone();
        let made = background::run(move || Ok(SecretRedaction::new(&secret))).await.ok()?.map(Arc::new)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN {
            // Only a value that a newer one of the same secret has replaced is forgotten.
            let has_newer = |(place, old): (usize, &KnownValue)| {
                let newer = known.iter().skip(place + 1).any(|other| other.name == old.name);
                newer || old.name == name
            };
            let old = known.iter().enumerate().position(has_newer)?;
            known.remove(old);
        }
        known.push(KnownValue { name: name.to_owned(), value: value.clone(), redaction: Arc::clone(&made) });
        Some(made)
    }

    /// The secret for a request that may use it.
    ///
    /// # Errors
    /// `ENOTFOUND` for an unknown name, `ESECURITY` for a request that it is not for, `ECONFIG` for a value that cannot be
    /// used; what the source says.
    pub(super) async fn bound(
        &self,
        name: &str,
        request: &Prepared,
        url: &Url,
    ) -> Result<BoundSecret, ToolError> {
        let Some(binding) = self.bindings.get(name) else { return Err(self.unknown(name)) };
        if !binding.covers(&request.method, url) {
            let (method, place) = (&request.method, shown(url.as_str()));
            let message =
                format!("the secret `{name}` is not for {method} `{place}`: it is for {}", binding.shown);
            return Err(ToolError::new(Code::Security, message)
                .help("use it there, or ask the user to change `secrets` in the configuration"));
        }
        check_request(binding, request, url)?;
        let value = self.source.value(name).await?;
        let value = Secret::new(value.expose().trim());
        let unusable = |why: &str| {
            ToolError::new(Code::Config, format!("the value of the secret `{name}` cannot be used: {why}"))
                .help("correct the variable, file or command that `secrets` in the configuration names")
        };
        match value.expose().len() {
            length if length < MIN_SECRET_BYTES => {
                return Err(unusable(&format!("it has less than {MIN_SECRET_BYTES} bytes")));
            }
            length if length > MAX_SECRET_BYTES => {
                return Err(unusable(&format!("it has more than {MAX_SECRET_BYTES} bytes")));
            }
            _ => {}
        }
        let header = header_value(binding, &value).map_err(unusable)?;
        let redaction = self.redaction(name, &value).await;
        let unseen = format!("answers cannot be searched for it (for at most {MAX_KNOWN} values at a time)");
        let redaction = redaction.ok_or_else(|| unusable(&unseen))?;
        Ok(BoundSecret { binding: Arc::clone(binding), value, header, redaction })
    }

    fn unknown(&self, name: &str) -> ToolError {
        let names: Vec<&str> = self.bindings.keys().map(String::as_str).collect();
        let help = match tgp_text::did_you_mean(name, names.iter().copied()) {
            Some(help) => help,
            None => format!("`secrets` in the configuration has: {}", names.join(", ")),
        };
        ToolError::new(Code::NotFound, format!("unknown secret `{}`", excerpt(name))).help(help)
    }
}

/// What the request says itself must not compete with what is inserted, and the answer has to be readable here.
fn check_request(binding: &SecretBinding, request: &Prepared, url: &Url) -> Result<(), ToolError> {
    let taken = match &binding.insertion {
        Insertion::Header { name, .. } if request.headers.contains_key(name) => {
            format!("the header `{name}`")
        }
        Insertion::Query(name) if url.query_pairs().any(|(own, _)| own == name.as_str()) => {
            format!("the parameter `{name}`")
        }
        _ if request.headers.contains_key(ACCEPT_ENCODING) => format!("the header `{ACCEPT_ENCODING}`"),
        _ => return check_whole(request),
    };
    Err(ToolError::new(
        Code::Fetch,
        format!("a request with the secret `{}` cannot have {taken}", binding.name),
    )
    .help("leave it out: the kernel sets it"))
}

/// Refuses a request for a part of an answer, which could hold a part of a value that the server has kept.
pub(super) fn check_whole(request: &Prepared) -> Result<(), ToolError> {
    let Some(name) = PARTIAL.into_iter().find(|name| request.headers.contains_key(name)) else {
        return Ok(());
    };
    let message =
        format!("a request that uses a secret, or follows one that did, cannot have the header `{name}`");
    Err(ToolError::new(Code::Fetch, message).help(
        "leave it out: an answer in parts could hold the secret in parts, and cannot be searched for it",
    ))
}

/// Returns an error without a value, wherever a server has put it.
pub(super) fn clean(redaction: &SecretRedaction, mut error: ToolError) -> ToolError {
    let clean = |text: &str| {
        let clean = redaction.clean(text.as_bytes());
        clean.map(|clean| String::from_utf8_lossy(&clean).into_owned())
    };
    if let Some(message) = clean(&error.message) {
        error.message = message;
    }
    let details = serde_json::to_string(&error.details).unwrap_or_default();
    if let Some(details) = clean(&details) {
        error.details = serde_json::from_str(&details).unwrap_or_default();
    }
    error
}

/// Whether an address holds a value, however much of it is percent-encoded.
pub(super) fn holds(redaction: &SecretRedaction, url: &Url) -> bool {
    let decoded: Vec<u8> = percent_decode_str(url.as_str()).collect();
    let is_in = |text: &[u8]| redaction.finds(text) || redaction.hides_in(text);
    is_in(url.as_str().as_bytes()) || is_in(&decoded)
}

/// Refuses to follow a redirect that would tell a value to whoever is there.
pub(super) fn redirects_with_secret(which: &str) -> ToolError {
    let message = format!("the server redirects to an address that holds {which}");
    ToolError::new(Code::Security, message).help("nothing was sent there; the fault is with the server")
}

fn header_value(binding: &SecretBinding, value: &Secret) -> Result<Option<HeaderValue>, &'static str> {
    let Insertion::Header { is_bearer, .. } = &binding.insertion else { return Ok(None) };
    let text = if *is_bearer { format!("Bearer {}", value.expose()) } else { value.expose().to_owned() };
    let mut header = HeaderValue::from_str(&text).map_err(|_| "it has a letter that no header may have")?;
    header.set_sensitive(true);
    Ok(Some(header))
}

/// A secret in a request that is being sent.
pub(super) struct BoundSecret {
    binding: Arc<SecretBinding>,
    value: Secret,
    header: Option<HeaderValue>,
    redaction: Arc<SecretRedaction>,
}

impl BoundSecret {
    pub(super) fn redaction(&self) -> Arc<SecretRedaction> {
        Arc::clone(&self.redaction)
    }

    /// Inserts the value into a request that is about to leave.
    pub(super) fn insert(&self, request: &mut reqwest::Request) {
        match (&self.binding.insertion, &self.header) {
            (Insertion::Header { name, .. }, Some(value)) => {
                request.headers_mut().insert(name.clone(), value.clone());
            }
            (Insertion::Query(name), _) => {
                request.url_mut().query_pairs_mut().append_pair(name, self.value.expose());
            }
            (Insertion::Header { .. }, None) => {}
        }
    }

    /// Whether the next stop of a redirect gets it as well: the same origin, and a request that it is for.
    pub(super) fn follows(&self, method: &Method, from: &Url, to: &Url) -> bool {
        from.origin() == to.origin() && self.binding.covers(method, to)
    }

    /// The address of a redirect without the value, which a server may have copied from the query.
    ///
    /// # Errors
    /// `ESECURITY` when it is in another part of the address.
    pub(super) fn strip(&self, target: Url) -> Result<Url, ToolError> {
        if !holds(&self.redaction, &target) {
            return Ok(target);
        }
        let mut stripped = target.clone();
        let kept: Vec<(String, String)> = target
            .query_pairs()
            .filter(|(_, value)| value != self.value.expose())
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        stripped.set_query(None);
        if !kept.is_empty() {
            stripped.query_pairs_mut().extend_pairs(kept);
        }
        if holds(&self.redaction, &stripped) {
            return Err(redirects_with_secret(&format!("the secret `{}`", self.binding.name)));
        }
        Ok(stripped)
    }
}
