//! What a call is about to touch, as its tool reads the arguments. Gates decide by it.

use serde::{Deserialize, Serialize};

use crate::{LimitRequest, RelativePath};

/// The tree a path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// The tool repository (`.tgp`).
    Tools,
    /// The project that the tool repository belongs to.
    Project,
    /// The directory above both the project and a directory outside of it that `fs.allowedDirs` names.
    Host,
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
    Delete,
    /// An event is added to a chronicle, whose past stays as it is.
    Append,
}

/// One thing a call is about to touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    File {
        root: Root,
        path: RelativePath,
        access: Access,
    },
    /// A host on the network, in lower case, as the URL names it.
    Host {
        host: String,
    },
    /// The network as a whole: a process that may reach any host.
    Network,
    /// A statement for the database; `kinds` are its verbs in lower case, such as `select` or `drop`, and `unknown`
    /// when it may have any other.
    Statement {
        sql: String,
        kinds: Vec<String>,
        /// It certainly changes nothing; see [`SqlClass::reads`](crate::SqlClass::reads).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reads: bool,
    },
    /// A command line for a shell.
    Command {
        command: String,
    },
    /// A tool of an upstream server.
    UpstreamTool {
        server: String,
        tool: String,
    },
    /// A secret that the call uses, by its name; its value is never part of a target.
    Secret {
        name: String,
    },
    /// A tool that the embedding program offers.
    HostTool {
        name: String,
    },
    /// A branch of the project's repository to which a commit is added.
    Branch {
        name: String,
    },
    /// Limits of a run above those that every run has.
    Limits(LimitRequest),
}

impl Target {
    /// The file, when it is one.
    #[must_use]
    pub fn file(&self) -> Option<(Root, &RelativePath, Access)> {
        match self {
            Self::File { root, path, access } => Some((*root, path, *access)),
            _ => None,
        }
    }
}
