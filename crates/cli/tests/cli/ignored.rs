//! One answer to "is this file ignored?": listing, graph, chronicle and valve agree.

use std::collections::BTreeSet;

use serde_json::json;

use crate::knowledge::{commit, git};
use crate::project::Project;

/// Paths, and whether they count.
const FILES: [(&str, bool); 10] = [
    ("src/a.ts", true),
    ("src/a.log", false),
    ("src/keep.log", true),
    ("src/build/out.ts", false),
    ("src/hidden.ts", false),
    ("src/excluded.ts", false),
    ("src/above.ts", false),
    ("src/shown.gen", true),
    ("src/other.gen", false),
    ("src/everywhere.ts", true),
];

fn names(counting: bool) -> BTreeSet<String> {
    FILES.iter().filter(|(_, counts)| *counts == counting).map(|(path, _)| (*path).to_owned()).collect()
}

#[test]
fn bug_listing_graph_chronicle_and_valve_had_three_answers_to_what_is_ignored() {
    // The project is in a subdirectory of its repository, and every place that may hold rules has some.
    let project = Project::empty();
    git(&project, &["init", "--quiet", ".."]);
    std::fs::write(project.path(".gitignore"), "/here/src/above.ts\n*.gen\n").unwrap();
    std::fs::write(project.path(".git/info/exclude"), "excluded.ts\n/home\n/cache\n/tmp\n/bin\n").unwrap();
    project.run(&["init"]).expect_code(0);
    project.explore();
    // A file that only this user's own rules ignore still counts.
    let everywhere = project.path("home/everywhere");
    std::fs::write(&everywhere, "everywhere.ts\n").unwrap();
    git(&project, &["config", "core.excludesFile", &everywhere.display().to_string()]);
    project.write("src/.gitignore", "*.log\n!keep.log\n!shown.gen\n");
    project.write(".ignore", "hidden.ts\n/src/build/\n");
    project.write(".sage/valve.yml", "personas:\n  - name: all\n    filters: ['.']\n");
    commit(&project, "rules");
    project.run(&["valve", "scan"]).expect_code(0);
    for (path, _) in FILES {
        let args = json!({ "path": path, "content": "export const a = 1;\n" }).to_string();
        project.run(&["call", "fs_write", &args, "--yes"]).expect_code(0);
    }
    let chronicled = |path: &str| project.path(&format!("here/.sage/files/{path}.sage")).exists();
    let listed = project.run(&["call", "search_glob", r#"{"pattern": "**"}"#]).expect_code(0).stdout;
    let query = "MATCH (f:File) RETURN f.path AS path";
    let graph =
        project.run(&["--json", "graph", "query", query, "--commit", "WORKTREE"]).expect_code(0).stdout;
    let told: BTreeSet<String> =
        names(true).into_iter().chain(names(false)).filter(|path| chronicled(path)).collect();
    assert_eq!(told, names(true), "the chronicle");
    let scanned = project.run(&["--json", "valve", "scan"]).expect_code(0).stdout;
    for (path, counts) in FILES {
        assert_eq!(listed.contains(&format!("\"{path}\"")), counts, "search_glob: {path}\n{listed}");
        assert_eq!(graph.contains(&format!("\"{path}\"")), counts, "graph: {path}\n{graph}");
        assert_eq!(scanned.contains(path), counts, "valve: {path}\n{scanned}");
    }
}

/// A project in a repository with one commit, in which no test has to come first.
fn committed() -> Project {
    let project = Project::empty();
    git(&project, &["init", "--quiet"]);
    project.run(&["init"]).expect_code(0);
    project.explore();
    project.write("src/.gitignore", "*.log\n");
    commit(&project, "rules");
    project
}

fn is_chronicled(project: &Project, path: &str) -> bool {
    project.file(&format!(".sage/files/{path}.sage")).exists()
}

#[test]
fn bug_an_agent_kept_its_files_out_of_the_chronicle_with_its_own_ignore_rules() {
    let project = committed();
    let call = |tool: &str, arguments: serde_json::Value| {
        project.run(&["call", tool, &arguments.to_string(), "--yes"]).expect_code(0);
    };
    let write = |path: &str, content: &str| call("fs_write", json!({ "path": path, "content": content }));
    // In one call the rule, in the next the file.
    write(".ignore", "src/one.ts\n");
    write("src/one.ts", "export const a = 1;\n");
    write("src/deep/.gitignore", "*\n");
    write("src/deep/two.ts", "export const a = 2;\n");
    // Both in one call.
    call(
        "shell_exec",
        json!({ "command": "mkdir -p src/new && echo '*' > src/new/.gitignore && echo 3 > src/new/three.ts" }),
    );
    for path in
        ["src/one.ts", "src/deep/.gitignore", "src/deep/two.ts", "src/new/.gitignore", "src/new/three.ts"]
    {
        assert!(is_chronicled(&project, path), "{path}");
    }
    // What a person has committed counts, and what the agent reverts is reported.
    write("src/four.log", "x\n");
    assert!(!is_chronicled(&project, "src/four.log"));
    write("src/.gitignore", "");
    write("src/five.log", "x\n");
    assert!(is_chronicled(&project, "src/five.log"));
    // A listing goes by the rules as they are.
    let listed = project.run(&["call", "search_glob", r#"{"pattern": "src/**"}"#]).expect_code(0).stdout;
    assert!(listed.contains("src/five.log") && !listed.contains("src/one.ts"), "{listed}");
}

#[test]
fn bug_listing_graph_chronicle_and_valve_disagreed_on_nested_kernel_directories() {
    let project = committed();
    project.write(".sage/valve.yml", "personas:\n  - name: all\n    filters: ['.']\n");
    project.run(&["valve", "scan"]).expect_code(0);
    let own = [".tgp/tools/own.ts", ".tgp/own.ts"];
    let counting = [
        "src/a/.tgp/tools/x.ts",
        "src/a/.tgp/y.ts",
        "src/.tgp/z.ts",
        "src/.tgp.ts",
        "src/.tgpx/a.ts",
        ".tgpx/b.ts",
    ];
    for path in own {
        project.write(path, "/** One. */\nexport default () => 1;\n");
        let args = json!({ "path": path, "content": "1" }).to_string();
        assert_ne!(project.run(&["call", "fs_write", &args, "--yes"]).code, Some(0), "{path}");
    }
    for path in counting {
        let args = json!({ "path": path, "content": "export const a = 1;\n" }).to_string();
        project.run(&["call", "fs_write", &args, "--yes"]).expect_code(0);
    }
    let listed = project.run(&["call", "search_glob", r#"{"pattern": "**"}"#]).expect_code(0).stdout;
    let fs_list = project.run(&["call", "fs_list", r#"{"depth": 9}"#]).expect_code(0).stdout;
    let query = "MATCH (f:File) RETURN f.path AS path";
    let graph =
        project.run(&["--json", "graph", "query", query, "--commit", "WORKTREE"]).expect_code(0).stdout;
    let scanned = project.run(&["--json", "valve", "scan"]).expect_code(0).stdout;
    let chronicle = project.run(&["chronicle", "read", ".sage/project.sage"]).stdout;
    for (path, counts) in own.map(|path| (path, false)).into_iter().chain(counting.map(|path| (path, true))) {
        let quoted = format!("\"{path}\"");
        let is_told = is_chronicled(&project, path) || chronicle.contains(&quoted);
        let table = [
            ("search_glob", listed.contains(&quoted)),
            ("fs_list", fs_list.contains(&quoted)),
            ("graph", graph.contains(&quoted)),
            ("valve", scanned.contains(&quoted)),
            ("chronicle", is_told),
        ];
        for (part, answer) in table {
            assert_eq!(answer, counts, "{part}: {path}");
        }
    }
}
