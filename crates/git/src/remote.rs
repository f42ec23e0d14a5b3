//! Where a repository is delivered: understanding what a configuration names, and splitting credentials off it.

use std::fmt;
use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError};
use tgp_net::is_loopback;
use url::Url;

use crate::Secret;
use crate::secret::{Sieve, basic};

/// A longer URL is a mistake.
const MAX_URL_BYTES: usize = 2048;

/// The remote as it is configured.
#[derive(Clone)]
pub enum Remote {
    /// `https`, `http`, `ssh`, `git` or `file` URL, `user@host:path`, or a path on this machine (a relative one is
    /// relative to the folder that holds the tool repository).
    Url(String),
    /// A repository at a provider, by name.
    Hosted {
        provider: Provider,
        /// `owner/name`.
        repo: String,
        /// Of a self-hosted installation, such as `https://git.example.org/api/v4`.
        api_base_url: Option<String>,
        /// Where to clone from, when it is not where the provider's name or the API's host says.
        clone_url: Option<String>,
    },
}

impl fmt::Debug for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A URL can have a password in it.
            Self::Url(_) => formatter.write_str("Url(..)"),
            Self::Hosted { provider, repo, .. } => formatter
                .debug_struct("Hosted")
                .field("provider", provider)
                .field("repo", repo)
                .finish_non_exhaustive(),
        }
    }
}

/// Whose API opens requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    GitHub,
    GitLab,
    Bitbucket,
}

impl Provider {
    pub(crate) fn api_base(self) -> &'static str {
        match self {
            Self::GitHub => "https://api.github.com",
            Self::GitLab => "https://gitlab.com/api/v4",
            Self::Bitbucket => "https://api.bitbucket.org/2.0",
        }
    }

    fn clone_base(self) -> &'static str {
        match self {
            Self::GitHub => "https://github.com",
            Self::GitLab => "https://gitlab.com",
            Self::Bitbucket => "https://bitbucket.org",
        }
    }

    /// The user name that each provider wants beside a token.
    fn token_user(self) -> &'static str {
        match self {
            Self::GitHub => "x-access-token",
            Self::GitLab => "oauth2",
            Self::Bitbucket => "x-token-auth",
        }
    }
}

/// How git reaches the remote; also the only protocol it may use there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Http,
    Https,
    Ssh,
    Git,
    File,
}

impl Transport {
    pub(crate) fn protocol(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::Git => "git",
            Self::File => "file",
        }
    }
}

/// The remote as it is passed to git.
#[derive(Clone)]
pub(crate) struct Endpoint {
    /// Without credentials, so it may be shown and be an argument.
    pub(crate) url: String,
    pub(crate) transport: Transport,
    /// `(scope, header)`: the header goes only to URLs below the scope.
    pub(crate) authorization: Option<(String, Secret)>,
    /// The setting that the header was made from.
    pub(crate) credential: CredentialSource,
}

/// The setting that a credential was taken from, so that an error names the one to correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CredentialSource {
    None,
    /// `git.auth.token`.
    Token,
    /// The part before the `@` in `git.url`.
    Url,
}

/// The server of an ssh remote, as it is passed to the ssh commands.
pub(crate) struct SshHost {
    /// For a sentence.
    pub(crate) shown: String,
    /// For a shell: the name, or a word in its place when a shell would read more than a name in it.
    pub(crate) argument: String,
    /// ` -p PORT` where it is not the usual one.
    pub(crate) port_option: String,
    /// The port that the URL names, if it is not the usual one.
    pub(crate) port: Option<u16>,
    /// What `known_hosts` has it under.
    pub(crate) known_as: String,
}

impl SshHost {
    /// In the place of a name that a shell would read as more than a name.
    pub(crate) const PLACEHOLDER: &str = "HOST";

    /// `port` is `None` for the usual one.
    pub(crate) fn new(shown: String, argument: String, port: Option<u16>) -> Self {
        Self {
            shown,
            port_option: port.map(|port| format!(" -p {port}")).unwrap_or_default(),
            known_as: port.map_or_else(|| argument.clone(), |port| format!("'[{argument}]:{port}'")),
            argument,
            port,
        }
    }
}

