//! Packages: unmodified from `node_modules`, built in, refused.
//!
//! `TGP_TEST_NODE_MODULES` names a directory whose `node_modules` has zod, date-fns and TypeScript 7; without it the
//! tests that need them say so and pass.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{Project, code, data, error, result, run};

/// A project with the real packages, or nothing when this machine has none.
fn with_packages(test: &str) -> Option<Project> {
    let Some(directory) = std::env::var_os("TGP_TEST_NODE_MODULES") else {
        println!("skipped: {test}: TGP_TEST_NODE_MODULES is not set");
        return None;
    };
    let modules = PathBuf::from(directory).join("node_modules");
    assert!(modules.is_dir(), "TGP_TEST_NODE_MODULES has no node_modules");
    let project = Project::new();
    symlink(modules, project.file("node_modules")).unwrap();
    Some(project)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zod_and_date_fns_work_unmodified() {
    let Some(project) = with_packages("zod and date-fns") else { return };
    let kernel = project.kernel(json!({})).await;
    for (source, expected) in [
        (
            "import { z } from 'zod';\nconst User = z.object({ id: z.number().int(), mail: z.email() });\nexport default () => [User.safeParse({ id: 1, mail: 'a@b.co' }).success, User.safeParse({ id: 'x' }).success];",
            json!([true, false]),
        ),
        (
            "import * as z from 'zod';\nexport default () => z.array(z.coerce.number()).parse(['1', '2']);",
            json!([1, 2]),
        ),
        (
            "const { z } = require('zod');\nmodule.exports = () => z.string().min(2).safeParse('x').success;",
            json!(false),
        ),
        (
            "import { addDays, formatISO } from 'date-fns';\nexport default () => formatISO(addDays(new Date(Date.UTC(2026, 0, 30)), 3), { representation: 'date' });",
            json!("2026-02-02"),
        ),
        (
            "import { addDays } from 'date-fns/addDays';\nexport default () => addDays(new Date(0), 1).getTime();",
            json!(86_400_000),
        ),
        (
            "import { z } from 'zod';\nimport { differenceInDays } from 'date-fns';\nexport default () => z.number().parse(differenceInDays(new Date(864e5 * 3), new Date(0)));",
            json!(3),
        ),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(result(&answer), expected, "{source}");
    }
    let answer = run(
        &kernel,
        &project,
        "import { z } from 'zod';\nexport default () => z.number().parse('no');",
        json!({}),
    )
    .await;
    assert_eq!(code(&answer), "ERUNTIME", "{answer:?}");
    assert!(error(&answer).message.contains("ZodError"), "{}", error(&answer).message);
    assert_eq!(
        error(&answer).place_of().map(|place| place.line),
        Some(2),
        "the place is in the tool, not in the package"
    );
    kernel.shutdown().await;
    // The default caps are enough once the workers are warm.
    let tight = project.kernel(json!({ "sandbox": { "cpuMs": 200, "memoryMb": 64 } })).await;
    let source = "import { z } from 'zod';\nexport default () => z.number().parse(1);";
    let mut answer = run(&tight, &project, source, json!({})).await;
    for _ in 0..5 {
        answer = run(&tight, &project, source, json!({})).await;
    }
    assert_eq!(result(&answer), json!(1));
    tight.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_are_checked_by_typescript_7() {
    let Some(project) = with_packages("types") else { return };
    assert!(tgp::sandbox::native_type_checker(project.path()).is_some(), "there is no native TypeScript");
    let kernel = project.kernel(json!({})).await;
    let check = async |source: &str| {
        project.tool("under_test.ts", source);
        kernel.call("check_tool", json!({ "path": "tools/under_test.ts" })).await
    };
    let good = "/** Doubles. */\nexport default function double({ n }: { n: number }): number {\n  return n * 2;\n}\n";
    let report = check(good).await;
    assert_eq!(
        (&data(&report)["valid"], &data(&report)["types"]),
        (&json!(true), &json!("checked")),
        "{report:?}"
    );
    let bad =
        "/** Doubles. */\nexport default function double({ n }: { n: string }): number {\n  return n;\n}\n";
    let report = check(bad).await;
    let report = data(&report);
    assert_eq!((&report["valid"], &report["types"]), (&json!(false), &json!("checked")));
    let found: Vec<&Value> =
        report["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] == "types").collect();
    assert_eq!(found.len(), 1, "{report}");
    assert_eq!((&found[0]["place"]["line"], &found[0]["place"]["column"]), (&json!(3), &json!(3)));
    assert!(found[0]["message"].as_str().unwrap().contains("TS2322"), "{report}");
    assert!(report["errors"].to_string().contains("TS2322"), "{report}");
    // What a tool finds in the sandbox has types; so have packages and other tools.
    project.tool("other.ts", "/** One. */\nexport const one = (): number => 1;\n");
    let uses = "import { z } from 'zod';\nimport { one } from './other.ts';\n/** Reads. */\nexport default async function read({ path }: { path: string }): Promise<number> {\n  const text = await tgp.read_file(path);\n  return z.number().parse(text.length + one());\n}\n";
    let report = check(uses).await;
    assert_eq!(data(&report)["valid"], json!(true), "{report:?}");
    let wrong = "/** Reads. */\nexport default async function read({ path }: { path: number }): Promise<string> {\n  return tgp.read_file(path);\n}\n";
    assert_eq!(data(&check(wrong).await)["valid"], json!(false));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_typescript_types_are_skipped() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    project.tool(
        "under_test.ts",
        "/** Doubles. */\nexport default function double({ n }: { n: string }): number {\n  return n;\n}\n",
    );
    let report = kernel.call("check_tool", json!({ "path": "tools/under_test.ts" })).await;
    assert_eq!(
        (&data(&report)["valid"], &data(&report)["types"]),
        (&json!(true), &json!("skipped")),
        "{report:?}"
    );
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_standard_library_is_built_in() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let answer = run(
        &kernel,
        &project,
        "import * as std from '@tgp/std';\nexport default () => Object.keys(std).length > 0;",
        json!({}),
    )
    .await;
    assert_eq!(result(&answer), json!(true));
    let answer = run(&kernel, &project, "const std = require('@tgp/std');\nmodule.exports = () => Object.values(std).some((f) => typeof f === 'function');", json!({})).await;
    assert_eq!(result(&answer), json!(true));
    kernel.shutdown().await;
}

/// Packages made by hand in `node_modules`.
fn made() -> Project {
    let project = Project::new();
    project
        .put("node_modules/plain/package.json", "{\"name\":\"plain\",\"main\":\"lib/index.js\"}")
        .put("node_modules/plain/lib/index.js", "'use strict';\nconst helper = require('./helper');\nexports.twice = (n) => helper(n) * 2;\nexports.self = module.exports;\nexports.dir = typeof __dirname;\n")
        .put("node_modules/plain/lib/helper.js", "module.exports = function (n) { return n; };\n")
        .put("node_modules/fn/package.json", "{\"name\":\"fn\"}")
        .put("node_modules/fn/index.js", "module.exports = (n) => n + 1;\nmodule.exports.version = '1';\n")
        .put("node_modules/modern/package.json", "{\"name\":\"modern\",\"type\":\"module\",\"exports\":{\".\":{\"import\":\"./main.mjs\",\"require\":\"./main.cjs\"},\"./sub\":\"./sub.js\"}}")
        .put("node_modules/modern/main.mjs", "export const kind = 'esm';\nexport default 1;\n")
        .put("node_modules/modern/main.cjs", "exports.kind = 'cjs';\n")
        .put("node_modules/modern/sub.js", "export const sub = true;\n")
        .put("node_modules/modern/private.js", "export const secret = 1;\n")
        .put("node_modules/evil/package.json", "{\"name\":\"evil\"}")
        .put("node_modules/evil/index.js", "const fs = require('fs');\nmodule.exports = () => fs.readFileSync('/etc/passwd', 'utf8');\n")
        .put("node_modules/evil-esm/package.json", "{\"name\":\"evil-esm\",\"type\":\"module\"}")
        .put("node_modules/evil-esm/index.js", "import { readFileSync } from 'node:fs';\nexport default () => readFileSync('/etc/passwd', 'utf8');\n")
        .put("node_modules/escape/package.json", "{\"name\":\"escape\",\"main\":\"../../secret.js\"}")
        .put("node_modules/broken/package.json", "{\"name\":\"broken\"}")
        .put("node_modules/broken/index.js", "module.exports = {;\n")
        .put("node_modules/loops/package.json", "{\"name\":\"loops\"}")
        .put("node_modules/loops/index.js", "while (true) {}\n")
        .put("secret.js", "module.exports = 'secret';\n");
    project
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_packages_load_as_node_would() {
    let project = made();
    let kernel = project.kernel(json!({ "allowedImports": ["plain", "fn", "modern"] })).await;
    for (source, expected) in [
        ("import { twice } from 'plain';\nexport default () => twice(4);", json!(8)),
        (
            "import plain from 'plain';\nexport default () => [plain.twice(4), plain.self === plain, plain.dir];",
            json!([8, true, "string"]),
        ),
        ("const { twice } = require('plain');\nmodule.exports = () => twice(4);", json!(8)),
        ("import plus from 'fn';\nexport default () => [plus(1), plus.version];", json!([2, "1"])),
        ("const plus = require('fn');\nmodule.exports = () => plus(1);", json!(2)),
        (
            "import one, { kind } from 'modern';\nimport { sub } from 'modern/sub';\nexport default () => [one, kind, sub];",
            json!([1, "esm", true]),
        ),
        ("module.exports = () => require('modern').kind;", json!("cjs")),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert_eq!(result(&answer), expected, "{source}");
    }
    // A package that was changed on disk is compiled again.
    project.put("node_modules/fn/index.js", "module.exports = (n) => n + 100; // changed\n");
    let answer =
        run(&kernel, &project, "import plus from 'fn';\nexport default () => plus(1);", json!({})).await;
    assert_eq!(result(&answer), json!(101));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_packages_are_refused() {
    let project = made();
    let allowed = json!(["evil", "evil-esm", "escape", "broken", "loops", "missing", "modern"]);
    let kernel = project.kernel(json!({ "allowedImports": allowed, "sandbox": { "cpuMs": 300 } })).await;
    for (source, expected) in [
        (
            "import evil from 'evil';\nexport default () => evil();",
            &["ESECURITY", "ECOMPILE", "ERUNTIME", "ENOTFOUND"][..],
        ),
        (
            "import evil from 'evil-esm';\nexport default () => evil();",
            &["ESECURITY", "ECOMPILE", "ENOTFOUND"],
        ),
        (
            "import secret from 'escape';\nexport default () => secret;",
            &["ESECURITY", "ECOMPILE", "ENOTFOUND"],
        ),
        ("import broken from 'broken';\nexport default () => broken;", &["ECOMPILE"]),
        ("import loops from 'loops';\nexport default () => loops;", &["ERR_ISOLATE_TIMEOUT"]),
        ("import missing from 'missing';\nexport default () => missing;", &["ENOTFOUND", "ECOMPILE"]),
        ("import fs from 'fs';\nexport default () => fs;", &["ESECURITY", "ECOMPILE"]),
        ("import fs from 'node:fs';\nexport default () => fs;", &["ESECURITY", "ECOMPILE"]),
        ("import plain from 'plain';\nexport default () => plain;", &["ESECURITY", "ECOMPILE"]),
        (
            "import { secret } from 'modern/private.js';\nexport default () => secret;",
            &["ESECURITY", "ECOMPILE", "ENOTFOUND"],
        ),
        (
            "import x from '../../secret.js';\nexport default () => x;",
            &["ESECURITY", "ECOMPILE", "ENOTFOUND"],
        ),
        ("import x from '/etc/passwd';\nexport default () => x;", &["ESECURITY", "ECOMPILE", "ENOTFOUND"]),
        ("import x from 'https://example.com/x.js';\nexport default () => x;", &["ESECURITY", "ECOMPILE"]),
    ] {
        let answer = run(&kernel, &project, source, json!({})).await;
        assert!(expected.contains(&code(&answer)), "{source}: {answer:?}");
    }
    // A package that hangs while it is loaded must not reach the workers that are warmed ahead.
    for round in 0..8 {
        let answer = run(&kernel, &project, &format!("export default () => {round};"), json!({})).await;
        assert_eq!(result(&answer), json!(round));
    }
    kernel.shutdown().await;
}
