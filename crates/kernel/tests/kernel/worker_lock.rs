//! The lock of real workers, seen from outside. The system calls themselves are probed by native code under the same
//! profile in `crates/jail/tests/jail`, and a worker that did not lock itself never gets a run.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use tgp::contract::ToolResult;
use tgp::{BootOptions, FirstWorker, Kernel};

use crate::processes::{eventually, kind, limit, of_kind, status, workers};
use crate::support::{Project, alone, exec, result};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_worker_is_locked_before_its_first_run() {
    if !alone("worker_lock::every_worker_is_locked_before_its_first_run") {
        return;
    }
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "memoryMb": 64, "pool": 2 } })).await;
    assert_eq!(result(&exec_one(&kernel, &project).await), json!(1));
    let full =
        || of_kind("run").len() >= 2 && of_kind("template").len() == 1 && of_kind("compile").len() == 1;
    assert!(eventually(full), "{:?}", workers());
    let report = kernel.lock_report().await.unwrap();
    // The report took one; wait until its place is filled and every worker waits for work.
    assert!(eventually(full));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let found = workers();
    for pid in found {
        let kind = kind(pid);
        let field = |name: &str| status(&pid.to_string(), name).unwrap();
        assert_eq!(field("Seccomp"), "2", "{kind}: a filter is in place");
        assert_eq!(field("NoNewPrivs"), "1", "{kind}");
        assert_eq!(field("CapEff").trim_start_matches('0'), "", "{kind}: no capability");
        assert_eq!(field("CapPrm").trim_start_matches('0'), "", "{kind}: none to be had");
        assert_eq!(field("Threads"), "1", "{kind}");
        assert_eq!(field("State").chars().next(), Some('S'), "{kind} waits");
        descriptors_are_few(pid, &kind);
        limits_are_set(pid, &kind);
        namespaces_differ(pid, &kind, &report);
    }
    kernel.shutdown().await;
    assert_eq!(workers(), Vec::<i32>::new());
}

async fn exec_one(kernel: &tgp::Kernel, project: &Project) -> tgp::contract::ToolResult {
    project.tool("one.ts", "export default () => 1;");
    exec(kernel, "tools/one.ts", json!({})).await
}

/// A worker is not traceable, so its own user may not even read its descriptors; where the caller may (root), they
/// are the connection and two null devices.
fn descriptors_are_few(pid: i32, kind: &str) {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return };
    let open: BTreeSet<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(open, ["0", "1", "2"].map(str::to_owned).into(), "{kind}: descriptors");
    let target =
        |name: &str| fs::read_link(format!("/proc/{pid}/fd/{name}")).unwrap().to_string_lossy().into_owned();
    assert!(target("0").starts_with("socket:"), "{kind}: {}", target("0"));
    assert_eq!((target("1").as_str(), target("2").as_str()), ("/dev/null", "/dev/null"), "{kind}");
}

fn limits_are_set(pid: i32, kind: &str) {
    let limit = |name| limit(pid, name).unwrap();
    let (soft, hard) = limit("Max core file size");
    assert_eq!((soft.as_str(), hard.as_str()), ("0", "0"), "{kind}: no core dumps");
    let (_, address_space) = limit("Max address space");
    let most: u64 = if kind == "compile" { 1024 } else { 64 * 2 + 192 };
    assert!(address_space.parse::<u64>().is_ok_and(|bytes| bytes <= most << 20), "{kind}: {address_space}");
    if kind == "run" {
        assert_eq!(limit("Max processes").1, "0", "it has no children");
        assert_ne!(limit("Max cpu time").1, "unlimited");
    }
}

/// The report names the namespaces that were left, and the worker is in other ones than we are.
fn namespaces_differ(pid: i32, kind: &str, report: &tgp::sandbox::LockReport) {
    assert!(report.seccomp && report.no_new_privileges, "{report:?}");
    for (name, link) in [("user", "user"), ("network", "net"), ("ipc", "ipc")] {
        if !report.namespaces.iter().any(|left| left == name) {
            println!("{kind}: no {name} namespace on this machine: {:?}", report.missing);
            continue;
        }
        let ours = fs::read_link(format!("/proc/self/ns/{link}")).unwrap();
        // Only a process that may trace the worker may read this, which means root.
        let Ok(theirs) = fs::read_link(format!("/proc/{pid}/ns/{link}")) else { continue };
        assert_ne!(theirs, ours, "{kind}: {name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kernel_that_runs_no_tool_starts_no_worker() {
    if !alone("worker_lock::a_kernel_that_runs_no_tool_starts_no_worker") {
        return;
    }
    let project = Project::new();
    project.put("tgp.config.json", "{}").tool("one.ts", "export default () => 1;");
    // Describes the tool, which needs a compile worker once.
    project.boot().await.unwrap().shutdown().await;
    let options = BootOptions { first_worker: FirstWorker::None, ..project.options() };
    let kernel = Kernel::boot(options).await.unwrap();
    for (tool, arguments) in [
        ("list_files", json!({})),
        ("read_file", json!({ "path": "tools/one.ts" })),
        ("log", json!({})),
        ("audit_tail", json!({})),
        ("fs_list", json!({})),
    ] {
        let answer = kernel.call(tool, arguments).await;
        assert!(matches!(answer, ToolResult::Done(_)), "{tool}: {answer:?}");
        assert_eq!(workers(), Vec::<i32>::new(), "{tool}");
    }
    assert_eq!(result(&exec(&kernel, "tools/one.ts", json!({})).await), json!(1));
    assert!(!workers().is_empty());
    kernel.shutdown().await;
}
