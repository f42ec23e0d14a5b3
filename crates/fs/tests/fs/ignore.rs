//! What is ignored, compared with git itself wherever git has an answer.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use tempfile::TempDir;
use tgp_contract::RelativePath;
use tgp_fs::{
    IgnoreRules, MAX_RULE_BYTES, RULE_FILES, RepositoryAccess, ignored, outside_places, outside_rules,
};

fn git(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(directory).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", directory);
    command
}

fn put(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let place = root.join(name);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, content).unwrap();
}

fn parsed(paths: &[&str]) -> Vec<RelativePath> {
    paths.iter().map(|path| RelativePath::new(path).unwrap()).collect()
}

/// Where the repository of a project may be, as a person has confirmed it.
fn confirmed(project: &Path) -> RepositoryAccess {
    RepositoryAccess::confirmed(outside_places(project).unwrap())
}

/// The paths that are ignored, by us: with the rules of the work tree, as listing, graph and valve read them.
fn ours(project: &Path, paths: &[&str]) -> BTreeSet<String> {
    let mut rules = IgnoreRules::default().with_outside(&outside_rules(project, &confirmed(project)));
    let asked = parsed(paths);
    for path in &asked {
        let mut directory = path.parent();
        loop {
            for file in RULE_FILES.map(|name| directory.join(name).unwrap()) {
                let text = tgp_fs::read_plain(&project.join(file.as_str()), MAX_RULE_BYTES);
                text.into_iter().for_each(|text| assert!(rules.set(&file, &text)));
            }
            if directory.is_root() {
                break;
            }
            directory = directory.parent();
        }
    }
    let ignored = asked.iter().filter(|path| rules.ignores_file(path));
    ignored.map(|path| path.as_str().to_owned()).collect()
}

/// The paths that the chronicle leaves out.
fn left_out(project: &Path, paths: &[&str]) -> BTreeSet<String> {
    let read = |file: &RelativePath| fs::read(project.join(file.as_str())).ok();
    let answers = ignored(project, &confirmed(project), &parsed(paths), &read);
    paths.iter().zip(answers).filter(|(_, ignored)| *ignored).map(|(path, _)| (*path).to_owned()).collect()
}

fn commit(directory: &Path) {
    let who = ["-c", "user.name=A", "-c", "user.email=a@b"];
    for arguments in [&["add", "--all"][..], &["commit", "--quiet", "--allow-empty", "-m", "more"]] {
        assert!(git(directory, &[&who, arguments].concat()).status().unwrap().success(), "{arguments:?}");
    }
}

