//! What a person can do about a server that does not start: most often it may not read its own files.

use std::path::{Path, PathBuf};

use tgp::contract::ToolError;
use tgp::upstream::{ServerDefinition, StdioServer};

/// Folders that every server reads.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt"];
/// Programs that install what they run.
const INSTALLERS: [&str; 6] = ["npx", "npm", "pnpm", "bunx", "uvx", "pipx"];
/// The folder of packages that import each other.
const PACKAGES: &str = "node_modules";

/// The failure of a server that is not added yet, with the next step.
pub(super) fn with_advice(error: ToolError, definition: &ServerDefinition) -> ToolError {
    let ServerDefinition::Stdio(server) = definition else {
        return error.help("see that the server runs and that the address is right");
    };
    let missing: Vec<String> = suggested_reads(&server.command)
        .into_iter()
        .filter(|path| !is_listed(path, server))
        .map(|path| format!("--read {}", path.display()))
        .collect();
    if !missing.is_empty() {
        return error
            .help(format!("it may not read files that its command names; add {}", missing.join(" ")));
    }
    let program = server.command.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    if program.is_some_and(|program| INSTALLERS.contains(&program)) && server.hosts.is_empty() {
        return error.help(
            "it installs packages and reaches no host: list the hosts of its registry with --host, or install the package \
             first and start it from where it is",
        );
    }
    error.help("correct the command, or list what it needs with --read, --write, --env and --host")
}

/// Folders that a command names and that have to be read for it.
pub(super) fn suggested_reads(command: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for word in command {
        let path = Path::new(word);
        if !path.is_absolute() || SYSTEM.iter().any(|system| path.starts_with(system)) {
            continue;
        }
        let Ok(place) = path.canonicalize() else { continue };
        let folder = folder_of(&place);
        // A whole disk or a whole home is not what a server needs.
        if folder.components().count() > 2 && !found.iter().any(|known| folder.starts_with(known)) {
            found.push(folder);
        }
    }
    found
}

/// The folder of packages that a file is in, else the file's own folder.
fn folder_of(place: &Path) -> PathBuf {
    let packages = place.ancestors().filter(|above| above.file_name().is_some_and(|name| name == PACKAGES));
    match packages.last() {
        Some(packages) => packages.to_owned(),
        None if place.is_dir() => place.to_owned(),
        None => place.parent().unwrap_or(place).to_owned(),
    }
}

fn is_listed(path: &Path, server: &StdioServer) -> bool {
    server.read.iter().chain(&server.write).any(|listed| path.starts_with(listed))
}

#[cfg(test)]
mod tests {
    use super::suggested_reads;

    #[test]
    fn a_command_says_what_it_has_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let script = root.join("node_modules/server/dist/index.js");
        std::fs::create_dir_all(script.parent().unwrap()).unwrap();
        std::fs::write(&script, "").unwrap();
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let command =
            words(&["node", script.to_str().unwrap(), "/usr/share", "--port", "7", "/nowhere", "/", "/etc"]);
        assert_eq!(suggested_reads(&command), [root.join("node_modules")]);
        let plain = root.join("server.py");
        std::fs::write(&plain, "").unwrap();
        assert_eq!(suggested_reads(&words(&["python3", plain.to_str().unwrap()])), [root]);
    }
}
