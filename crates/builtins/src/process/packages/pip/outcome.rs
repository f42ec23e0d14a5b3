//! What pip has downloaded becomes an environment and a manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tgp_contract::{Code, ToolError};
use tgp_fs::open_plain;
use tgp_jail::{Before, LayerChange, LayerChangeKind};
use tgp_wheels::{
    EnvironmentChange, InstallOptions, Installation as Unpacked, Interpreter, Name, Requirement, Version,
    Wheel,
};

use super::super::Plan;
use super::super::managers::{Installation, Site};
use super::super::tree::{PackageTree, unusable};
use super::errors::{of_installation, of_wheel};
use super::interpreter::read_report;
use super::manifests::{ChangedManifest, Manifests};
use super::{PACKAGES, WHEELS, asked, deadline, environment};
use crate::process::installed::Installed;

/// The list of packages in an environment.
const LIST: &str = "packages.txt";

/// Wheels of one installation. All of them are open together.
const MAX_WHEELS: usize = 500;

/// Files of all of them together: each is known by its path and its checksum as long as they are open.
const MAX_FILES: usize = 200_000;

/// Reads what a run has left. pip has changed nothing in the project.
pub(super) fn read(plan: &Plan, site: &Site, found: &[LayerChange]) -> Result<Installation, ToolError> {
    if let Some(change) = found.first() {
        return Err(unusable(&change.path, "was changed by pip, which only downloads"));
    }
    let stop = deadline();
    let manifests = Manifests::read(plan, &site.files)?;
    let asked = manifests.with_extras(asked(plan)?)?;
    let wanted = manifests.wanted(&asked, plan.dev)?;
    let interpreter = read_report(site)?;
    require_python(&manifests, &interpreter)?;
    let wheels = wheels(site, &stop)?;
    check_wheels(&wheels, &manifests, &wanted, &interpreter)?;
    let versions: BTreeMap<Name, Version> =
        wheels.iter().map(|wheel| (wheel.name().clone(), wheel.version().clone())).collect();
    let environment = environment(site, &plan.directory, &stop)?;
    let staging = site.workshop.join("unpacked");
    fs::create_dir(&staging).map_err(|error| unwritable(&error))?;
    let project = &site.options().project;
    let location = project.join(plan.directory.as_str()).join(PACKAGES);
    let requested: BTreeSet<Name> = wanted.iter().map(|one| one.name().clone()).collect();
    let imports = manifests.imports(project);
    let options = InstallOptions {
        interpreter: &interpreter,
        location: &location,
        staging: &staging,
        requested: &requested,
        project: imports.as_deref(),
        stop: &stop,
    };
    let unpacked =
        Unpacked::of(environment.as_ref(), wheels, &options).map_err(|error| of_installation(&error))?;
    let target = manifests.target(plan.dev);
    let mut installation = Installation {
        manifests: Vec::new(),
        tree: None,
        registry: None,
        lists: None,
        installed: Vec::new(),
    };
    if let Some(changed) = manifests.add(&asked, plan.dev, &versions)? {
        installation.manifests.push(manifest_change(plan, site, &changed)?);
    }
    let place = Path::new(plan.directory.as_str()).join(PACKAGES);
    let changes = unpacked.changes.into_iter().map(|change| tree_change(&place, change)).collect();
    installation.tree = PackageTree::new(&plan.directory, PACKAGES, changes);
    if installation.tree.is_some() {
        installation.installed = unpacked.installed;
        installation.lists = Some(Installed {
            manifest: plan.directory.join(target)?,
            list: plan.directory.join(PACKAGES)?.join(LIST)?,
            before: unpacked.before.map(String::into_bytes),
            after: Some(unpacked.after.into_bytes()),
        });
    }
    Ok(installation)
}

fn unwritable(error: &std::io::Error) -> ToolError {
    ToolError::new(Code::Internal, format!("the packages cannot be unpacked: {error}"))
        .help("nothing was installed; see that the disk is not full")
}

/// The driver has looked at it before anything was downloaded; what it found is not believed.
fn require_python(manifests: &Manifests, interpreter: &Interpreter) -> Result<(), ToolError> {
    match manifests.requires_python() {
        Some(wanted) if !wanted.contains(&interpreter.version) => {
            let Interpreter { version, program } = interpreter;
            let message =
                format!("the project needs Python {wanted}, and {} is {version}", program.display());
            Err(ToolError::new(Code::Capability, message)
                .help("nothing was installed; ask the user for another version of Python"))
        }
        _ => Ok(()),
    }
}

