//! npm: which packages it is given, how it is run so that nothing of a package is executed, and what its lock file may name.

mod layer;
mod lock;

use async_trait::async_trait;
use tgp_contract::{Code, RelativePath, ToolError};
use tgp_jail::{CACHE_PLACE, LayerChange};
use tgp_router::Invocation;
use tgp_router::files::ProjectFiles;

use super::Plan;
use super::managers::{Installation, PackageManager, Run, Site, has_file, shown};

/// The list of packages, and their versions.
const MANIFEST: &str = "package.json";
const LOCK_FILES: [&str; 2] = ["package-lock.json", "npm-shrinkwrap.json"];
/// Where packages are, below the directory of the manifest.
const PACKAGES: &str = "node_modules";
/// What is installed, as npm lists it in the directory of packages.
const INSTALLED: &str = ".package-lock.json";

pub(super) struct Npm;

#[async_trait]
impl PackageManager for Npm {
    fn name(&self) -> &'static str {
        "npm"
    }

    fn tree_name(&self) -> Option<&'static str> {
        Some(PACKAGES)
    }

    fn check(&self, plan: &Plan) -> Result<(), ToolError> {
        plan.packages.iter().try_for_each(|package| check(package))
    }

    fn command(&self, plan: &Plan) -> String {
        command(&plan.packages, plan.dev)
    }

    fn require(&self, plan: &Plan, files: &ProjectFiles) -> Result<(), ToolError> {
        require(&plan.directory, |name| has_file(&plan.directory, name, files))
    }

    async fn prepare(
        &self,
        plan: &Plan,
        _site: &Site,
        _invocation: Invocation<'_>,
    ) -> Result<Run, ToolError> {
        Ok(Run { line: self.command(plan), environment: environment() })
    }

    fn read(&self, plan: &Plan, site: &Site, found: Vec<LayerChange>) -> Result<Installation, ToolError> {
        layer::read(plan, site, found)
    }
}

/// Longest specification of one package.
const MAX_SPEC_BYTES: usize = 256;

/// Files of other managers.
const OTHERS: [(&str, &str); 10] = [
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("uv.lock", "uv"),
    ("poetry.lock", "poetry"),
    ("requirements.txt", "pip"),
    ("pyproject.toml", "Python"),
    ("Cargo.toml", "cargo"),
    ("go.mod", "go"),
];

/// Refuses a directory that is not one of npm.
///
/// # Errors
/// `ENOTFOUND` without a manifest, `ECAPABILITY` for one of another manager, `ESECURITY` inside the packages.
fn require(directory: &RelativePath, has: impl Fn(&str) -> bool) -> Result<(), ToolError> {
    if directory.parts().any(|part| part.eq_ignore_ascii_case(PACKAGES)) {
        return Err(ToolError::new(Code::Security, format!("`{directory}` is inside installed packages"))
            .help("name the directory of the project's own package.json"));
    }
    let place = shown(directory);
    let other = OTHERS.iter().find(|(name, _)| has(name));
    match (has(MANIFEST), other) {
        // The lock file of another manager would not follow.
        (true, Some((name, other))) if name.contains("lock") && !["uv", "poetry"].contains(other) => {
            Err(unsupported(&place, name, other))
        }
        (true, _) => Ok(()),
        (false, Some((name, other))) => Err(unsupported(&place, name, other)),
        (false, None) => Err(ToolError::new(Code::NotFound, format!("{place} has no `{MANIFEST}`"))
            .help(format!("create `{MANIFEST}` first, or name its directory with `directory`"))),
    }
}

fn unsupported(place: &str, name: &str, other: &str) -> ToolError {
    let message = format!("{place} has `{name}` of {other}, and this call installs packages of npm");
    let help = match (name, other) {
        ("Cargo.toml", _) => "set `manager` to `cargo`; nothing was changed",
        ("requirements.txt" | "pyproject.toml", _) => "set `manager` to `pip`; nothing was changed",
        _ => {
            "packages are installed with npm, pip and cargo; ask the user to install these; nothing was changed"
        }
    };
    ToolError::new(Code::Capability, message).help(help)
}

