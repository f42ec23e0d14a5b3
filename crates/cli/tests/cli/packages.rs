//! `package_install` with the real package managers: what is asked, what is put in place, and what is refused. Tests that
//! need an index are skipped in one line where it cannot be reached.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::packages_cargo::with_home;
use crate::project::{Project, Ran};

/// A person's rule for packages. `--yes` does not cover them, so the rule names the manifest.
pub const RULES: &str = "version: 1
rules:
  - {id: npm, effect: allow, tools: [package_install], where: {path: package.json}}
  - {id: cargo, effect: allow, tools: [package_install], where: {path: \"**/Cargo.toml\"}}
  - {id: python, effect: allow, tools: [package_install], where: {path: \"**/pyproject.toml\"}}
";

/// The longest that the index is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn can_jail() -> bool {
    let complete = tgp::sandbox::process_support().complete();
    if !complete {
        println!("skipped: commands cannot be jailed here");
    }
    complete
}

/// Whether a program that asks an index ends well in time.
pub fn reaches(manager: &str, arguments: &[&str]) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let child = Command::new(manager)
        .args(arguments)
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: {manager} is not installed");
        return false;
    };
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            if !status.success() {
                println!("skipped: the index of {manager} cannot be reached");
            }
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    let _ = child.wait();
    println!("skipped: the index of {manager} does not answer");
    false
}

/// Toolchains live in the home of the user who runs the tests, and the certificates of its network are named by variables. A project
/// whose user has a home of cargo keeps to that.
pub fn run(project: &Project, arguments: &[&str]) -> Ran {
    if project.path("home/.cargo").exists() {
        return with_home(project, project.command(arguments));
    }
    let mut command = project.command(arguments);
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "CARGO_HTTP_CAINFO"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.output().unwrap().into()
}

fn install(project: &Project, arguments: &Value, options: &[&str]) -> Ran {
    let arguments = arguments.to_string();
    run(project, &[&["call", "package_install", &arguments], options].concat())
}

fn npm_project() -> Project {
    let project = Project::initialised();
    project.write("package.json", "{\n  \"name\": \"shop\",\n  \"private\": true\n}\n");
    project
}

#[test]
fn a_package_is_installed_after_the_change_of_the_manifest_was_agreed_to() {
    if !can_jail() || !reaches("npm", &["view", "left-pad@1.3.0", "version"]) {
        return;
    }
    let project = npm_project();
    let before = project.read("package.json");
    let wanted = json!({ "packages": ["left-pad@1.3.0"] });
    // Nobody is asked here, and `--yes` does not cover what is listed to run later.
    let refused = install(&project, &wanted, &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("EAPPROVAL") && refused.stdout.contains("package.json"), "{refused:?}");
    assert_eq!(project.read("package.json"), before);
    assert!(!project.file("node_modules").exists() && !project.file("package-lock.json").exists());

    project.write("tgp.policy.yaml", RULES);
    let shown = install(&project, &wanted, &["--yes", "--dry-run"]).expect_code(0).document();
    assert_eq!(shown["data"]["installed"], json!(["left-pad@1.3.0"]));
    let changes = shown["data"]["changes"].as_array().unwrap();
    assert!(shown["data"]["changes"].to_string().contains("+    \\\"left-pad\\\""), "{shown}");
    let list = changes.iter().find(|change| change["path"] == "node_modules/.package-lock.json");
    assert!(list.is_some_and(|list| list["diff"].as_str().unwrap().contains("left-pad")), "{shown}");
    assert!(!project.file("node_modules").exists());

    let done = install(&project, &wanted, &["--yes"]).expect_code(0).document();
    let data = &done["data"];
    assert_eq!(data["applied"], true, "{done}");
    assert_eq!(data["installed"], json!(["left-pad@1.3.0"]));
    let schema = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/schemas/package_install.json"),
    );
    let schema: Value = serde_json::from_str(&schema.unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema["output_schema"]).unwrap();
    assert!(validator.is_valid(data) && validator.is_valid(&shown["data"]), "{data}");
    assert!(project.file("node_modules/left-pad/index.js").is_file());
    let manifest: Value = serde_json::from_str(&project.read("package.json")).unwrap();
    assert!(manifest["dependencies"]["left-pad"].is_string(), "{manifest}");
    let records = run(&project, &["audit", "tail", "-n", "1", "--json"]).expect_code(0).stdout;
    assert!(records.contains("\"host\"") && records.contains("package.json"), "{records}");
    // A command in the jail has the package, and no other tool writes where it is.
    let used = r#"{"command": "node -p \"require('left-pad')('x', 3, '-')\""}"#;
    let ran = run(&project, &["call", "shell_exec", used, "--yes"]).expect_code(0).document();
    assert_eq!(ran["data"]["stdout"], "--x\n", "{ran}");
    let write = r#"{"path": "node_modules/left-pad/index.js", "content": "x"}"#;
    run(&project, &["call", "fs_write", write, "--yes"]).expect_code(3);

    // A second package joins the first, in a tree that takes the place of the old one.
    let more = json!({ "packages": ["is-number@7.0.0"], "dev": true });
    let done = install(&project, &more, &["--yes"]).expect_code(0).document();
    assert_eq!(done["data"]["installed"], json!(["is-number@7.0.0"]));
    assert!(project.file("node_modules/left-pad/index.js").is_file());
    assert!(project.file("node_modules/is-number/index.js").is_file());
    let manifest: Value = serde_json::from_str(&project.read("package.json")).unwrap();
    assert!(manifest["devDependencies"]["is-number"].is_string(), "{manifest}");
    assert!(
        !project.file(".tgp/.state/packages").exists()
            || project.file(".tgp/.state/packages").read_dir().unwrap().next().is_none(),
        "the old tree is left"
    );

    // A rule about files of packages sees every one of them.
    let rule = "  - {id: no-left-pad, effect: deny, tools: '*', where: {path: '**/left-pad/package.json'}}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{rule}"));
    std::fs::remove_dir_all(project.file("node_modules")).unwrap();
    let refused = install(&project, &json!({}), &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("no-left-pad"), "{refused:?}");
    assert!(!project.file("node_modules").exists());
    run(&project, &["audit", "verify"]).expect_code(0);
}

