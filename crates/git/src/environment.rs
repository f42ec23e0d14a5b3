//! The environment of the `git` process: all that it may know of this machine, by transport.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::GitEnv;
use crate::remote::{Endpoint, Transport};

/// The file, in the directory that git works in, to which ssh writes its own messages. On standard error they could not be
/// distinguished from those of the server.
pub(crate) const SSH_MESSAGES: &str = "ssh-messages";

/// For a conversation with `endpoint`; `repository` and `objects` are what git works on.
pub(crate) fn environment(
    endpoint: &Endpoint,
    given: &GitEnv,
    repository: &Path,
    objects: PathBuf,
) -> Vec<(String, OsString)> {
    let mut all: Vec<(&str, OsString)> = vec![
        ("PATH", given.path.clone()),
        ("LC_ALL", "C".into()),
        ("GIT_DIR", repository.into()),
        ("GIT_OBJECT_DIRECTORY", objects.into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_TERMINAL_PROMPT", "0".into()),
        ("GIT_ASKPASS", "true".into()),
        ("SSH_ASKPASS", "true".into()),
        ("GIT_OPTIONAL_LOCKS", "0".into()),
        ("GIT_ALLOW_PROTOCOL", endpoint.transport.protocol().into()),
    ];
    let mut home = repository.join("home").into_os_string();
    match endpoint.transport {
        Transport::Ssh => {
            if let Some(real) = &given.home {
                home = real.clone().into();
            }
            if let Some(socket) = &given.ssh_auth_sock {
                all.push(("SSH_AUTH_SOCK", socket.clone()));
            }
            let ssh = format!(
                "ssh -E {SSH_MESSAGES} -oBatchMode=yes -oConnectTimeout=15 -oStrictHostKeyChecking=yes \
                 -oClearAllForwardings=yes"
            );
            all.push(("GIT_SSH_COMMAND", ssh.into()));
            all.push(("GIT_SSH_VARIANT", "ssh".into()));
        }
        Transport::Http | Transport::Https => {
            let mut settings = vec![("http.followRedirects".to_owned(), "initial".to_owned())];
            if let Some((scope, header)) = &endpoint.authorization {
                // A redirect could name another host, and the header must not go there.
                settings = vec![
                    ("http.followRedirects".to_owned(), "false".to_owned()),
                    (format!("http.{scope}.extraHeader"), header.expose().to_owned()),
                ];
            }
            if let Some(proxy) = &given.proxy {
                all.push(("https_proxy", proxy.into()));
                all.push(("http_proxy", proxy.into()));
            }
            if let Some(certificates) = &given.certificates {
                all.push(("GIT_SSL_CAINFO", certificates.into()));
            }
            let mut all: Vec<(String, OsString)> =
                all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            all.push(("HOME".to_owned(), home));
            all.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string().into()));
            for (number, (key, value)) in settings.into_iter().enumerate() {
                all.push((format!("GIT_CONFIG_KEY_{number}"), key.into()));
                all.push((format!("GIT_CONFIG_VALUE_{number}"), value.into()));
            }
            return all;
        }
        Transport::Git | Transport::File => {}
    }
    all.push(("HOME", home));
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