/// The paths that are ignored, by git, without a user's own rules, whether they are tracked or not.
fn by_git(project: &Path, paths: &[&str]) -> BTreeSet<String> {
    let arguments = ["-c", "core.excludesFile=", "check-ignore", "--no-index", "--stdin", "-z"];
    let mut child = git(project, &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(paths.join("\0").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

const PATHS: [&str; 16] = [
    "a.log",
    "keep.log",
    "src/a.ts",
    "src/a.log",
    "src/deep/loud.log",
    "src/local.ts",
    "local.ts",
    "out/x.ts",
    "out2/x.ts",
    "out2/kept/x.ts",
    "mine.ts",
    "src/mine.ts",
    "top.txt",
    "src/top.txt",
    "name with spaces.txt",
    "ünïcode.log",
];

fn rules(project: &Path) {
    put(project, ".gitignore", "\u{feff}*.log\n!keep.log\n/out/\n/out2/*\n!/out2/kept/\n[\n");
    put(project, "src/.gitignore", "!loud.log\nlocal.ts\n");
    put(project, "out/.gitignore", "!x.ts\n");
}

#[test]
fn rules_of_a_repository_are_read_as_git_reads_them() {
    let home = TempDir::new().unwrap();
    let project = home.path();
    assert!(git(project, &["init", "--quiet"]).status().unwrap().success());
    rules(project);
    put(project, ".git/info/exclude", "mine.ts\n");
    let expected = by_git(project, &PATHS);
    assert!(expected.len() > 5 && expected.contains("src/mine.ts"), "{expected:?}");
    assert_eq!(ours(project, &PATHS), expected);
}

#[test]
fn rules_above_a_project_count_up_to_the_top_of_the_repository() {
    let home = TempDir::new().unwrap();
    let (top, project) = (home.path().join("top"), home.path().join("top/apps/web"));
    fs::create_dir_all(&project).unwrap();
    // Above the repository nothing counts.
    put(home.path(), ".gitignore", "src/\n");
    assert!(git(&top, &["init", "--quiet"]).status().unwrap().success());
    put(&top, ".gitignore", "top.txt\n/apps/web/src/a.ts\nkeep.log\n");
    put(&top, "apps/.gitignore", "web/mine.ts\n");
    put(&top, ".git/info/exclude", "/apps/web/out3\n");
    rules(&project);
    let paths = [&PATHS[..], &["out3/x.ts"]].concat();
    let expected = by_git(&project, &paths);
    for path in ["top.txt", "src/top.txt", "src/a.ts", "mine.ts", "out3/x.ts"] {
        assert!(expected.contains(path), "{path}: {expected:?}");
    }
    assert!(!expected.contains("src/mine.ts") && !expected.contains("keep.log"), "the nearest file decides");
    assert_eq!(ours(&project, &paths), expected);
}

#[test]
fn a_linked_work_tree_shares_the_rules_of_its_repository() {
    let home = TempDir::new().unwrap();
    let (main, linked) = (home.path().join("main"), home.path().join("linked"));
    fs::create_dir(&main).unwrap();
    let set_up: [&[&str]; 3] = [
        &["init", "--quiet"],
        &["-c", "user.name=A", "-c", "user.email=a@b", "commit", "--quiet", "--allow-empty", "-m", "first"],
        &["worktree", "add", "--quiet", "../linked"],
    ];
    for arguments in set_up {
        assert!(git(&main, arguments).status().unwrap().success(), "{arguments:?}");
    }
    put(&main, ".git/info/exclude", "mine.ts\n");
    let expected = by_git(&linked, &PATHS);
    assert_eq!(expected.len(), 2);
    assert_eq!(ours(&linked, &PATHS), expected);
}

#[test]
fn an_ignore_file_beats_gitignore_and_works_without_git() {
    let home = TempDir::new().unwrap();
    let project = home.path();
    rules(project);
    put(project, ".ignore", "!a.log\n/src/deep/\n");
    put(project, ".git-is-not-here", "");
    let found = ours(project, &PATHS);
    assert!(!found.contains("a.log"), "`.ignore` takes back what `.gitignore` names");
    assert!(found.contains("src/deep/loud.log"), "and names more");
    assert!(found.contains("out/x.ts") && !found.contains("src/a.ts"), "{found:?}");
}

#[test]
fn nobodys_own_rules_count() {
    let home = TempDir::new().unwrap();
    let project = home.path().join("project");
    fs::create_dir(&project).unwrap();
    assert!(git(&project, &["init", "--quiet"]).status().unwrap().success());
    put(home.path(), "everywhere", "*.ts\n");
    let everywhere = home.path().join("everywhere").display().to_string();
    assert!(git(&project, &["config", "core.excludesFile", &everywhere]).status().unwrap().success());
    assert_eq!(ours(&project, &PATHS), BTreeSet::new());
}

#[test]
fn files_of_rules_that_are_too_large_or_links_have_no_rules() {
    let home = TempDir::new().unwrap();
    let (top, project) = (home.path().join("top"), home.path().join("top/project"));
    fs::create_dir_all(&project).unwrap();
    assert!(git(&top, &["init", "--quiet"]).status().unwrap().success());
    put(home.path(), "elsewhere", "*.ts\n");
    symlink(home.path().join("elsewhere"), top.join(".gitignore")).unwrap();
    put(&project, ".gitignore", "*.log\n".repeat(usize::try_from(MAX_RULE_BYTES).unwrap() / 6 + 1));
    assert_eq!(ours(&project, &PATHS), BTreeSet::new());
    // A pipe with that name does not block the reader.
    fs::remove_file(top.join(".gitignore")).unwrap();
    nix::unistd::mkfifo(&top.join(".gitignore"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!(ours(&project, &PATHS), BTreeSet::new());
}

#[test]
fn bug_an_agents_own_ignore_rules_kept_its_files_out_of_the_chronicle() {
    let home = TempDir::new().unwrap();
    let (top, project) = (home.path().join("top"), home.path().join("top/apps/web"));
    fs::create_dir_all(&project).unwrap();
    assert!(git(&top, &["init", "--quiet"]).status().unwrap().success());
    put(&top, ".git/info/exclude", "excluded.ts\n");
    put(&top, ".gitignore", "*.log\n/apps/web/src/above.ts\n");
    put(&project, "src/.ignore", "hidden.ts\n");
    let paths = ["a.log", "src/above.ts", "src/hidden.ts", "src/excluded.ts", "src/new.ts", "b/c/d.ts"];
    let set = |paths: &[&str]| -> BTreeSet<String> { paths.iter().map(|path| (*path).to_owned()).collect() };

    // Before the first commit there is no committed rule.
    assert_eq!(left_out(&project, &paths), set(&["src/excluded.ts"]));
    commit(&top);
    let committed = set(&["a.log", "src/above.ts", "src/hidden.ts", "src/excluded.ts"]);
    assert_eq!(left_out(&project, &paths), committed);

    // Rules that are in no commit hide nothing, wherever they are.
    for (file, rule) in [
        ("apps/web/.gitignore", "*\n"),
        ("apps/web/.ignore", "*\n"),
        ("apps/web/src/.gitignore", "*.ts\n"),
        ("apps/web/b/c/.ignore", "*\n"),
        ("apps/.gitignore", "web\n"),
    ] {
        put(&top, file, rule);
        assert_eq!(left_out(&project, &paths), committed, "{file}");
        fs::remove_file(top.join(file)).unwrap();
    }
    // Nor does a staged one.
    put(&project, ".gitignore", "*\n");
    assert!(git(&top, &["add", "--force", "apps/web/.gitignore"]).status().unwrap().success());
    assert_eq!(left_out(&project, &paths), committed);
    fs::remove_file(project.join(".gitignore")).unwrap();
    // They do bring files in: a rule that is gone counts no more, and neither does one that is reverted.
    put(&project, ".gitignore", "!a.log\n");
    fs::remove_file(project.join("src/.ignore")).unwrap();
    assert_eq!(left_out(&project, &paths), set(&["src/above.ts", "src/excluded.ts"]));
}

#[test]
fn bug_rules_without_end_held_up_the_record_of_a_call() {
    let home = TempDir::new().unwrap();
    let project = home.path();
    assert!(git(project, &["init", "--quiet"]).status().unwrap().success());
    put(project, ".gitignore", "*.log\n");
    let line = "*.tmp\n";
    let large = line.repeat(usize::try_from(MAX_RULE_BYTES).unwrap() / line.len());
    let names: Vec<String> = (0..8).map(|number| format!("d{number}/a.log")).collect();
    for number in 0..8 {
        put(project, &format!("d{number}/.gitignore"), &large);
    }
    commit(project);
    let few: Vec<&str> = names.iter().take(2).map(String::as_str).collect();
    assert_eq!(left_out(project, &few).len(), 2);
    // More rules than a person writes: nothing is hidden, and no more of them is read.
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(left_out(project, &all), BTreeSet::new());
}

#[test]
fn the_kernels_directory_is_the_one_at_the_top() {
    for path in [".tgp", ".tgp/tools/a.ts", ".tgp/.state/audit.sqlite"] {
        assert!(tgp_fs::is_in_kernel_directory(path), "{path}");
    }
    for path in ["", ".tgpx", ".tgp.ts", "a/.tgp", "a/.tgp/tools/b.ts", "tgp/a", ".TGP/a"] {
        assert!(!tgp_fs::is_in_kernel_directory(path), "{path}");
    }
}

#[test]
fn without_a_repository_the_chronicle_leaves_nothing_out() {
    let home = TempDir::new().unwrap();
    rules(home.path());
    assert!(!ours(home.path(), &PATHS).is_empty());
    assert_eq!(left_out(home.path(), &PATHS), BTreeSet::new());
}

#[test]
fn committed_links_and_large_files_of_rules_have_no_rules() {
    let home = TempDir::new().unwrap();
    let project = home.path();
    assert!(git(project, &["init", "--quiet"]).status().unwrap().success());
    put(project, "elsewhere", "*.ts\n");
    symlink("elsewhere", project.join(".gitignore")).unwrap();
    put(project, "src/.gitignore", "*.log\n".repeat(usize::try_from(MAX_RULE_BYTES).unwrap() / 6 + 1));
    commit(project);
    // On the disk they are plain and small now.
    fs::remove_file(project.join(".gitignore")).unwrap();
    put(project, ".gitignore", "*.ts\n");
    put(project, "src/.gitignore", "*.log\n");
    assert!(ours(project, &PATHS).len() > 3);
    assert_eq!(left_out(project, &PATHS), BTreeSet::new());
}

#[test]
fn a_linked_work_tree_goes_by_its_own_commit() {
    let home = TempDir::new().unwrap();
    let (main, linked) = (home.path().join("main"), home.path().join("linked"));
    fs::create_dir(&main).unwrap();
    assert!(git(&main, &["init", "--quiet"]).status().unwrap().success());
    commit(&main);
    let arguments = ["worktree", "add", "--quiet", "../linked"];
    assert!(git(&main, &arguments).status().unwrap().success());
    put(&linked, ".gitignore", "*.log\n");
    commit(&linked);
    put(&main, ".gitignore", "*.log\n");
    assert!(left_out(&linked, &PATHS).contains("a.log"));
    assert_eq!(left_out(&main, &PATHS), BTreeSet::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the rules say, they say the same to git.
    #[test]
    fn any_rules_mean_what_they_mean_to_git(
        above in rule_lines(), own in rule_lines(), deep in rule_lines(), exclude in rule_lines(),
    ) {
        let home = TempDir::new().unwrap();
        let (top, project) = (home.path().join("top"), home.path().join("top/p"));
        fs::create_dir_all(&project).unwrap();
        prop_assert!(git(&top, &["init", "--quiet"]).status().unwrap().success());
        put(&top, ".gitignore", above);
        put(&project, ".gitignore", own);
        put(&project, "d/.gitignore", deep);
        put(&top, ".git/info/exclude", exclude);
        let paths = ["{a,b.x}", "d/x{", "a", "b.x", "d/a", "d/b.x", "d/e/a", "d/e/b.x", "e/a", "e/d/b.x", "p/a"];
        let expected = by_git(&project, &paths);
        // The project itself may be ignored by what is above it; a user who works in it sees its files all the
        // same.
        prop_assume!(by_git(&top, &["p/"]).is_empty());
        prop_assert_eq!(ours(&project, &paths), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Whatever was committed and whatever the rules are now: the chronicle leaves out what git ignores both times.
    #[test]
    fn uncommitted_rules_only_bring_files_in(old in rule_lines(), new in rule_lines(), deep in rule_lines()) {
        let home = TempDir::new().unwrap();
        let project = home.path();
        prop_assert!(git(project, &["init", "--quiet"]).status().unwrap().success());
        let paths = ["{a,b.x}", "d/x{", "a", "b.x", "d/a", "d/b.x", "d/e/a", "d/e/b.x", "e/a", "e/d/b.x", "p/a"];
        put(project, ".gitignore", old);
        put(project, "d/.gitignore", deep);
        // Rules may name the files of rules; those are committed all the same.
        prop_assert!(git(project, &["add", "--force", ".gitignore", "d/.gitignore"]).status().unwrap().success());
        commit(project);
        let then = by_git(project, &paths);
        put(project, ".gitignore", new);
        let now = by_git(project, &paths);
        let both: BTreeSet<String> = then.intersection(&now).cloned().collect();
        prop_assert_eq!(left_out(project, &paths), both);
    }
}

fn rule_lines() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("a"),
        Just("b.x"),
        Just("*.x"),
        Just("d"),
        Just("e"),
        Just("d/e"),
        Just("**/e"),
        Just("d/**"),
        Just("?"),
        Just("[ab]*"),
        Just("{a,b.x}"),
        Just("*{"),
    ];
    let line = (any::<bool>(), any::<bool>(), name, any::<bool>()).prop_map(
        |(negated, anchored, name, directory)| {
            format!(
                "{}{}{name}{}\n",
                if negated { "!" } else { "" },
                if anchored { "/" } else { "" },
                if directory { "/" } else { "" }
            )
        },
    );
    proptest::collection::vec(line, 0..4).prop_map(|lines| lines.concat())
}