#[test]
fn a_rule_about_hosts_decides_and_nothing_is_changed() {
    if !can_jail() {
        return;
    }
    let project = npm_project();
    let deny =
        "  - {id: no-hosts, effect: deny, tools: [package_install], where: {host: '*'}, reason: none}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{deny}"));
    let before = project.read("package.json");
    let refused = install(&project, &json!({ "packages": ["left-pad"] }), &["--yes"]);
    if !has_npm(&refused) {
        return;
    }
    let refused = refused.expect_code(3);
    assert!(refused.stdout.contains("no-hosts"), "{refused:?}");
    assert_eq!(project.read("package.json"), before);
    assert!(!project.file("node_modules").exists());
}

/// Whether npm runs in the jail; a call that says otherwise is skipped.
fn has_npm(ran: &Ran) -> bool {
    let has = !ran.stdout.contains("exit code 127");
    if !has {
        println!("skipped: npm is not installed where commands see it");
    }
    has
}

#[test]
fn bug_files_of_the_project_were_installed_as_packages() {
    if !can_jail() {
        return;
    }
    let project = npm_project();
    project.write("tgp.policy.yaml", RULES);
    let packed = "mkdir package && printf '{\"name\": \"vitest\", \"version\": \"9.0.0\", \"scripts\": {\"postinstall\": \"touch ../../ran\"}}' > package/package.json && tar -czf vitest-9.0.0.tgz package && rm -r package";
    project.shell(packed).expect_code(0);
    project.write(
        "lib/package.json",
        r#"{"name": "shop-lib", "version": "1.0.0", "scripts": {"postinstall": "touch ../ran", "prepare": "touch ../ran"}}"#,
    );
    for manifest in [
        r#"{"name": "shop", "private": true, "devDependencies": {"vitest": "file:./vitest-9.0.0.tgz"}}"#,
        r#"{"name": "shop", "private": true, "devDependencies": {"vitest": "file:./vitest-9.0.0.tgz"}, "bundleDependencies": ["vitest"]}"#,
        r#"{"name": "shop", "private": true, "dependencies": {"shop-lib": "file:./lib"}}"#,
        r#"{"name": "shop", "private": true, "workspaces": ["lib"]}"#,
    ] {
        project.write("package.json", manifest);
        let refused = install(&project, &json!({}), &["--yes"]);
        if !has_npm(&refused) {
            return;
        }
        assert!(refused.stdout.contains("ESECURITY"), "{manifest}: {refused:?}");
        assert!(!project.file("node_modules").exists() && !project.file("package-lock.json").exists());
        assert!(!project.file("ran").exists() && !project.file("lib/ran").exists());
    }
}