impl Endpoint {
    /// The host and port that the URL names. A configuration of ssh can lead elsewhere, and only ssh knows where.
    pub(crate) fn ssh_host(&self) -> SshHost {
        let (name, port) = match Url::parse(&self.url) {
            Ok(url) if url.scheme() == "ssh" => {
                (url.host_str().unwrap_or_default().to_owned(), url.port().filter(|port| *port != 22))
            }
            // `user@host:path`
            _ => {
                // The user ends before the first colon: what follows is the path, whatever is in it.
                let user = self.url.split_once('@').filter(|(user, _)| !user.contains(':'));
                let host = user.map_or(self.url.as_str(), |(_, host)| host);
                let end = if host.starts_with('[') { host.find(']') } else { host.find(':') };
                (end.and_then(|end| host.get(..end)).unwrap_or(host).to_owned(), None)
            }
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let is_plain = !name.is_empty()
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-_:".contains(letter));
        let argument = if is_plain { name } else { SshHost::PLACEHOLDER };
        let shown = port.map_or_else(|| format!("`{name}`"), |port| format!("`{name}` (port {port})"));
        SshHost::new(shown, argument.to_owned(), port)
    }

    /// The host and port of an address that has one, for a sentence.
    pub(crate) fn host_and_port(&self) -> String {
        match Url::parse(&self.url) {
            Ok(url) if url.has_host() => {
                let port = url.port_or_known_default().or(match self.transport {
                    Transport::Ssh => Some(22),
                    Transport::Git => Some(9418),
                    Transport::Http | Transport::Https | Transport::File => None,
                });
                let name = url.host_str().unwrap_or_default();
                port.map_or_else(|| format!("`{name}`"), |port| format!("`{name}` port {port}"))
            }
            _ if self.transport == Transport::Ssh => format!("{} port 22", self.ssh_host().shown),
            _ => format!("`{}`", self.url),
        }
    }

    /// Understands the remote, and gives `sieve` every secret that comes with it.
    pub(crate) fn new(
        remote: &Remote,
        token: Option<&Secret>,
        beside: &Path,
        sieve: &mut Sieve,
    ) -> Result<Self, ToolError> {
        let (text, token_user) = match remote {
            Remote::Url(text) => (text.clone(), "git"),
            Remote::Hosted { provider, repo, api_base_url, clone_url } => {
                check_repository_name(repo)?;
                let text = match (clone_url, api_base_url) {
                    (Some(url), _) => url.clone(),
                    (None, Some(base)) => {
                        let own = Url::parse(base)
                            .map_err(|error| wrong(&format!("the API's base URL cannot be read: {error}")))?;
                        let is_usual =
                            Url::parse(provider.api_base()).is_ok_and(|usual| usual.host() == own.host());
                        let host = if is_usual {
                            provider.clone_base().to_owned()
                        } else {
                            own.origin().ascii_serialization()
                        };
                        format!("{host}/{repo}.git")
                    }
                    (None, None) => format!("{}/{repo}.git", provider.clone_base()),
                };
                (text, provider.token_user())
            }
        };
        let credential = token.map(|token| (token_user.to_owned(), token.expose().to_owned()));
        if let Some((_, token)) = &credential {
            sieve.add(token);
        }
        Self::parse(text.trim(), credential, beside, sieve)
    }

    fn parse(
        text: &str,
        credential: Option<(String, String)>,
        beside: &Path,
        sieve: &mut Sieve,
    ) -> Result<Self, ToolError> {
        if text.is_empty() || text.len() > MAX_URL_BYTES || text.chars().any(char::is_control) {
            return Err(wrong("it is empty, too long or has control characters in it"));
        }
        if text.starts_with('-') {
            return Err(wrong("it begins with `-`, which git would take for an option"));
        }
        let plain = |url: String, transport| Self {
            url,
            transport,
            authorization: None,
            credential: CredentialSource::None,
        };
        if let Some((scheme, _)) = text.split_once("://") {
            return match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => Self::http(text, credential, sieve),
                "ssh" => Ok(plain(ssh(text, sieve)?, Transport::Ssh)),
                "git" => Ok(plain(host_checked(text)?.to_string(), Transport::Git)),
                "file" => {
                    let path = Url::parse(text).ok().and_then(|url| url.to_file_path().ok());
                    let path = path.ok_or_else(|| wrong("a file URL needs an absolute path"))?;
                    Ok(plain(path_text(path)?, Transport::File))
                }
                other => Err(wrong(&format!("the protocol `{other}` is not allowed"))),
            };
        }
        let before_slash = text.split('/').next().unwrap_or_default();
        if before_slash.contains("::") {
            return Err(wrong("remote helpers (`name::address`) are not allowed"));
        }
        if let Some((host, path)) =
            before_slash.split_once(':').map(|(host, _)| (host, text.get(host.len() + 1..)))
        {
            let name = host.rsplit('@').next().unwrap_or_default();
            if name.is_empty()
                || name.starts_with('-')
                || path.is_none_or(|path| path.is_empty() || path.starts_with('-'))
            {
                return Err(wrong("it names no host and path"));
            }
            return Ok(plain(text.to_owned(), Transport::Ssh));
        }
        let path = std::path::absolute(beside.join(text)).map_err(|error| wrong(&error.to_string()))?;
        Ok(plain(path_text(path)?, Transport::File))
    }

