//! Faults that a hostile review of the gates has found, each with its own test.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tgp::contract::{CallContext, Consent, ToolResult};
use tgp::gates::Caveats;
use tgp::{BootOptions, Kernel};

use crate::approval::{Asked, boot};
use crate::router::{call, context};
use crate::support::{Project, code, data, error};

const PRIVATE: &str = "version: 1\nrules:\n  - {id: private, effect: deny, where: {path: {glob: 'vault/**', access: read}}, reason: not yours}\n";

/// A project with a file that a rule forbids to read.
fn with_vault() -> Project {
    let project = Project::new();
    project.put("vault/secret.txt", "topsecret\n").put("open.txt", "nothing topsecret here\n");
    project.put("tgp.policy.yaml", PRIVATE);
    project.put(
        "tgp.config.json",
        &json!({ "fs": { "allowedDirs": ["./vault", "./tmp"] }, "sandbox": { "cpuMs": 5_000 } }).to_string(),
    );
    project
}

/// Makes the rules of a project unreadable.
type Prepare<'a> = &'a dyn Fn(&Project);

fn commands_run() -> bool {
    let complete = tgp::sandbox::process_support().complete();
    if !complete {
        println!("commands cannot run here, skipped");
    }
    complete
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_what_a_rule_forbids_to_read_was_found_by_search_and_shell() {
    let project = with_vault();
    project.tool("peek.ts", "export default async (): Promise<string> => tgp.read_file('vault/secret.txt');");
    project.tool("list.ts", "export default async (): Promise<string[]> => tgp.list_files('vault');");
    let kernel = project.boot().await.unwrap();
    assert_eq!(code(&kernel.call("fs_read", json!({ "path": "vault/secret.txt" })).await), "EPOLICY");
    for (tool, arguments) in [
        ("search_grep", json!({ "pattern": "topsecret" })),
        ("search_glob", json!({ "pattern": "**/*.txt" })),
        ("fs_list", json!({ "depth": 5 })),
        ("exec_tool", json!({ "path": "tools/peek.ts" })),
        ("exec_tool", json!({ "path": "tools/list.ts" })),
    ] {
        let answer = kernel.call(tool, arguments.clone()).await;
        let told = format!("{answer:?}");
        assert!(
            !told.contains("secret.txt\"") && !told.contains("topsecret\\n"),
            "{tool} {arguments}: {told}"
        );
    }
    let found = kernel.call("search_grep", json!({ "pattern": "topsecret" })).await;
    assert_eq!(
        data(&found)["matches"].as_array().unwrap().len(),
        1,
        "the other file is still found: {found:?}"
    );
    if commands_run() {
        let command = "cat vault/secret.txt; cat vault/*; ls vault; python3 -c \"print(open('vault/secret.txt').read())\"; cat open.txt";
        let told = format!("{:?}", kernel.call("shell_exec", json!({ "command": command })).await);
        assert!(told.contains("nothing topsecret here"), "{told}");
        assert_eq!(told.matches("topsecret").count(), 1, "{told}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_dry_run_showed_what_may_not_be_read_and_evaded_a_question() {
    let project = with_vault();
    project.put(
        "tgp.policy.yaml",
        &format!("{PRIVATE}  - {{id: ask-sql, effect: ask, tools: exec_sql, reason: ask Ann first}}\n"),
    );
    let kernel = project.boot().await.unwrap();
    let dry = || CallContext { dry_run: true, ..context(Consent::Ask) };
    let preview = call("fs_write", json!({ "path": "vault/secret.txt", "content": "" }));
    assert_eq!(code(&kernel.call_with(preview, dry()).await), "EPOLICY");
    let rows = kernel.call_with(call("exec_sql", json!({ "sql": "SELECT 1 AS one" })), dry()).await;
    assert_eq!(code(&rows), "EAPPROVAL", "a rule that asks is asked in a dry run too");
    assert!(format!("{rows:?}").contains("ask Ann first"), "the reason is told: {rows:?}");
    let other = call("fs_write", json!({ "path": "open.txt", "content": "" }));
    assert!(kernel.call_with(other, dry()).await.is_ok(), "where only the default asks, a preview is free");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_rules_that_could_not_be_read_were_no_rules() {
    let broken = |prepare: Prepare<'_>| {
        let project = Project::new();
        prepare(&project);
        project
    };
    let policy = |project: &Project| project.file(".tgp/policy");
    let cases: [(&str, Prepare<'_>); 5] = [
        ("a file in place of the folder", &|project| std::fs::write(policy(project), "x").unwrap()),
        ("a folder that is a dangling link", &|project| {
            std::os::unix::fs::symlink("/nonexistent/x", policy(project)).unwrap()
        }),
        ("a dangling link to a file", &|project| {
            std::fs::create_dir(policy(project)).unwrap();
            std::os::unix::fs::symlink("/nonexistent/x", policy(project).join("a.yaml")).unwrap();
        }),
        ("a file that was named and is not there", &|project| {
            project
                .put("tgp.config.json", &json!({ "policy": { "files": ["rules/mine.yaml"] } }).to_string());
        }),
        ("a pipe, which hung", &|project| {
            nix::unistd::mkfifo(
                &project.file("tgp.policy.yaml"),
                nix::sys::stat::Mode::from_bits_truncate(0o600),
            )
            .unwrap();
        }),
    ];
    for (name, prepare) in cases {
        let project = broken(prepare);
        let error = project.boot().await.err().unwrap_or_else(|| panic!("{name}: the kernel boots"));
        assert_eq!(tgp::contract::ToolError::from(error).code.as_str(), "ECONFIG", "{name}");
    }
    // As an ordinary user, also a folder without permissions; root may read it all the same.
    let project = Project::new();
    std::fs::create_dir(policy(&project)).unwrap();
    std::fs::set_permissions(policy(&project), std::fs::Permissions::from_mode(0o000)).unwrap();
    let refused = project.boot().await.is_err();
    std::fs::set_permissions(policy(&project), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert!(refused || nix::unistd::geteuid().is_root());
}

fn in_session(session: &str) -> CallContext {
    CallContext { session: session.to_owned(), ..context(Consent::Given) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_sequence_rules_did_not_see_what_a_command_changes() {
    if !commands_run() {
        return;
    }
    let project = Project::new();
    project.put(
        "tgp.policy.yaml",
        "version: 1\nsequences:\n  - {id: few, at_most: 2, of: {tools: '*', where: {path: {glob: '**', access: delete}}}, reason: enough}\n",
    );
    for number in 1..=6 {
        project.put(&format!("n/{number}.md"), "x");
    }
    let kernel = project.boot().await.unwrap();
    let shell = async |kernel: &Kernel, command: &str| -> ToolResult {
        kernel.call_with(call("shell_exec", json!({ "command": command })), in_session("s")).await
    };
    assert_eq!(
        code(&shell(&kernel, "rm n/1.md n/2.md n/3.md").await),
        "EPOLICY",
        "three at once are too many"
    );
    assert!(project.file("n/1.md").exists(), "all or nothing");
    assert!(shell(&kernel, "rm n/1.md").await.is_ok(), "what was refused does not count");
    assert!(shell(&kernel, "rm n/2.md").await.is_ok());
    assert_eq!(code(&shell(&kernel, "rm n/3.md").await), "EPOLICY");
    let delete = call("fs_delete", json!({ "path": "n/4.md" }));
    assert_eq!(code(&kernel.call_with(delete, in_session("s")).await), "EPOLICY");
    kernel.shutdown().await;
    let kernel = project.boot().await.unwrap();
    assert_eq!(
        code(&shell(&kernel, "rm n/5.md").await),
        "EPOLICY",
        "a restart remembers the command's files"
    );
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_build_output_was_written_against_an_explicit_rule() {
    if !commands_run() {
        return;
    }
    let project = Project::new();
    std::fs::create_dir(project.file("target")).unwrap();
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: no-target, effect: deny, tools: [fs_write], where: {path: 'target/**'}, reason: it is kept}\n",
    );
    let kernel = project.boot().await.unwrap();
    let answer =
        kernel.call("shell_exec", json!({ "command": "echo x > target/denied", "template": "build" })).await;
    assert_eq!(code(&answer), "EPOLICY");
    assert!(!project.file("target/denied").exists());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_secret_with_a_strange_name_was_read_by_a_command() {
    if !commands_run() {
        return;
    }
    let project = Project::new();
    project.put("weird\nname.pem", "treasure\n").put("a\\b.key", "treasure\n");
    let kernel = Kernel::boot(BootOptions { ..project.options() }).await.unwrap();
    let answer = kernel.call("shell_exec", json!({ "command": "cat ./*; mkdir made" })).await;
    assert!(!format!("{answer:?}").contains("treasure"), "{answer:?}");
    let made = json!({ "path": "made", "change": "directory made" });
    assert!(
        data(&answer)["changes"].as_array().unwrap().contains(&made),
        "a directory is a change too: {answer:?}"
    );
    let listed: Vec<&Value> = data(&answer)["changes"].as_array().unwrap().iter().collect();
    assert_eq!(listed.len(), 1, "{listed:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_rule_that_named_a_file_tool_by_an_alias_did_not_reach_files_that_were_come_across() {
    for tools in ["Read", "fs.read", "fs.*", "R*", "fs_read"] {
        let project = with_vault();
        let rules = format!(
            "version: 1\nrules:\n  - {{id: private, effect: deny, tools: ['{tools}'], where: {{path: 'vault/**'}}}}\n"
        );
        project.put("tgp.policy.yaml", &rules);
        let kernel = project.boot().await.unwrap();
        for (tool, arguments) in [
            ("search_grep", json!({ "pattern": "topsecret" })),
            ("search_glob", json!({ "pattern": "**/*.txt" })),
            ("fs_list", json!({ "depth": 5 })),
        ] {
            let answer = kernel.call(tool, arguments).await;
            assert!(!data(&answer).to_string().contains("secret.txt"), "{tools}: {tool}: {answer:?}");
        }
        kernel.shutdown().await;
    }
    if !commands_run() {
        return;
    }
    let project = with_vault();
    let rules = "version: 1\nrules:\n  - {id: private, effect: deny, tools: [Read], where: {path: 'vault/**'}}\n  - {id: kept, effect: deny, tools: ['W*'], where: {path: 'kept/**'}}\n  - {id: stays, effect: deny, tools: ['fs.delete'], where: {path: 'open.txt'}}\n";
    project.put("tgp.policy.yaml", rules);
    let kernel = project.boot().await.unwrap();
    let shell = async |command: &str| kernel.call("shell_exec", json!({ "command": command })).await;
    let told = format!("{:?}", shell("cat vault/secret.txt").await);
    assert!(!told.contains("topsecret"), "{told}");
    for command in ["mkdir kept; echo x > kept/file", "rm open.txt"] {
        assert_eq!(code(&shell(command).await), "EPOLICY", "{command}");
    }
    assert!(!project.file("kept").exists() && project.file("open.txt").exists());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_sequence_rules_with_a_path_did_not_hold_for_files_that_were_come_across() {
    let project = with_vault();
    let rules = "version: 1\nsequences:\n  - {id: closed, after: {tool: fs_exists}, deny: {tool: Read, where: {path: 'vault/**'}}}\n  - {id: few, at_most: 1, of: {tools: [fs_read], where: {path: 'open.txt'}}}\n";
    project.put("tgp.policy.yaml", rules);
    let kernel = project.boot().await.unwrap();
    let finds = async |name: &str| {
        let found = kernel.call("search_grep", json!({ "pattern": "topsecret" })).await;
        data(&found).to_string().contains(name)
    };
    assert!(finds("secret.txt").await && finds("open.txt").await, "nothing has happened yet");
    // The last call that a limit leaves sees its file.
    data(&kernel.call("fs_read", json!({ "path": "open.txt" })).await);
    assert_eq!(code(&kernel.call("fs_read", json!({ "path": "open.txt" })).await), "EPOLICY");
    assert!(!finds("open.txt").await, "a limit that is used up holds for a search, too");
    assert!(finds("secret.txt").await, "the other rule still waits for its step");
    data(&kernel.call("fs_exists", json!({ "path": "open.txt" })).await);
    assert_eq!(code(&kernel.call("fs_read", json!({ "path": "vault/secret.txt" })).await), "EPOLICY");
    assert!(!finds("secret.txt").await);
    if commands_run() {
        let told = format!("{:?}", kernel.call("shell_exec", json!({ "command": "cat vault/*" })).await);
        assert!(!told.contains("topsecret"), "{told}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_directories_that_a_command_made_or_removed_were_not_judged() {
    if !commands_run() {
        return;
    }
    let project = Project::new();
    project.put("src/a.txt", "a\n").put("tgp.config.json", "{}");
    std::fs::create_dir_all(project.file("src/gone-old")).unwrap();
    let rules = "version: 1\nrules:\n  - {id: no-evil, effect: deny, where: {path: '**/evil*'}, reason: none}\n  - {id: stays, effect: deny, tools: [fs_delete], where: {path: 'src/gone*'}}\n";
    project.put("tgp.policy.yaml", rules);
    let kernel = project.boot().await.unwrap();
    let shell = async |command: &str, token| {
        let context = CallContext { token, ..context(Consent::Given) };
        kernel.call_with(call("shell_exec", json!({ "command": command })), context).await
    };
    for command in ["mkdir -p src/evildir", "mkdir -p src/evildir/inner", "rmdir src/gone-old"] {
        assert_eq!(code(&shell(command, None).await), "EPOLICY", "{command}");
        assert!(!project.file("src/evildir").exists() && project.file("src/gone-old").exists(), "{command}");
    }
    data(&shell("mkdir -p src/good/inner; mkdir src/more; echo x > src/more/file", None).await);
    assert!(project.file("src/good/inner").exists() && project.file("src/more/file").exists());
    let caveats = Caveats { paths: Some(vec!["src/**".to_owned()]), ..Caveats::default() };
    let token = kernel.mint_token(&caveats).await.unwrap();
    let answer = shell("mkdir outside", Some(token)).await;
    assert_eq!(code(&answer), "EPOLICY", "{answer:?}");
    assert!(!project.file("outside").exists());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_an_import_told_whether_a_hidden_source_exists() {
    let project = Project::new();
    project
        .tool("hid/yes.ts", "export default () => 'canary';")
        .tool("hid/data.txt", "canary")
        .tool("hid/a.test.ts", "canary")
        .tool("plain.ts", "import x from './nowhere';\nexport default () => x;")
        .put("tgp.config.json", "{}");
    let names = ["yes", "no", "yes.ts", "no.ts", "data.txt", "none.txt", "a.test.ts", "b.test.ts"];
    for (place, name) in names.iter().enumerate() {
        let source = format!("import x from './hid/{name}';\nexport default () => x;");
        project.tool(&format!("import{place}.ts"), &source);
    }
    let rules = "version: 1\nrules:\n  - {id: hidden, effect: deny, where: {path: 'tools/hid/**'}}\n";
    project.put("tgp.policy.yaml", rules);
    let kernel = project.boot().await.unwrap();
    for tool in ["check_tool", "exec_tool"] {
        let mut told = Vec::new();
        for (place, name) in names.iter().enumerate() {
            let path = format!("tools/import{place}.ts");
            let answer = kernel.call(tool, json!({ "path": path })).await;
            assert_eq!(code(&answer), "EPOLICY", "{tool} {name}: {answer:?}");
            let said = error(&answer);
            told.push(format!("{} {:?}", said.message, said.details));
        }
        assert!(told.iter().all(|said| *said == told[0]), "{tool}: {told:#?}");
    }
    let plain = kernel.call("exec_tool", json!({ "path": "tools/plain.ts" })).await;
    assert_eq!(code(&plain), "ENOTFOUND", "what no rule hides is still explained: {plain:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_write_told_whether_a_hidden_thing_exists() {
    let project = Project::new();
    project
        .put("wo/a.txt", "a\n")
        .put("wo/drawer1/x", "x\n")
        .put("mixed/k.secret", "s\n")
        .put("tgp.config.json", "{}");
    project.tool("wo/t.ts", "export default () => 1;");
    std::fs::create_dir_all(project.file("mixed2")).unwrap();
    let rules = "version: 1\nrules:\n  - {id: wo, effect: deny, tools: [fs_read], where: {path: ['wo/**', '**/*.secret']}}\n  - {id: tool, effect: deny, tools: [read_file], where: {path: 'tools/wo/**'}}\n";
    project.put("tgp.policy.yaml", rules);
    let kernel = project.boot().await.unwrap();
    let told = async |tool: &str, arguments: Value, name: &str| {
        let answer = kernel.call(tool, arguments).await;
        format!("{answer:?}").replace(name, "NAME")
    };
    let write = |path: &str| json!({ "path": path, "content": "x" });
    let path = |path: &str| json!({ "path": path });
    for (tool, there, missing) in [
        ("fs_write", write("wo/a.txt/x"), write("wo/b.txt/x")),
        ("fs_delete", path("wo/drawer1"), path("wo/drawer2")),
        ("fs_delete", path("wo/a.txt/x"), path("wo/b.txt/x")),
        ("fs_delete", path("mixed"), path("mixed2")),
    ] {
        let name = |arguments: &Value| {
            let path = arguments["path"].as_str().unwrap().trim_end_matches("/x").to_owned();
            path.rsplit('/').next().unwrap().to_owned()
        };
        let (one, other) = (name(&there), name(&missing));
        let (one, other) = (told(tool, there.clone(), &one).await, told(tool, missing, &other).await);
        assert_eq!(one, other, "{tool} {there}");
    }
    // A directory in which nothing can be hidden is still deleted.
    std::fs::create_dir_all(project.file("free")).unwrap();
    project.put("tgp.policy.yaml", &rules.replace(", '**/*.secret'", ""));
    data(&kernel.call("fs_delete", json!({ "path": "free" })).await);
    let source = |name: &str| json!({ "path": format!("tools/wo/{name}.ts"), "content": format!("export default () => '{name}';") });
    for name in ["t", "u"] {
        let answer = kernel.call("write_file", source(name)).await;
        assert_eq!(data(&answer)["created"], true, "{name}: {answer:?}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_rule_with_a_path_for_a_command_had_no_effect_on_what_the_command_wrote() {
    if !commands_run() {
        return;
    }
    for tools in ["shell_exec", "Bash", "effect:execute"] {
        let project = Project::new();
        project.put("notes/a.md", "a\n").put("tgp.config.json", "{}");
        let rules = format!(
            "version: 1\nrules:\n  - {{id: no-notes, effect: deny, tools: ['{tools}'], where: {{path: 'notes/**'}}}}\n"
        );
        project.put("tgp.policy.yaml", &rules);
        let kernel = project.boot().await.unwrap();
        let shell = async |command: &str| {
            kernel.call_with(call("shell_exec", json!({ "command": command })), context(Consent::Given)).await
        };
        assert_eq!(code(&shell("echo x > notes/a.md").await), "EPOLICY", "{tools}");
        assert_eq!(code(&shell("rm notes/a.md").await), "EPOLICY", "{tools}");
        assert_eq!(project.text("notes/a.md").as_deref(), Some("a\n"));
        data(&shell("cat notes/a.md > other.md").await);
        assert_eq!(project.text("other.md").as_deref(), Some("a\n"), "reading is not denied: {tools}");
        data(&kernel.call("fs_write", json!({ "path": "notes/a.md", "content": "b" })).await);
        kernel.shutdown().await;
    }
    // An `ask` for every command is asked once, for the command; one with a path for the file as well.
    let project = Project::new();
    project.put("tgp.config.json", "{}");
    let rules = "version: 1\nrules:\n  - {id: all, effect: ask, tools: [shell_exec]}\n  - {id: notes, effect: ask, tools: [shell_exec], where: {path: 'notes/**'}}\n";
    project.put("tgp.policy.yaml", rules);
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, json!({}), &approver).await;
    for (command, questions) in [("echo x > plain.md", 1), ("mkdir notes; echo x > notes/a.md", 2)] {
        let command = call("shell_exec", json!({ "command": command }));
        data(&kernel.call_with(command, context(Consent::Ask)).await);
        assert_eq!(approver.take().len(), questions);
    }
    kernel.shutdown().await;
}
