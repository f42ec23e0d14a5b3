//! Rule files that nothing reads stop every call with an effect; what is outside the project is read after a confirmation.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tgp::contract::{Actor, CallContext, Consent, ToolCall, ToolError, ToolResult};
use tgp::trust::{Trust, trust_request};
use tgp::{BootOptions, Kernel};

use crate::support::{Project, code, data, error};

const DENY_ALL: &str = "version: 1\nrules:\n  - {id: none, effect: deny, tools: \"*\", reason: closed}\n";
const NO_RULES: &str = "version: 1\nrules: []\n";
const INVARIANT: &str = "version: 1\ninvariants:\n  - name: no-a\n    query: |\n      MATCH (f:File {path: 'src/a.ts'}) \
                         RETURN f.path\n    expect: none\n    message: no\n";

async fn boot(project: &Project, trust: Trust) -> Result<Kernel, ToolError> {
    Kernel::boot(BootOptions { trust, ..project.options() }).await.map_err(ToolError::from)
}

async fn call(kernel: &Kernel, tool: &str, arguments: Value) -> ToolResult {
    let call = ToolCall { id: "t".to_owned(), tool: tool.to_owned(), arguments };
    let context = CallContext {
        actor: Actor::Agent("agent".to_owned()),
        session: "s".to_owned(),
        consent: Consent::Everything,
        dry_run: false,
        depth: 0,
        token: None,
    };
    kernel.call_with(call, context).await
}

async fn write(kernel: &Kernel, path: &str) -> ToolResult {
    call(kernel, "fs_write", json!({ "path": path, "content": "x" })).await
}

/// A name that is nearly right, or a second file of one purpose, is an error of every call with an effect until a person has
/// renamed or removed it. Reads work, in the same kernel as effects afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_rule_file_with_a_near_name_is_not_ignored() {
    let cases: [(&[&str], &str); 12] = [
        (&["TGP.policy.yaml"], "TGP.policy.yaml"),
        (&[".tgp.policy.yaml"], ".tgp.policy.yaml"),
        (&["tgp.polcy.yaml"], "tgp.polcy.yaml"),
        (&[".tgp/policy/x.YAML"], ".tgp/policy/x.YAML"),
        (&[".tgp/policy/sub/x.json"], ".tgp/policy/sub/x.json"),
        (&[".tgp/policies/x.yaml"], ".tgp/policies"),
        (&[".tgp/tgp.policy.yaml"], ".tgp/tgp.policy.yaml"),
        (&[".sage/invariant.yml"], ".sage/invariant.yml"),
        (&["tgp.config.mjs"], "tgp.config.mjs"),
        (&["tgp.policy.yaml", "tgp.policy.yml"], "tgp.policy.yml"),
        (&[".sage/invariants.yml", ".sage/invariants.yaml"], ".sage/invariants.yaml"),
        (&["tgp.config.json", "tgp.config.js"], "tgp.config.json"),
    ];
    for (files, named) in cases {
        let project = Project::new();
        project.put("a.txt", "old");
        for file in files {
            let text = if file.contains("config") { "export default {};\n" } else { "version: 1\n" };
            project.put(file, if file.ends_with("config.json") { "{}" } else { text });
        }
        let kernel = boot(&project, Trust::Everything).await.unwrap();
        for (tool, arguments) in [
            ("fs_write", json!({ "path": "a.txt", "content": "x" })),
            ("shell_exec", json!({ "command": "echo x > a.txt" })),
            ("exec_code", json!({ "code": "return 1" })),
        ] {
            let refused = call(&kernel, tool, arguments).await;
            assert_eq!(code(&refused), "ECONFIG", "{files:?} {tool}: {refused:?}");
            let error = error(&refused);
            assert!(error.message.contains(&format!("`{named}`")), "{files:?}: {error}");
            assert!(error.help_of().unwrap().contains("rename it to"), "{files:?}: {error:?}");
        }
        assert_eq!(project.text("a.txt").unwrap(), "old", "{files:?}");
        assert_eq!(data(&call(&kernel, "fs_read", json!({ "path": "a.txt" })).await)["content"], "old");
        assert!(kernel.notices().iter().any(|notice| notice.contains(named)), "{files:?}");
        // A person sets it aside; the running kernel goes on.
        std::fs::rename(project.file(named), project.file("set-aside.bak")).unwrap();
        assert!(write(&kernel, "b.txt").await.is_ok(), "{files:?}");
        kernel.shutdown().await;
    }
}