/// The wheels of the download directory. A process of the jail has written it, and is gone.
fn wheels(site: &Site, stop: &dyn Fn() -> bool) -> Result<Vec<Wheel>, ToolError> {
    let directory = site.downloads.join(WHEELS);
    let unreadable = |error: std::io::Error| {
        ToolError::new(Code::Runtime, format!("what pip has downloaded cannot be read: {error}"))
            .help("nothing was installed")
    };
    if !directory.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(unusable(Path::new(WHEELS), "was replaced in the download directory"));
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let name = name.into_string().map_err(|name| unusable(Path::new(&name), "has an unusable name"))?;
        names.push(name);
        if names.len() > MAX_WHEELS {
            return Err(ToolError::new(
                Code::Runtime,
                format!("pip downloaded more than {MAX_WHEELS} packages"),
            )
            .detail("limit", MAX_WHEELS)
            .help("nothing was installed; install fewer packages"));
        }
    }
    names.sort();
    let (mut wheels, mut files) = (Vec::with_capacity(names.len()), 0);
    for name in &names {
        let path = directory.join(name);
        let file = open_plain(&path).map_err(|_| unusable(Path::new(name), "is not a plain file"))?;
        let wheel = Wheel::open(file, name, stop).map_err(|error| of_wheel(name, &error))?;
        files += wheel.file_count();
        if files > MAX_FILES {
            return Err(ToolError::new(
                Code::Runtime,
                format!("the packages have more than {MAX_FILES} files"),
            )
            .detail("limit", MAX_FILES)
            .help("nothing was installed; install fewer packages"));
        }
        wheels.push(wheel);
    }
    Ok(wheels)
}

/// Every requirement has its package, in a version that it allows, and no package has the project's own name.
fn check_wheels(
    wheels: &[Wheel],
    manifests: &Manifests,
    wanted: &[Requirement],
    interpreter: &Interpreter,
) -> Result<(), ToolError> {
    let refused = |wheel: &Wheel, why: &str| {
        ToolError::new(Code::Security, format!("`{}` {why}", wheel.file_name()))
            .detail("file", wheel.file_name())
            .help("nothing was installed")
    };
    for wheel in wheels {
        if Some(wheel.name()) == manifests.own_name() {
            return Err(refused(wheel, "has the name of this project, which would be replaced by it"));
        }
        if wheel.requires_python().is_some_and(|wanted| !wanted.contains(&interpreter.version)) {
            return Err(refused(wheel, &format!("does not run on Python {}", interpreter.version)));
        }
    }
    if let Some(wheel) = unwanted(wheels, wanted) {
        return Err(refused(wheel, "is a package that no other one depends on by its name"));
    }
    for one in wanted.iter().filter(|one| !one.has_marker()) {
        match wheels.iter().find(|wheel| wheel.name() == one.name()) {
            None => {
                return Err(ToolError::new(Code::Runtime, format!("pip did not download `{one}`"))
                    .help("nothing was installed"));
            }
            Some(wheel) if !one.versions().contains(wheel.version()) => {
                return Err(refused(wheel, &format!("is not a version of `{one}`")));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// A wheel that follows from no requirement: pip was led to it by something else than the packages say.
fn unwanted<'w>(wheels: &'w [Wheel], wanted: &[Requirement]) -> Option<&'w Wheel> {
    let mut reached: BTreeSet<Name> = BTreeSet::new();
    let mut open: Vec<Name> = wanted.iter().map(|one| one.name().clone()).collect();
    while let Some(name) = open.pop() {
        if reached.insert(name.clone())
            && let Some(wheel) = wheels.iter().find(|wheel| *wheel.name() == name)
        {
            open.extend(wheel.dependencies());
        }
    }
    wheels.iter().find(|wheel| !reached.contains(wheel.name()))
}

fn manifest_change(plan: &Plan, site: &Site, changed: &ChangedManifest) -> Result<LayerChange, ToolError> {
    let content = site.workshop.join("manifest");
    fs::write(&content, &changed.text).map_err(|error| unwritable(&error))?;
    let kind = LayerChangeKind::Write { content, bytes: changed.text.len() as u64, executable: false };
    let path = Path::new(plan.directory.as_str()).join(changed.name);
    let before = if changed.is_new { Before::Nothing } else { Before::File };
    Ok(LayerChange { path, kind, before })
}

/// What was there is not looked at: the tree is a copy of the one that the changes were made for.
fn tree_change(place: &Path, change: EnvironmentChange) -> LayerChange {
    let (path, kind): (String, _) = match change {
        EnvironmentChange::Remove { path } => (path, LayerChangeKind::Remove),
        EnvironmentChange::RemoveDirectory { path } => (path, LayerChangeKind::RemoveDirectory),
        EnvironmentChange::MakeDirectory { path } => (path, LayerChangeKind::MakeDirectory),
        EnvironmentChange::Write { path, content, bytes, executable } => {
            (path, LayerChangeKind::Write { content, bytes, executable })
        }
        EnvironmentChange::Link { path, target } => (path, LayerChangeKind::Link { target }),
    };
    LayerChange { path: place.join(PathBuf::from(path)), kind, before: Before::Nothing }
}