/// Refuses what is not the name of a published package with a version. Paths, addresses, repositories and other names for a
/// package are not: what they hold was not published under that name.
///
/// # Errors
/// `EVALIDATION`.
fn check(spec: &str) -> Result<(), ToolError> {
    let at = spec.char_indices().skip(1).find(|(_, letter)| *letter == '@').map(|(at, _)| at);
    let (name, version) = spec.split_at(at.unwrap_or(spec.len()));
    let is_name = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
            // npm takes such a name for a file.
            && ![".tgz", ".tar", ".tar.gz"].iter().any(|ending| name.to_ascii_lowercase().ends_with(ending))
    };
    let is_named = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_name(scope) && is_name(name)),
        None => is_name(name),
    };
    // No letter has a meaning for a shell or begins an option, a path or an address.
    let version = version.strip_prefix('@').unwrap_or(version);
    let is_version = version
        .chars()
        .all(|letter| letter.is_ascii_alphanumeric() || "-_.^~<>=*+ |".contains(letter))
        && ![".tgz", ".tar", ".tar.gz"].iter().any(|ending| version.to_ascii_lowercase().ends_with(ending));
    if is_named && is_version && spec.len() <= MAX_SPEC_BYTES {
        return Ok(());
    }
    Err(ToolError::new(Code::Validation, format!("`{}` is not a package of an index", spec.escape_default()))
        .detail("package", spec)
        .help(
            "name a package as `zod`, `zod@4.1.0` or `@types/node@^24`; paths, addresses, repositories and aliases are not installed",
        ))
}

/// The command line. Without packages it installs what the manifest lists.
fn command(packages: &[String], dev: bool) -> String {
    let mut line = "npm install --ignore-scripts".to_owned();
    if !packages.is_empty() {
        line.push_str(if dev { " --save-dev --" } else { " --" });
        // A checked specification has no quote in it.
        packages.iter().for_each(|package| line.push_str(&format!(" '{package}'")));
    }
    line
}

/// Variables that keep npm from running anything of a package, and tell it where to keep what it downloads.
fn environment() -> Vec<(String, String)> {
    let fixed = [
        ("npm_config_ignore_scripts", "true"),
        ("npm_config_script_shell", "/bin/false"),
        ("npm_config_git", "/bin/false"),
        ("npm_config_audit", "false"),
        ("npm_config_fund", "false"),
        ("npm_config_update_notifier", "false"),
        ("npm_config_progress", "false"),
        // One retry: a host that cannot be reached is reported soon.
        ("npm_config_fetch_retries", "1"),
    ];
    let mut variables: Vec<(String, String)> =
        fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    variables.push(("npm_config_cache".to_owned(), format!("{CACHE_PLACE}/npm")));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_of_an_index_are_specifications() {
        for good in ["zod", "zod@4.1.0", "@types/node@^24", "left-pad@>=1 <2", "lodash.merge"] {
            check(good).unwrap_or_else(|error| panic!("{good}: {}", error.message));
        }
        for bad in [
            "",
            "-g",
            "./evil",
            "../evil.tgz",
            "evil.tgz",
            "evil-1.0.tar.gz",
            "zod@evil.tgz",
            "owner/repository",
            "zod@file:evil",
            "zod@npm:other@1",
            "zod@https://example.org/x.tgz",
            "git+ssh://example.org/x",
            "zod'; rm -rf . #",
            "zod@$(id)",
            "@/x",
            "zod\nleft-pad",
            "pytest-9.9.9-py3-none-any.whl@/x",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
        assert!(check(&"a".repeat(300)).is_err());
    }

    #[test]
    fn a_directory_of_another_manager_is_not_touched() {
        let at =
            |names: &'static [&'static str]| require(&RelativePath::root(), |name| names.contains(&name));
        at(&["package.json"]).unwrap();
        at(&["package.json", "Cargo.toml", "requirements.txt"]).unwrap();
        assert_eq!(at(&["package.json", "yarn.lock"]).unwrap_err().code, Code::Capability);
        assert_eq!(at(&["Cargo.toml"]).unwrap_err().code, Code::Capability);
        assert_eq!(at(&[]).unwrap_err().code, Code::NotFound);
        let inside = RelativePath::new("node_modules/left-pad").unwrap();
        assert_eq!(require(&inside, |_| true).unwrap_err().code, Code::Security);
    }
}