/// Both extensions of YAML are read, in folders of rules too, and no rule is missing beside `policy.files`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_name_is_in_force() {
    for (file, config) in [
        ("tgp.policy.yaml", json!({})),
        ("tgp.policy.yml", json!({})),
        ("tgp.policy.yml", json!({ "policy": { "files": ["more.yaml"] } })),
        (".tgp/policy/a.yml", json!({})),
        (".tgp/policy/deep/er/a.yaml", json!({})),
    ] {
        let project = Project::new();
        project.put("more.yaml", NO_RULES).put(file, DENY_ALL).put("tgp.config.json", &config.to_string());
        let kernel = boot(&project, Trust::Nothing).await.unwrap();
        assert_eq!(code(&write(&kernel, "a.txt").await), "EPOLICY", "{file}");
        let sources = kernel.policy().listing().await.unwrap().sources;
        assert!(sources.iter().any(|source| source.file == file && source.rules == 1), "{sources:?}");
        kernel.shutdown().await;
    }
    for file in [".sage/invariants.yml", ".sage/invariants.yaml"] {
        let project = Project::new();
        project.put(file, INVARIANT);
        let kernel = boot(&project, Trust::Nothing).await.unwrap();
        assert_eq!(kernel.knowledge().guardian().invariants().unwrap().len(), 1, "{file}");
        assert_eq!(code(&write(&kernel, "src/a.ts").await), "EPOLICY", "{file}");
        kernel.shutdown().await;
    }
    for file in [".sage/valve.yml", ".sage/valve.yaml"] {
        let project = Project::new();
        project.put(file, "personas:\n  - {name: one, filters: [\"src/**\"]}\n");
        let kernel = boot(&project, Trust::Nothing).await.unwrap();
        assert_eq!(kernel.valve_status().unwrap().personas.len(), 1, "{file}");
        kernel.shutdown().await;
    }
}

