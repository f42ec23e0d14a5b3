//! Where the user's tools keep their credentials. No command sees them, whatever the configuration makes readable.

use std::path::{Path, PathBuf};

use crate::boot::Environment;

/// Below a home directory, or below whatever is made readable in place of one.
const IN_HOME: [&str; 58] = [
    ".ansible/vault",
    ".aws",
    ".azure",
    ".bundle/config",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".composer/auth.json",
    ".conan/.conan.db",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/configstore",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/helm",
    ".config/hub",
    ".config/op",
    ".config/pip",
    ".config/pypoetry/auth.toml",
    ".config/rclone",
    ".config/tgp",
    ".config/uv",
    ".dbt/profiles.yml",
    ".docker/config.json",
    ".dockercfg",
    ".fly",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".heroku",
    ".kaggle",
    ".kube",
    ".local/share/keyrings",
    ".local/share/uv/credentials",
    ".local/state/tgp",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".nuget/NuGet/NuGet.Config",
    ".password-store",
    ".pgpass",
    ".pip/pip.conf",
    ".pypirc",
    ".ssh",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".yarnrc",
    ".yarnrc.yml",
];

/// Variables that say where a tool keeps its files, and those of them that hold credentials; none for the file or
/// directory itself.
const MOVED: [(&str, &[&str]); 17] = [
    ("AWS_CONFIG_FILE", &[]),
    ("AWS_SHARED_CREDENTIALS_FILE", &[]),
    ("CARGO_HOME", &["config", "config.toml", "credentials", "credentials.toml"]),
    ("CLOUDSDK_CONFIG", &[]),
    ("DOCKER_CONFIG", &["config.json"]),
    ("GH_CONFIG_DIR", &[]),
    ("GNUPGHOME", &[]),
    ("GOOGLE_APPLICATION_CREDENTIALS", &[]),
    ("GRADLE_USER_HOME", &["gradle.properties"]),
    ("KUBECONFIG", &[]),
    ("NETRC", &[]),
    ("NPM_CONFIG_USERCONFIG", &[]),
    ("PASSWORD_STORE_DIR", &[]),
    ("PGPASSFILE", &[]),
    ("PIP_CONFIG_FILE", &[]),
    ("TGP_HOME", &[]),
    ("XDG_CONFIG_HOME", &["gcloud", "gh", "git/credentials", "glab-cli", "op", "pip", "rclone", "tgp"]),
];

/// Of the whole machine, in parts that every command sees.
const OF_SYSTEM: [&str; 3] = ["/usr/etc/npmrc", "/usr/local/etc/npmrc", "/opt/homebrew/etc/npmrc"];

/// Paths that hold credentials, whether they are there or not.
pub(super) fn files(environment: &Environment, readable: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = OF_SYSTEM.iter().map(PathBuf::from).collect();
    let home = environment("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    // A directory that is made readable may be a user's home, or a part of one.
    let homes = home.iter().map(PathBuf::as_path).chain(readable.iter().map(PathBuf::as_path));
    for home in homes {
        found.extend(IN_HOME.iter().map(|path| home.join(path)));
        found.extend(IN_HOME.iter().filter_map(|path| below_part(home, path)));
    }
    for (name, files) in MOVED {
        // Several paths may be given, with colons between them.
        for path in environment(name).iter().flat_map(|value| value.split(':')).map(Path::new) {
            if !path.is_absolute() {
                continue;
            }
            if files.is_empty() {
                found.push(path.to_owned());
            }
            found.extend(files.iter().map(|file| path.join(file)));
        }
    }
    // By their bytes: comparing hundreds of paths part by part is felt at every start.
    found.sort_unstable_by(|left, right| left.as_os_str().cmp(right.as_os_str()));
    found.dedup();
    found
}

/// Where a path of a home is when `directory` is the first part of it: `.cargo/config.toml` below `/x/.cargo`.
fn below_part(directory: &Path, path: &str) -> Option<PathBuf> {
    let (first, rest) = path.split_once('/')?;
    (directory.file_name()? == first).then(|| directory.join(rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use super::files;
    use crate::boot::Environment;

    #[test]
    fn credentials_are_known_wherever_the_environment_and_the_configuration_put_them() {
        let environment: Environment = Arc::new(|name| match name {
            "HOME" => Some("/home/ada".to_owned()),
            "CARGO_HOME" => Some("/opt/cargo".to_owned()),
            "KUBECONFIG" => Some("/k/one:/k/two:relative".to_owned()),
            _ => None,
        });
        let found = files(&environment, &[PathBuf::from("/srv/home"), PathBuf::from("/mnt/x/.cargo")]);
        for path in [
            "/home/ada/.ssh",
            "/home/ada/.cargo/config.toml",
            "/opt/cargo/credentials.toml",
            "/k/one",
            "/k/two",
            "/srv/home/.npmrc",
            "/mnt/x/.cargo/config.toml",
        ] {
            assert!(found.iter().any(|found| found == Path::new(path)), "{path}");
        }
        assert!(found.iter().all(|path| path.is_absolute()), "{found:?}");
    }
}
