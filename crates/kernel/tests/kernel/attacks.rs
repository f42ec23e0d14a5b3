//! Holes that an attack on the binary found, by files that a project or an agent puts in the way.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tgp::contract::{Consent, ToolError, ToolResult};
use tgp::trust::Trust;
use tgp::{BootOptions, Kernel};

use crate::router::{call, context};
use crate::support::{Project, code, data};

async fn boot(project: &Project, config: &Value, trust: Trust) -> Result<Kernel, ToolError> {
    project.put("tgp.config.json", &config.to_string());
    Kernel::boot(BootOptions { trust, ..project.options() }).await.map_err(ToolError::from)
}

async fn agreed(kernel: &Kernel, tool: &str, arguments: Value) -> ToolResult {
    kernel.call_with(call(tool, arguments), context(Consent::Everything)).await
}

/// Below the tool repository a path is that of a tool: `.git/config` would be `config`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_protected_place_of_the_project_could_be_the_tool_repository() {
    for place in
        [".", "./.git", ".git/hooks", ".aws", ".github", "a/.github/workflows", ".vscode", ".tgp/.state"]
    {
        let project = Project::new();
        std::fs::create_dir_all(project.file(place)).unwrap();
        let config = json!({ "rootDir": place });
        // The user cannot confirm it.
        let refused = boot(&project, &config, Trust::Everything).await.unwrap_err();
        assert_eq!(refused.code.as_str(), "ECONFIG", "{place}: {refused}");
        if let Ok(kernel) = boot(&project, &config, Trust::Nothing).await {
            assert_eq!(kernel.config().ignored, ["rootDir"], "{place}");
            kernel.shutdown().await;
        }
    }
    // Any other directory of the project is a person's choice.
    let project = Project::new();
    std::fs::create_dir_all(project.file("kit")).unwrap();
    let kernel = boot(&project, &json!({ "rootDir": "kit" }), Trust::Nothing).await.unwrap();
    assert_eq!(kernel.config().ignored, ["rootDir"]);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_rules_named_by_an_absolute_path_or_a_link_could_be_written() {
    const RULES: &str = "version: 1\nrules:\n  - {id: x, effect: deny, tools: fs_delete, reason: kept}\n";
    type Prepare = fn(&Project) -> Value;
    let cases: [(&str, Prepare, &[&str]); 5] = [
        (
            "absolute",
            |project| {
                project.put("conf/rules.yaml", RULES);
                json!({ "policy": { "files": [project.file("conf/rules.yaml")] } })
            },
            &["conf/rules.yaml"],
        ),
        (
            "a linked directory",
            |project| {
                project.put("conf/rules.yaml", RULES).put("sub/x", "");
                symlink("../conf", project.file("sub/c")).unwrap();
                json!({ "policy": { "files": ["sub/c/rules.yaml"] } })
            },
            &["conf/rules.yaml", "sub/c"],
        ),
        (
            "the usual file is a link",
            |project| {
                project.put("conf/rules.yaml", RULES);
                symlink("conf/rules.yaml", project.file("tgp.policy.yaml")).unwrap();
                json!({})
            },
            &["conf/rules.yaml", "tgp.policy.yaml"],
        ),
        (
            "absolute invariants",
            |project| {
                project.put("conf/holds.yml", "version: 1\ninvariants: []\n");
                json!({ "guardian": { "invariants": project.file("conf/holds.yml") } })
            },
            &["conf/holds.yml"],
        ),
        (
            "linked invariants",
            |project| {
                project.put("conf/holds.yml", "version: 1\ninvariants: []\n");
                symlink("conf/holds.yml", project.file("holds.yml")).unwrap();
                json!({ "guardian": { "invariants": "holds.yml" } })
            },
            &["conf/holds.yml", "holds.yml"],
        ),
    ];
    for (name, prepare, files) in cases {
        let project = Project::new();
        let config = prepare(&project);
        let kernel = boot(&project, &config, Trust::Everything).await.unwrap();
        for file in files {
            let written =
                agreed(&kernel, "fs_write", json!({ "path": file, "content": "version: 1\n" })).await;
            assert_eq!(code(&written), "EPOLICY", "{name}: {file}");
            let removed =
                agreed(&kernel, "shell_exec", json!({ "command": format!("rm -rf {file}; true") })).await;
            assert!(project.file(file).symlink_metadata().is_ok(), "{name}: {file}: {removed:?}");
        }
        kernel.shutdown().await;
    }
}

