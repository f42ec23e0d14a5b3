//! The package managers: which one a folder uses, and how each is run so that nothing of a package is executed.

use tgp_contract::{Code, RelativePath, ToolError};
use tgp_jail::CACHE_PLACE;

/// Longest specification of one package.
const MAX_SPEC_BYTES: usize = 256;

/// A package manager that `package_install` can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manager {
    Npm,
    Pip,
    Uv,
    Cargo,
}

/// Files that tell which manager a folder belongs to; the first that is there decides.
const EVIDENCE: [(&str, Result<Manager, &str>); 11] = [
    ("pnpm-lock.yaml", Err("pnpm")),
    ("yarn.lock", Err("yarn")),
    ("bun.lock", Err("bun")),
    ("bun.lockb", Err("bun")),
    ("package.json", Ok(Manager::Npm)),
    ("uv.lock", Ok(Manager::Uv)),
    ("poetry.lock", Err("poetry")),
    ("requirements.txt", Ok(Manager::Pip)),
    ("Cargo.toml", Ok(Manager::Cargo)),
    ("go.mod", Err("go")),
    ("pyproject.toml", Err("a project of Python without `uv.lock` or `requirements.txt`")),
];

/// Writes the versions that pip has installed to `requirements.txt`. A name is compared as the index compares it.
const RECORD: &str = "\
import importlib.metadata as m, re, sys
plain = lambda text: re.sub(r'[-_.]+', '-', text).lower()
name_of = lambda text: re.match(r'[A-Za-z0-9._-]*', text.strip()).group(0)
wanted = {plain(name_of(spec)): spec for spec in sys.argv[1:]}
lines = open('requirements.txt', encoding='utf-8').read().splitlines()
kept = [line for line in lines if plain(name_of(line)) not in wanted or not name_of(line)]
for spec in wanted.values():
    bare = re.fullmatch(r'[A-Za-z0-9._-]+(\\[[A-Za-z0-9._,-]+\\])?', spec)
    kept.append(spec + '==' + m.version(name_of(spec)) if bare else spec)
open('requirements.txt', 'w', encoding='utf-8').write('\\n'.join(kept) + '\\n')
";

impl Manager {
    /// The manager of a folder, by the files in it.
    ///
    /// # Errors
    /// `ENOTFOUND` without a manifest, `ECAPABILITY` for a manager that cannot be run so that nothing is executed.
    pub(super) fn detect(folder: &RelativePath, has: impl Fn(&str) -> bool) -> Result<Self, ToolError> {
        let place = if folder.is_root() { "the project".to_owned() } else { format!("`{folder}`") };
        match EVIDENCE.iter().find(|(name, _)| has(name)) {
            Some((_, Ok(manager))) => Ok(*manager),
            Some((name, Err(other))) => {
                let message = format!("`{name}`: {place} uses {other}, and packages are installed with npm, pip, uv and cargo");
                Err(ToolError::new(Code::Capability, message)
                    .help("ask the user to install the packages; nothing was changed"))
            }
            None => Err(ToolError::new(Code::NotFound, format!("{place} has no manifest of packages"))
                .help(
                    "create package.json, requirements.txt or Cargo.toml first, or name the folder with `directory`",
                )),
        }
    }

