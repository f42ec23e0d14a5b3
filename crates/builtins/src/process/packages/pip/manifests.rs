//! What a project depends on: `pyproject.toml` with `[project]`, or lists of requirements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tgp_contract::{Code, EntryKind, RelativePath, ToolError};
use tgp_router::files::ProjectFiles;
use tgp_wheels::{
    DependencyList, ManifestError, Name, PyProject, Requirement, RequirementsFile, Version, VersionSpecifiers,
};

use super::super::Plan;
use super::super::managers::{has_file, kind};
use super::errors::of_manifest;

const PROJECT: &str = "pyproject.toml";
const LIST: &str = "requirements.txt";
const DEV_LIST: &str = "requirements-dev.txt";

/// The manifests that are read and changed.
pub(super) const FILES: [&str; 3] = [PROJECT, LIST, DEV_LIST];

/// Groups of `[dependency-groups]` whose packages are installed: what tests need is there when tests run.
const GROUPS: [&str; 3] = [DEV_GROUP, "test", "tests"];
/// The one that packages for development are added to.
const DEV_GROUP: &str = "dev";

/// Lists that take in each other.
const MAX_LISTS: usize = 16;
/// Bytes of one manifest.
const MAX_BYTES: u64 = 1 << 20;

/// The manifests of a directory.
pub(super) struct Manifests {
    directory: RelativePath,
    content: Content,
    /// A directory of the project that its environment imports from, relative to the project.
    imports: Option<RelativePath>,
}

enum Content {
    Project(Box<PyProject>),
    /// By their names.
    Lists(BTreeMap<String, RequirementsFile>),
}

/// A manifest that an installation changes.
pub(super) struct ChangedManifest {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) is_new: bool,
}

impl Manifests {
    pub(super) fn read(plan: &Plan, files: &ProjectFiles) -> Result<Self, ToolError> {
        let directory = plan.directory.clone();
        if has_file(&directory, PROJECT, files) {
            let project = PyProject::parse(&text(&directory, PROJECT, files)?)
                .map_err(|error| of_manifest(&directory, PROJECT, &error))?;
            if project.has_project() {
                let source = directory.join("src")?;
                let has_source = kind(&directory, "src", files) == Some(EntryKind::Directory);
                let imports = Some(if has_source { source } else { directory.clone() });
                return Ok(Self { directory, content: Content::Project(Box::new(project)), imports });
            }
        }
        let mut lists = BTreeMap::new();
        let mut waiting: Vec<String> = [LIST, DEV_LIST]
            .iter()
            .filter(|name| has_file(&directory, name, files))
            .map(|name| (*name).to_owned())
            .collect();
        while let Some(name) = waiting.pop() {
            if lists.contains_key(&name) {
                continue;
            }
            let list = RequirementsFile::parse(&text(&directory, &name, files)?)
                .map_err(|error| of_manifest(&directory, &name, &error))?;
            waiting.extend(list.includes().iter().cloned());
            lists.insert(name, list);
            if lists.len() > MAX_LISTS {
                return Err(ToolError::new(
                    Code::Validation,
                    format!("more than {MAX_LISTS} lists of requirements"),
                )
                .help("nothing was installed; put the requirements in fewer files"));
            }
        }
        Ok(Self { directory, content: Content::Lists(lists), imports: None })
    }

    /// Refuses the project itself as a package: an index may have another one under its name.
    pub(super) fn refuse_own(&self, asked: &[Requirement]) -> Result<(), ToolError> {
        match asked.iter().find(|one| Some(one.name()) == self.own_name()) {
            None => Ok(()),
            Some(one) => {
                Err(ToolError::new(Code::Validation, format!("`{}` is this project itself", one.name()))
                    .detail("package", one.to_string())
                    .help("the project can be imported in its environment; leave it out"))
            }
        }
    }

    pub(super) fn own_name(&self) -> Option<&Name> {
        match &self.content {
            Content::Project(project) => project.name(),
            Content::Lists(_) => None,
        }
    }

    pub(super) fn requires_python(&self) -> Option<&VersionSpecifiers> {
        match &self.content {
            Content::Project(project) => project.requires_python(),
            Content::Lists(_) => None,
        }
    }

    /// Where the environment imports the project's own sources from.
    pub(super) fn imports(&self, project: &std::path::Path) -> Option<PathBuf> {
        self.imports
            .as_ref()
            .map(|path| if path.is_root() { project.to_owned() } else { project.join(path.as_str()) })
    }

    /// What the manifests list, each list by its name: a group, or a file. The dependencies of a project have none.
    fn lists(&self) -> Result<Vec<(&str, Vec<Requirement>)>, ToolError> {
        let of_project = |project: &PyProject| {
            let mut lists = vec![("", project.dependencies()?)];
            for group in GROUPS {
                lists.push((group, project.group(group)?.unwrap_or_default()));
            }
            Ok::<_, ManifestError>(lists)
        };
        match &self.content {
            Content::Project(project) => {
                of_project(project).map_err(|error| of_manifest(&self.directory, PROJECT, &error))
            }
            Content::Lists(lists) => {
                let all = lists.iter();
                Ok(all.map(|(name, list)| (name.as_str(), list.requirements().cloned().collect())).collect())
            }
        }
    }