/// Build output is written without being judged, and a link in it chose the file that `exec_sql` opens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_link_in_the_place_of_the_database_was_followed() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("cookies.sqlite");
    let other = Project::new();
    let kernel = boot(&other, &json!({ "db": { "url": "sqlite:own.db" } }), Trust::Nothing).await.unwrap();
    data(&agreed(&kernel, "exec_sql", json!({ "sql": "CREATE TABLE cookies (v)" })).await);
    kernel.shutdown().await;
    std::fs::copy(other.file("own.db"), &secret).unwrap();
    let project = Project::new();
    std::fs::create_dir(project.file("target")).unwrap();
    let kernel =
        boot(&project, &json!({ "db": { "url": "sqlite:target/app.db" } }), Trust::Nothing).await.unwrap();
    assert!(kernel.config().ignored.is_empty());
    symlink(&secret, project.file("target/app.db")).unwrap();
    for sql in ["SELECT * FROM cookies", "INSERT INTO cookies VALUES (1)", "CREATE TABLE t (x)"] {
        assert_eq!(code(&agreed(&kernel, "exec_sql", json!({ "sql": sql })).await), "ESQL", "{sql}");
    }
    std::fs::remove_file(project.file("target/app.db")).unwrap();
    // The directory may be the link as well, and it may lead to nothing.
    std::fs::remove_dir(project.file("target")).unwrap();
    symlink(outside.path(), project.file("target")).unwrap();
    assert_eq!(code(&agreed(&kernel, "exec_sql", json!({ "sql": "CREATE TABLE t (x)" })).await), "ESQL");
    kernel.shutdown().await;
    let left: Vec<_> =
        std::fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["cookies.sqlite"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_link_to_nothing_made_a_database_outside_one_of_the_project() {
    let outside = tempfile::tempdir().unwrap();
    let project = Project::new();
    symlink(outside.path().join("new.db"), project.file("data.db")).unwrap();
    for url in ["sqlite:data.db", "sqlite:.sage/project.sage", "sqlite:tgp.policy.yaml", "sqlite:Makefile"] {
        let kernel = boot(&project, &json!({ "db": { "url": url } }), Trust::Nothing).await.unwrap();
        assert_eq!(kernel.config().ignored, ["db.url"], "{url}");
        kernel.shutdown().await;
    }
    assert!(!outside.path().join("new.db").exists());
}

/// The part before the `@`, which a person takes for user info, is the host to the client that sends the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_address_with_a_backslash_was_shown_as_another_one() {
    let address = "http://127.0.0.1:18777\\@good.example/v1";
    for config in [
        json!({ "llm": { "provider": "openai-chat", "baseUrl": address, "model": "m" } }),
        json!({ "llm": { "provider": address, "model": "m" } }),
        json!({ "registry": { "embeddings": { "baseUrl": address, "model": "m" } } }),
        json!({ "git": { "url": address } }),
        json!({ "llm": { "provider": "openai-chat", "baseUrl": "http://a.example/\t@b", "model": "m" } }),
    ] {
        let project = Project::new();
        let refused = boot(&project, &config, Trust::Everything).await.unwrap_err();
        assert_eq!(refused.code.as_str(), "ECONFIG", "{config}: {refused}");
        assert!(refused.message.contains("backslash"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_project_chose_a_script_as_the_model() {
    let project = Project::new();
    project.put("evil.json", "[]");
    let config = json!({ "llm": { "provider": "script:evil.json", "model": "gpt-5" } });
    let kernel = boot(&project, &config, Trust::Nothing).await.unwrap();
    assert_eq!(kernel.config().ignored, ["llm"]);
    assert_eq!(kernel.config().llm.provider, None);
    kernel.shutdown().await;
}

/// Whether a hidden file exists shows in which imports lead to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_unresolved_imports_told_which_hidden_files_exist() {
    let mut answers = Vec::new();
    for exists in [true, false] {
        let project = Project::new();
        project.put(
            "tgp.policy.yaml",
            "version: 1\nrules:\n  - {id: hide, effect: deny, where: {path: 'secret/**'}, reason: hidden}\n",
        );
        project.put(
            "tests/q.ts",
            "import '../secret/plan-a';\nimport '../secret/plan-b';\nimport '../.env';\nimport '../missing';\n",
        );
        if exists {
            project.put("secret/plan-b.ts", "export const b = 1;\n").put(".env", "KEY=1\n");
        }
        let kernel = boot(&project, &json!({}), Trust::Nothing).await.unwrap();
        let query = "MATCH (f:File)-[:IMPORTS]->(u:Unresolved) RETURN u.specifier ORDER BY u.specifier";
        let arguments = json!({ "query": query, "commit": "WORKTREE" });
        let answer = agreed(&kernel, "graph_query", arguments).await;
        answers.push(data(&answer)["results"].clone());
        kernel.shutdown().await;
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].to_string().contains("../missing"), "{answers:?}");
    assert!(!answers[0].to_string().contains("plan-a"), "{answers:?}");
}

/// The files of the default database are beside the state, and a clone can have links of their names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_the_place_of_the_default_database_is_not_followed() {
    for name in ["data.sqlite", "data.sqlite-wal", "data.sqlite-shm", "data.sqlite-journal"] {
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("precious");
        std::fs::write(&target, "kept").unwrap();
        let project = Project::new();
        symlink(&target, project.file(&format!(".tgp/{name}"))).unwrap();
        let refused = boot(&project, &json!({}), Trust::Everything).await.unwrap_err();
        assert_eq!(refused.code.as_str(), "ESECURITY", "{name}: {refused}");
        assert!(refused.to_string().contains(name), "{refused}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept", "{name}");
    }
}

/// What is in `.tgp/.state` of a clone was written through: settings over any file of the user, rows into any database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_link_in_the_state_of_a_cloned_project_was_followed() {
    for name in
        ["git-settings", "git-swept", "data.sqlite", "audit.sqlite", "tdd.sqlite", "sessions", "aql/x/y"]
    {
        let outside = tempfile::tempdir().unwrap();
        let target = outside.path().join("precious");
        std::fs::write(&target, "kept").unwrap();
        for (kind, leads_to) in [("a file", target.clone()), ("nothing", outside.path().join("new"))] {
            let project = Project::new();
            let link = project.file(&format!(".tgp/.state/{name}"));
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&leads_to, &link).unwrap();
            let refused = boot(&project, &json!({}), Trust::Everything).await.unwrap_err();
            assert_eq!(refused.code.as_str(), "ESECURITY", "{name} to {kind}: {refused}");
            assert!(refused.to_string().contains(name), "{refused}");
            std::fs::remove_file(&link).unwrap();
            boot(&project, &json!({}), Trust::Everything).await.unwrap().shutdown().await;
        }
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept", "{name}");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "{name}");
    }
    let project = Project::new();
    std::fs::create_dir_all(project.file(".tgp/.state")).unwrap();
    nix::unistd::mkfifo(&project.file(".tgp/.state/git-swept"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(boot(&project, &json!({}), Trust::Everything).await.unwrap_err().code.as_str(), "ESECURITY");
}

/// Bytecode and configurations are loaded from the cache without another look, and an agent writes in the project.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_cache_in_the_project_was_used() {
    let project = Project::new();
    project.put("tgp.config.ts", "export default { sandbox: { cpuMs: 2000 } };");
    std::fs::create_dir(project.file("cache")).unwrap();
    let link = tempfile::tempdir().unwrap();
    symlink(project.file("cache"), link.path().join("cache")).unwrap();
    for cache in [project.file("cache"), link.path().join("cache"), "relative".into()] {
        let options = BootOptions { cache_directory: Some(cache.clone()), ..project.options() };
        Kernel::boot(options).await.unwrap().shutdown().await;
        assert_eq!(std::fs::read_dir(project.file("cache")).unwrap().count(), 0, "{}", cache.display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_file_of_the_cache_could_stand_in_for_another() {
    use std::os::unix::fs::PermissionsExt;
    let cache = tempfile::tempdir().unwrap();
    let start = async |cpu: u32| {
        let project = Project::new();
        project.put("tgp.config.ts", &format!("export default {{ sandbox: {{ cpuMs: {cpu} }} }};"));
        let options = BootOptions { cache_directory: Some(cache.path().to_owned()), ..project.options() };
        let kernel = Kernel::boot(options).await.unwrap();
        let found = kernel.config().sandbox.limits.cpu.as_millis();
        kernel.shutdown().await;
        found
    };
    let files = || -> Vec<std::path::PathBuf> {
        let folders = std::fs::read_dir(cache.path()).unwrap().map(|folder| folder.unwrap().path());
        folders
            .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()))
            .collect()
    };
    assert_eq!(start(2000).await, 2000);
    let first = files();
    assert_eq!(start(3000).await, 3000);
    let holds = |path: &std::path::Path, text: &str| {
        String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(text)
    };
    let of_first = first.iter().find(|path| holds(path, "cpuMs")).unwrap();
    let of_second = files().into_iter().find(|path| !first.contains(path) && holds(path, "cpuMs")).unwrap();
    std::fs::copy(of_first, &of_second).unwrap();
    assert_eq!(start(3000).await, 3000, "another file's content was loaded");
    // One that others may write is not read, nor one behind a link.
    assert_eq!(start(3000).await, 3000);
    std::fs::set_permissions(&of_second, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(start(3000).await, 3000);
    std::fs::remove_file(&of_second).unwrap();
    symlink(of_first, &of_second).unwrap();
    assert_eq!(start(3000).await, 3000);
}
