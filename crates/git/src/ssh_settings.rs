//! The settings of ssh for one host. They decide which server a name leads to and which file of known hosts counts, and
//! only ssh knows them: `ssh -G` prints them without a connection.

use crate::remote::SshHost;

/// What `ssh -G` printed, as far as the messages need it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SshSettings {
    /// The first file of `UserKnownHostsFile`.
    pub(crate) known_hosts: Option<String>,
    hostname: Option<String>,
    port: Option<u16>,
}

impl SshSettings {
    /// Reads the output of `ssh -G`. Values that a shell would change are left out, because they become part of commands.
    pub(crate) fn parse(output: &str) -> Self {
        let value = |name: &str| {
            let line = output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            line.split_whitespace().next().filter(|word| is_plain(word)).map(str::to_owned)
        };
        Self {
            known_hosts: value("userknownhostsfile").filter(|file| file != "none" && file != "/dev/null"),
            hostname: value("hostname"),
            port: value("port").and_then(|port| port.parse().ok()),
        }
    }

    /// The host of the URL as ssh resolves it.
    pub(crate) fn resolve(&self, host: SshHost) -> SshHost {
        let argument = self.hostname.clone().unwrap_or_else(|| host.argument.clone());
        let port = self.port.or(host.port).filter(|port| *port != 22);
        SshHost::new(host.shown, argument, port)
    }
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-~+:@%".contains(letter))
        && !word.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::SshSettings;

    #[test]
    fn the_output_of_ssh_is_read() {
        let settings = SshSettings::parse(
            "host work\nuser git\nhostname git.example.org\nport 2222\nhashknownhosts yes\n\
             globalknownhostsfile /etc/ssh/ssh_known_hosts\nuserknownhostsfile /home/ada/known /home/ada/known2\n",
        );
        assert_eq!(settings.known_hosts.as_deref(), Some("/home/ada/known"));
        assert_eq!((settings.hostname.as_deref(), settings.port), (Some("git.example.org"), Some(2222)));
    }

    #[test]
    fn a_value_that_a_shell_would_read_is_left_out() {
        let settings = SshSettings::parse("hostname a$(touch x)\nuserknownhostsfile /a;b\n");
        assert_eq!(settings, SshSettings::default());
        assert_eq!(SshSettings::parse("userknownhostsfile none\n"), SshSettings::default());
    }
}