    /// Refuses a manager that was named for a folder without its manifest.
    ///
    /// # Errors
    /// `ENOTFOUND`.
    pub(super) fn require_manifest(
        self,
        folder: &RelativePath,
        has: impl Fn(&str) -> bool,
    ) -> Result<(), ToolError> {
        let (lists, _) = self.manifests();
        if lists.iter().any(|name| has(name)) {
            return Ok(());
        }
        let expected = lists.first().copied().unwrap_or_default();
        let place = if folder.is_root() { "the project".to_owned() } else { format!("`{folder}`") };
        Err(ToolError::new(Code::NotFound, format!("{place} has no `{expected}`"))
            .help(format!("create `{expected}` first, or name its folder with `directory`")))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Uv => "uv",
            Self::Cargo => "cargo",
        }
    }

    /// The files that it may change, at any depth: those that list packages, and those with their versions.
    pub(super) fn manifests(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Npm => (&["package.json"], &["package-lock.json", "npm-shrinkwrap.json"]),
            Self::Pip => (&["requirements.txt"], &[]),
            Self::Uv => (&["pyproject.toml"], &["uv.lock"]),
            Self::Cargo => (&["Cargo.toml"], &["Cargo.lock"]),
        }
    }

    /// The directory below the folder that holds installed packages; none where they are outside the project.
    pub(super) fn directory(self) -> Option<&'static str> {
        match self {
            Self::Npm => Some("node_modules"),
            Self::Pip | Self::Uv => Some(".venv"),
            Self::Cargo => None,
        }
    }

    /// Whether the specification of a package names one of an index, in the form of this manager. Paths, addresses and
    /// repositories are not: what they hold is no package that anyone has published.
    ///
    /// # Errors
    /// `EVALIDATION`.
    pub(super) fn check(self, spec: &str) -> Result<(), ToolError> {
        let (name, rest) = self.split(spec);
        let scoped = (self == Self::Npm).then(|| name.strip_prefix('@')).flatten();
        let is_name = |name: &str| {
            name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
        };
        let named = match scoped {
            Some(scoped) => {
                scoped.split_once('/').is_some_and(|(scope, name)| is_name(scope) && is_name(name))
            }
            None => is_name(name),
        };
        // No letter has a meaning for a shell or begins an option, a path or an address.
        let allowed = match self {
            Self::Npm | Self::Cargo => "-_.^~<>=*+ |",
            Self::Pip | Self::Uv => "-_.~<>=!*+, []",
        };
        let plain = rest.chars().all(|letter| letter.is_ascii_alphanumeric() || allowed.contains(letter));
        if named && plain && spec.len() <= MAX_SPEC_BYTES {
            return Ok(());
        }
        let example = match self {
            Self::Npm => "`zod`, `zod@4.1.0` or `@types/node@^24`",
            Self::Pip | Self::Uv => "`requests`, `requests==2.32.5` or `rich>=14,<15`",
            Self::Cargo => "`serde` or `serde@1.0.228`",
        };
        Err(ToolError::new(
            Code::Validation,
            format!("`{}` is not a package of an index", spec.escape_default()),
        )
        .detail("package", spec)
        .help(format!("name a package as {example}; paths, addresses and repositories are not installed")))
    }

    /// The name, and what follows it.
    fn split(self, spec: &str) -> (&str, &str) {
        let at = match self {
            Self::Npm | Self::Cargo => {
                spec.char_indices().skip(1).find(|(_, letter)| *letter == '@').map(|(at, _)| at)
            }
            Self::Pip | Self::Uv => spec.find(|letter: char| "<>=!~[ ".contains(letter)),
        };
        let (name, rest) = spec.split_at(at.unwrap_or(spec.len()));
        (name, rest.strip_prefix('@').unwrap_or(rest))
    }

    /// The command line. Without packages it installs what the manifests list.
    pub(super) fn command(self, packages: &[String], dev: bool) -> String {
        let quoted: Vec<String> = packages.iter().map(|package| quoted(package)).collect();
        let all = quoted.join(" ");
        let dev = |flag: &str| if dev { format!(" {flag}") } else { String::new() };
        match self {
            Self::Npm if packages.is_empty() => "npm install --ignore-scripts".to_owned(),
            Self::Npm => format!("npm install --ignore-scripts{} -- {all}", dev("--save-dev")),
            Self::Pip => {
                // Isolated, so that no module of the project is taken for one of Python or pip.
                let make = "if [ ! -x .venv/bin/python ]; then python3 -I -m venv .venv; fi";
                let install = ".venv/bin/python -I -m pip install --only-binary :all: -r requirements.txt";
                if packages.is_empty() {
                    format!("{make} && {install}")
                } else {
                    let record = format!(".venv/bin/python -I -c {} {all}", quoted_text(RECORD));
                    format!("{make} && {install} {all} && {record}")
                }
            }
            Self::Uv => {
                let sync = "uv sync --no-build --no-install-project --no-sources";
                if packages.is_empty() {
                    sync.to_owned()
                } else {
                    format!("uv add --no-sync --no-build --no-sources{} {all} && {sync}", dev("--dev"))
                }
            }
            Self::Cargo if packages.is_empty() => "cargo fetch".to_owned(),
            Self::Cargo => format!("cargo add --quiet{} {all} && cargo fetch", dev("--dev")),
        }
    }

    /// The command line as a person reads it: without the program that records versions.
    pub(super) fn shown_command(self, packages: &[String], dev: bool) -> String {
        self.command(packages, dev)
            .replace(&quoted_text(RECORD), "'(write the versions to requirements.txt)'")
    }

    /// Variables that keep it from running anything of a package, and tell it where to keep what it downloads.
    pub(super) fn environment(self) -> Vec<(String, String)> {
        let cache = |name: &str| format!("{CACHE_PLACE}/{name}");
        let fixed: &[(&str, &str)] = match self {
            Self::Npm => &[
                ("npm_config_ignore_scripts", "true"),
                ("npm_config_script_shell", "/bin/false"),
                ("npm_config_git", "/bin/false"),
                ("npm_config_audit", "false"),
                ("npm_config_fund", "false"),
                ("npm_config_update_notifier", "false"),
                ("npm_config_progress", "false"),
            ],
            Self::Pip => &[
                ("PIP_ONLY_BINARY", ":all:"),
                ("PIP_NO_INPUT", "1"),
                ("PIP_NO_CACHE_DIR", "1"),
                ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
                ("PIP_PROGRESS_BAR", "off"),
                ("PIP_ROOT_USER_ACTION", "ignore"),
            ],
            Self::Uv => &[
                ("UV_NO_BUILD", "1"),
                ("UV_PYTHON_DOWNLOADS", "never"),
                ("UV_LINK_MODE", "copy"),
                ("UV_NO_PROGRESS", "1"),
                ("UV_NATIVE_TLS", "1"),
                ("UV_PROJECT_ENVIRONMENT", ".venv"),
            ],
            Self::Cargo => &[("CARGO_TERM_PROGRESS_WHEN", "never"), ("RUSTC_WRAPPER", "")],
        };
        let mut variables: Vec<(String, String)> =
            fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let place = match self {
            Self::Npm => Some("npm_config_cache"),
            Self::Uv => Some("UV_CACHE_DIR"),
            Self::Cargo => Some("CARGO_HOME"),
            Self::Pip => None,
        };
        variables.extend(place.map(|name| (name.to_owned(), cache(self.name()))));
        variables
    }
}

