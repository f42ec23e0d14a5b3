//! `e2e_5`: what `tgp init` makes of a folder, and what it leaves alone.

use crate::project::Project;

#[test]
fn e2e_5_cli_bootstrap() {
    let project = Project::empty();
    project.run(&["init"]).expect_code(0);
    for name in ["tgp.config.ts", ".tgp/meta.json", ".tgp/tgp.d.ts", ".tgp/tsconfig.json", ".gitignore"] {
        assert!(project.file(name).is_file(), "{name}");
    }
    for name in [".tgp/tools", ".tgp/bin"] {
        assert!(project.file(name).is_dir(), "{name}");
    }
    assert!(!project.file("package.json").exists(), "there was none to update");
    // What it wrote is a configuration that works.
    project.run(&["list"]).expect_code(0);
}

#[test]
fn e2e_5_run_twice_changes_nothing() {
    let project = Project::empty();
    project.write("package.json", "{\n    \"name\": \"app\"\n}\n");
    project.write(".gitignore", "node_modules");
    project.run(&["init"]).expect_code(0);
    let before = project.contents();
    let again = project.run(&["init"]).expect_code(0);
    assert_eq!(again.stdout, "nothing to do: this folder is a TGP project already\n");
    assert_eq!(project.contents(), before);
}

#[test]
fn e2e_5_a_package_json_keeps_order_and_indentation() {
    for (before, after) in [
        (
            "{\n\t\"zebra\": 1,\n\t\"dependencies\": {\n\t\t\"@tgp/core\": \"1\"\n\t},\n\t\"scripts\": {\n\t\t\"z\": \"1\",\n\t\t\"a\": \"2\"\n\t}\n}\n",
            "{\n\t\"zebra\": 1,\n\t\"dependencies\": {\n\t\t\"@tgp/core\": \"1\"\n\t},\n\t\"scripts\": {\n\t\t\"z\": \"1\",\n\t\t\"a\": \"2\",\n\t\t\"tgp\": \"tgp\"\n\t}\n}\n",
        ),
        (
            "{\n    \"dependencies\": { \"@tgp/core\": \"1\" },\n    \"version\": 1.50\n}",
            "{\n    \"dependencies\": {\n        \"@tgp/core\": \"1\"\n    },\n    \"version\": 1.5,\n    \"scripts\": {\n        \"tgp\": \"tgp\"\n    }\n}",
        ),
        // Without the client the script would have nothing to call.
        ("{ \"name\": \"app\" }", "{ \"name\": \"app\" }"),
        // One that has the script, and one whose scripts are not what they should be, stay as they are.
        ("{ \"scripts\": { \"tgp\": \"mine\" } }", "{ \"scripts\": { \"tgp\": \"mine\" } }"),
        ("{ \"scripts\": [] }", "{ \"scripts\": [] }"),
    ] {
        let project = Project::empty();
        project.write("package.json", before);
        project.run(&["init"]).expect_code(0);
        assert_eq!(project.read("package.json"), after);
    }
}

#[test]
fn e2e_5_a_gitignore_without_a_final_newline_keeps_its_last_line() {
    let project = Project::empty();
    project.write(".gitignore", "dist\nnode_modules");
    project.run(&["init"]).expect_code(0);
    let text = project.read(".gitignore");
    let rules: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rules, ["dist", "node_modules", "/.tgp/"]);
    assert!(text.ends_with('\n'));
}

#[test]
fn e2e_5_a_broken_package_json_is_refused_before_anything_is_written() {
    let project = Project::empty();
    project.write("package.json", "{ \"name\": ");
    let before = project.contents();
    let refused = project.run(&["init"]).expect_code(2);
    assert!(refused.stderr.contains("package.json` is not valid JSON"), "{refused:#?}");
    assert_eq!(project.contents(), before);
    // Corrected, the same command goes through.
    project.write("package.json", "{ \"name\": \"app\" }");
    project.run(&["init"]).expect_code(0);
}

