//! Why git could not talk to the remote, in words that name the cause and what to do about it.
//!
//! Git says `Could not read from remote repository.` for everything that ssh refuses; the cause stands in the lines
//! before.

use crate::remote::{Endpoint, SshHost, Transport};

/// A line of git or of the server; servers send essays.
const MAX_LINE_CHARS: usize = 300;

/// One sentence from what git and ssh wrote.
pub(crate) fn explain(stderr: &str, endpoint: &Endpoint) -> String {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match endpoint.transport {
        Transport::Ssh => ssh(&lines, endpoint),
        Transport::Http | Transport::Https => http(&lines, endpoint),
        Transport::Git | Transport::File => said(&lines),
    }
}

fn ssh(lines: &[&str], endpoint: &Endpoint) -> String {
    let any =
        |words: &[&str]| lines.iter().find(|line| words.iter().all(|word| line.contains(word))).copied();
    if any(&["REMOTE HOST IDENTIFICATION HAS CHANGED"]).is_some()
        || any(&["Host key for", "has changed"]).is_some()
    {
        return changed_key(&endpoint.ssh_host());
    }
    if any(&["host key is known for", "strict checking"]).is_some() {
        return unknown_key(&endpoint.ssh_host());
    }
    if any(&["Host key verification failed"]).is_some() {
        let host = endpoint.ssh_host();
        return format!(
            "ssh could not verify the host key of {}, so nothing was sent; `ssh{} {}` shows why",
            host.shown, host.port_option, host.argument
        );
    }
    if let Some(line) = any(&["Permission denied"]) {
        return format!(
            "{}; the server took none of the keys that ssh offered: register the public key there, and have the \
             private one in `~/.ssh` without a passphrase, or in ssh-agent",
            cut(line).trim_end_matches('.')
        );
    }
    // ssh speaks before git does, and knows more.
    lines.iter().find(|line| line.starts_with("ssh: ")).map_or_else(|| said(lines), |line| cut(line))
}

fn unknown_key(host: &SshHost) -> String {
    let SshHost { shown, argument, port_option, .. } = host;
    format!(
        "the ssh host key of {shown} is not known on this machine, so nothing was sent; compare its fingerprint \
         (`ssh-keyscan{port_option} {argument} | ssh-keygen -lf -`) with the one that the server's owner publishes, and \
         only then run `ssh-keyscan -H{port_option} {argument} >> ~/.ssh/known_hosts`"
    )
}

fn changed_key(host: &SshHost) -> String {
    let SshHost { shown, argument, port_option, known_as } = host;
    format!(
        "the ssh host key of {shown} has changed, so nothing was sent; somebody may be impersonating the server (an \
         attack): ask its owner whether the key was replaced, and only if it was, run `ssh-keygen -R {known_as}`, \
         compare the new fingerprint and run `ssh-keyscan -H{port_option} {argument} >> ~/.ssh/known_hosts`"
    )
}

fn http(lines: &[&str], endpoint: &Endpoint) -> String {
    let wants_other = |line: &&&str| {
        line.contains("Authentication failed for")
            || line.contains("could not read Username")
            || line.contains("could not read Password")
    };
    if lines.iter().any(|line| wants_other(&line)) {
        return if endpoint.authorization.is_some() {
            format!(
                "the remote {} refused the user name or the token; see that `git.auth.token` is valid there, and that \
                 its user may read and write the repository",
                endpoint.url
            )
        } else {
            format!("the remote {} wants a token and none is configured; set `git.auth.token`", endpoint.url)
        };
    }
    said(lines)
}

/// The one line of git's complaint that says what is wrong.
fn said(lines: &[&str]) -> String {
    let said = |prefix: &str| lines.iter().find_map(|line| line.strip_prefix(prefix)).map(str::trim);
    let line = said("fatal:").or_else(|| said("error:")).or_else(|| lines.last().copied());
    cut(line.unwrap_or("git failed without a word"))
}

fn cut(line: &str) -> String {
    let mut short: String = line.chars().take(MAX_LINE_CHARS).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::explain;
    use crate::Remote;
    use crate::remote::Endpoint;
    use crate::secret::Sieve;

    const UNKNOWN: &str = "No ED25519 host key is known for [host]:2222 and you have requested strict checking.\r\n\
        Host key verification failed.\r\nfatal: Could not read from remote repository.\n\n\
        Please make sure you have the correct access rights\nand the repository exists.\n";
    const CHANGED: &str = "@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@\n\
        IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n\
        Host key for [host]:2222 has changed and you have requested strict checking.\n\
        Host key verification failed.\nfatal: Could not read from remote repository.\n";

    fn told(url: &str, stderr: &str) -> String {
        let remote = Remote::Url(url.to_owned());
        let endpoint = Endpoint::new(&remote, None, Path::new("/project"), &mut Sieve::default()).unwrap();
        explain(stderr, &endpoint)
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
    fn a_host_that_a_shell_would_read_is_in_no_command() {
        let told = told("git@h$(touch x)`y`:a", UNKNOWN);
        assert!(told.contains("ssh-keyscan -H HOST"), "{told}");
        assert!(!told.contains("ssh-keyscan -H h$"), "{told}");
    }
}
