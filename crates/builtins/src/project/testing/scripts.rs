//! What a command line runs by way of `package.json`.

use std::collections::BTreeMap;

use super::discover::words;
use super::node::package_json;
use super::runner::Manifests;

/// Programs that run scripts of a package by their names.
const MANAGERS: [&str; 7] = ["npm", "pnpm", "yarn", "bun", "npm-run-all", "run-s", "run-p"];

/// Scripts that are shown; a package with more in one run is generated.
const MAX_SCRIPTS: usize = 32;

/// The scripts that a command line may start and those that they start in turn, with what runs before and after each,
/// by name. A name that only looks like a script's is shown as well: too much is shown rather than too little.
#[must_use]
pub fn scripts(line: &str, files: &dyn Manifests) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if !names_manager(line) {
        return found;
    }
    let Some(package) = package_json(files) else { return found };
    let known = |name: &str| package.get("scripts")?.get(name)?.as_str();
    let mut open = vec![line.to_owned()];
    while let Some(line) = open.pop().filter(|_| found.len() < MAX_SCRIPTS) {
        for word in words(&line) {
            let name = if matches!(word, "t" | "tst") { "test" } else { word };
            for name in [format!("pre{name}"), name.to_owned(), format!("post{name}")] {
                let Some(script) = known(&name).filter(|_| found.len() < MAX_SCRIPTS) else { continue };
                if found.insert(name, script.to_owned()).is_none() && names_manager(script) {
                    open.push(script.to_owned());
                }
            }
        }
    }
    found
}

fn names_manager(line: &str) -> bool {
    words(line).iter().filter_map(|word| word.rsplit('/').next()).any(|name| MANAGERS.contains(&name))
}
