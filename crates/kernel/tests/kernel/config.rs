//! `tgp.config.{ts,js,json}`: read in a locked worker, every wrong field named.

use serde_json::json;
use tgp::config::{Config, ConfigError};
use tgp::contract::ToolError;
use tgp::{BootOptions, Kernel};

use crate::support::{Project, data, environment, logs, result, run};

async fn refused(project: &Project) -> ToolError {
    match project.boot().await {
        Ok(_) => panic!("the kernel came up"),
        Err(error) => error.into(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_file_is_read() {
    for (name, source) in [
        (
            "tgp.config.ts",
            "import { defineTGPConfig } from '@tgp/core';\nconst mb: number = 32;\nexport default defineTGPConfig({ allowedImports: ['zod'], sandbox: { memoryMb: mb, cpuMs: 3000 } });",
        ),
        (
            "tgp.config.js",
            "export default { allowedImports: ['zod'], sandbox: { memoryMb: 32, cpuMs: 3000 } };",
        ),
        (
            "tgp.config.js",
            "module.exports = { allowedImports: ['zod'], sandbox: { memoryMb: 32, cpuMs: 3000 } };",
        ),
        ("tgp.config.json", "{\"allowedImports\":[\"zod\"],\"sandbox\":{\"memoryMb\":32,\"cpuMs\":3000}}"),
    ] {
        let project = Project::new();
        project.put(name, source);
        let kernel = project.boot().await.unwrap_or_else(|error| panic!("{name}: {error}\n{source}"));
        let config = kernel.config();
        assert_eq!(config.allowed_imports, ["zod"], "{name}");
        assert_eq!(config.sandbox.limits.heap_bytes, 32 << 20, "{name}");
        assert_eq!(config.sandbox.limits.cpu.as_millis(), 3000, "{name}");
        assert_eq!(config.fs, Config::default().fs, "{name}: what is not said is as always");
        assert_eq!(
            result(&run(&kernel, &project, "export default () => 1;", json!({})).await),
            json!(1),
            "{name}"
        );
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_literals_means_the_same_with_and_without_a_run() {
    for literal in [
        "{}",
        "{ allowedImports: ['zod', \"date-fns\"], sandbox: { memoryMb: 32, cpuMs: 3_000 } }",
        "{ allowedImports: [process.env.KNOWN ?? 'zod'], registry: { onDuplicate: `warn` } }",
        "{ allowedImports: [process.env.UNKNOWN || 'zod'], fs: { allowedDirs: ['./tmp'] }, tdd: { mode: 'debug' } }",
        "{ db: { url: process.env.UNKNOWN }, allowedFetchUrls: [] }",
    ] {
        let mut configs = Vec::new();
        let cache = tempfile::tempdir().unwrap();
        // The second file has to be run. The third start finds what the first has compiled.
        for before in ["", "const run = 1;\n", ""] {
            let project = Project::new();
            project.put("tgp.config.ts", &format!("{before}export default {literal};"));
            let options = BootOptions {
                environment: environment(&[("KNOWN", "lodash")]),
                cache_directory: Some(cache.path().to_owned()),
                ..project.options()
            };
            let kernel = Kernel::boot(options).await.unwrap_or_else(|error| panic!("{literal}: {error}"));
            configs.push(format!("{:?}", kernel.config()));
            kernel.shutdown().await;
        }
        assert_eq!(configs[0], configs[1], "{literal}");
        assert_eq!(configs[0], configs[2], "{literal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_file_the_defaults_hold() {
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    assert_eq!(*kernel.config(), Config::default());
    let limits = kernel.config().sandbox.limits;
    assert_eq!(
        (limits.heap_bytes >> 20, limits.cpu.as_millis(), limits.wall.as_millis()),
        (64, 1_000, 10_000)
    );
    kernel.shutdown().await;
    // What `tgp init` writes are the defaults, too.
    let fresh = tempfile::tempdir().unwrap();
    tgp::project::initialise(fresh.path()).unwrap();
    let options =
        BootOptions { worker: Some(crate::support::WORKER.into()), ..BootOptions::new(fresh.path()) };
    let kernel = Kernel::boot(options).await.unwrap();
    assert_eq!(*kernel.config(), Config::default());
    kernel.shutdown().await;
}

#[test]
fn every_wrong_field_is_named() {
    for (value, paths) in [
        (json!({ "rootDir": 5 }), vec!["rootDir"]),
        (json!({ "rootDir": "" }), vec!["rootDir"]),
        (json!({ "rootDirr": "x" }), vec!["rootDirr"]),
        (json!([]), vec!["(the default export)"]),
        (json!("text"), vec!["(the default export)"]),
        (json!({ "fs": 1 }), vec!["fs"]),
        (
            json!({ "fs": { "allowedDirs": "tmp", "readDirs": [5], "blockUpwardTraversal": "yes", "other": 1 } }),
            vec!["fs.allowedDirs", "fs.readDirs[0]", "fs.blockUpwardTraversal", "fs.other"],
        ),
        (json!({ "allowedImports": ["zod", 5, ""] }), vec!["allowedImports[1]", "allowedImports[2]"]),
        (json!({ "allowedFetchUrls": ["https://a.com", "not a url"] }), vec!["allowedFetchUrls[1]"]),
        (json!({ "secrets": [] }), vec!["secrets"]),
        (
            json!({ "secrets": { "A": {}, "B C": { "from": { "env": "X" }, "hosts": ["a.example"], "as": "bearer" } } }),
            vec!["secrets.A.from", "secrets.A.as", "secrets.B C"],
        ),
        (
            json!({ "secrets": { "A": { "from": { "env": "X", "file": "/x" }, "hosts": ["a.example"], "as": "basic" } } }),
            vec!["secrets.A.from", "secrets.A.as"],
        ),
        (
            json!({ "secrets": { "A": { "from": { "file": "key.txt" }, "hosts": ["a.example"], "as": "bearer" } } }),
            vec!["secrets.A.from.file"],
        ),
        (
            json!({ "secrets": { "A": { "from": { "command": "gh auth token" }, "hosts": ["a.example"], "as": { "header": "X", "query": "y" } } } }),
            vec!["secrets.A.from.command", "secrets.A.from", "secrets.A.as"],
        ),
        (
            json!({ "secrets": { "A": { "from": { "env": "X" }, "hosts": ["https://a.example"], "as": "bearer", "host": "b" } } }),
            vec!["secrets.A", "secrets.A.host"],
        ),
        (
            json!({ "secrets": { "A": { "from": { "env": "X" }, "hosts": [], "as": "bearer" } } }),
            vec!["secrets.A"],
        ),
        (json!({ "git": { "provider": "svn" } }), vec!["git.provider"]),
        (json!({ "git": { "provider": "github" } }), vec!["git.repo"]),
        (json!({ "git": { "provider": "github", "repo": "noslash" } }), vec!["git.repo"]),
        (json!({ "git": { "url": "x", "repo": "a/b" } }), vec!["git.repo"]),
        (
            json!({ "db": { "url": 1, "maxRows": 0, "pool": 1_000, "readOnly": "no", "freeReads": 1, "password": "x" } }),
            vec!["db.url", "db.maxRows", "db.pool", "db.readOnly", "db.freeReads", "db.password"],
        ),
        (
            json!({ "registry": { "onDuplicate": "ask", "embeddings": { "model": "m" } } }),
            vec!["registry.onDuplicate", "registry.embeddings.baseUrl"],
        ),
        (
            json!({ "git": { "url": "x", "auth": { "email": "nobody", "token": 1, "x": 1 } } }),
            vec!["git.auth.token", "git.auth.email", "git.auth.x"],
        ),
        (
            json!({ "git": { "url": "x", "writeStrategy": "push", "branch": 1 } }),
            vec!["git.branch", "git.writeStrategy"],
        ),
        (
            json!({ "sandbox": { "memoryMb": 1, "cpuMs": 0, "wallMs": 9, "outputBytes": 1, "pool": 65 } }),
            vec![
                "sandbox.memoryMb",
                "sandbox.cpuMs",
                "sandbox.wallMs",
                "sandbox.outputBytes",
                "sandbox.pool",
            ],
        ),
        (
            json!({ "sandbox": { "memoryMb": 1025, "cpuMs": 60_001, "wallMs": 600_001, "logLines": 100_001, "bridgeCalls": -1 } }),
            vec![
                "sandbox.memoryMb",
                "sandbox.cpuMs",
                "sandbox.wallMs",
                "sandbox.logLines",
                "sandbox.bridgeCalls",
            ],
        ),
        (
            json!({ "sandbox": { "cpuMs": 1.5, "seed": "x", "clock": "now", "logBytes": null } }),
            vec!["sandbox.cpuMs", "sandbox.seed", "sandbox.clock"],
        ),
        (
            json!({ "llm": { "model": 1, "contextTokens": 5, "temperature": 9, "body": [], "attempts": 0,
                "budgets": { "steps": 0, "cost": 1, "money": 1 }, "prices": { "input": 1 },
                "timeouts": { "idleSeconds": "long" }, "apiKey": "x" } }),
            vec![
                "llm.model",
                "llm.contextTokens",
                "llm.temperature",
                "llm.body",
                "llm.attempts",
                "llm.budgets.steps",
                "llm.budgets.money",
                "llm.prices.input",
                "llm.budgets.cost",
                "llm.timeouts.idleSeconds",
                "llm.apiKey",
            ],
        ),
        (
            json!({ "sandbox": { "ceiling": { "cpuMs": 0, "wallMs": 600_001, "memoryMb": 1025, "stackMb": 1 } } }),
            vec![
                "sandbox.ceiling.cpuMs",
                "sandbox.ceiling.wallMs",
                "sandbox.ceiling.memoryMb",
                "sandbox.ceiling.stackMb",
            ],
        ),
        (
            json!({ "rootDir": 1, "allowedImports": 2, "sandbox": { "cpu": 3 }, "zzz": 4 }),
            vec!["rootDir", "allowedImports", "sandbox.cpu", "zzz"],
        ),
    ] {
        let error = Config::from_value("tgp.config.json", &value).unwrap_err();
        let ConfigError::Fields { problems, .. } = &error else { panic!("{value}: {error}") };
        let mut found: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        let mut expected = paths.clone();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{value}: {error}");
        let told = ToolError::from(error);
        assert_eq!(told.code.as_str(), "ECONFIG");
        assert_eq!(told.details["problems"].as_array().unwrap().len(), paths.len(), "{value}");
    }
    let whole = json!({ "rootDir": "./.tgp", "git": { "provider": "github", "repo": "a/b", "branch": "main", "apiBaseUrl": "https://x", "auth": { "token": "t", "user": "u", "email": "u@x" }, "writeStrategy": "pr" }, "fs": { "allowedDirs": ["./tmp"], "readDirs": ["data"], "blockUpwardTraversal": false }, "allowedImports": [], "allowedFetchUrls": ["https://api.stripe.com/v1"], "db": { "url": "sqlite:a.db", "readOnly": true, "statementTimeoutMs": 1, "maxRows": 1, "maxBytes": 1_024, "pool": 1, "freeReads": true }, "registry": { "onDuplicate": "refuse", "embeddings": { "baseUrl": "https://x", "model": "m", "apiKey": "k" } }, "sandbox": { "memoryMb": 64, "cpuMs": 50, "wallMs": 5_000, "outputBytes": 1_024, "logLines": 0, "logBytes": 0, "bridgeCalls": 0, "pool": 1, "seed": 1, "clock": 0, "ceiling": { "cpuMs": 1, "wallMs": 10, "memoryMb": 4 } } });
    let config = Config::from_value("tgp.config.json", &whole).unwrap();
    assert!(!format!("{config:?}").contains("\"t\""), "a token is not shown");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_sees_only_the_variables_it_names() {
    let project = Project::new();
    project.put("tgp.config.ts", "const hidden = (globalThis as never as Record<string, { env: object }>)[['pro', 'cess'].join('')];\nconst names = Object.keys(hidden.env).sort();\nexport default { git: { url: 'x', auth: { token: process.env.GIT_TOKEN, user: process.env['GIT_USER'] } }, allowedImports: [names.join(' '), String(Object.keys(hidden))] };");
    let variables = environment(&[
        ("GIT_TOKEN", "secret"),
        ("GIT_USER", "me"),
        ("AWS_SECRET", "other"),
        ("PATH", "/bin"),
    ]);
    let kernel = Kernel::boot(BootOptions { environment: variables, ..project.options() }).await.unwrap();
    let config = kernel.config();
    let auth = &config.git.as_ref().unwrap().auth;
    assert_eq!((auth.token.as_deref(), auth.user.as_str()), (Some("secret"), "me"));
    assert_eq!(config.allowed_imports, ["GIT_TOKEN GIT_USER", "env"], "what is not named is not there");
    // A tool sees none of it.
    let answer = run(&kernel, &project, "export default () => ['process' in globalThis, typeof (globalThis as { process?: unknown }).process];", json!({})).await;
    assert_eq!(result(&answer), json!([false, "undefined"]));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_that_goes_wrong_is_told() {
    for (name, source, words) in [
        ("tgp.config.ts", "while (true) {}\nexport default {};", "CPU time"),
        ("tgp.config.ts", "export default {};\nthrow new Error('boom');", "boom"),
        (
            "tgp.config.ts",
            "import fs from 'fs';\nexport default { rootDir: fs.readFileSync('/etc/passwd', 'utf8') };",
            "fs",
        ),
        ("tgp.config.ts", "import x from './other.ts';\nexport default x;", "other.ts"),
        ("tgp.config.ts", "export default { rootDir: ;", "tgp.config.ts"),
        (
            "tgp.config.ts",
            "const a: string[] = [];\nfor (;;) a.push('x'.repeat(1e6) + a.length);\nexport default {};",
            "cannot be evaluated",
        ),
        ("tgp.config.ts", "export default { rootDir: 'x'.repeat(2 ** 24) };", "cannot be evaluated"),
        ("tgp.config.ts", "export default { rootDir: await tgp.read_file('/etc/passwd') };", "configuration"),
        ("tgp.config.js", "module.exports = require('child_process');", "child_process"),
        ("tgp.config.json", "{ \"rootDir\": }", "line 1 column"),
        ("tgp.config.json", "", "column 0"),
    ] {
        let project = Project::new();
        project.put(name, source);
        let error = refused(&project).await;
        assert_eq!(error.code.as_str(), "ECONFIG", "{source}: {error}");
        assert!(error.message.contains(words), "{source}: {error}");
        assert!(error.message.contains(name), "{source}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thrown_error_in_a_config_has_its_place() {
    let project = Project::new();
    project.put("tgp.config.ts", "interface A {\n  a: 1;\n}\nconst a: A | undefined = undefined;\nexport default { rootDir: (a as unknown as { b: { c: string } }).b.c };");
    let error = refused(&project).await;
    let place = error.place_of().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("tgp.config.ts", 5), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_needs_a_project() {
    let project = Project::new();
    project.put("tgp.config.json", "{\"rootDir\":\"elsewhere\"}");
    let error = refused(&project).await;
    assert_eq!(error.code.as_str(), "ECONFIG");
    assert!(error.message.contains("elsewhere"), "{error}");
    project.put("tgp.config.json", "{\"fs\":{\"allowedDirs\":[\"../outside\"]}}");
    assert_eq!(refused(&project).await.code.as_str(), "ECONFIG");
    let missing = Kernel::boot(BootOptions::new("/nonexistent/tgp")).await.unwrap_err();
    assert_eq!(ToolError::from(missing).code.as_str(), "ECONFIG");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caps_are_the_configured_ones() {
    let project = Project::new();
    let config = json!({ "sandbox": { "memoryMb": 16, "outputBytes": 2_000, "logLines": 3, "logBytes": 100, "bridgeCalls": 4 } });
    let kernel = project.kernel(config).await;
    let code_of =
        |answer: tgp::contract::ToolResult| answer.error().map_or("OK", |error| error.code.as_str());
    for (source, expected) in [
        ("export default () => new Uint8Array(8 << 20).length;", "OK"),
        ("export default () => new Uint8Array(20 << 20).length;", "ERR_ISOLATE_MEMORY"),
        ("export default () => 'x'.repeat(1_990);", "OK"),
        ("export default () => 'x'.repeat(2_001);", "ERUNTIME"),
        ("export default () => 'ä'.repeat(1_500);", "ERUNTIME"),
        ("export default () => [1, 2, 3].forEach((n) => console.log(n));", "OK"),
        ("export default () => [1, 2, 3, 4].forEach((n) => console.log(n));", "OK"),
        ("export default () => console.log('x'.repeat(101));", "OK"),
        (
            "export default async () => { for (let at = 0; at < 4; at += 1) await tgp.list_files('tools'); };",
            "OK",
        ),
        (
            "export default async () => { for (let at = 0; at < 5; at += 1) await tgp.list_files('tools'); };",
            "ERUNTIME",
        ),
        ("export default () => tgp.write_file('/tmp/x', 'x'.repeat(3_000));", "ERUNTIME"),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(code_of(answer.clone()), expected, "{source}: {answer:?}");
    }
    // A log that is too long is cut, and says so.
    let cut = "the log ends here: the tool logged more than sandbox.logLines or sandbox.logBytes allow";
    for (source, expected) in [
        ("[1, 2, 3, 4, 5].forEach((n) => console.log(n))", vec!["1", "2", "3", cut]),
        ("['a', 'x'.repeat(101), 'b'].forEach((text) => console.log(text))", vec!["a", cut]),
    ] {
        let answer = run(&kernel, &project, &format!("export default () => {source};"), json!({})).await;
        let texts: Vec<String> = logs(data(&answer)).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, expected, "{source}");
    }
    kernel.shutdown().await;
}
