//! npm: which packages it is given, how it is run so that nothing of a package is executed, and what its lock file may name.

use serde_json::Value;
use tgp_contract::{Code, RelativePath, ToolError};
use tgp_jail::CACHE_PLACE;

/// The list of packages, and their versions.
pub(super) const MANIFEST: &str = "package.json";
pub(super) const LOCK_FILES: [&str; 2] = ["package-lock.json", "npm-shrinkwrap.json"];
/// Where packages are, below the directory of the manifest.
pub(super) const PACKAGES: &str = "node_modules";
/// What is installed, as npm lists it in the directory of packages.
pub(super) const INSTALLED: &str = ".package-lock.json";

/// Longest specification of one package.
const MAX_SPEC_BYTES: usize = 256;

/// Files of other managers, whose packages are not installed.
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
pub(super) fn require(directory: &RelativePath, has: impl Fn(&str) -> bool) -> Result<(), ToolError> {
    if directory.parts().any(|part| part.eq_ignore_ascii_case(PACKAGES)) {
        return Err(ToolError::new(Code::Security, format!("`{directory}` is inside installed packages"))
            .help("name the directory of the project's own package.json"));
    }
    let place = if directory.is_root() { "the project".to_owned() } else { format!("`{directory}`") };
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
    let message = format!("{place} has `{name}` of {other}, and packages are installed with npm only");
    ToolError::new(Code::Capability, message)
        .help("ask the user to install the packages; nothing was changed")
}

/// Refuses what is not the name of a published package with a version. Paths, addresses, repositories and other names for a
/// package are not: what they hold nobody has published under that name.
///
/// # Errors
/// `EVALIDATION`.
pub(super) fn check(spec: &str) -> Result<(), ToolError> {
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
pub(super) fn command(packages: &[String], dev: bool) -> String {
    let mut line = "npm install --ignore-scripts".to_owned();
    if !packages.is_empty() {
        line.push_str(if dev { " --save-dev --" } else { " --" });
        // A checked specification has no quote in it.
        packages.iter().for_each(|package| line.push_str(&format!(" '{package}'")));
    }
    line
}

/// Variables that keep npm from running anything of a package, and tell it where to keep what it downloads.
pub(super) fn environment() -> Vec<(String, String)> {
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

/// A package of the list whose own manifest has to say the same.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Where it is, below the directory of the project's manifest.
    pub(super) place: String,
    name: String,
    version: String,
}

impl Listed {
    /// Compares it with the manifest that the package has brought.
    ///
    /// # Errors
    /// What differs.
    pub(super) fn check(&self, manifest: &[u8]) -> Result<(), &'static str> {
        let manifest: Value =
            serde_json::from_slice(manifest).map_err(|_| "has a package.json that cannot be read")?;
        let field = |name: &str| manifest.get(name).and_then(Value::as_str).unwrap_or_default();
        // Old packages have versions as people write them.
        let version = field("version").trim().trim_start_matches(['v', '=']).trim_start();
        if field("name") != self.name {
            Err("is another package by its own package.json")
        } else if version != self.version {
            Err("has another version by its own package.json")
        } else {
            Ok(())
        }
    }
}

