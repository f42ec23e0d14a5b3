//! The peers, installed with npm into the target directory. What cannot be had is skipped with its reason.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// Newest first. Each release of isolated-vm fits some versions of Node only; the first that loads is used.
const ISOLATED_VM: [&str; 6] = ["7.0.1", "6.2.0", "6.1.2", "6.0.2", "5.0.4", "4.7.2"];
const DENO: &str = "2.9.6";
/// QuickJS as WebAssembly.
pub const QUICKJS_EMSCRIPTEN: &str = "quickjs-emscripten@0.32.0";
/// The runtime that the AI SDK gives a model to write code for.
pub const CODE_MODE: &str = "@ai-sdk/code-mode@1.0.42";

/// A program or package that is there, and how a report names it.
#[derive(Clone, Debug)]
pub struct Installed {
    pub path: PathBuf,
    pub name: String,
}

/// Why a peer is not there, in a few words.
#[derive(Debug)]
pub struct Missing(pub String);

impl Display for Missing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// An installed peer, or why there is none.
pub type SearchOutcome = std::result::Result<Installed, Missing>;

/// How peers are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// A peer that is missing is installed with npm.
    Install,
    /// Only peers that an earlier run has installed.
    FindInstalled,
}

/// The Node of this machine.
pub fn node() -> SearchOutcome {
    let version = answer("node", &["--version"], Path::new("."))
        .ok_or_else(|| Missing("node is not installed".to_owned()))?;
    Ok(Installed { path: "node".into(), name: format!("node {}", version.trim_start_matches('v')) })
}

impl Peers {
    /// The newest isolated-vm that works with the Node of this machine; the path is that of the package.
    pub fn isolated_vm(self, node: &Installed) -> Result<SearchOutcome> {
        let mut reasons = Vec::new();
        for version in ISOLATED_VM {
            match self.isolated_vm_version(node, version)? {
                Ok(installed) => return Ok(Ok(installed)),
                Err(missing) => reasons.push(format!("{version}: {missing}")),
            }
        }
        Ok(Err(Missing(reasons.join("; "))))
    }

    fn isolated_vm_version(self, node: &Installed, version: &str) -> Result<SearchOutcome> {
        let folder = folder(&format!("isolated-vm-{version}"))?;
        let package = folder.join("node_modules/isolated-vm");
        // A compiled addon belongs to one Node; another one has to try again.
        let refusal = folder.join("refused");
        let tried = fs::read_to_string(&refusal).unwrap_or_default();
        if let Some(reason) = tried.strip_prefix(&format!("{}: ", node.name)) {
            return Ok(Err(Missing(reason.to_owned())));
        }
        let loads = || {
            let script = "new (require('isolated-vm').Isolate)().dispose(); console.log('works')";
            package.is_dir()
                && answer("node", &["--no-node-snapshot", "-e", script], &folder).as_deref() == Some("works")
        };
        let found = if loads() {
            Ok(())
        } else {
            // An engine that does not fit is refused at once, instead of after minutes in the C++ compiler.
            let installed = self.install(
                &folder,
                &format!("isolated-vm@{version}"),
                &["--engine-strict"],
                Some("isolated-vm"),
            );
            match installed {
                Ok(()) if loads() => Ok(()),
                Ok(()) => Err(Missing("it does not load".to_owned())),
                Err(missing) => Err(missing),
            }
        };
        if let Err(missing) = &found
            && self == Self::Install
        {
            fs::write(&refusal, format!("{}: {missing}", node.name))?;
        }
        Ok(found.map(|()| Installed { path: package, name: format!("isolated-vm {version}") }))
    }

    /// Deno, as the native binary that its npm package brings: going through the package's script would cost it a Node.
    pub fn deno(self) -> Result<SearchOutcome> {
        let folder = folder(&format!("deno-{DENO}"))?;
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        let binary = folder.join(format!("node_modules/@deno/linux-{architecture}-glibc/deno"));
        let works = || answer(&binary.to_string_lossy(), &["--version"], &folder).is_some();
        if !works()
            && let Err(missing) = self.install(&folder, &format!("deno@{DENO}"), &["--ignore-scripts"], None)
        {
            return Ok(Err(missing));
        }
        if !works() {
            return Ok(Err(Missing("its npm package has no binary for this machine".to_owned())));
        }
        Ok(Ok(Installed { path: binary, name: format!("deno {DENO}") }))
    }

    /// A package of JavaScript, such as `@scope/name@1.0.0`, as npm gives it; none of its scripts run.
    pub fn npm_package(self, package: &str) -> Result<SearchOutcome> {
        let folder = folder(&package.replace(['/', '@'], "-"))?;
        let name = package.rsplit_once('@').map_or(package, |(name, _)| name);
        let path = folder.join("node_modules").join(name);
        if !path.join("package.json").is_file()
            && let Err(missing) = self.install(&folder, package, &["--ignore-scripts"], None)
        {
            return Ok(Err(missing));
        }
        Ok(Ok(Installed { path, name: package.to_owned() }))
    }