#[test]
fn bug_a_lock_file_named_another_package_and_nobody_was_asked() {
    if !can_jail() || !reaches("npm", &["view", "is-number@7.0.0", "version"]) {
        return;
    }
    let project = npm_project();
    let wanted = json!({ "packages": ["is-number@7.0.0"] });
    project.write("tgp.policy.yaml", RULES);
    install(&project, &wanted, &["--yes"]).expect_code(0);
    std::fs::remove_dir_all(project.file("node_modules")).unwrap();
    // Without the rule a person has to see what is installed, though no manifest changes.
    project.write("tgp.policy.yaml", "version: 1\nrules: []\n");
    let refused = install(&project, &json!({}), &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("EAPPROVAL"), "{refused:?}");
    assert!(!project.file("node_modules").exists());
    project.write("tgp.policy.yaml", RULES);
    // The archive of one package under the name of another, without a checksum.
    let manifest = project.read("package.json").replace("is-number", "left-pad");
    project.write("package.json", &manifest);
    let mut lock: Value = serde_json::from_str(&project.read("package-lock.json")).unwrap();
    let dependencies = lock["packages"][""]["dependencies"].take();
    lock["packages"][""]["dependencies"] = json!({ "left-pad": dependencies["is-number"] });
    let packages = lock["packages"].as_object_mut().unwrap();
    let mut package = packages.remove("node_modules/is-number").unwrap();
    let fields = package.as_object_mut().unwrap();
    fields.remove("integrity");
    fields.insert("name".to_owned(), json!("is-number"));
    packages.insert("node_modules/left-pad".to_owned(), package);
    project.write("package-lock.json", &lock.to_string());
    let refused = install(&project, &json!({}), &["--yes"]);
    assert!(refused.stdout.contains("ESECURITY"), "{refused:?}");
    assert!(!project.file("node_modules").exists());
}

/// A lock file that an agent writes gave a package the archive of another one, by an address or a version that means another place.
#[test]
fn bug_a_lock_file_gave_a_package_the_archive_of_another_one() {
    if !can_jail() || !reaches("npm", &["view", "is-number@7.0.0", "version"]) {
        return;
    }
    let project = npm_project();
    project.write("tgp.policy.yaml", RULES);
    install(&project, &json!({ "packages": ["is-number@7.0.0"] }), &["--yes"]).expect_code(0);
    let lock: Value = serde_json::from_str(&project.read("package-lock.json")).unwrap();
    let package = &lock["packages"]["node_modules/is-number"];
    let (archive, checksum) = (package["resolved"].as_str().unwrap(), &package["integrity"]);
    let base = archive.strip_suffix("/is-number/-/is-number-7.0.0.tgz").unwrap();
    std::fs::remove_dir_all(project.file("node_modules")).unwrap();
    let packed = "mkdir package && printf '{\"name\": \"left-pad\", \"version\": \"1.3.0\"}' > package/package.json && tar -czf left-pad.tgz package && rm -r package";
    project.shell(packed).expect_code(0);
    project.write("package.json", r#"{"name": "shop", "private": true, "dependencies": {"left-pad": "*"}}"#);
    for package in [
        json!({ "version": "1.3.0", "resolved": format!("{archive}?/left-pad/-/left-pad-1.3.0.tgz"), "integrity": checksum }),
        json!({ "version": "1.3.0", "resolved": format!("{base}/left-pad/-/../../is-number/-/is-number-7.0.0.tgz"), "integrity": checksum }),
        json!({ "version": "1.3.0", "resolved": format!("{base}/x/%2e%2e/is-number/-/is-number-7.0.0.tgz"), "integrity": checksum }),
        json!({ "version": "npm:is-number@7.0.0", "integrity": checksum }),
        json!({ "version": "file:left-pad.tgz" }),
        json!({ "version": "file:left-pad.tgz", "integrity": checksum }),
    ] {
        let own = json!({ "name": "shop", "dependencies": { "left-pad": "*" } });
        let packages = json!({ "": own, "node_modules/left-pad": package });
        let lock = json!({ "name": "shop", "lockfileVersion": 3, "requires": true, "packages": packages });
        project.write("package-lock.json", &lock.to_string());
        let refused = install(&project, &json!({}), &["--yes"]);
        assert_ne!(refused.code, Some(0), "{package}: {refused:?}");
        assert!(!project.file("node_modules").exists(), "{package}: {refused:?}");
    }
}

/// Commands write to directories of build output at any time. What was there was copied with the packages, by names that may
/// have led elsewhere by then.
#[test]
fn bug_build_output_among_the_packages_was_copied() {
    if !can_jail() || !reaches("npm", &["view", "is-number@7.0.0", "version"]) {
        return;
    }
    let project = npm_project();
    project.write("tgp.policy.yaml", RULES);
    project.write("node_modules/.vite/results.json", "{}");
    project.write("node_modules/.cache/deep/file", "x");
    project.shell("mkfifo node_modules/.cache/pipe && ln -s / node_modules/.vite/root").expect_code(0);
    install(&project, &json!({ "packages": ["is-number@7.0.0"] }), &["--yes"]).expect_code(0);
    assert!(project.file("node_modules/is-number/package.json").exists());
    for output in [".vite", ".cache"] {
        let directory = project.file("node_modules").join(output);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "{output}");
    }
}