#[test]
fn e2e_5_what_was_there_is_kept() {
    let project = Project::empty();
    project.write("tgp.config.ts", "export default { sandbox: { cpuMs: 20 } };\n");
    project.write(".tgp/tools/mine.ts", "args.n");
    project.write(".tgp/meta.json", "{\"tools\":{\"mine\":{}}}");
    project.run(&["init"]).expect_code(0);
    assert_eq!(project.read("tgp.config.ts"), "export default { sandbox: { cpuMs: 20 } };\n");
    assert_eq!(project.read(".tgp/meta.json"), "{\"tools\":{\"mine\":{}}}");
    assert_eq!(project.run(&["exec", "tools/mine.ts", "--args", r#"{"n": 3}"#]).stdout, "3\n");
}

#[test]
fn bug_exec_did_not_take_its_arguments_as_a_word() {
    let project = Project::empty();
    project.write(".tgp/tools/mine.ts", "args.n");
    project.run(&["init"]).expect_code(0);
    assert_eq!(project.run(&["exec", "tools/mine.ts", r#"{"n": 4}"#]).stdout, "4\n");
    let both = project.run(&["exec", "tools/mine.ts", r#"{"n": 4}"#, "--args", "{}"]).expect_code(2);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
    let broken = project.run(&["exec", "tools/mine.ts", "{n: 4}"]).expect_code(2);
    assert!(broken.stderr.contains("JSON"), "{}", broken.stderr);
}

#[test]
fn e2e_5_the_tool_repository_is_a_git_repository() {
    let project = Project::empty();
    if project.shell("git --version").code != Some(0) {
        return;
    }
    project.run(&["init"]).expect_code(0);
    let status = project.shell("git -C .tgp status --porcelain --branch").expect_code(0);
    assert!(status.stdout.starts_with("## No commits yet on main\n"), "{status:#?}");
    assert!(status.stdout.contains("?? tools/"), "{status:#?}");
    // The project's own repository does not see it.
    let outer =
        project.shell("git init --quiet . && git status --porcelain --untracked-files=all").expect_code(0);
    assert_eq!(outer.stdout, "?? .gitattributes\n?? .gitignore\n?? tgp.config.ts\n");
}

#[test]
fn e2e_5_without_git_it_warns_and_goes_on() {
    let project = Project::empty();
    let mut command = project.command(&["init"]);
    let output = command.env("PATH", project.path("bin")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(notes.starts_with("warning: git is not installed; tools have no history yet\n"), "{notes}");
    assert!(project.file(".tgp/tools").is_dir());
}

#[test]
fn e2e_5_a_folder_that_cannot_be_written_is_told() {
    let project = Project::empty();
    project.write("file", "");
    let refused = project.run(&["-C", "file", "init"]).expect_code(2);
    assert!(refused.stderr.contains("`file` is not a directory"), "{refused:#?}");
    project.write(".tgp", "in the way");
    let refused = project.run(&["init"]);
    assert!(matches!(refused.code, Some(1..=3)), "{refused:#?}");
    assert!(refused.stderr.contains(".tgp/tools"), "{refused:#?}");
    assert_eq!(project.read(".tgp"), "in the way");
}

#[test]
fn bug_a_broken_git_configuration_ended_the_audits_thread() {
    let project = Project::initialised();
    project.run(&["list"]).expect_code(0);
    std::fs::create_dir_all(project.path("broken")).unwrap();
    std::fs::write(project.path("broken/.gitconfig"), "[user\n").unwrap();
    let ran = project.command(&["list"]).env("HOME", project.path("broken")).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    // The chain is whole, and the next start continues it.
    project.run(&["list"]).expect_code(0);
    project.run(&["audit", "verify"]).expect_code(0);
}

#[test]
fn bug_doctor_found_something_bad_and_ended_with_0() {
    let project = Project::initialised();
    project.run(&["doctor"]).expect_code(0);
    project.write("tgp.config.ts", "export default { db: { url: 'postgres://u:p@127.0.0.1:1/x' } };\n");
    project.trust();
    let ran = project.run(&["doctor"]).expect_code(1);
    assert!(ran.stdout.contains("bad  database") || ran.stderr.contains("bad  database"), "{ran:?}");
    let document = project.run(&["doctor", "--json"]).expect_code(1).document();
    assert_eq!(document["data"]["healthy"], false, "{document}");
}

#[test]
fn bug_doctor_waited_for_programs_that_hang_and_kept_all_they_print() {
    let project = Project::initialised();
    for (script, leaves) in
        [("sleep 100", true), ("echo git version 1; sleep 100 &", false), ("yes | head -c 50000000", false)]
    {
        // Beside the project: programs in it are not found at all.
        let (inside, beside) = (project.file("hang"), project.path("hang"));
        for folder in [&inside, &beside] {
            std::fs::create_dir_all(folder).unwrap();
            for name in ["git", "node"] {
                let mark = if folder == &inside { "touch planted" } else { script };
                std::fs::write(folder.join(name), format!("#!/bin/sh\n{mark}\n")).unwrap();
            }
        }
        let search = format!("{}:{}", inside.display(), beside.display());
        let command = format!("chmod +x hang/* ../hang/*; PATH={search}:$PATH timeout 60 tgp doctor");
        let ran = project.shell(&command).expect_code(0);
        assert!(!project.file("planted").exists(), "a program of the project was run");
        assert_eq!(ran.stdout.contains("not found, or silent"), leaves, "{script}: {ran:?}");
        assert!(ran.stdout.len() < 10_000, "{script}: {} bytes", ran.stdout.len());
    }
}

#[test]
fn bug_init_wrote_through_links() {
    for name in [".tgp", ".gitignore", ".gitattributes", "tgp.config.ts", "package.json"] {
        let project = Project::empty();
        let outside = project.path("outside");
        std::fs::create_dir(&outside).unwrap();
        let target = if name == ".tgp" { outside.clone() } else { outside.join("file") };
        if name == "package.json" {
            std::fs::write(&target, "{}").unwrap();
        }
        std::os::unix::fs::symlink(&target, project.file(name)).unwrap();
        let ran = project.run(&["init"]).expect_code(3);
        assert!(ran.stderr.contains("ESECURITY") && ran.stderr.contains(name), "{name}: {ran:?}");
        let left: Vec<_> = std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.iter().all(|path| std::fs::read(path).unwrap() == b"{}"), "{name}: {left:?}");
    }
}

#[test]
fn bug_doctor_was_content_with_invariants_and_personas_that_cannot_be_read() {
    let project = Project::initialised();
    project.run(&["doctor"]).expect_code(0);
    for (file, row) in [(".sage/invariants.yml", "bad  invariants"), (".sage/valve.yml", "bad  valve")] {
        project.write(file, "personas: [\ninvariants: {\n");
        let ran = project.run(&["doctor"]).expect_code(1);
        assert!(ran.stdout.contains(row) && ran.stdout.contains(file), "{}", ran.stdout);
        std::fs::remove_file(project.file(file)).unwrap();
    }
}

#[test]
fn doctor_names_the_directories_that_tools_only_read() {
    let project = Project::initialised();
    project.write("data/in.csv", "a;b\n");
    project.write("tgp.config.ts", "export default { fs: { readDirs: ['data'] } };\n");
    assert!(project.run(&["doctor"]).expect_code(0).stdout.contains("ok   read dirs"));
    project.write("tgp.config.ts", "export default { fs: { readDirs: ['data', 'dta'] } };\n");
    let ran = project.run(&["doctor"]).expect_code(0);
    assert!(ran.stdout.contains("fs.readDirs names no directory: dta"), "{}", ran.stdout);
}

#[test]
fn bug_an_empty_standard_input_emptied_a_tool() {
    let project = Project::initialised();
    let source = "/** One. */\nexport default function one(): number {\n  return 1;\n}\n";
    project.run_with_input(&["write", "tools/one.ts"], source).expect_code(0);
    let ran = project.run_with_input(&["write", "tools/one.ts"], "").expect_code(2);
    assert!(ran.stderr.contains("standard input is empty"), "{ran:?}");
    assert_eq!(project.run(&["read", "tools/one.ts"]).expect_code(0).stdout, source);
    project.run(&["write", "tools/one.ts", "--content", ""]).expect_code(0);
}

#[test]
fn bug_the_prompt_was_shown_without_its_mode() {
    let project = Project::initialised();
    for mode in ["strict", "debug", "explore"] {
        let prompt = project.run(&["run", "--show-prompt", "--mode", mode]).expect_code(0).stdout;
        assert!(prompt.contains(&format!("Mode `{mode}`:")), "{prompt}");
    }
    let document = project.run(&["--json", "run", "--show-prompt"]).expect_code(0).document();
    assert!(document["data"]["prompt"].as_str().unwrap().contains("Mode `strict`:"), "{document}");
}

#[test]
fn bug_a_dry_run_did_not_show_the_rows_that_it_would_change() {
    let project = Project::initialised();
    project.run(&["sql", "CREATE TABLE t (n INTEGER)"]).expect_code(0);
    let source = "/** Inserts a row. */\nexport default async function insert(): Promise<string> {\n  await tgp.exec_sql('INSERT INTO t VALUES (1)');\n  return 'done';\n}\n";
    project.run_with_input(&["write", "tools/insert.ts"], source).expect_code(0);
    let ran = project.run(&["exec", "tools/insert.ts", "--dry-run"]).expect_code(0);
    assert!(ran.stderr.contains("1 row changed, then undone: INSERT INTO t VALUES (1)"), "{ran:?}");
}