/// A file that appears while a kernel runs counts at once.
/// A broken link, a directory or a pipe with the name of a rule file is an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_rule_file_that_is_none_was_not_there() {
    for name in ["tgp.config.ts", "tgp.config.json"] {
        for kind in ["link", "directory", "pipe", "device"] {
            let project = Project::new();
            let file = project.file(name);
            let _ = std::fs::remove_file(project.file("tgp.config.ts"));
            match kind {
                "link" => symlink("nothing.ts", &file).unwrap(),
                "directory" => std::fs::create_dir(&file).unwrap(),
                "pipe" => nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap(),
                _ => symlink("/dev/null", &file).unwrap(),
            }
            let refused = boot(&project, Trust::Everything).await.map(drop).unwrap_err();
            assert_eq!(refused.code.as_str(), "ECONFIG", "{name} as a {kind}: {refused:?}");
        }
    }
    let dangling = Project::new();
    std::fs::create_dir_all(dangling.file(".sage")).unwrap();
    symlink("nothing.yml", dangling.file(".sage/invariants.yml")).unwrap();
    let named = Project::new();
    named.put("tgp.config.json", r#"{ "guardian": { "invariants": "rules/inv.yml" } }"#);
    for project in [dangling, named] {
        let kernel = boot(&project, Trust::Everything).await.unwrap();
        let answer = write(&kernel, "src/b.ts").await;
        assert_eq!(code(&answer), "ECONFIG", "{answer:?}");
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_near_name_counts_in_a_running_kernel() {
    let project = Project::new();
    let kernel = boot(&project, Trust::Nothing).await.unwrap();
    assert!(write(&kernel, "a.txt").await.is_ok());
    for file in
        ["tgp-policy.yaml", ".tgp/policy/a/b/c.jsonc", ".sage/personas.yml", ".sage/invariants.yaml/x"]
    {
        project.put(file, NO_RULES);
        assert_eq!(code(&write(&kernel, "b.txt").await), "ECONFIG", "{file}");
        std::fs::remove_file(project.file(file)).unwrap();
    }
    kernel.shutdown().await;
}

/// No caller makes a file with an accepted or a near name, however it is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_near_names_are_protected() {
    let project = Project::new();
    let kernel = boot(&project, Trust::Nothing).await.unwrap();
    for file in [
        "tgp.policy.yml",
        "TGP.POLICY.yaml",
        "tgp-policy.yaml",
        ".tgp.policy.yaml",
        "tgp.polcy.yaml",
        "tgp.policy.local.yaml",
        "tgp.config.mjs",
        "tgp.conifg.ts",
        "invariants.yml",
        ".tgp/policies/a.yaml",
        ".tgp/policy.yaml",
        ".TGP/policy/a.yaml",
    ] {
        assert_eq!(code(&write(&kernel, file).await), "EPOLICY", "{file}");
        let command = format!("mkdir -p $(dirname {file}); echo x > y && mv y {file}");
        call(&kernel, "shell_exec", json!({ "command": command })).await;
        assert!(!project.file(file).exists(), "{file}");
    }
    assert!(write(&kernel, "still.txt").await.is_ok());
    kernel.shutdown().await;
}

/// The text of a file outside the project is in no error, and it is not read before a person has confirmed where it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_configuration_reads_no_file_outside_the_project() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("credentials");
    std::fs::write(
        &secret,
        "version: 1\naws_secret: hunter2\nrules:\n  - {id: hunter2 x, effect: hunter2}\n",
    )
    .unwrap();
    let path = secret.to_str().unwrap();
    let put = |config: Value| {
        move |project: &Project| {
            project.put("tgp.config.json", &config.to_string());
        }
    };
    let link = |name: &'static str| {
        let secret = secret.clone();
        move |project: &Project| {
            project.put(".sage/notes.md", "");
            symlink(&secret, project.file(name)).unwrap();
        }
    };
    type Prepare = Box<dyn Fn(&Project)>;
    let cases: Vec<(&str, Prepare)> = vec![
        ("guardian.invariants", Box::new(put(json!({ "guardian": { "invariants": path } })))),
        ("guardian.invariants", Box::new(link(".sage/invariants.yml"))),
        ("policy.files", Box::new(put(json!({ "policy": { "files": [path] } })))),
        ("policy.files", Box::new(link("tgp.policy.yaml"))),
    ];
    for (index, (field, prepare)) in cases.into_iter().enumerate() {
        let project = Project::new();
        prepare(&project);
        let options = BootOptions { trust: Trust::Nothing, ..project.options() };
        let request = trust_request(&options).await.unwrap();
        assert!(request.unconfirmed.iter().any(|found| found.name == field), "{index}: {request:?}");
        let kernel = boot(&project, Trust::Nothing).await.unwrap();
        let refused = write(&kernel, "src/a.ts").await;
        assert_eq!(code(&refused), "ECONFIG", "{index}: {refused:?}");
        assert!(!format!("{refused:?}").contains("hunter2"), "{index}: {refused:?}");
        assert!(error(&refused).help_of().unwrap().contains("tgp trust"), "{index}: {refused:?}");
        assert!(data(&call(&kernel, "fs_list", json!({})).await).is_object(), "{index}");
        kernel.shutdown().await;
        // Confirmed, it is read, and its mistakes are reported without its text.
        match boot(&project, Trust::Everything).await {
            Err(error) => assert!(!format!("{error:?}").contains("hunter2"), "{index}: {error:?}"),
            Ok(kernel) => {
                let refused = write(&kernel, "src/a.ts").await;
                assert_eq!(code(&refused), "ECONFIG", "{index}: {refused:?}");
                let text = format!("{refused:?}");
                assert!(!text.contains("hunter2") && !text.contains("aws_secret"), "{index}: {text}");
                assert!(error(&refused).place_of().is_some(), "{index}: {text}");
                kernel.shutdown().await;
            }
        }
    }
    let project = Project::new();
    symlink(&secret, project.file("tgp.config.ts")).unwrap();
    let refused = boot(&project, Trust::Nothing).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "ECONFIG");
    assert!(!format!("{refused:?}").contains("hunter2"), "{refused:?}");
}

