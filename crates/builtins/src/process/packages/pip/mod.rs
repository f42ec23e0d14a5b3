//! pip: wheels of an index, downloaded in the jail and unpacked by the kernel.
//!
//! pip resolves and downloads from a directory of its own, with requirements that the kernel has written from parsed parts, and
//! cannot start a program ([`DRIVER`]). What it has downloaded is data: the kernel opens, checks and unpacks it, makes the new
//! `.venv`, and changes the manifest itself.

mod errors;
mod interpreter;
mod manifests;
mod outcome;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tgp_contract::{Code, EntryKind, RelativePath, ToolError, background};
use tgp_fs::Directory;
use tgp_jail::{CACHE_PLACE, LayerChange};
use tgp_router::Invocation;
use tgp_router::files::ProjectFiles;
use tgp_wheels::{Environment, Name, Requirement};

use self::interpreter::Python;
use self::manifests::Manifests;
use super::Plan;
use super::managers::{Installation, PackageManager, Run, Site, kind, shown};
use super::tree::open_project;
use crate::process::shell_exec::CommandOutput;

/// Where packages are, below the directory of the manifest.
const PACKAGES: &str = ".venv";

/// What is run by Python in the jail.
const DRIVER: &str = include_str!("driver.py");

/// Where the driver leaves what it has downloaded, and what it knows of its Python.
const WHEELS: &str = "wheels";
const INTERPRETER: &str = "interpreter.json";

/// Time for everything that the kernel does with wheels.
const PATIENCE: Duration = Duration::from_secs(600);

/// Files of other managers, whose lock files would not follow.
const OTHERS: [(&str, &str); 7] = [
    ("uv.lock", "uv"),
    ("poetry.lock", "Poetry"),
    ("pdm.lock", "PDM"),
    ("Pipfile", "Pipenv"),
    ("Pipfile.lock", "Pipenv"),
    ("pixi.lock", "Pixi"),
    ("conda-lock.yml", "Conda"),
];

pub(super) struct Pip;

#[async_trait]
impl PackageManager for Pip {
    fn name(&self) -> &'static str {
        "pip"
    }

    fn tree_name(&self) -> Option<&'static str> {
        Some(PACKAGES)
    }

    fn check(&self, plan: &Plan) -> Result<(), ToolError> {
        asked(plan).map(|_| ())
    }

    fn command(&self, plan: &Plan) -> String {
        let mut line = "pip download --only-binary=:all:".to_owned();
        // A requirement that is printed from its parts has no quote of a shell in it.
        asked(plan).unwrap_or_default().iter().for_each(|one| line.push_str(&format!(" '{one}'")));
        line
    }

    fn require(&self, plan: &Plan, files: &ProjectFiles) -> Result<(), ToolError> {
        let directory = &plan.directory;
        let is_package =
            |part: &str| matches!(part.to_lowercase().as_str(), ".venv" | "venv" | "site-packages");
        if directory.parts().any(is_package) {
            return Err(ToolError::new(
                Code::Security,
                format!("`{directory}` is inside installed packages"),
            )
            .help("name the directory of the project's own pyproject.toml or requirements.txt"));
        }
        let place = shown(directory);
        if let Some((name, other)) = OTHERS.iter().find(|(name, _)| kind(directory, name, files).is_some()) {
            let message = format!("{place} has `{name}` of {other}, which would not follow");
            return Err(ToolError::new(Code::Capability, message)
                .help(format!("ask the user to install the packages with {other}; nothing was changed")));
        }
        let mut is_there = false;
        for name in manifests::FILES {
            match kind(directory, name, files) {
                None => {}
                Some(EntryKind::File) => is_there = true,
                Some(_) => {
                    return Err(ToolError::new(
                        Code::Security,
                        format!("`{name}` in {place} is not a plain file"),
                    )
                    .detail("path", name)
                    .help("nothing was installed; replace it by a file"));
                }
            }
        }
        if !is_there && plan.packages.is_empty() {
            let message = format!("{place} has no `pyproject.toml` and no `requirements.txt`");
            return Err(ToolError::new(Code::NotFound, message)
                .help("name packages to install, or the directory of the manifest with `directory`"));
        }
        Ok(())
    }

    async fn prepare(&self, plan: &Plan, site: &Site, _invocation: Invocation<'_>) -> Result<Run, ToolError> {
        let (plan, site) = (plan.clone(), site.clone());
        background::run_bounded(move || prepare(&plan, &site)).await
    }

    fn failure(&self, plan: &Plan, output: &CommandOutput) -> Option<ToolError> {
        errors::failure(plan, output)
    }

    fn read(&self, plan: &Plan, site: &Site, found: Vec<LayerChange>) -> Result<Installation, ToolError> {
        outcome::read(plan, site, &found)
    }
}

