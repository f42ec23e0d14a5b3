//! npm's list of installed packages: what it may name, and whether the packages say the same.

use serde_json::Value;

use super::INSTALLED;

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