/// A kernel that was killed, or one that is installing now, has links of packages in the state, and every other command refused
/// to work.
#[test]
fn bug_a_tree_that_waits_for_its_place_locked_the_project() {
    let project = npm_project();
    let staged = project.file(".tgp/.state/packages/4000000-1/tree/.bin");
    std::fs::create_dir_all(&staged).unwrap();
    std::os::unix::fs::symlink("../mocha/bin/mocha", staged.join("mocha")).unwrap();
    run(&project, &["call", "fs_read", r#"{"path": "package.json"}"#]).expect_code(0);
    // A link in the place of the directory is refused as before.
    std::fs::remove_dir_all(project.file(".tgp/.state/packages")).unwrap();
    std::os::unix::fs::symlink("..", project.file(".tgp/.state/packages")).unwrap();
    let refused = run(&project, &["call", "fs_read", r#"{"path": "package.json"}"#]);
    assert!(refused.stdout.contains("ESECURITY") || refused.stderr.contains("ESECURITY"), "{refused:?}");
}

/// A rule about something else made every file of the packages be judged by the built-in rules, and the certificates of a
/// package were refused as secrets.
#[test]
fn bug_a_package_with_certificates_was_refused_because_of_an_unrelated_rule() {
    if !can_jail() || !reaches("npm", &["view", "public-encrypt@4.0.3", "version"]) {
        return;
    }
    let project = npm_project();
    let unrelated = "  - {id: docs, effect: deny, tools: '*', where: {path: '**/secret-plans.md'}}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{unrelated}"));
    let wanted = json!({ "packages": ["public-encrypt@4.0.3"] });
    install(&project, &wanted, &["--yes"]).expect_code(0);
    let shipped = "node_modules/public-encrypt/test/test_cert.pem";
    assert!(project.file(shipped).is_file());
    // Reading it stays what it was.
    let read = json!({ "path": shipped }).to_string();
    let refused = run(&project, &["call", "fs_read", &read]).expect_code(3);
    assert!(refused.stdout.contains("builtin/credentials"), "{refused:?}");
    // A person's own rule about such files is theirs.
    std::fs::remove_dir_all(project.file("node_modules")).unwrap();
    let own = "  - {id: no-keys, effect: deny, tools: '*', where: {path: 'node_modules/**/*.pem'}}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{own}"));
    let refused = install(&project, &json!({}), &["--yes"]).expect_code(3);
    assert!(refused.stdout.contains("no-keys"), "{refused:?}");
    assert!(!project.file("node_modules").exists());
}

