//! What a machine must have for a case.

use serde::Deserialize;

/// The variables that name the test databases; `cargo xtask` sets them.
pub const POSTGRES_VARIABLE: &str = "TGP_TEST_POSTGRES_URL";
pub const MYSQL_VARIABLE: &str = "TGP_TEST_MYSQL_URL";

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    Postgres,
    Mariadb,
    Git,
    Node,
    Root,
}

impl Need {
    /// Why this machine does not have it; nothing when it does.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        let variable = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        match self {
            Self::Postgres if !variable(POSTGRES_VARIABLE) => Some("PostgreSQL (TGP_TEST_POSTGRES_URL)"),
            Self::Mariadb if !variable(MYSQL_VARIABLE) => Some("MariaDB (TGP_TEST_MYSQL_URL)"),
            Self::Git if !on_path("git") => Some("git"),
            Self::Node if !on_path("node") => Some("node"),
            Self::Root if !nix::unistd::geteuid().is_root() => Some("root"),
            _ => None,
        }
    }

    /// Whether cases that need it share something, and so run one after the other.
    #[must_use]
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Postgres | Self::Mariadb)
    }
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
