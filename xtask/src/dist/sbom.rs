//! What a program is made of: the packages of its build, as a CycloneDX document and as their licence texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::tidy::{list, text};

/// The package whose program is distributed.
pub const PACKAGE: &str = "tgp-cli";

/// The files of a package that have its licence, by the beginning of their names.
const LICENCE_FILES: [&str; 5] = ["licen", "copying", "notice", "unlicense", "copyright"];

/// The packages that a program is built from.
pub struct Composition {
    /// Name and version.
    selected: BTreeSet<(String, String)>,
    metadata: Value,
    /// The checksums of the lock file by name and version.
    checksums: BTreeMap<(String, String), String>,
}

impl Composition {
    pub fn read(root: &Path, target: &str) -> Result<Self> {
        // The tree has the features of this program alone; the metadata have those of the whole workspace.
        let tree = ["tree", "--locked", "--package", PACKAGE, "--target", target, "--edges", "normal,build"];
        let tree = cargo(root, &[tree.as_slice(), &["--prefix", "none", "--format", "{p}"]].concat())?;
        let metadata = ["metadata", "--format-version", "1", "--locked", "--filter-platform", target];
        let metadata =
            serde_json::from_str(&cargo(root, &metadata)?).context("cargo metadata is not JSON")?;
        let lock = fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
        Ok(Self { selected: selected(&tree), metadata, checksums: checksums(&lock)? })
    }

    /// The version of the program.
    pub fn version(&self) -> Result<String> {
        let package = self.packages().find(|package| text(package, "name") == PACKAGE);
        Ok(text(package.with_context(|| format!("cargo names no package {PACKAGE}"))?, "version").to_owned())
    }

    fn packages(&self) -> impl Iterator<Item = &Value> {
        let is_selected = |package: &&Value| self.selected.contains(&key(package));
        list(&self.metadata, "packages").iter().filter(is_selected)
    }

