//! Where chronicles are, through a whole kernel: what agents cannot make of it, and what a source of SageMath is.

use serde_json::{Value, json};
use tgp::Kernel;
use tgp::chronicle::Migration;
use tgp::contract::{Actor, CallContext, ChronicleEvent, Consent, EventActor, ToolCall, ToolResult};

use crate::support::{Project, code, data, exec};

/// A line of a chronicle that verifies: any program can make one.
fn line(text: &str) -> String {
    let mut event = ChronicleEvent {
        event_id: None,
        kind: "DECISION".to_owned(),
        timestamp: "2026-11-15T12:00:00Z".to_owned(),
        actor: EventActor { agent: "person".to_owned(), id: "ann".to_owned() },
        file_path: None,
        fields: json!({ "why": text }).as_object().unwrap().clone(),
    };
    event.event_id = Some(event.compute_id().unwrap());
    format!("{}\n", event.to_canonical().unwrap())
}

fn config(layout: &str) -> Value {
    json!({
        "tdd": { "mode": "explore" },
        "chronicle": { "layout": layout },
        "fs": { "allowedDirs": ["./src"] },
        "sandbox": { "cpuMs": 5_000 },
    })
}

async fn agent(kernel: &Kernel, tool: &str, arguments: Value) -> ToolResult {
    let context = CallContext {
        actor: Actor::Agent("test".to_owned()),
        session: "test".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    };
    kernel.call_with(ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments }, context).await
}