/// The packages of a call.
fn asked(plan: &Plan) -> Result<Vec<Requirement>, ToolError> {
    let parse = |text: &String| {
        Requirement::parse(text).map_err(|error| {
            let message = format!("`{}` is not a package of an index: {error}", text.escape_default());
            ToolError::new(Code::Validation, message).detail("package", text.as_str()).help(
                "name a package as `httpx`, `httpx>=0.27` or `uvicorn[standard]`; paths, addresses and options are not installed",
            )
        })
    };
    let asked: Vec<Requirement> = plan.packages.iter().map(parse).collect::<Result<_, _>>()?;
    let names: BTreeSet<&Name> = asked.iter().map(Requirement::name).collect();
    if names.len() == asked.len() {
        return Ok(asked);
    }
    Err(ToolError::new(Code::Validation, "a package is named twice")
        .help("name each package once; more than one version of it is written as `six>=1,<2`"))
}

/// Something that ends when the time of the kernel's own work is up.
fn deadline() -> impl Fn() -> bool {
    let end = Instant::now() + PATIENCE;
    move || Instant::now() > end
}

/// The directory of packages; none where there is none.
fn environment_directory(site: &Site, directory: &RelativePath) -> Result<Option<Directory>, ToolError> {
    Ok(open_project(site.options())?.descend(directory)?.step(PACKAGES)?)
}

/// What is in the directory of packages; none where there is none.
fn environment(
    site: &Site,
    directory: &RelativePath,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Environment>, ToolError> {
    let Some(root) = environment_directory(site, directory)? else { return Ok(None) };
    Environment::read(root, stop).map(Some).map_err(|error| errors::of_environment(&error))
}

/// The index that the user has chosen. Where it cannot be used, none is: another one may have other packages under the same
/// names.
fn index(site: &Site) -> Result<Vec<(String, String)>, ToolError> {
    let usable = |(name, value): &(String, Option<String>)| {
        match value {
        Some(value) => Ok((name.clone(), value.clone())),
        None => Err(ToolError::new(Code::Capability, format!("the index that `{name}` or the settings of pip name cannot be used"))
            .detail("variable", name.as_str())
            .help("packages come from indexes with HTTPS and without a login; ask the user to install them, nothing was changed")),
    }
    };
    site.options().package_index.iter().map(usable).collect()
}

/// Writes what the driver reads.
fn prepare(plan: &Plan, site: &Site) -> Result<Run, ToolError> {
    let manifests = Manifests::read(plan, &site.files)?;
    let asked = manifests.with_extras(asked(plan)?)?;
    manifests.refuse_own(&asked)?;
    let wanted = manifests.wanted(&asked, plan.dev)?;
    let index = index(site)?;
    let stop = deadline();
    let environment = environment(site, &plan.directory, &stop)?;
    let python = Python::find(site, environment.as_ref())?;
    let constraints = environment.as_ref().map(|environment| constraints(environment, &asked, &wanted));
    let constraints = constraints.unwrap_or_default();
    let downloads = &site.downloads;
    let lines = |requirements: &[Requirement]| -> String {
        requirements.iter().map(|requirement| format!("{requirement}\n")).collect()
    };
    let requires = manifests.requires_python().map(ToString::to_string).unwrap_or_default();
    let write = || -> io::Result<()> {
        for directory in [WHEELS, "empty", "tmp"] {
            fs::create_dir(downloads.join(directory))?;
        }
        fs::write(downloads.join("driver.py"), DRIVER)?;
        fs::write(downloads.join("requirements.txt"), lines(&wanted))?;
        fs::write(downloads.join("constraints.txt"), lines(&constraints))?;
        fs::write(downloads.join("requires-python"), requires)
    };
    write().map_err(|error| {
        ToolError::new(Code::Internal, format!("the directory for downloads cannot be written: {error}"))
    })?;
    let environment = [("TMPDIR", format!("{CACHE_PLACE}/tmp"))]
        .into_iter()
        .chain(index.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(Run { line: line(&python, !constraints.is_empty()), environment })
}

/// What runs the driver. With packages that are installed it is tried first whether they can stay as they are; what that prints
/// is shown when it worked.
fn line(python: &Python, is_constrained: bool) -> String {
    let driver = format!("{} -I -B {CACHE_PLACE}/driver.py {CACHE_PLACE}", python.quoted());
    let start = format!("cd {CACHE_PLACE}/empty && ");
    if !is_constrained {
        return format!("{start}exec {driver} free");
    }
    let (first, log) = (format!("{CACHE_PLACE}/first.txt"), format!("{CACHE_PLACE}/pip.log"));
    format!(
        "{start}if {driver} constrained > {first} 2>&1; then cat {first}; else rm -f {CACHE_PLACE}/{WHEELS}/* {log}; exec {driver} free; fi"
    )
}

/// Installed packages that stay in their versions: those that are not asked for, and that the manifest does not want otherwise.
fn constraints(environment: &Environment, asked: &[Requirement], wanted: &[Requirement]) -> Vec<Requirement> {
    let stays = |name: &Name, version| {
        !asked.iter().any(|one| one.name() == name)
            && wanted.iter().filter(|one| one.name() == name).all(|one| one.versions().contains(version))
    };
    let distributions = environment.distributions().iter();
    distributions
        .filter(|one| stays(one.name(), one.version()))
        .map(|one| Requirement::exactly(one.name().clone(), one.version().clone()))
        .collect()
}

/// Whether a path is in the project, without links and `..`.
fn is_in_project(path: &Path, project: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(path).starts_with(real(project))
}