/// Entries of `PATH` that mean the project by another name decided which npm runs, with the network.
#[test]
fn bug_a_program_of_the_project_was_run_as_the_manager() {
    if !can_jail() {
        return;
    }
    let project = npm_project();
    let deny =
        "  - {id: no-hosts, effect: deny, tools: [package_install], where: {host: '*'}, reason: none}\n";
    project.write("tgp.policy.yaml", &format!("{RULES}{deny}"));
    project.write("bin/npm", "#!/bin/sh\necho ran > ran.mark; exit 0\n");
    project.write("bin/cargo", "#!/bin/sh\necho ran > ran.mark; exit 0\n");
    project.write("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n");
    project.shell("chmod +x bin/*").expect_code(0);
    let path = std::env::var("PATH").unwrap();
    let here = project.file("").display().to_string();
    for entry in [
        format!("{here}/bin"),
        format!("{here}/../here/bin"),
        "/proc/self/cwd/bin".to_owned(),
        "bin".to_owned(),
    ] {
        for arguments in
            [json!({ "packages": ["left-pad"] }), json!({ "manager": "cargo", "packages": ["itoa"] })]
        {
            let arguments = arguments.to_string();
            let mut command = project.command(&["call", "package_install", &arguments, "--yes"]);
            command.env("PATH", format!("{entry}:{path}"));
            let ran: Ran = command.output().unwrap().into();
            assert_ne!(ran.code, Some(0), "{entry}: {ran:?}");
            assert!(
                !project.file("ran.mark").exists() && !ran.stdout.contains("ran.mark"),
                "{entry}: {ran:?}"
            );
        }
    }
}

/// Of several installations at a time all but one may be refused; no package that a manifest names is lost. No package depends on
/// another one.
#[test]
fn bug_two_kernels_that_installed_at_a_time_lost_packages() {
    let names = ["left-pad", "is-number", "wrappy"];
    if !can_jail() || !reaches("npm", &["view", "wrappy@1.0.2", "version"]) {
        return;
    }
    let project = npm_project();
    project.write("tgp.policy.yaml", RULES);
    let ran: Vec<Ran> = std::thread::scope(|scope| {
        let installed = names.map(|name| {
            let (project, wanted) = (&project, json!({ "packages": [name] }));
            scope.spawn(move || install(project, &wanted, &["--yes"]))
        });
        installed.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for ran in &ran {
        assert!(ran.code == Some(0) || ran.stdout.contains("ECONFLICT"), "{ran:?}");
    }
    assert!(ran.iter().any(|ran| ran.code == Some(0)), "{ran:?}");
    let manifest: Value = serde_json::from_str(&project.read("package.json")).unwrap();
    for (name, ran) in names.iter().zip(&ran) {
        let is_named = manifest["dependencies"].get(name).is_some();
        let is_there = project.file("node_modules").join(name).join("package.json").is_file();
        let is_done = ran.code == Some(0);
        assert!(
            is_named == is_done && is_there == is_done,
            "{name}: {is_named} {is_there} {ran:?} {manifest}"
        );
    }
}

#[test]
fn packages_are_installed_in_a_directory_of_npm_only() {
    let project = npm_project();
    project.write("tgp.policy.yaml", RULES);
    project.write("other/requirements.txt", "pytest-9.9.9-py3-none-any.whl\n");
    project.write("crate/Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n");
    project.write("yarn/package.json", "{}");
    project.write("yarn/yarn.lock", "");
    project.write("node_modules/left-pad/package.json", "{}");
    // Commands write there without being judged.
    project.write("target/web/package.json", "{}");
    project.write("dist/package.json", "{}");
    for (directory, code) in [
        ("other", "ECAPABILITY"),
        ("crate", "ECAPABILITY"),
        ("yarn", "ECAPABILITY"),
        ("empty", "ENOTFOUND"),
        ("node_modules/left-pad", "ESECURITY"),
        ("../other", "ESECURITY"),
        ("target/web", "ESECURITY"),
        ("dist", "ESECURITY"),
    ] {
        let refused = install(&project, &json!({ "directory": directory }), &["--yes"]);
        assert!(refused.stdout.contains(code), "{directory}: {refused:?}");
    }
}