    /// A CycloneDX document, without a serial number and a time: the same packages give the same bytes.
    pub fn sbom(&self, target: &str) -> Result<Value> {
        let references: BTreeMap<&str, String> =
            self.packages().map(|package| (text(package, "id"), reference(package))).collect();
        let program = self.packages().find(|package| text(package, "name") == PACKAGE);
        let program = program.with_context(|| format!("cargo names no package {PACKAGE}"))?;
        let mut components: Vec<Value> = self
            .packages()
            .filter(|package| text(package, "name") != PACKAGE)
            .map(|package| self.component(package))
            .collect();
        components.sort_by(|one, other| text(one, "bom-ref").cmp(text(other, "bom-ref")));
        let nodes = self.metadata.get("resolve").map(|resolve| list(resolve, "nodes")).unwrap_or_default();
        let mut dependencies: Vec<Value> = nodes
            .iter()
            .filter_map(|node| {
                let reference = references.get(text(node, "id"))?;
                let mut names: Vec<&String> = list(node, "deps")
                    .iter()
                    .filter(|dependency| !is_for_tests(dependency))
                    .filter_map(|dependency| references.get(text(dependency, "pkg")))
                    .collect();
                names.sort();
                Some(json!({ "ref": reference, "dependsOn": names }))
            })
            .collect();
        dependencies.sort_by(|one, other| text(one, "ref").cmp(text(other, "ref")));
        Ok(json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "application",
                    "bom-ref": reference(program),
                    "name": "tgp",
                    "version": text(program, "version"),
                    "licenses": [{ "expression": text(program, "license") }],
                    "purl": reference(program),
                },
                "properties": [{ "name": "cargo:target", "value": target }],
            },
            "components": components,
            "dependencies": dependencies,
        }))
    }

    fn component(&self, package: &Value) -> Value {
        let mut component = json!({
            "type": "library",
            "bom-ref": reference(package),
            "name": text(package, "name"),
            "version": text(package, "version"),
            "purl": reference(package),
        });
        let licence = text(package, "license").replace('/', " OR ");
        if !licence.is_empty()
            && let Some(fields) = component.as_object_mut()
        {
            fields.insert("licenses".to_owned(), json!([{ "expression": licence }]));
        }
        if let Some(checksum) = self.checksums.get(&key(package))
            && let Some(fields) = component.as_object_mut()
        {
            fields.insert("hashes".to_owned(), json!([{ "alg": "SHA-256", "content": checksum }]));
        }
        component
    }

    /// The licence texts of all packages, each once with the packages that have it.
    pub fn notices(&self, root: &Path) -> String {
        let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut without = BTreeSet::new();
        for package in self.packages().filter(|package| !text(package, "source").is_empty()) {
            let name = format!(
                "{} {} ({})",
                text(package, "name"),
                text(package, "version"),
                text(package, "license")
            );
            let folder = Path::new(text(package, "manifest_path")).parent().unwrap_or(root);
            let found = licence_texts(folder);
            if found.is_empty() {
                without.insert(name.clone());
            }
            for text in found {
                texts.entry(text).or_default().insert(name.clone());
            }
        }
        for file in ["NOTICE", "LICENSE"] {
            if let Ok(text) = fs::read_to_string(root.join("crates/registry/assets").join(file)) {
                texts.entry(text.trim().to_owned()).or_default().insert("the embedding model".to_owned());
            }
        }
        let mut page = "tgp contains these packages.\n".to_owned();
        if !without.is_empty() {
            let names = without.into_iter().collect::<Vec<_>>().join("\n  ");
            page.push_str(&format!("\nTheir archives have no licence text:\n  {names}\n"));
        }
        let rule = "-".repeat(80);
        // By the first package, so that the order does not depend on the texts.
        let mut texts: Vec<(BTreeSet<String>, String)> =
            texts.into_iter().map(|(text, names)| (names, text)).collect();
        texts.sort();
        for (names, text) in texts {
            let names = names.into_iter().collect::<Vec<_>>().join("\n");
            page.push_str(&format!("\n{rule}\n{names}\n{rule}\n\n{text}\n"));
        }
        page
    }
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).args(arguments).current_dir(root).output().context("cannot start cargo")?;
    if !output.status.success() {
        let command = arguments.first().unwrap_or(&"");
        bail!("cargo {command} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packages of `cargo tree`: `name v1.2.3` and further words.
fn selected(tree: &str) -> BTreeSet<(String, String)> {
    let package = |line: &str| {
        let (name, rest) = line.split_once(" v")?;
        Some((name.to_owned(), rest.split(' ').next()?.to_owned()))
    };
    tree.lines().filter_map(package).collect()
}

fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = toml::from_str(lock).context("Cargo.lock is not TOML")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let checksum = |package: &toml::Value| {
        let field = |name: &str| package.get(name).and_then(toml::Value::as_str).map(str::to_owned);
        Some(((field("name")?, field("version")?), field("checksum")?))
    };
    Ok(packages.iter().filter_map(checksum).collect())
}

fn key(package: &Value) -> (String, String) {
    (text(package, "name").to_owned(), text(package, "version").to_owned())
}

/// The package URL, which is also its reference within the document.
fn reference(package: &Value) -> String {
    // A plus sign of build metadata has another meaning in an address.
    format!("pkg:cargo/{}@{}", text(package, "name"), text(package, "version").replace('+', "%2B"))
}

fn is_for_tests(dependency: &Value) -> bool {
    let kinds = list(dependency, "dep_kinds");
    !kinds.is_empty() && kinds.iter().all(|kind| text(kind, "kind") == "dev")
}

fn licence_texts(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut texts: Vec<String> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().to_lowercase();
            LICENCE_FILES.iter().any(|start| name.starts_with(start)) && entry.path().is_file()
        })
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .map(|text| text.replace('\r', "").trim().to_owned())
        .collect();
    texts.sort();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composition() -> Composition {
        let metadata = json!({
            "packages": [
                { "id": "1", "name": "tgp-cli", "version": "1.2.3", "license": "MIT" },
                { "id": "2", "name": "one", "version": "0.1.0+x", "license": "MIT/Apache-2.0", "source": "r" },
                { "id": "3", "name": "for-tests", "version": "9.0.0", "license": "MIT", "source": "r" },
            ],
            "resolve": { "nodes": [
                { "id": "1", "deps": [
                    { "pkg": "2", "dep_kinds": [{ "kind": null }] },
                    { "pkg": "3", "dep_kinds": [{ "kind": "dev" }] },
                ] },
                { "id": "2", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"one\"\nversion = \"0.1.0+x\"\nchecksum = \"abc\"\n";
        Composition {
            selected: selected("tgp-cli v1.2.3 (/work)\none v0.1.0+x\none v0.1.0+x (*)\n"),
            metadata,
            checksums: checksums(lock).unwrap(),
        }
    }

    #[test]
    fn the_document_has_what_is_built() {
        let composition = composition();
        assert_eq!(composition.version().unwrap(), "1.2.3");
        let sbom = composition.sbom("x86_64-unknown-linux-musl").unwrap();
        assert_eq!(sbom.pointer("/metadata/component/purl").unwrap(), "pkg:cargo/tgp-cli@1.2.3");
        let components = json!([{
            "type": "library",
            "bom-ref": "pkg:cargo/one@0.1.0%2Bx",
            "name": "one",
            "version": "0.1.0+x",
            "purl": "pkg:cargo/one@0.1.0%2Bx",
            "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            "hashes": [{ "alg": "SHA-256", "content": "abc" }],
        }]);
        assert_eq!(sbom.get("components"), Some(&components));
        let dependencies = json!([
            { "ref": "pkg:cargo/one@0.1.0%2Bx", "dependsOn": [] },
            { "ref": "pkg:cargo/tgp-cli@1.2.3", "dependsOn": ["pkg:cargo/one@0.1.0%2Bx"] },
        ]);
        assert_eq!(sbom.get("dependencies"), Some(&dependencies));
    }

    #[test]
    fn packages_without_a_licence_text_are_named() {
        let page = composition().notices(Path::new("/nowhere"));
        assert!(page.contains("no licence text:\n  one 0.1.0+x (MIT/Apache-2.0)\n"), "{page}");
    }
}
