//! How clients of a kernel are named: programs that choose a name for themselves, and must not become anything by it.
//!
//! A client is known by what the kernel can check: the family of its token, or that it came by the command line. Its
//! actor and its session begin with that identity; the name it has chosen follows and is for people.
//!
//! | client | actor | session |
//! | --- | --- | --- |
//! | socket | `socket/FAMILY/NAME` | `token/FAMILY/NAME` |
//! | MCP host | `mcp/FAMILY/NAME` | `token/FAMILY/NAME` |
//! | `tgp call` with a token | `token/FAMILY/NAME` | `token/FAMILY/NAME` |
//! | `tgp call` without a token | `cli/NAME` | `cli/NAME` |
//! | the program that has started `tgp serve --stdio` | `host/NAME` | `host/NAME` |
//!
//! Ids of agent sessions have no `/`, so no client can be taken for one.

/// A program at the local socket.
const SOCKET: &str = "socket";
/// A host at the MCP server.
const MCP: &str = "mcp";
/// A client that presents a token.
const TOKEN: &str = "token";
/// The command line without a token.
const COMMAND_LINE: &str = "cli";

/// The program that has started the kernel for itself.
const HOST: &str = "host";

/// How a client reaches the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEntry {
    /// The local socket.
    Socket,
    /// `tgp mcp`.
    Mcp,
    /// `tgp call`.
    Command,
    /// The standard streams of `tgp serve --stdio`.
    Host,
}

/// The id of a client's actor or session in its two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId<'a> {
    /// What the kernel has checked.
    pub identity: &'a str,
    /// What the client calls itself. It may fit a rule that restricts, never one that allows.
    pub display: Option<&'a str>,
}

impl<'a> ClientId<'a> {
    /// Takes an id apart; `None` for the id of anything but a client, such as an agent's session.
    #[must_use]
    pub fn parse(id: &'a str) -> Option<Self> {
        let (kind, rest) = match id.split_once('/') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (id, None),
        };
        match kind {
            COMMAND_LINE | HOST => Some(Self { identity: kind, display: rest }),
            SOCKET | MCP | TOKEN => {
                let rest = rest?;
                let (family, display) = match rest.split_once('/') {
                    Some((family, display)) => (family, Some(display)),
                    None => (rest, None),
                };
                let identity = id.get(..kind.len() + 1 + family.len())?;
                (!family.is_empty()).then_some(Self { identity, display })
            }
            _ => None,
        }
    }
}

/// The id of a client's actor.
#[must_use]
pub fn client_actor(entry: ClientEntry, family: Option<&str>, name: Option<&str>) -> String {
    let kind = match entry {
        ClientEntry::Socket => SOCKET,
        ClientEntry::Mcp => MCP,
        ClientEntry::Command => TOKEN,
        ClientEntry::Host => return joined(HOST.to_owned(), name),
    };
    named(kind, family, name)
}

/// The id of a client's session. Everything that shows tokens of one family is counted together, however it came.
#[must_use]
pub fn client_session(entry: ClientEntry, family: Option<&str>, name: Option<&str>) -> String {
    match entry {
        ClientEntry::Host => joined(HOST.to_owned(), name),
        ClientEntry::Socket | ClientEntry::Mcp | ClientEntry::Command => named(TOKEN, family, name),
    }
}

fn named(kind: &str, family: Option<&str>, name: Option<&str>) -> String {
    joined(family.map_or_else(|| COMMAND_LINE.to_owned(), |family| format!("{kind}/{family}")), name)
}

fn joined(mut id: String, name: Option<&str>) -> String {
    if let Some(name) = name {
        id.push('/');
        id.push_str(name);
    }
    id
}

/// Under which id the calls of a session are counted: that of a client without the name it has chosen, any other
/// session itself.
#[must_use]
pub fn counted_session(session: &str) -> &str {
    ClientId::parse(session).map_or(session, |client| client.identity)
}

/// Whether calls of this session come from the user without a token: by the command line, or by a program that has
/// started the kernel.
#[must_use]
pub fn has_no_token(session: &str) -> bool {
    matches!(counted_session(session), COMMAND_LINE | HOST)
}
