//! The clients in `sdk/`, as the packages have them: the files of Python as they are, those of Node compiled.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::archive::PackageFile;
use super::platform::hex;
use crate::{fixtures, setup};

/// What the compiler of the client for Node needs, of the development dependencies in its manifest.
const COMPILER: [&str; 2] = ["typescript", "@types/node"];

/// The clients of a release.
pub struct Clients {
    /// The package `tgp` of Python, by the paths of the wheel.
    pub python: Vec<PackageFile>,
    /// The npm package `@tgp/core`.
    pub node: Vec<PackageFile>,
}

impl Clients {
    pub fn read(root: &Path, version: &str) -> Result<Self> {
        Ok(Self { python: python(root)?, node: node(root, version)? })
    }
}

/// The modules of the client for Python, and the mark that they have types.
pub fn python(root: &Path) -> Result<Vec<PackageFile>> {
    let folder = root.join("sdk/python/src/tgp");
    let is_module =
        |name: &str| name == "py.typed" || Path::new(name).extension().is_some_and(|end| end == "py");
    let files = files_below(&folder, &|name| name != "__pycache__", &is_module)?;
    Ok(files.into_iter().map(|file| file.below("tgp")).collect())
}

/// The npm package of the client for Node. It is compiled once for the same sources, in the target folder.
fn node(root: &Path, version: &str) -> Result<Vec<PackageFile>> {
    let source = root.join("sdk/node");
    let read = |name: &str| {
        let path = source.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let manifest = read("package.json")?;
    let mut files = vec![
        PackageFile::text("package.json", node_manifest(&manifest, version)?),
        PackageFile::text("README.md", read("README.md")?),
        PackageFile::text("LICENSE", read("LICENSE")?),
    ];
    let compiled = compile(&source, &manifest, &fixtures::target(root).join("tgp-sdk-node"))?;
    files.extend(files_below(&compiled, &|_| true, &|_| true)?.into_iter().map(|file| file.below("dist")));
    Ok(files)
}

/// The manifest that users get: what is for developers of the client is not in it.
pub fn node_manifest(source: &str, version: &str) -> Result<String> {
    let mut manifest: Value = serde_json::from_str(source).context("invalid package.json of @tgp/core")?;
    // The client has the number in its code as well, and compares itself with the program.
    if manifest.get("version") != Some(&json!(version)) {
        bail!("@tgp/core has another version than the program: set {version} in sdk/node");
    }
    let fields = manifest.as_object_mut().context("invalid package.json of @tgp/core: expected an object")?;
    for name in ["scripts", "devDependencies"] {
        fields.shift_remove(name);
    }
    fields.insert("dependencies".to_owned(), json!({ "tgp": version }));
    Ok(format!("{manifest:#}\n"))
}

/// Compiles the client, and gives the folder with the result.
fn compile(source: &Path, manifest: &str, work: &Path) -> Result<PathBuf> {
    let (output, stamp) = (work.join("dist"), work.join("compiled"));
    let key = source_hash(source)?;
    if fs::read_to_string(&stamp).is_ok_and(|compiled| compiled == key) {
        return Ok(output);
    }
    let manifest: Value = serde_json::from_str(manifest).context("invalid package.json of @tgp/core")?;
    let mut versions = Map::new();
    for name in COMPILER {
        let version = manifest.get("devDependencies").and_then(|all| all.get(name));
        let version =
            version.with_context(|| format!("{name} is not a development dependency of @tgp/core"))?;
        versions.insert(name.to_owned(), version.clone());
    }
    let wanted = json!({ "private": true, "dependencies": versions });
    install_compiler(work, &format!("{wanted:#}\n"))?;
    for old in [&stamp, &output] {
        remove(old)?;
    }
    println!("xtask: compiling @tgp/core");
    let mut compiler = Command::new(work.join("node_modules/.bin/tsc"));
    compiler.arg("--project").arg(source).arg("--outDir").arg(&output);
    compiler.arg("--typeRoots").arg(work.join("node_modules/@types"));
    finish(&mut compiler, "tsc")?;
    fs::write(&stamp, key).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(output)
}

/// Only the compiler: all development dependencies together have more than 600 MB.
fn install_compiler(work: &Path, manifest: &str) -> Result<()> {
    let path = work.join("package.json");
    let is_wanted = fs::read_to_string(&path).is_ok_and(|present| present == manifest);
    if is_wanted && work.join("node_modules/.bin/tsc").exists() {
        return Ok(());
    }
    let npm =
        setup::program(&["npm"]).context("npm is not installed: it installs the compiler of @tgp/core")?;
    fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
    fs::write(&path, manifest).with_context(|| format!("cannot write {}", path.display()))?;
    let mut install = Command::new(npm);
    install.args(["install", "--prefer-offline", "--no-audit", "--no-fund", "--no-update-notifier"]);
    finish(install.current_dir(work), "npm install")
}

fn finish(command: &mut Command, name: &str) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let (text, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("@tgp/core cannot be compiled: {name} failed: {}\n{}", text.trim(), errors.trim());
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The hash of everything that the result depends on.
fn source_hash(source: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    let mut files = files_below(&source.join("src"), &|_| true, &|_| true)?;
    for name in ["package.json", "tsconfig.json"] {
        let data = fs::read(source.join(name)).with_context(|| format!("cannot read sdk/node/{name}"))?;
        files.push(PackageFile { path: format!("../{name}"), data: data.into(), is_program: false });
    }
    for file in &files {
        hash.update(format!("{} {}\n", file.path, file.data.len()));
        hash.update(&file.data);
    }
    Ok(hex(&hash.finalize()))
}

/// The files below a folder, by their paths in it, in the order of their paths.
fn files_below(
    folder: &Path,
    is_wanted_folder: &dyn Fn(&str) -> bool,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<PackageFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type()?;
        if kind.is_dir() && is_wanted_folder(&name) {
            let below = files_below(&path, is_wanted_folder, is_wanted)?;
            files.extend(below.into_iter().map(|file| file.below(&name)));
        } else if kind.is_file() && is_wanted(&name) {
            let data = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push(PackageFile { path: name, data: data.into(), is_program: false });
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(files: &[PackageFile]) -> Vec<&str> {
        files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn the_client_for_python_is_its_modules() {
        let root = tempfile::tempdir().unwrap();
        let package = root.path().join("sdk/python/src/tgp");
        for folder in ["sql/__pycache__", "__pycache__"] {
            fs::create_dir_all(package.join(folder)).unwrap();
        }
        for name in ["__init__.py", "py.typed", "notes.txt", "sql/_values.py", "sql/__pycache__/_values.py"] {
            fs::write(package.join(name), name).unwrap();
        }
        let files = python(root.path()).unwrap();
        assert_eq!(paths(&files), ["tgp/__init__.py", "tgp/py.typed", "tgp/sql/_values.py"]);
    }

    #[test]
    fn the_manifest_of_node_needs_the_program_of_its_version_and_nothing_else() {
        let source = r#"{ "name": "@tgp/core", "version": "1.2.3", "scripts": { "prepack": "tsc" },
            "exports": { ".": { "types": "./a.d.ts", "default": "./a.js" } },
            "dependencies": { "tgp": "1.0.0" }, "devDependencies": { "typescript": "7.0.2" } }"#;
        let manifest = node_manifest(source, "1.2.3").unwrap();
        let fields: Value = serde_json::from_str(&manifest).unwrap();
        assert_eq!(fields["dependencies"], json!({ "tgp": "1.2.3" }));
        let names: Vec<&String> = fields.as_object().unwrap().keys().collect();
        assert_eq!(names, ["name", "version", "exports", "dependencies"]);
        // Node takes the first condition that fits.
        assert!(manifest.find("\"types\"").unwrap() < manifest.find("\"default\"").unwrap());
        let error = node_manifest(source, "1.2.4").unwrap_err().to_string();
        assert_eq!(error, "@tgp/core has another version than the program: set 1.2.4 in sdk/node");
    }

    #[test]
    fn a_client_that_was_compiled_from_the_same_sources_is_not_compiled_again() {
        let (source, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(source.path().join("src")).unwrap();
        for name in ["package.json", "tsconfig.json", "src/index.ts"] {
            fs::write(source.path().join(name), "{}").unwrap();
        }
        let key = source_hash(source.path()).unwrap();
        fs::write(work.path().join("compiled"), &key).unwrap();
        assert_eq!(compile(source.path(), "{}", work.path()).unwrap(), work.path().join("dist"));
        fs::write(source.path().join("src/index.ts"), "{ }").unwrap();
        assert_ne!(source_hash(source.path()).unwrap(), key);
    }
}