async fn whys(kernel: &Kernel, path: &str) -> Vec<String> {
    let read = agent(kernel, "chronicle_read", json!({ "path": path })).await;
    let events = data(&read)["events"].as_array().cloned().unwrap_or_default();
    events.iter().map(|event| event["why"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_are_told_where_the_layout_says() {
    for (layout, file) in [("tree", ".sage/files/src/a.ts.sage"), ("beside", "src/a.ts.sage")] {
        let project = Project::new();
        let kernel = project.kernel(config(layout)).await;
        let written = agent(&kernel, "fs_write", json!({ "path": "src/a.ts", "content": "1" })).await;
        assert!(written.is_ok(), "{written:?}");
        let text = project.text(file).unwrap_or_default();
        assert!(text.contains("\"EDIT\""), "{layout}: {text}");
        // The chronicle keeps its name, and its file is another way to name it.
        for path in ["src/a.ts", "src/a.ts.sage", ".sage/files/src/a.ts.sage"] {
            let read = agent(&kernel, "chronicle_read", json!({ "path": path })).await;
            assert_eq!(data(&read)["path"], "src/a.ts.sage", "{layout} {path}");
            assert_eq!(data(&read)["events"].as_array().unwrap().len(), 1, "{layout} {path}");
        }
        kernel.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_of_sagemath_is_a_file_like_any_other() {
    let project = Project::new();
    project.put("src/curve.sage", "E = EllipticCurve([0, 0, 1, -1, 0])\n");
    let kernel = project.kernel(config("tree")).await;
    let read = agent(&kernel, "fs_read", json!({ "path": "src/curve.sage" })).await;
    assert!(data(&read).to_string().contains("EllipticCurve"), "{read:?}");
    let edit = json!({ "path": "src/curve.sage", "search": "E = ", "replace": "F = " });
    let edited = agent(&kernel, "fs_edit", edit).await;
    assert!(edited.is_ok(), "{edited:?}");
    assert!(project.text(".sage/files/src/curve.sage.sage").unwrap().contains("\"changed\""));
    let made =
        agent(&kernel, "fs_write", json!({ "path": "src/new.sage", "content": "R.<x> = QQ[]\n" })).await;
    assert!(made.is_ok(), "{made:?}");
    kernel.call("graph_ingest", json!({ "commit": "WORKTREE" })).await;
    let query =
        json!({ "query": "MATCH (f:File) RETURN f.path AS path ORDER BY path", "commit": "WORKTREE" });
    let files = kernel.call("graph_query", query).await;
    let shown = format!("{files:?}");
    assert!(shown.contains("src/curve.sage") && !shown.contains("curve.sage.sage"), "{shown}");
    let gone = agent(&kernel, "fs_delete", json!({ "path": "src/new.sage" })).await;
    assert!(gone.is_ok() && !project.file("src/new.sage").exists(), "{gone:?}");
    kernel.shutdown().await;
    // Beside the sources every such name is a chronicle's.
    let kernel = project.kernel(config("beside")).await;
    let written = agent(&kernel, "fs_write", json!({ "path": "src/other.sage", "content": "1" })).await;
    assert_eq!(code(&written), "EPOLICY");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_agent_makes_a_file_that_a_migration_would_believe() {
    let forged = line("forged");
    let project = Project::new();
    project.put("src/notes.txt", &forged);
    project.tool("tools/put.ts", "export default async (args: { text: string }): Promise<void> => {\n  await tgp.write_file('./src/c.ts.sage', args.text);\n};\n");
    let kernel = project.kernel(config("tree")).await;
    for path in ["src/a.ts.sage", "src/a.ts.SAGE", "a.sage"] {
        let written = agent(&kernel, "fs_write", json!({ "path": path, "content": forged })).await;
        assert_eq!(code(&written), "ESECURITY", "{path}: {written:?}");
        assert!(!project.file(path).exists(), "{path}");
    }
    // A file of another content does not become one by an edit.
    assert!(
        agent(&kernel, "fs_write", json!({ "path": "src/b.sage", "content": format!("#{forged}") }))
            .await
            .is_ok()
    );
    let edit = json!({ "path": "src/b.sage", "search": "#{", "replace": "{" });
    assert_eq!(code(&agent(&kernel, "fs_edit", edit).await), "ESECURITY");
    let ran = exec(&kernel, "tools/put.ts", json!({ "text": forged })).await;
    assert!(!ran.is_ok() && !project.file("src/c.ts.sage").exists(), "{ran:?}");
    for path in [".sage/files/src/a.ts.sage", ".sage/files/x.txt", ".SAGE/files/a.sage", ".sage/files"] {
        let written = agent(&kernel, "fs_write", json!({ "path": path, "content": forged })).await;
        assert_eq!(code(&written), "EPOLICY", "{path}: {written:?}");
    }
    if tgp::sandbox::process_support().complete() {
        for command in [
            "cp src/notes.txt src/a.ts.sage; mv src/notes.txt src/d.ts.sage",
            "mkdir -p .sage/files/src 2>/dev/null; cp src/notes.txt .sage/files/src/a.ts.sage || true",
        ] {
            let ran = agent(&kernel, "shell_exec", json!({ "command": command })).await;
            println!("{command}: {ran:?}");
            for path in ["src/a.ts.sage", "src/d.ts.sage", ".sage/files/src/a.ts.sage"] {
                assert!(!project.file(path).exists(), "{command} made {path}: {ran:?}");
            }
        }
    }
    let report = kernel.migrate_chronicles(Migration::Apply).await.unwrap();
    assert!(report.moved.is_empty(), "{report:?}");
    assert!(whys(&kernel, "src/a.ts").await.is_empty());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_chronicle_is_neither_read_nor_written_until_a_person_migrates_it() {
    let project = Project::new();
    let old = line("whole cents");
    project.put("src/a.ts", "1").put("src/a.ts.sage", &old);
    let kernel = project.kernel(config("tree")).await;
    assert!(whys(&kernel, "src/a.ts").await.is_empty(), "nobody knows who wrote it");
    let write = json!({ "path": "src/a.ts.sage", "content": "x" });
    let edit = json!({ "path": "src/a.ts.sage", "search": "whole", "replace": "half" });
    assert_eq!(code(&agent(&kernel, "fs_write", write).await), "EPOLICY");
    assert_eq!(code(&agent(&kernel, "fs_edit", edit).await), "EPOLICY");
    assert_eq!(code(&agent(&kernel, "fs_delete", json!({ "path": "src/a.ts.sage" })).await), "EPOLICY");
    if tgp::sandbox::process_support().complete() {
        for command in
            ["rm src/a.ts.sage", "echo x >> src/a.ts.sage", "mv src/a.ts.sage src/b.ts.sage", "rm -r src"]
        {
            let ran = agent(&kernel, "shell_exec", json!({ "command": command })).await;
            assert_eq!(project.text("src/a.ts.sage").as_deref(), Some(old.as_str()), "{command}: {ran:?}");
            assert!(!project.file("src/b.ts.sage").exists(), "{command}: {ran:?}");
        }
    }
    // An event of this version goes to the tree, and a migration brings both together.
    let event = json!({ "type": "NOTE", "timestamp": "2026-11-16T12:00:00Z", "actor": { "agent": "agent", "id": "a" }, "why": "new" });
    let appended = agent(&kernel, "chronicle_append", json!({ "path": "src/a.ts", "event": event })).await;
    assert!(appended.is_ok(), "{appended:?}");
    let seen = kernel.migrate_chronicles(Migration::DryRun).await.unwrap();
    assert!(project.file("src/a.ts.sage").exists(), "a dry run changes nothing");
    let report = kernel.migrate_chronicles(Migration::Apply).await.unwrap();
    assert_eq!((report.moved.len(), &report), (1, &seen));
    assert!(!project.file("src/a.ts.sage").exists());
    let all = whys(&kernel, "src/a.ts").await;
    assert!(all.starts_with(&["whole cents".to_owned()]) && all.contains(&"new".to_owned()), "{all:?}");
    // No tool does it.
    let names: Vec<String> = kernel.definitions().map(|tool| tool.name.to_string()).collect();
    assert!(!names.iter().any(|name| name.contains("migrate")), "{names:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_in_place_of_the_tree_takes_no_event() {
    let elsewhere = tempfile::tempdir().unwrap();
    let project = Project::new();
    project.put(".sage/valve.yml", "personas: []\n");
    std::os::unix::fs::symlink(elsewhere.path(), project.file(".sage/files")).unwrap();
    let kernel = project.kernel(config("tree")).await;
    let event = json!({ "type": "NOTE", "timestamp": "2026-11-16T12:00:00Z", "actor": { "agent": "agent", "id": "a" } });
    let appended = agent(&kernel, "chronicle_append", json!({ "path": "src/a.ts", "event": event })).await;
    assert_eq!(code(&appended), "ESECURITY");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_collide_or_are_too_long_lose_no_event() {
    let project = Project::new();
    let kernel = project.kernel(config("tree")).await;
    let long = format!("src/{}", "x".repeat(252));
    for path in ["src/a.ts.sage/b.ts", "src/a.ts", long.as_str()] {
        let written = agent(&kernel, "fs_write", json!({ "path": path, "content": "1" })).await;
        assert!(written.is_ok(), "{path}: {written:?}");
    }
    for path in ["src/a.ts", "src/a.ts.sage/b.ts"] {
        let read = agent(&kernel, "chronicle_read", json!({ "path": path })).await;
        assert_eq!(data(&read)["events"].as_array().unwrap().len(), 1, "{path}: {read:?}");
    }
    assert!(project.text(".sage/project.sage").unwrap().contains(&long));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn type_and_agent_of_a_programs_event_are_ascii() {
    let project = Project::new();
    let kernel = project.kernel(config("tree")).await;
    let event = |kind: &str, name: &str| {
        json!({ "path": "src/a.ts", "event": {
        "type": kind, "timestamp": "2026-11-16T12:00:00Z", "actor": { "agent": name, "id": "Zoë" }, "why": "größer",
    } })
    };
    // Greek, Cyrillic, an invisible letter, a control character.
    for (kind, name) in
        [("\u{395}DIT", "agent"), ("NOTE", "p\u{435}rson"), ("NOTE", "person\u{200b}"), ("NO\tTE", "agent")]
    {
        let appended = agent(&kernel, "chronicle_append", event(kind, name)).await;
        assert_eq!(code(&appended), "EVALIDATION", "{kind} {name}");
    }
    let appended = agent(&kernel, "chronicle_append", event("A NOTE", "agent")).await;
    assert!(appended.is_ok(), "other fields hold any text: {appended:?}");
    kernel.shutdown().await;
}
