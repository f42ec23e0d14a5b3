//! What cargo reports of the manifests of a project: the packages in it, what they depend on, and where the workspace is.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tgp_contract::{Code, RelativePath, ToolError};

use super::lock::DEFAULT_INDEX;
use crate::process::packages::tree::unusable;

/// Longest report that is read.
pub(super) const MAX_BYTES: u64 = 128 << 20;

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    source: Option<String>,
    manifest_path: PathBuf,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    source: Option<String>,
}

impl Metadata {
    /// # Errors
    /// `ERUNTIME` for what is not such a report.
    pub(super) fn parse(text: &[u8]) -> Result<Self, ToolError> {
        serde_json::from_slice(text).map_err(|error| {
            ToolError::new(
                Code::Runtime,
                format!("what cargo reported of the manifests cannot be read: {error}"),
            )
            .help("nothing was installed")
        })
    }

    /// The directory of the workspace, in the project.
    ///
    /// # Errors
    /// `ESECURITY` for one outside of the project.
    pub(super) fn root(&self, project: &Path) -> Result<RelativePath, ToolError> {
        let inside = self.workspace_root.strip_prefix(project).ok().and_then(Path::to_str);
        let inside = inside.and_then(|inside| RelativePath::new(inside).ok());
        inside.ok_or_else(|| outside_root(&self.workspace_root))
    }

    /// Refuses dependencies that are not packages of the default index or of the project, unless `is_known` says that the lock
    /// file has had them before.
    ///
    /// # Errors
    /// `ESECURITY`, with the name of the dependency.
    pub(super) fn check_dependencies(&self, is_known: impl Fn(&str, &str) -> bool) -> Result<(), ToolError> {
        for package in self.packages.iter().filter(|package| package.source.is_none()) {
            for dependency in &package.dependencies {
                let Some(source) = dependency.source.as_deref().filter(|source| *source != DEFAULT_INDEX)
                else {
                    continue;
                };
                if !is_known(&dependency.name, source) {
                    return Err(foreign(&dependency.name, source.starts_with("git+")));
                }
            }
        }
        Ok(())
    }

    /// Refuses a package of files that are not in the project.
    ///
    /// # Errors
    /// `ESECURITY`, with its name.
    pub(super) fn check_places(&self, project: &Path) -> Result<(), ToolError> {
        let is_plain = |path: &Path| !path.components().any(|part| part.as_os_str() == "..");
        let own = self.packages.iter().filter(|package| package.source.is_none());
        for package in own {
            if !package.manifest_path.starts_with(project) || !is_plain(&package.manifest_path) {
                return Err(unusable(
                    Path::new(&package.name),
                    "is a package of files outside of the project",
                ));
            }
        }
        Ok(())
    }

    /// The directory of the default index in a registry, as this cargo names it.
    pub(super) fn index_directory(&self) -> Option<&str> {
        let published = |package: &&Package| package.source.as_deref() == Some(DEFAULT_INDEX);
        let package = self.packages.iter().find(published)?;
        let folder = package.manifest_path.parent()?;
        let is_its = folder.file_name()?.to_str()? == format!("{}-{}", package.name, package.version);
        let name = folder.parent()?.file_name()?.to_str()?;
        (is_its && super::registry::is_index_name(name)).then_some(name)
    }
}

pub(super) fn outside_root(root: &Path) -> ToolError {
    let message = format!("the workspace of the packages is `{}`, outside of the project", root.display());
    ToolError::new(Code::Security, message)
        .detail("path", root.display().to_string())
        .help("nothing was installed; open the whole workspace as the project, or ask the user to install the packages")
}

/// The error for a dependency that is not a package of the default index.
pub(super) fn foreign(name: &str, is_git: bool) -> ToolError {
    let what = if is_git { "comes from a repository of git" } else { "comes from another registry" };
    unusable(Path::new(name), what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(packages: &str, root: &str) -> Metadata {
        Metadata::parse(format!("{{\"packages\": {packages}, \"workspace_root\": \"{root}\"}}").as_bytes())
            .unwrap()
    }

    #[test]
    fn what_is_outside_of_the_project_is_refused_by_its_name() {
        let project = Path::new("/p");
        assert_eq!(metadata("[]", "/p/rust").root(project).unwrap().as_str(), "rust");
        assert!(metadata("[]", "/p").root(project).unwrap().is_root());
        for outside in ["/", "/pq", "/p/../q", "relative"] {
            assert_eq!(metadata("[]", outside).root(project).unwrap_err().code, Code::Security, "{outside}");
        }
        let own = |path: &str| {
            format!(r#"[{{"name": "lib", "version": "1.0.0", "source": null, "manifest_path": "{path}"}}]"#)
        };
        metadata(&own("/p/lib/Cargo.toml"), "/p").check_places(project).unwrap();
        for outside in ["/usr/share/lib/Cargo.toml", "/p/../q/Cargo.toml"] {
            let refused = metadata(&own(outside), "/p").check_places(project).unwrap_err();
            assert!(refused.code == Code::Security && refused.message.contains("`lib`"), "{outside}");
        }
    }

    #[test]
    fn bug_a_git_dependency_was_refused_without_its_name() {
        let with = |source: &str| {
            let dependency = format!(r#"{{"name": "hostile", "source": {source}}}"#);
            metadata(
                &format!(
                    r#"[{{"name": "a", "version": "1.0.0", "source": null, "manifest_path": "/p/Cargo.toml", "dependencies": [{dependency}]}}]"#
                ),
                "/p",
            )
        };
        with("null").check_dependencies(|_, _| false).unwrap();
        with(&format!("\"{DEFAULT_INDEX}\"")).check_dependencies(|_, _| false).unwrap();
        for (source, what) in
            [("\"git+https://example.org/x\"", "git"), ("\"registry+https://example.org/\"", "registry")]
        {
            let refused = with(source).check_dependencies(|_, _| false).unwrap_err();
            assert!(
                refused.message.contains("`hostile`") && refused.message.contains(what),
                "{}",
                refused.message
            );
            with(source).check_dependencies(|_, _| true).unwrap();
        }
    }
}
