//! Runners of JavaScript and TypeScript, found in `package.json`.

use serde_json::Value;

use super::discover::{Below, kind_of_line};
use super::runner::{
    Manifests, Runner, RunnerKind, RunnerProblem, SET_THE_COMMAND, joined, lacks_package, manifest, quoted,
};

/// Node's own runner with the reporter that is read.
const NODE_TEST: &str = "node --test --test-reporter=tap";

/// Bytes of a script that a message shows.
const MAX_SHOWN_BYTES: usize = 120;

/// Options with which a script could let something else print than the runner.
const UNTRUSTED_OPTIONS: [&str; 22] = [
    "--reporter",
    "--reporters",
    "-R",
    "--test-reporter",
    "--test-reporter-destination",
    "--config",
    "-c",
    "--require",
    "-r",
    "--import",
    "--loader",
    "--experimental-loader",
    "--globalSetup",
    "--globalTeardown",
    "--setupFiles",
    "--testRunner",
    "--runner",
    "--json",
    "--outputFile",
    "--ui",
    "--eval",
    "--package",
];

pub(super) fn package_json(files: &dyn Manifests) -> Option<Value> {
    serde_json::from_str(&manifest(files, "package.json")?).ok()
}

/// The test script of a package, or a runner that it depends on though no script calls it.
pub(super) fn node(files: &Below<'_>) -> Option<Runner> {
    let package = package_json(files)?;
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default().trim();
    // What `npm init` writes into every new package is not a test.
    if script.is_empty() || script.contains("no test specified") {
        let depends_on = |name: &str| {
            ["devDependencies", "dependencies"]
                .iter()
                .any(|kind| package.get(kind).and_then(|list| list.get(name)).is_some())
        };
        return [(RunnerKind::Vitest, "vitest"), (RunnerKind::Jest, "jest"), (RunnerKind::Mocha, "mocha")]
            .into_iter()
            .find(|(_, name)| depends_on(name) && installed(name, files).is_some())
            .and_then(|(kind, name)| plain_call(kind, name, files));
    }
    // The runner that the script names is run itself: whatever else a script does, it could print the runner's words.
    let kind = kind_of_line(script);
    if let Some(runner) = plain_call(kind, script, files) {
        return Some(runner);
    }
    // The packages of an example or a template are not installed, so its tests are not part of the project's. An agent
    // cannot bring this about: it can neither write nor remove packages.
    let needs_packages = !matches!(kind, RunnerKind::NodeTest | RunnerKind::Other);
    if !files.folder().is_empty() && needs_packages && !has_packages(files) {
        return None;
    }
    // Its output can be read, and decides nothing.
    if let Some((package, _)) = package_call(kind, script)
        && installed(package, files).is_none()
    {
        return Some(Runner::by_npm().distrusting(lacks_package(package, files.folder())));
    }
    let problem = format!(
        "the test script of {} (`{}`) is not a plain call of an installed runner, and its author can let it \
         print anything",
        joined(files.folder(), "package.json"),
        tgp_text::truncate_bytes(script, MAX_SHOWN_BYTES)
    );
    Some(Runner::by_npm().distrusting(RunnerProblem::new(problem, SET_THE_COMMAND)))
}

/// Node's own runner, which is always there.
pub(super) fn plain_node(files: &dyn Manifests) -> Option<Runner> {
    package_json(files)?;
    Some(Runner::new(RunnerKind::NodeTest, NODE_TEST))
}

/// The `node_modules` that has a package, as a path from the folder: its own, or one of the folders above.
fn installed(package: &str, files: &Below<'_>) -> Option<String> {
    files.upwards().find_map(|(up, above)| {
        manifest(&above, &format!("node_modules/{package}/package.json")).map(|_| format!("{up}node_modules"))
    })
}

fn has_packages(files: &Below<'_>) -> bool {
    files.upwards().any(|(_, above)| !above.names("node_modules").is_empty())
}

fn is_trusted(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    // `-r./x` is the same as `-r ./x`.
    let is_short = !word.starts_with("--") && ["-R", "-c", "-r"].iter().any(|short| word.starts_with(short));
    !is_short && !UNTRUSTED_OPTIONS.contains(&name)
}

/// Takes `--import PACKAGE` away from behind `node`: a loader such as `tsx`, which TypeScript needs. Only installed packages
/// count, since no agent can write those; a file of the project could print anything.
fn take_loaders(words: &mut Vec<&str>, files: &Below<'_>) -> String {
    let mut taken = String::new();
    while let [_, "--import", package, ..] = words[..] {
        let is_name = package.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@/-_".contains(&byte));
        if !is_name || package.starts_with('/') || installed(package, files).is_none() {
            break;
        }
        taken.push_str(" --import ");
        taken.push_str(package);
        words.drain(1..3);
    }
    taken
}

/// A script that is nothing but a call of a runner that is a package: the package, and what follows its name.
fn package_call(kind: RunnerKind, script: &str) -> Option<(&'static str, Vec<&str>)> {
    let mut words: Vec<&str> = script.split_whitespace().collect();
    let program = match kind {
        RunnerKind::Vitest => "vitest",
        RunnerKind::Jest => "jest",
        RunnerKind::Mocha => "mocha",
        _ => return None,
    };
    let own = words.first()?.trim_start_matches("./").trim_start_matches("node_modules/.bin/");
    if own != program || !are_plain(&words) {
        return None;
    }
    words.remove(0);
    Some((program, words))
}

fn are_plain(words: &[&str]) -> bool {
    words.iter().all(|word| quoted(word) == *word && is_trusted(word))
}

/// A script that is nothing but a call of Node's own runner.
fn node_call(script: &str, files: &Below<'_>) -> Option<Runner> {
    let mut words: Vec<&str> = script.split_whitespace().collect();
    let loaders = take_loaders(&mut words, files);
    let rest = words.strip_prefix(&["node", "--test"]).filter(|_| are_plain(&words))?;
    let call = NODE_TEST.replacen("node", &format!("node{loaders}"), 1);
    let line = std::iter::once(call.as_str()).chain(rest.iter().copied()).collect::<Vec<_>>().join(" ");
    Some(Runner::new(RunnerKind::NodeTest, line))
}

/// A script that is nothing but a call of an installed runner, for one run: vitest would wait for changes.
fn plain_call(kind: RunnerKind, script: &str, files: &Below<'_>) -> Option<Runner> {
    if kind == RunnerKind::NodeTest {
        return node_call(script, files);
    }
    let (program, mut words) = package_call(kind, script)?;
    let packages = installed(program, files)?;
    if kind == RunnerKind::Vitest
        && !words.iter().any(|word| matches!(*word, "run" | "--run" | "--watch=false"))
    {
        words.retain(|word| !matches!(*word, "watch" | "dev" | "--watch"));
        words.insert(0, "run");
    }
    // The reporter that is read, whatever a file of settings says.
    let reporter: &[&str] = match kind {
        RunnerKind::Vitest => &["--reporter=default"],
        RunnerKind::Jest => &["--reporters=default"],
        RunnerKind::Mocha => &["--reporter=spec"],
        _ => &[],
    };
    let program = format!("{packages}/.bin/{program}");
    let line: Vec<&str> =
        std::iter::once(program.as_str()).chain(words).chain(reporter.iter().copied()).collect();
    Some(Runner::new(kind, line.join(" ")))
}
