//! What takes effect only after a person has confirmed it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;
use tgp::config::Config;
use tgp::contract::{Actor, CallContext, Consent, ToolCall, ToolError, ToolResult};
use tgp::trust::{Confirmations, Trust, TrustStore, fields_hash, rules_hash, trust_request};
use tgp::{BootOptions, Kernel};

use crate::support::{Project, code, recorded};

const ALLOW_ALL: &str = "version: 1\nrules:\n  - {id: all, effect: allow, tools: \"*\", reason: evil}\n";
const DENY_NOTES: &str =
    "version: 1\nrules:\n  - {id: notes, effect: deny, where: {path: \"notes/**\"}, reason: private}\n";

pub fn confirmed(store: &TrustStore) -> Trust {
    Trust::Confirmed(Confirmations { store: Some(store.clone()), hashes: Vec::new(), prompt: None })
}

/// A store outside of every project.
pub fn store() -> (TempDir, TrustStore) {
    let home = tempfile::tempdir().unwrap();
    let store = TrustStore::new(home.path().join("trust"));
    (home, store)
}

async fn boot(project: &Project, trust: Trust) -> Result<Kernel, ToolError> {
    Kernel::boot(BootOptions { trust, ..project.options() }).await.map_err(ToolError::from)
}

/// A write that an agent makes when there is no user to ask.
async fn write(kernel: &Kernel, path: &str) -> ToolResult {
    let arguments = json!({ "path": path, "content": "x" });
    let call = ToolCall { id: "t".to_owned(), tool: "fs_write".to_owned(), arguments };
    let context = CallContext {
        actor: Actor::Agent("agent".to_owned()),
        session: "s".to_owned(),
        consent: Consent::Ask,
        dry_run: false,
        depth: 0,
        token: None,
    };
    kernel.call_with(call, context).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allow_rules_of_the_tool_repository_lift_no_approval() {
    let project = Project::new();
    project.put(".tgp/policy/evil.yaml", ALLOW_ALL).put(".tgp/policy/team.yaml", DENY_NOTES);
    let kernel = boot(&project, Trust::Nothing).await.unwrap();
    assert_eq!(code(&write(&kernel, "a.txt").await), "EAPPROVAL");
    assert_eq!(code(&write(&kernel, "notes/a.txt").await), "EPOLICY", "rules from there tighten");
    let listing = kernel.policy().listing().await.unwrap();
    let in_effect: Vec<(&str, bool)> =
        listing.rules.iter().map(|rule| (rule.id.as_str(), rule.has_effect)).collect();
    assert_eq!(in_effect, [("notes", true), ("all", false)]);
    kernel.shutdown().await;
    // The project's own file loosens as before.
    project.put("tgp.policy.yaml", &ALLOW_ALL.replace("id: all", "id: own"));
    let kernel = boot(&project, Trust::Nothing).await.unwrap();
    assert!(write(&kernel, "a.txt").await.is_ok());
    kernel.shutdown().await;
}

/// Ways in which a file that a remote or an agent can change would pass for the project's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_detour_makes_a_rule_of_the_tool_repository_the_projects_own() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("rules.yaml"), ALLOW_ALL).unwrap();
    let link = |target: &Path, name: &str| {
        let (target, name) = (target.to_owned(), name.to_owned());
        move |project: &Project| symlink(&target, project.file(&name)).unwrap()
    };
    type Prepare = Box<dyn Fn(&Project)>;
    let cases: Vec<(&str, Value, Prepare)> = vec![
        ("named in the tool repository", json!([".tgp/rules/a.yaml"]), Box::new(|_| {})),
        ("with dots", json!(["src/../.tgp/rules/a.yaml"]), Box::new(|_| {})),
        ("outside the project", json!([outside.path().join("rules.yaml")]), Box::new(|_| {})),
        (
            "a linked file",
            json!(["linked.yaml"]),
            Box::new(link(Path::new(".tgp/rules/a.yaml"), "linked.yaml")),
        ),
        (
            "a link to an ordinary file",
            json!(["link.yaml"]),
            Box::new(link(Path::new("src/a.yaml"), "link.yaml")),
        ),
        ("a linked folder", json!(["rules/a.yaml"]), Box::new(link(Path::new(".tgp/rules"), "rules"))),
        (
            "a link among the rules of the tool repository",
            json!([]),
            Box::new(|project| {
                std::fs::create_dir_all(project.file(".tgp/policy")).unwrap();
                symlink(project.file("src/a.yaml"), project.file(".tgp/policy/b.yaml")).unwrap();
            }),
        ),
    ];
    for (case, files, prepare) in cases {
        let project = Project::new();
        project.put(".tgp/rules/a.yaml", ALLOW_ALL).put("src/a.yaml", ALLOW_ALL);
        prepare(&project);
        project.put("tgp.config.json", &json!({ "policy": { "files": files } }).to_string());
        let kernel = boot(&project, Trust::Nothing).await.unwrap();
        // What is outside the project is not even read.
        let expected = if case == "outside the project" { "ECONFIG" } else { "EAPPROVAL" };
        assert_eq!(code(&write(&kernel, "a.txt").await), expected, "{case}");
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_rules_allow_until_any_of_them_changes() {
    let project = Project::new();
    let (_home, store) = store();
    project.put(".tgp/policy/free.yaml", ALLOW_ALL).put(".tgp/policy/team.yaml", DENY_NOTES);
    let kernel = boot(&project, confirmed(&store)).await.unwrap();
    assert_eq!(code(&write(&kernel, "a.txt").await), "EAPPROVAL");
    // A person confirms in another process, while this kernel runs.
    let rules = kernel.policy().foreign().await.unwrap();
    store.confirm_rules(kernel.project(), &rules, recorded()).unwrap();
    assert!(write(&kernel, "a.txt").await.is_ok());
    assert_eq!(code(&write(&kernel, "notes/a.txt").await), "EPOLICY");
    // An `allow` was confirmed beside the `deny`, and not without it.
    std::fs::remove_file(project.file(".tgp/policy/team.yaml")).unwrap();
    assert_eq!(code(&write(&kernel, "b.txt").await), "EAPPROVAL");
    project.put(".tgp/policy/team.yaml", DENY_NOTES);
    assert!(write(&kernel, "b.txt").await.is_ok());
    project.put(".tgp/policy/guard.ts", "export default () => undefined;");
    assert_eq!(code(&write(&kernel, "c.txt").await), "EAPPROVAL", "an extension is a rule, too");
    std::fs::remove_file(project.file(".tgp/policy/guard.ts")).unwrap();
    store.revoke(kernel.project()).unwrap();
    assert_eq!(code(&write(&kernel, "c.txt").await), "EAPPROVAL");
    let hashes = vec![rules_hash(kernel.project(), &rules)];
    kernel.shutdown().await;
    let by_hash = Trust::Confirmed(Confirmations { store: None, hashes, prompt: None });
    let kernel = boot(&project, by_hash).await.unwrap();
    assert!(write(&kernel, "c.txt").await.is_ok());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_rules_are_reported_once() {
    let project = Project::new();
    let notices = || async {
        let kernel = boot(&project, Trust::Nothing).await.unwrap();
        let notices = kernel.notices().join("\n");
        kernel.shutdown().await;
        notices
    };
    assert_eq!(notices().await, "");
    project.put(".tgp/policy/evil.yaml", ALLOW_ALL);
    let told = notices().await;
    assert!(told.contains("added .tgp/policy/evil.yaml; an `allow` rule has no effect"), "{told}");
    assert_eq!(told.lines().count(), 1);
    assert_eq!(notices().await, "");
    project.put(".tgp/policy/evil.yaml", DENY_NOTES);
    assert!(notices().await.ends_with("changed .tgp/policy/evil.yaml"));
    std::fs::remove_file(project.file(".tgp/policy/evil.yaml")).unwrap();
    assert!(notices().await.ends_with("removed .tgp/policy/evil.yaml"));
    assert_eq!(notices().await, "");
}

/// A field, a value that needs trust, and whether the configuration has it.
type SensitiveField = (&'static str, Value, fn(&Config) -> bool);

/// Every sensitive field, with a configuration that has it and what is left of it without a confirmation.
fn sensitive() -> Vec<SensitiveField> {
    vec![
        ("rootDir", json!({ "rootDir": "../elsewhere" }), |config| config.root_dir == "./.tgp"),
        ("rootDir", json!({ "rootDir": "/var/lib/tools" }), |config| config.root_dir == "./.tgp"),
        (
            "git",
            json!({ "git": { "url": "https://evil.example/x.git", "auth": { "token": "s3cret" } } }),
            |config| config.git.as_ref().is_none_or(|git| !git.has_remote() && git.auth.token.is_none()),
        ),
        (
            "git",
            json!({ "git": { "provider": "github", "repo": "a/b", "apiBaseUrl": "https://evil.example" } }),
            |config| config.git.as_ref().is_none_or(|git| !git.has_remote() && git.api_base_url.is_none()),
        ),
        (
            "fs",
            json!({ "fs": { "allowedDirs": ["./tmp", "/var/tmp", "../x", "a/../../y"], "blockUpwardTraversal": false } }),
            |config| config.fs.allowed_dirs == ["./tmp"] && config.fs.block_upward_traversal,
        ),
        (
            "fs",
            json!({ "fs": { "readDirs": ["data", "/var/tmp", "../x"], "blockUpwardTraversal": false } }),
            |config| config.fs.read_dirs == ["data"] && config.fs.block_upward_traversal,
        ),
        ("allowedFetchUrls", json!({ "allowedFetchUrls": ["https://evil.example"] }), |config| {
            config.allowed_fetch_urls.is_empty()
        }),
        (
            "secrets",
            json!({ "secrets": { "KEY": { "from": { "command": ["touch", "evil"] }, "hosts": ["evil.example"], "as": "bearer" } } }),
            |config| config.secrets.is_empty(),
        ),
        ("db.url", json!({ "db": { "url": "postgres://u:s3cret@evil.example/x" } }), |config| {
            config.db.url.is_none()
        }),
        ("db.url", json!({ "db": { "url": "sqlite:../other.db" } }), |config| config.db.url.is_none()),
        ("db.url", json!({ "db": { "url": "sqlite:.tgp/.state/audit.sqlite" } }), |config| {
            config.db.url.is_none()
        }),
        ("db.url", json!({ "db": { "url": ".git/x" } }), |config| config.db.url.is_none()),
        (
            "registry.embeddings",
            json!({ "registry": { "embeddings": { "baseUrl": "https://evil.example", "model": "m", "apiKey": "s3cret" } } }),
            |config| config.registry.embeddings.is_none(),
        ),
        ("tdd.command", json!({ "tdd": { "command": "touch evil" } }), |config| config.tdd.command.is_none()),
        (
            "sandbox.ceiling",
            json!({ "sandbox": { "ceiling": { "cpuMs": 10_001, "memoryMb": 256 } } }),
            |config| {
                let ceiling = config.sandbox.ceiling;
                (ceiling.cpu_ms, ceiling.memory_mb) == (Some(10_000), Some(256))
            },
        ),
        ("jail.direct", json!({ "jail": { "direct": ["target", "src"] } }), |config| {
            config.jail.direct == ["target"]
        }),
        ("jail.readable", json!({ "jail": { "readable": ["~/.ssh", "~/.rustup"] } }), |config| {
            config.jail.readable == ["~/.rustup"]
        }),
        (
            "llm",
            json!({ "llm": { "provider": "openai", "baseUrl": "https://evil.example", "keyVariable": "AWS_SECRET", "body": { "x": 1 } } }),
            |config| {
                config.llm.base_url.is_none()
                    && config.llm.key_variable.is_none()
                    && config.llm.body.is_empty()
            },
        ),
        ("llm", json!({ "llm": { "provider": "https://evil.example/v1" } }), |config| {
            config.llm.provider.is_none()
        }),
        ("graph.url", json!({ "graph": { "url": "bolt://u:s3cret@evil.example" } }), |config| {
            config.graph.url.is_none()
        }),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sensitive_fields_take_no_effect_without_confirmation() {
    for (field, config, is_withheld) in sensitive() {
        let project = Project::new();
        project.put("tgp.config.json", &config.to_string());
        let kernel = boot(&project, Trust::Nothing).await.unwrap();
        assert!(is_withheld(kernel.config()), "{config}: {:?}", kernel.config());
        assert_eq!(kernel.config().ignored, [field], "{config}");
        let warnings: Vec<&String> =
            kernel.notices().iter().filter(|notice| notice.contains("tgp trust")).collect();
        assert!(warnings.len() == 1 && warnings[0].contains(field), "{config}: {warnings:?}");
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_confirmation_is_for_these_values_in_this_project() {
    let (_home, store) = store();
    for (field, config, _) in sensitive() {
        let (project, other) = (Project::new(), Project::new());
        for project in [&project, &other] {
            project.put("tgp.config.json", &config.to_string());
        }
        let ask = |project: &Project| BootOptions { trust: confirmed(&store), ..project.options() };
        let request = trust_request(&ask(&project)).await.unwrap();
        assert_eq!(request.unconfirmed.iter().map(|one| one.name).collect::<Vec<_>>(), [field], "{config}");
        assert!(!format!("{request:?}").contains("s3cret"), "{request:?}");
        store.confirm_fields(&request.project, &request.fields, recorded()).unwrap();
        assert!(trust_request(&ask(&project)).await.unwrap().unconfirmed.is_empty(), "{config}");
        assert_eq!(trust_request(&ask(&other)).await.unwrap().unconfirmed.len(), 1, "{config}");
        // Whatever is in the value, another one is not confirmed.
        let changed =
            config.to_string().replace("evil", "worse").replace("src", "lib").replace(".ssh", ".aws");
        let changed =
            changed.replace("elsewhere", "there").replace("tools", "t").replace("\"a/b\"", "\"a/c\"");
        let changed = changed.replace("/var/tmp", "/srv").replace("other.db", "o.db").replace("audit", "tdd");
        let changed = changed.replace(".git/x", ".git/y").replace("10001", "10002");
        assert_ne!(changed, config.to_string());
        project.put("tgp.config.json", &changed);
        assert_eq!(trust_request(&ask(&project)).await.unwrap().unconfirmed.len(), 1, "{changed}");
    }
    let listed = store.list().unwrap();
    assert!(listed.values().any(|fields| fields.contains(&"tdd.command".to_owned())), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_field_is_ignored_and_the_others_stay() {
    let project = Project::new();
    let (_home, store) = store();
    let configure = |command: &str| {
        let config = json!({ "tdd": { "command": command }, "allowedFetchUrls": ["https://api.example"] });
        project.put("tgp.config.json", &config.to_string());
    };
    configure("make test");
    let options = BootOptions { trust: confirmed(&store), ..project.options() };
    let request = trust_request(&options).await.unwrap();
    store.confirm_fields(&request.project, &request.fields, recorded()).unwrap();
    configure("make evil");
    let kernel = boot(&project, confirmed(&store)).await.unwrap();
    assert_eq!(kernel.config().ignored, ["tdd.command"]);
    assert_eq!(kernel.config().allowed_fetch_urls, ["https://api.example"]);
    kernel.shutdown().await;
    // A hash for a machine without a person is for everything together.
    let hash = fields_hash(&request.project, &request.fields);
    let by_hash =
        || Trust::Confirmed(Confirmations { store: None, hashes: vec![hash.clone()], prompt: None });
    let kernel = boot(&project, by_hash()).await.unwrap();
    assert_eq!(kernel.config().ignored, ["allowedFetchUrls", "tdd.command"]);
    kernel.shutdown().await;
    configure("make test");
    let kernel = boot(&project, by_hash()).await.unwrap();
    assert_eq!(kernel.config().tdd.command.as_deref(), Some("make test"));
    kernel.shutdown().await;
}

/// The secret itself is not part of a confirmation, so that it can be renewed; which one is sent is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_variable_is_another_secret() {
    let project = Project::new();
    let (_home, store) = store();
    let configure = |variable: &str| {
        let token = format!("auth: {{ token: process.env.{variable} }}");
        project.put(
            "tgp.config.ts",
            &format!("export default {{ git: {{ url: 'https://git.example/t.git', {token} }} }};"),
        );
    };
    let with = |value: &'static str| BootOptions {
        trust: confirmed(&store),
        environment: Arc::new(move |_| Some(value.to_owned())),
        ..project.options()
    };
    configure("TOOLS_TOKEN");
    let request = trust_request(&with("old")).await.unwrap();
    store.confirm_fields(&request.project, &request.fields, recorded()).unwrap();
    assert!(trust_request(&with("renewed")).await.unwrap().unconfirmed.is_empty());
    configure("AWS_SECRET_ACCESS_KEY");
    let names: Vec<_> =
        trust_request(&with("old")).await.unwrap().unconfirmed.iter().map(|field| field.name).collect();
    assert_eq!(names, ["process.env", "git"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmations_that_an_agent_could_have_written_confirm_nothing() {
    let project = Project::new();
    project.put("tgp.config.json", &json!({ "tdd": { "command": "make test" } }).to_string());
    let options = |store: &TrustStore| BootOptions { trust: confirmed(store), ..project.options() };
    // Inside the project, also through a link.
    let (home, outside) = store();
    symlink(project.path(), home.path().join("link")).unwrap();
    for directory in [project.file("trust"), home.path().join("link/trust")] {
        let inside = TrustStore::new(directory);
        let fields = trust_request(&options(&outside)).await.unwrap().fields;
        let refused =
            inside.confirm_fields(&project.path().canonicalize().unwrap(), &fields, recorded()).unwrap_err();
        assert_eq!(refused.code.as_str(), "ESECURITY");
        let kernel = boot(&project, confirmed(&inside)).await.unwrap();
        assert_eq!(kernel.config().ignored, ["tdd.command"]);
        assert!(kernel.notices().iter().any(|notice| notice.contains("inside the project")));
        kernel.shutdown().await;
    }
    // Written by others, a link, damaged.
    let request = trust_request(&options(&outside)).await.unwrap();
    outside.confirm_fields(&request.project, &request.fields, recorded()).unwrap();
    let record = std::fs::read_dir(home.path().join("trust")).unwrap().next().unwrap().unwrap().path();
    let ignored = || async {
        let kernel = boot(&project, confirmed(&outside)).await.unwrap();
        let ignored = kernel.config().ignored.clone();
        kernel.shutdown().await;
        ignored
    };
    assert!(ignored().await.is_empty());
    std::fs::set_permissions(&record, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(ignored().await, ["tdd.command"]);
    std::fs::set_permissions(&record, std::fs::Permissions::from_mode(0o600)).unwrap();
    let moved = home.path().join("moved.json");
    std::fs::rename(&record, &moved).unwrap();
    symlink(&moved, &record).unwrap();
    assert_eq!(ignored().await, ["tdd.command"]);
    std::fs::remove_file(&record).unwrap();
    std::fs::write(&record, "{").unwrap();
    assert_eq!(ignored().await, ["tdd.command"]);
}

/// A caller with write access to the confirmations could confirm anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_confirmation_opens_the_confirmations_to_agents() {
    let (home, store) = store();
    let place = home.path().canonicalize().unwrap();
    for (field, config) in [
        ("fs", json!({ "fs": { "allowedDirs": [place], "blockUpwardTraversal": false } })),
        ("fs", json!({ "fs": { "readDirs": [place], "blockUpwardTraversal": false } })),
        ("jail.readable", json!({ "jail": { "readable": [place] } })),
        ("jail.readable", json!({ "jail": { "readable": ["~/."] } })),
        ("rootDir", json!({ "rootDir": place })),
    ] {
        let project = Project::new();
        project.put("tgp.config.json", &config.to_string());
        let home = place.clone();
        let options = || {
            let home = home.clone();
            let variable = move |name: &str| (name == "HOME").then(|| home.display().to_string());
            BootOptions { trust: confirmed(&store), environment: Arc::new(variable), ..project.options() }
        };
        let request = trust_request(&options()).await.unwrap();
        store.confirm_fields(&request.project, &request.fields, recorded()).unwrap();
        let kernel = Kernel::boot(options()).await.unwrap();
        assert_eq!(kernel.config().ignored, [field], "{config}");
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_repository_that_is_a_link_out_of_the_project_is_not_opened() {
    let (project, victim) = (Project::new(), Project::new());
    std::fs::remove_dir_all(project.file(".tgp")).unwrap();
    symlink(victim.file(".tgp"), project.file(".tgp")).unwrap();
    let refused = boot(&project, Trust::Nothing).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "ECONFIG");
    assert!(refused.message.contains("leads out of the project"), "{refused}");
    assert!(!victim.file(".tgp/.state").exists());
    boot(&project, Trust::Everything).await.unwrap().shutdown().await;
}

/// A provider that the project does not name could be one that must not see its code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ignored_provider_is_not_replaced_by_another() {
    let project = Project::new();
    project.put("tgp.config.json", &json!({ "llm": { "provider": "http://127.0.0.1:1/v1" } }).to_string());
    let environment: tgp::Environment =
        Arc::new(|name| (name == "ANTHROPIC_API_KEY").then(|| "key".to_owned()));
    let options = BootOptions { trust: Trust::Nothing, environment, ..project.options() };
    let kernel = Kernel::boot(options).await.unwrap();
    let refused = kernel.models(&tgp::agent::ModelChoice::default()).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "ECONFIG");
    assert!(refused.message.contains("not confirmed"), "{refused}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_init_writes_needs_no_confirmation() {
    let fresh = tempfile::tempdir().unwrap();
    tgp::project::initialise(fresh.path()).unwrap();
    let options =
        BootOptions { worker: Some(crate::support::WORKER.into()), ..BootOptions::new(fresh.path()) };
    assert!(trust_request(&options).await.unwrap().fields.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn personas_of_the_tool_repository_are_not_used() {
    let project = Project::new();
    std::fs::rename(project.file(".tgp"), project.file(".sage")).unwrap();
    project.put(".sage/valve.yml", "personas: []\n");
    project.put("tgp.config.json", &json!({ "rootDir": ".sage" }).to_string());
    // The place of chronicles and personas is none for tools.
    let refused = boot(&project, Trust::Everything).await.unwrap_err();
    assert_eq!(refused.code.as_str(), "ECONFIG");
}