    /// The sources of a package of PyPI (`name==version`), as it was published.
    pub fn pypi_sources(self, package: &str) -> Result<SearchOutcome> {
        let folder = folder(&package.replace("==", "-"))?;
        let sources = folder.join("sources");
        if !sources.is_dir() {
            let options = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", "archive"];
            let arguments = [&options[..], &[package]].concat();
            if let Err(missing) = self.fetch(&folder, "pip", &arguments) {
                return Ok(Err(missing));
            }
            let archive = fs::read_dir(folder.join("archive"))?.flatten().next();
            let Some(archive) = archive.map(|entry| entry.path()) else {
                return Ok(Err(Missing("pip has left no archive".to_owned())));
            };
            let new = folder.join("new");
            fs::create_dir_all(&new)?;
            let archive = archive.to_string_lossy().into_owned();
            if let Err(missing) = self.fetch(&new, "tar", &["xf", &archive, "--strip-components=1"]) {
                return Ok(Err(missing));
            }
            fs::rename(new, &sources)?;
        }
        Ok(Ok(Installed { path: sources, name: package.to_owned() }))
    }

    /// The sources of a crate (`name@version`) and of all that it depends on.
    pub fn crate_sources(self, package: &str) -> Result<SearchOutcome> {
        let folder = folder(&package.replace('@', "-"))?;
        let sources = folder.join("vendor");
        if !sources.is_dir() {
            let (name, version) = package.rsplit_once('@').unwrap_or((package, "*"));
            let manifest = format!(
                "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
                 [dependencies]\n{name} = \"={version}\"\n"
            );
            fs::create_dir_all(folder.join("src"))?;
            fs::write(folder.join("src/lib.rs"), "")?;
            fs::write(folder.join("Cargo.toml"), manifest)?;
            if let Err(missing) = self.fetch(&folder, "cargo", &["vendor", "--quiet", "new"]) {
                return Ok(Err(missing));
            }
            fs::rename(folder.join("new"), &sources)?;
        }
        Ok(Ok(Installed { path: sources, name: package.to_owned() }))
    }

    /// Runs a program that brings a package.
    fn fetch(self, folder: &Path, program: &str, arguments: &[&str]) -> std::result::Result<(), Missing> {
        if self == Self::FindInstalled {
            return Err(Missing("not installed".to_owned()));
        }
        eprintln!("bench: {program} {}", arguments.join(" "));
        let output = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Missing(format!("{program} cannot be started: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let reason = String::from_utf8_lossy(&output.stderr);
        let reason = reason.lines().last().unwrap_or_default();
        Err(Missing(format!("{program} has failed: {reason}")))
    }

    /// Installs a package into a folder of its own. `scripted` is the package whose install scripts may run.
    fn install(
        self,
        folder: &Path,
        package: &str,
        options: &[&str],
        scripted: Option<&str>,
    ) -> std::result::Result<(), Missing> {
        if self == Self::FindInstalled {
            return Err(Missing("not installed".to_owned()));
        }
        eprintln!("bench: npm install {package}");
        let missing = |error: std::io::Error| Missing(error.to_string());
        fs::write(folder.join("package.json"), manifest(scripted)).map_err(missing)?;
        let output = Command::new("npm")
            .args(["install", "--no-save", "--no-package-lock", "--no-audit", "--no-fund"])
            .args(options)
            .arg(package)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Missing(format!("npm cannot be started: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let log = folder.join("npm.log");
        fs::write(&log, &output.stderr).map_err(missing)?;
        let unfit = String::from_utf8_lossy(&output.stderr).contains("EBADENGINE");
        Err(Missing(if unfit {
            "is for another node".to_owned()
        } else {
            format!("npm could not install it, see {}", log.display())
        }))
    }
}

/// The manifest of the folder that a package is installed into. npm 11.19 runs only install scripts that the manifest
/// allows, and refuses its option for that in a project; older versions ignore the field.
fn manifest(scripted: Option<&str>) -> String {
    let allowed = scripted.map(|name| (name.to_owned(), true.into())).into_iter().collect();
    let allowed = serde_json::Value::Object(allowed);
    format!("{}\n", serde_json::json!({ "private": true, "allowScripts": allowed }))
}

/// A separate place for each version, beside the build that is measured.
fn folder(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe().context("this program's own path is not known")?;
    let target = program.ancestors().nth(2).context("this program is not in a target directory")?;
    let folder = target.join("tgp-bench-peers").join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// What a program prints, when it succeeds.
fn answer(program: &str, arguments: &[&str], directory: &Path) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::manifest;

    #[test]
    fn only_the_named_package_may_run_its_scripts() {
        // The order of the fields is not the same in every build.
        let fields = |scripted| serde_json::from_str::<serde_json::Value>(&manifest(scripted)).unwrap();
        assert_eq!(fields(None), serde_json::json!({ "private": true, "allowScripts": {} }));
        let allowed = serde_json::json!({ "isolated-vm": true });
        assert_eq!(fields(Some("isolated-vm")).get("allowScripts"), Some(&allowed));
    }
}
