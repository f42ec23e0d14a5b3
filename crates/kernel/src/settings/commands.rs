//! From the configuration to what commands of `shell_exec` and `test_run` get.

use std::path::{Path, PathBuf};

use tgp_builtins::{ProcessCaps, ProcessOptions};
use tgp_fs::real_place;
use tgp_policy::Protections;
use tgp_router::Workspace;

use super::policy::policy_settings;
use super::{credentials, package_index, usable_cache};
use crate::boot::{BootContext, BootOptions, Environment};

/// What commands get.
pub(crate) fn process_options(
    ground: &BootContext,
    options: &BootOptions,
    workspace: &Workspace,
) -> ProcessOptions {
    let config = &ground.config.jail;
    let home = (options.environment)("HOME").map(PathBuf::from);
    let mut readable = readable_paths(&config.readable, &ground.project, home.as_deref());
    let cargo_home = cargo_home(&options.environment, home.as_deref());
    // An installation of packages makes the registry where there is none, for the next command to see.
    let is_registry =
        |path: &Path| cargo_home.as_ref().is_some_and(|home| real_place(&home.join("registry")) == path);
    readable.retain(|path| path.exists() || is_registry(path));
    let cache = usable_cache(options.cache_directory.clone(), &ground.project);
    let (caches, downloads) =
        (cache.as_ref().map(|cache| cache.join("tests")), cache.map(|cache| cache.join("packages")));
    ProcessOptions {
        project: ground.project.clone(),
        tool_root: ground.root.clone(),
        scratch: scratch(ground, options),
        protections: Protections::new(&policy_settings(ground, options, workspace)),
        direct: config.direct.iter().map(PathBuf::from).collect(),
        environment: environment(&options.environment, home.as_deref()),
        // No other command sees what test runs and installations keep, though a readable directory may contain it.
        secrets: credentials::files(&options.environment, &readable)
            .into_iter()
            .chain(caches.clone())
            .chain(downloads.clone())
            .collect(),
        test_caches: caches,
        package_downloads: downloads,
        cargo_home,
        certificates: certificates(&options.environment),
        package_index: package_index::variables(&options.environment, &ground.project),
        readable,
        caps: ProcessCaps {
            memory_bytes: config.memory_bytes,
            processes: config.processes,
            file_bytes: config.file_bytes,
            layer_bytes: config.layer_bytes,
            deadline: config.timeout,
            output_bytes: config.output_bytes,
        },
        entries: config.project_entries,
        test_command: ground.config.tdd.command.clone(),
    }
}

/// Paths of `jail.readable` on this machine, without links: what a person has confirmed is where they lead.
pub(crate) fn readable_paths(paths: &[String], project: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    paths
        .iter()
        .filter_map(|path| readable_place(path, project, home))
        .map(|path| real_place(&path))
        .collect()
}

/// A path of `jail.readable` as it is named; none for a path below an unknown home directory.
pub(crate) fn readable_place(path: &str, project: &Path, home: Option<&Path>) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => home.map(|home| home.join(rest)),
        None => Some(project.join(path)),
    }
}

/// Where the user's cargo keeps what it downloads.
fn cargo_home(of_caller: &Environment, home: Option<&Path>) -> Option<PathBuf> {
    let named = of_caller("CARGO_HOME").map(PathBuf::from).or_else(|| Some(home?.join(".cargo")));
    named.filter(|path| path.is_absolute())
}

/// Layers must not be inside the project they cover.
fn scratch(ground: &BootContext, options: &BootOptions) -> PathBuf {
    let cache = options.cache_directory.as_ref().map(|cache| cache.join("layers"));
    cache
        .filter(|cache| !cache.starts_with(&ground.project))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("tgp-layers-{}", nix::unistd::geteuid())))
}

/// Of the caller's environment a command gets the way to its programs and the homes of toolchains, and nothing else.
fn environment(of_caller: &Environment, home: Option<&Path>) -> Vec<(String, String)> {
    let homes =
        [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv"), ("GOPATH", "go")];
    let passed = ["PATH", "LANG", "LC_ALL", "TZ"];
    let mut environment: Vec<(String, String)> =
        passed.iter().filter_map(|name| Some(((*name).to_owned(), of_caller(name)?))).collect();
    for (name, directory) in homes {
        let found = of_caller(name).map(PathBuf::from).or_else(|| Some(home?.join(directory)));
        if let Some(path) = found.filter(|path| path.is_dir()) {
            environment.push((name.to_owned(), path.display().to_string()));
        }
    }
    environment.push(("NO_COLOR".to_owned(), "1".to_owned()));
    environment.push(("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()));
    environment
}

/// Variables by which programs find the certificates of authorities, where these are among the files of the system that every
/// command sees.
fn certificates(of_caller: &Environment) -> Vec<(String, String)> {
    const NAMES: [&str; 6] = [
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NODE_EXTRA_CA_CERTS",
        "PIP_CERT",
        "REQUESTS_CA_BUNDLE",
        "CARGO_HTTP_CAINFO",
    ];
    const PLACES: [&str; 4] = ["/etc/ssl/", "/etc/pki/", "/etc/ca-certificates/", "/usr/"];
    let found = NAMES.iter().filter_map(|name| Some(((*name).to_owned(), of_caller(name)?)));
    found
        .filter(|(_, path)| PLACES.iter().any(|place| path.starts_with(place)) && !path.contains(".."))
        .collect()
}