/// A checked specification for a shell. It has no quote in it.
fn quoted(spec: &str) -> String {
    format!("'{spec}'")
}

/// Any text for a shell.
fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_an_index_are_specifications() {
        for (manager, good) in [
            (Manager::Npm, "zod"),
            (Manager::Npm, "zod@4.1.0"),
            (Manager::Npm, "@types/node@^24"),
            (Manager::Npm, "left-pad@>=1 <2"),
            (Manager::Pip, "requests"),
            (Manager::Pip, "rich[jupyter]>=14,<15"),
            (Manager::Cargo, "serde_json@1.0.1"),
        ] {
            manager.check(good).unwrap_or_else(|error| panic!("{good}: {}", error.message));
        }
        for (manager, bad) in [
            (Manager::Npm, ""),
            (Manager::Npm, "-g"),
            (Manager::Npm, "./evil"),
            (Manager::Npm, "../evil.tgz"),
            (Manager::Npm, "owner/repository"),
            (Manager::Npm, "zod@file:evil"),
            (Manager::Npm, "zod@npm:other@1"),
            (Manager::Npm, "zod@https://example.org/x.tgz"),
            (Manager::Npm, "git+ssh://example.org/x"),
            (Manager::Npm, "zod'; rm -rf . #"),
            (Manager::Npm, "zod@$(id)"),
            (Manager::Npm, "@/x"),
            (Manager::Npm, "zod\nleft-pad"),
            (Manager::Pip, "--index-url=x"),
            (Manager::Pip, "evil @ file:///tmp/x"),
            (Manager::Pip, "/tmp/x.whl"),
            (Manager::Pip, "requests; import os"),
            (Manager::Cargo, "--git=x"),
            (Manager::Cargo, "serde@1/../x"),
        ] {
            assert!(manager.check(bad).is_err(), "{bad:?}");
        }
        assert!(Manager::Npm.check(&"a".repeat(300)).is_err());
    }

    #[test]
    fn a_folder_with_the_lock_file_of_another_manager_is_not_touched() {
        let detect = |names: &'static [&'static str]| {
            Manager::detect(&RelativePath::root(), |name| names.contains(&name))
        };
        assert_eq!(detect(&["package.json"]).unwrap(), Manager::Npm);
        assert_eq!(detect(&["pyproject.toml", "uv.lock"]).unwrap(), Manager::Uv);
        assert_eq!(detect(&["package.json", "yarn.lock"]).unwrap_err().code, Code::Capability);
        assert_eq!(detect(&["pyproject.toml", "poetry.lock"]).unwrap_err().code, Code::Capability);
        assert_eq!(detect(&[]).unwrap_err().code, Code::NotFound);
    }
}