/// What a configuration loosens takes effect after a confirmation only; what it tightens, at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_a_configuration_loosens_nothing_before_it_is_confirmed() {
    let loose = json!({
        "tdd": { "mode": "explore", "tests": ["**/*.ts"], "exempt": ["**"] },
        "db": { "freeReads": true, "readOnly": true },
        "sandbox": { "memoryMb": 1024, "cpuMs": 60_000, "wallMs": 600_000 },
        "jail": { "memoryMb": 1_000_000, "processes": 60_000, "layerMb": 60_000, "fileMb": 60_000, "timeoutMs": 3_600_000,
            "sessionFiles": 1_000_000 },
        "llm": { "budgets": { "steps": 10_000 } },
    });
    let project = Project::new();
    project.put("tgp.config.json", &loose.to_string());
    let options = || BootOptions { tdd_mode: None, trust: Trust::Nothing, ..project.options() };
    let kernel = Kernel::boot(options()).await.unwrap();
    let names = [
        "tdd.mode",
        "tdd.tests",
        "tdd.exempt",
        "db.freeReads",
        "sandbox.limits",
        "jail.limits",
        "llm.budgets",
    ];
    let config = kernel.config();
    for name in names {
        assert!(config.ignored.contains(&name), "{name}: {:?}", config.ignored);
    }
    assert!(config.db.read_only && !config.db.free_reads, "what tightens holds");
    assert!(config.sandbox.limits.heap_bytes <= 512 << 20 && config.sandbox.limits.cpu.as_secs() <= 10);
    assert!(config.jail.memory_bytes.unwrap() < 1_000_000 << 20 && config.jail.session_files == 50_000);
    assert_eq!(code(&write(&kernel, "src/a.ts").await), "ESTATE");
    kernel.shutdown().await;
    let kernel = Kernel::boot(BootOptions { trust: Trust::Everything, ..options() }).await.unwrap();
    assert!(kernel.config().ignored.is_empty());
    assert!(write(&kernel, "src/a.ts").await.is_ok());
    kernel.shutdown().await;
    // A mode of the command line is the person's own.
    let kernel = boot(&project, Trust::Nothing).await.unwrap();
    assert!(write(&kernel, "src/b.ts").await.is_ok());
    kernel.shutdown().await;
}

/// What is stricter than the defaults, or as strict, needs no confirmation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_loosen_needs_no_confirmation() {
    let tight = json!({
        "tdd": { "mode": "strict", "exempt": [] },
        "db": { "freeReads": false, "readOnly": true },
        "sandbox": { "memoryMb": 128, "cpuMs": 5_000, "wallMs": 20_000 },
        "jail": { "memoryMb": 512, "processes": 64, "timeoutMs": 10_000 },
        "llm": { "budgets": { "steps": 10 } },
        "guardian": { "touchedFiles": "halt", "invariants": "rules/invariants.yml" },
        "policy": { "files": ["rules/policy.yaml"] },
        "audit": { "durability": "call", "redact": { "names": ["pin"] } },
        "allowedImports": ["zod", "left-pad"],
    });
    let project = Project::new();
    project.put("rules/policy.yaml", NO_RULES).put("tgp.config.json", &tight.to_string());
    let options = BootOptions { trust: Trust::Nothing, ..project.options() };
    assert!(trust_request(&options).await.unwrap().fields.is_empty());
}