/// Refuses a list of installed packages in which one is not what an index has published under its name. Returns those whose own
/// manifests have to be compared with it.
///
/// # Errors
/// Why, with the place of the package.
pub(super) fn check_installed(text: &[u8]) -> Result<Vec<Listed>, (String, &'static str)> {
    let list: Value = serde_json::from_slice(text).map_err(|_| (INSTALLED.to_owned(), "cannot be read"))?;
    let packages = list.get("packages").and_then(Value::as_object);
    let is_listed = |place: &str| packages.is_some_and(|packages| packages.contains_key(place));
    let mut listed = Vec::new();
    for (place, package) in packages.into_iter().flatten() {
        let refused = |why| Err((place.clone(), why));
        let field = |name: &str| package.get(name).and_then(Value::as_str);
        if package.get("link").and_then(Value::as_bool) == Some(true) {
            return refused("is a link to files of the project");
        }
        let name = place.rsplit_once("node_modules/").map_or(place.as_str(), |(_, name)| name);
        if field("name").is_some_and(|other| other != name) {
            return refused("is another package under this name");
        }
        let refused_place =
            place.split('/').any(|part| matches!(part, "" | "." | "..")) || place.contains('\\');
        if !place.starts_with("node_modules/") || refused_place {
            return refused("is not in the directory of packages");
        }
        let version = field("version").unwrap_or_default();
        if !is_version(version) {
            return refused("has no version of an index");
        }
        // Parts of a package come with it, inside of it. What the project itself bundles is its own files.
        if package.get("inBundle").and_then(Value::as_bool) == Some(true) {
            match place.rsplit_once("/node_modules/") {
                Some((owner, _)) if is_listed(owner) => continue,
                _ => return refused("is a file of the project, and not a package of an index"),
            }
        }
        listed.push(Listed { place: place.clone(), name: name.to_owned(), version: version.to_owned() });
        if field("integrity").is_none() {
            return refused("has no checksum of an index");
        }
        // Where npm does not note it, the address follows from the name.
        let Some(resolved) = field("resolved") else { continue };
        if !resolved.starts_with("https://") {
            return refused("is not from an index of packages");
        }
        if !is_address_of(resolved, name, version) {
            return refused("comes from the address of another package");
        }
    }
    Ok(listed)
}

/// Whether an address ends as an index names the archive of a package, and has nothing that makes it mean another one.
fn is_address_of(resolved: &str, name: &str, version: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~@/:+".contains(letter);
    let path = resolved.strip_prefix("https://").and_then(|rest| rest.split_once('/')).map(|(_, path)| path);
    // The archive of a version with a build has its name without it.
    let version = version.split('+').next().unwrap_or(version);
    path.is_some_and(|path| {
        path.chars().all(is_plain)
            && !path.split('/').any(|part| matches!(part, "." | ".."))
            && format!("/{path}").ends_with(&format!("/{name}/-/{base}-{version}.tgz"))
    })
}

/// Whether a text is a version such as `1.2.3`, `1.2.3-rc.1` or `1.2.3+build`.
fn is_version(text: &str) -> bool {
    let (version, build) = text.split_once('+').unwrap_or((text, "0"));
    let (numbers, before) = version.split_once('-').unwrap_or((version, "0"));
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && [before, build].iter().all(|part| !part.is_empty() && part.chars().all(is_word))
}