    fn http(text: &str, credential: Option<(String, String)>, sieve: &mut Sieve) -> Result<Self, ToolError> {
        let mut url = host_checked(text)?;
        let decoded = |part: &str| {
            // One pair of a form is the one decoder the url crate has; `+` is not a blank in a URL's userinfo.
            let pair = format!("x={}", part.replace('+', "%2B"));
            let mut pairs = url::form_urlencoded::parse(pair.as_bytes());
            pairs.next().map(|(_, value)| value.into_owned()).unwrap_or_default()
        };
        // What a server takes as a setting may be a token.
        for pair in url.query().into_iter().chain(url.fragment()).flat_map(|part| part.split(['&', ';'])) {
            let value = pair.split_once('=').map_or(pair, |(_, value)| value);
            sieve.add(value);
            sieve.add(&decoded(value));
        }
        let user = decoded(url.username());
        let mut source = if credential.is_some() { CredentialSource::Token } else { CredentialSource::None };
        let credential = match (url.password(), credential) {
            (Some(password), _) => {
                source = CredentialSource::Url;
                sieve.add(password);
                let password = decoded(password);
                sieve.add(&password);
                Some((user, password))
            }
            (None, credential) if user.is_empty() => credential,
            // The URL says who it is, and the configuration how that is proved.
            (None, Some((_, token))) => Some((user, token)),
            // Without a token of the configuration: a lone name before the `@` is how tokens are pasted.
            (None, None) => {
                source = CredentialSource::Url;
                sieve.add(url.username());
                sieve.add(&user);
                Some((user, String::new()))
            }
        };
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let transport = if url.scheme() == "https" { Transport::Https } else { Transport::Http };
        let authorization = match credential {
            None => None,
            Some(_) if transport == Transport::Http && !is_loopback(&url) => {
                return Err(wrong("a token would travel in the clear; use https"));
            }
            Some((user, password)) => {
                let encoded = basic(&user, &password);
                sieve.add(&encoded);
                let scope = format!("{}/", url.origin().ascii_serialization());
                Some((scope, Secret::new(format!("Authorization: Basic {encoded}"))))
            }
        };
        Ok(Self { url: url.to_string(), transport, authorization, credential: source })
    }
}

fn ssh(text: &str, sieve: &mut Sieve) -> Result<String, ToolError> {
    let mut url = host_checked(text)?;
    if let Some(password) = url.password() {
        // ssh takes no password from a URL; it is only kept from being shown.
        sieve.add(password);
    }
    let _ = url.set_password(None);
    if url.username().starts_with('-') {
        return Err(wrong("its user begins with `-`"));
    }
    Ok(url.to_string())
}

fn host_checked(text: &str) -> Result<Url, ToolError> {
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    match url.host_str() {
        None | Some("") => Err(wrong("it has no host")),
        Some(host) if host.starts_with('-') => Err(wrong("its host begins with `-`")),
        Some(_) => Ok(url),
    }
}

fn path_text(path: PathBuf) -> Result<String, ToolError> {
    path.into_os_string().into_string().map_err(|_| wrong("the path is not UTF-8"))
}

fn check_repository_name(repo: &str) -> Result<(), ToolError> {
    let is_name = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['-', '.'])
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.~".contains(letter))
    };
    if repo.split('/').count() >= 2 && repo.split('/').all(is_name) {
        return Ok(());
    }
    Err(wrong("a repository is named `owner/name`"))
}

fn wrong(why: &str) -> ToolError {
    ToolError::new(Code::Config, format!("the git remote cannot be used: {why}"))
        .help("set `git.url` to an https, ssh or file URL or a path, or `git.provider` and `git.repo`")
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
