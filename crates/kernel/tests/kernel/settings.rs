//! `audit`, `tdd`, `policy` and `jail` of the configuration do what they say.

use serde_json::{Value, json};
use tgp::audit::AuditFilter;
use tgp::contract::TddMode;
use tgp::{BootOptions, Kernel};

use crate::support::{Project, code, data, environment};

async fn boot(project: &Project, config: Value) -> Kernel {
    project.put("tgp.config.json", &config.to_string());
    // The configuration decides, not the options.
    let environment = environment(&[("DEPLOY_WORD", "swordfish-and-chips"), ("PATH", "/usr/bin:/bin")]);
    Kernel::boot(BootOptions { tdd_mode: None, environment, ..project.options() }).await.unwrap()
}

async fn write(kernel: &Kernel, path: &str) -> tgp::contract::ToolResult {
    kernel.call("fs_write", json!({ "path": path, "content": "x" })).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tdd_is_strict_unless_the_configuration_says_otherwise() {
    let project = Project::new();
    let kernel = boot(&project, json!({})).await;
    assert_eq!(kernel.state().tdd().mode(), TddMode::Strict);
    assert_eq!(code(&write(&kernel, "src/a.py").await), "ESTATE");
    kernel.shutdown().await;
    let kernel = boot(&project, json!({ "tdd": { "mode": "explore" } })).await;
    assert!(write(&kernel, "src/a.py").await.is_ok());
    kernel.shutdown().await;
    let kernel = boot(&project, json!({ "tdd": { "mode": "debug" } })).await;
    assert!(write(&kernel, "src/a.py").await.is_ok(), "old code may be changed to look for a fault");
    assert_eq!(code(&write(&kernel, "src/b.py").await), "ESTATE", "new code may not be made");
    kernel.shutdown().await;
    let config = json!({ "tdd": { "tests": ["checks/**"], "exempt": ["notes/**"] } });
    let kernel = boot(&project, config).await;
    assert!(write(&kernel, "checks/a.py").await.is_ok() && write(&kernel, "notes/a.py").await.is_ok());
    assert_eq!(code(&write(&kernel, "tests/a.py").await), "ESTATE", "other globs replace the usual ones");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_the_configuration_stand_in_no_record() {
    let project = Project::new();
    let redact = json!({ "names": ["room"], "environment": ["DEPLOY_WORD"] });
    let kernel = boot(&project, json!({ "audit": { "durability": "call", "redact": redact } })).await;
    kernel.call("fs_exists", json!({ "path": "swordfish-and-chips" })).await;
    kernel.call("exec_tool", json!({ "path": "tools/none.ts", "args": { "room": "the-third-door" } })).await;
    // On the disk when the call has returned, without a flush.
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let entries = reader.tail(&AuditFilter::default(), 10).unwrap();
    assert_eq!(entries.len(), 2);
    let told: String = entries.iter().map(|entry| entry.body.to_string()).collect();
    assert!(!told.contains("swordfish") && !told.contains("third-door"), "{told}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caps_of_the_jail_hold() {
    if !tgp::sandbox::process_support().complete() {
        println!("commands cannot run here, skipped");
        return;
    }
    let project = Project::new();
    let jail = json!({ "timeoutMs": 400, "outputBytes": 1024, "layerMb": 1, "fileMb": 1, "processes": 50 });
    let kernel = boot(&project, json!({ "tdd": { "mode": "explore" }, "jail": jail })).await;
    let shell = async |command: &str| kernel.call("shell_exec", json!({ "command": command })).await;
    assert_eq!(data(&shell("sleep 30").await)["ended"], "deadline");
    let long = shell("head -c 100000 /dev/zero | tr '\\0' x").await;
    assert!(data(&long)["stdout"].as_str().unwrap().len() < 2048, "{long:?}");
    assert_ne!(data(&shell("head -c 3000000 /dev/zero > big.txt").await)["exitCode"], 0);
    assert!(!project.file("big.txt").exists());
    kernel.shutdown().await;
}

#[cfg(not(feature = "graph-bolt"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graph_server_without_the_feature_is_a_mistake_of_the_configuration() {
    let project = Project::new();
    project
        .put("tgp.config.json", &json!({ "graph": { "url": "bolt://u:s3cret@127.0.0.1:7687" } }).to_string());
    let error = tgp::contract::ToolError::from(project.boot().await.err().unwrap());
    assert_eq!(error.code.as_str(), "ECONFIG", "{error}");
    assert!(error.help_of().unwrap().contains("--features graph-bolt"), "{error}");
    assert!(!format!("{error:?}").contains("s3cret"));
}
