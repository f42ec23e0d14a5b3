//! What is ignored, compared with git itself wherever git has a word on it.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use tempfile::TempDir;
use tgp_contract::RelativePath;
use tgp_fs::{MAX_RULE_BYTES, ignored};

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

/// The paths that are ignored, by us.
fn ours(project: &Path, paths: &[&str]) -> BTreeSet<String> {
    let asked: Vec<RelativePath> = paths.iter().map(|path| RelativePath::new(path).unwrap()).collect();
    let read = |file: &RelativePath| fs::read(project.join(file.as_str())).ok();
    let answers = ignored(project, &asked, &read);
    paths.iter().zip(answers).filter(|(_, ignored)| *ignored).map(|(path, _)| (*path).to_owned()).collect()
}

/// The paths that are ignored, by git, without anybody's own rules and whether they are tracked or not.
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
    // A pipe with that name hangs nobody.
    fs::remove_file(top.join(".gitignore")).unwrap();
    nix::unistd::mkfifo(&top.join(".gitignore"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!(ours(&project, &PATHS), BTreeSet::new());
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
        // The project itself may be ignored by what is above it; whoever works in it sees its files all the same.
        prop_assume!(by_git(&top, &["p/"]).is_empty());
        prop_assert_eq!(ours(&project, &paths), expected);
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