/// The packages of a list, as `name@version`.
pub(super) fn versions(text: &[u8]) -> Vec<String> {
    let list: Value = serde_json::from_slice(text).unwrap_or_default();
    let packages = list.get("packages").and_then(Value::as_object);
    let name = |(place, package): (&String, &Value)| {
        let version = package.get("version").and_then(Value::as_str)?;
        let name = place.rsplit_once("node_modules/").map_or(place.as_str(), |(_, name)| name);
        Some(format!("{name}@{version}"))
    };
    packages.into_iter().flatten().filter_map(name).collect()
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

    #[test]
    fn bug_a_package_of_another_address_was_installed_under_a_name() {
        let list = |package: &str| format!("{{\"packages\": {{\"node_modules/left-pad\": {package}}}}}");
        let good = r#"{"version": "1.3.0", "resolved": "https://index.example/left-pad/-/left-pad-1.3.0.tgz", "integrity": "sha512-x"}"#;
        let listed = check_installed(list(good).as_bytes()).unwrap();
        assert_eq!(listed.len(), 1);
        check_installed(list(r#"{"version": "1.3.0", "integrity": "sha512-x"}"#).as_bytes()).unwrap();
        assert_eq!(versions(list(good).as_bytes()), ["left-pad@1.3.0"]);
        for bad in [
            r#"{"resolved": "https://index.example/is-number/-/is-number-7.0.0.tgz", "integrity": "sha512-x"}"#,
            r#"{"resolved": "https://index.example/left-pad/-/left-pad-1.3.0.tgz"}"#,
            r#"{"resolved": "file:left-pad.tgz", "integrity": "sha512-x"}"#,
            r#"{"name": "evil", "version": "1.0.0", "integrity": "sha512-x"}"#,
            r#"{"resolved": "lib", "link": true}"#,
        ] {
            assert!(check_installed(list(bad).as_bytes()).is_err(), "{bad}");
        }
        assert!(check_installed(b"[").is_err());
    }

    /// Lock files are written by agents: each of these made npm install something else under a name.
    #[test]
    fn bug_a_list_that_names_another_archive_was_believed() {
        let one = |place: &str, package: &str| format!("{{\"packages\": {{\"{place}\": {package}}}}}");
        let at = |resolved: &str| {
            format!(r#"{{"version": "3.0.0", "resolved": "{resolved}", "integrity": "sha512-x"}}"#)
        };
        let good = at("https://index.example/base/vitest/-/vitest-3.0.0.tgz");
        check_installed(one("node_modules/vitest", &good).as_bytes()).unwrap();
        let scoped = at("https://index.example/@own/vitest/-/vitest-3.0.0.tgz");
        check_installed(one("node_modules/@own/vitest", &scoped).as_bytes()).unwrap();
        let inner = r#"{"version": "1.0.0", "inBundle": true}"#;
        let bundled = format!(
            "{{\"packages\": {{\"node_modules/vitest\": {good}, \"node_modules/vitest/node_modules/in\": {inner}}}}}"
        );
        assert_eq!(check_installed(bundled.as_bytes()).unwrap().len(), 1);
        for (place, package) in [
            ("node_modules/vitest", inner.to_owned()),
            ("node_modules/vitest/node_modules/in", inner.to_owned()),
            ("packages/vitest", good.clone()),
            ("node_modules/../vitest", good.clone()),
            ("node_modules/vitest", r#"{"version": "file:fixture.tgz", "integrity": "sha512-x"}"#.to_owned()),
            (
                "node_modules/vitest",
                r#"{"version": "npm:is-number@7.0.0", "integrity": "sha512-x"}"#.to_owned(),
            ),
            (
                "node_modules/vitest",
                at("https://index.example/is-number/-/is-number-7.0.0.tgz?/vitest/-/vitest-3.0.0.tgz"),
            ),
            (
                "node_modules/vitest",
                at("https://index.example/is-number/-/is-number-7.0.0.tgz#/vitest/-/vitest-3.0.0.tgz"),
            ),
            (
                "node_modules/vitest",
                at("https://index.example/vitest/-/../../is-number/-/is-number-7.0.0.tgz"),
            ),
            (
                "node_modules/vitest",
                at("https://index.example/vitest/-/%2e%2e/%2e%2e/is-number/-/is-number-7.0.0.tgz"),
            ),
            (
                "node_modules/vitest",
                at("https://index.example/is-number/-/x/../../../vitest/-/vitest-3.0.0.tgz"),
            ),
            ("node_modules/vitest", at("https://index.example/vitest/-/vitest-7.0.0.tgz")),
        ] {
            assert!(check_installed(one(place, &package).as_bytes()).is_err(), "{place}: {package}");
        }
    }

    #[test]
    fn bug_a_version_of_the_lock_file_was_shown_and_another_one_installed() {
        let listed =
            Listed { place: "node_modules/a".to_owned(), name: "a".to_owned(), version: "7.0.0".to_owned() };
        listed.check(br#"{"name": "a", "version": "7.0.0"}"#).unwrap();
        listed.check(br#"{"name": "a", "version": " v7.0.0"}"#).unwrap();
        for other in
            [r#"{"name": "a", "version": "9.9.9"}"#, r#"{"name": "b", "version": "7.0.0"}"#, "{}", "["]
        {
            assert!(listed.check(other.as_bytes()).is_err(), "{other}");
        }
    }
}