    /// What all of them list.
    fn listed(&self) -> Result<Vec<Requirement>, ToolError> {
        Ok(self.lists()?.into_iter().flat_map(|(_, list)| list).collect())
    }

    /// The name of the list that packages are added to.
    fn target_list(&self, dev: bool) -> &'static str {
        match (&self.content, dev) {
            (Content::Project(_), true) => DEV_GROUP,
            (Content::Project(_), false) => "",
            (Content::Lists(_), _) => self.target(dev),
        }
    }

    /// What is asked for, with the extras that the manifest lists of it: another version is not another choice of extras.
    pub(super) fn with_extras(&self, asked: Vec<Requirement>) -> Result<Vec<Requirement>, ToolError> {
        let listed = self.listed()?;
        let with = |one: Requirement| {
            if one.versions().is_empty() || !one.extras().is_empty() {
                return one;
            }
            let same = listed.iter().find(|listed| listed.name() == one.name());
            match same {
                Some(same) => one.with_extras(same.extras().to_vec()),
                None => one,
            }
        };
        Ok(asked.into_iter().map(with).collect())
    }

    /// What is resolved: what is asked for, and what the manifests list. What is asked for in another version takes the place of
    /// what its own list has, and of nothing else: another list still wants what it says.
    pub(super) fn wanted(&self, asked: &[Requirement], dev: bool) -> Result<Vec<Requirement>, ToolError> {
        let replaced = |name: &Name| asked.iter().any(|one| one.name() == name && !one.versions().is_empty());
        let target = self.target_list(dev);
        let mut wanted = Vec::new();
        for (name, list) in self.lists()? {
            wanted.extend(list.into_iter().filter(|one| name != target || !replaced(one.name())));
        }
        wanted.extend(asked.iter().cloned());
        Ok(wanted)
    }

    /// The file that a package is added to.
    pub(super) fn target(&self, dev: bool) -> &'static str {
        match (&self.content, dev) {
            (Content::Project(_), _) => PROJECT,
            (Content::Lists(_), false) => LIST,
            (Content::Lists(_), true) => DEV_LIST,
        }
    }

    /// Adds packages to the manifest, with the versions that were found as the lowest ones. What is listed and asked for without
    /// a version stays as it is.
    pub(super) fn add(
        mut self,
        asked: &[Requirement],
        dev: bool,
        versions: &BTreeMap<Name, Version>,
    ) -> Result<Option<ChangedManifest>, ToolError> {
        let name = self.target(dev);
        let directory = self.directory.clone();
        let of = |error: ManifestError| of_manifest(&directory, name, &error);
        let lowest = |one: &Requirement| match versions.get(one.name()) {
            Some(version) => one.clone().at_least(version.clone()),
            None => one.clone(),
        };
        let is_plain = |one: &Requirement| one.versions().is_empty() && one.extras().is_empty();
        let (before, text, is_new) = match &mut self.content {
            Content::Project(project) => {
                let list = if dev { DependencyList::Group(DEV_GROUP) } else { DependencyList::Project };
                let before = project.text();
                for one in asked {
                    if !is_plain(one) || !project.lists(list, one.name()).map_err(of)? {
                        project.set(list, &lowest(one)).map_err(of)?;
                    }
                }
                (before, project.text(), false)
            }
            Content::Lists(lists) => {
                let is_new = !lists.contains_key(name);
                let mut list = match lists.remove(name) {
                    Some(list) => list,
                    None => RequirementsFile::parse("").map_err(of)?,
                };
                let before = list.text();
                for one in asked {
                    if !is_plain(one) || !list.lists(one.name()) {
                        list.set(&lowest(one)).map_err(of)?;
                    }
                }
                (before, list.text(), is_new)
            }
        };
        Ok((before != text).then_some(ChangedManifest { name, text, is_new }))
    }
}

fn text(directory: &RelativePath, name: &str, files: &ProjectFiles) -> Result<String, ToolError> {
    let path = directory.join(name)?;
    let refused = |why: &str| {
        ToolError::new(Code::Validation, format!("`{path}` {why}"))
            .detail("path", path.as_str())
            .help("nothing was installed")
    };
    match files.entry(&path)? {
        Some(entry) if entry.kind == EntryKind::File && entry.size <= MAX_BYTES => {}
        Some(_) => return Err(refused("is too large, or not a plain file")),
        None => return Err(refused("is not there, and a list of requirements takes it in")),
    }
    String::from_utf8(files.read(&path)?).map_err(|_| refused("is not UTF-8 text"))
}
