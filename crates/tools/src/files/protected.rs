//! What no tool may see or touch, whatever the rules of a project say.

use tgp_contract::{RelativePath, Root};

/// Directories and files that are out of reach at any depth: git's own, the kernel's state, and where people keep
/// their keys.
const NAMES: [&str; 16] = [
    ".git",
    ".state",
    ".ssh",
    ".aws",
    ".gnupg",
    ".kube",
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
];
/// Private keys by the name that programs give them.
const KEY_NAMES: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];
/// Private keys and key stores by how their names end.
const KEY_ENDINGS: [&str; 7] = [".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"];
/// An environment file with one of these endings shows names and no values.
const EXAMPLES: [&str; 4] = [".example", ".sample", ".template", ".dist"];

/// Whether a path is out of reach in every tree. Names are compared without case, because some disks do.
pub(crate) fn is_protected(_root: Root, path: &RelativePath) -> bool {
    path.parts().any(|part| {
        let name = part.to_lowercase();
        let any = |names: &[&str]| names.contains(&name.as_str());
        any(&NAMES)
            || any(&KEY_NAMES)
            || KEY_ENDINGS.iter().any(|ending| name.ends_with(ending))
            || (name.starts_with(".env.") && !EXAMPLES.iter().any(|ending| name.ends_with(ending)))
    })
}
