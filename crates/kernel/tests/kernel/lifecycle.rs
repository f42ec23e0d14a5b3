//! Boot, many calls at once, deaths of workers, cancelled calls, shutdown.

use std::time::Duration;

use serde_json::json;

use crate::processes::{eventually, kill_all, of_kind, workers};
use crate::support::{Project, alone, exec, result, run};

const DOUBLE: &str = "export default ({ n }: { n: number }) => n * 2;";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_leaves_no_worker() {
    if !alone("lifecycle::a_shutdown_leaves_no_worker") {
        return;
    }
    for round in 0..5 {
        let project = Project::new();
        let kernel = project.kernel(json!({ "sandbox": { "pool": 3 } })).await;
        if round > 0 {
            assert_eq!(
                result(&run(&kernel, &project, DOUBLE, json!({ "n": round })).await),
                json!(round * 2)
            );
        }
        kernel.shutdown().await;
        assert_eq!(workers(), Vec::<i32>::new(), "round {round}");
    }
    // Dropping a kernel is as good.
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    tokio::task::spawn_blocking(move || drop(kernel)).await.unwrap();
    assert_eq!(workers(), Vec::<i32>::new());
    // A boot that fails leaves none, either.
    project.put("tgp.config.ts", "while (true) {}\nexport default {};");
    assert!(project.boot().await.is_err());
    assert!(eventually(|| workers().is_empty()), "{:?}", workers());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_calls_at_once_all_succeed() {
    let project = Project::new();
    let kernel = std::sync::Arc::new(project.kernel(json!({})).await);
    project.tool("double.ts", DOUBLE);
    let calls: Vec<_> = (0..50)
        .map(|n| {
            let kernel = std::sync::Arc::clone(&kernel);
            tokio::spawn(async move { exec(&kernel, "tools/double.ts", json!({ "n": n })).await })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(result(&call.await.unwrap()), json!(n * 2));
    }
    std::sync::Arc::into_inner(kernel).unwrap().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_workers_are_replaced() {
    if !alone("lifecycle::killed_workers_are_replaced") {
        return;
    }
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "pool": 2 } })).await;
    assert_eq!(result(&run(&kernel, &project, DOUBLE, json!({ "n": 1 })).await), json!(2));
    for round in 2..6 {
        let full =
            || of_kind("run").len() >= 2 && of_kind("template").len() == 1 && of_kind("compile").len() == 1;
        assert!(eventually(full), "{:?}", workers());
        kill_all(&[of_kind("run"), of_kind("template"), of_kind("compile")].concat());
        // Another source, so that the compile worker is needed, too.
        let source = format!("// {round}\n{DOUBLE}");
        assert_eq!(
            result(&run(&kernel, &project, &source, json!({ "n": round })).await),
            json!(round * 2),
            "round {round}"
        );
    }
    kernel.shutdown().await;
    assert_eq!(workers(), Vec::<i32>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_killed_in_its_run_is_a_typed_error() {
    if !alone("lifecycle::a_worker_killed_in_its_run_is_a_typed_error") {
        return;
    }
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "pool": 1 } })).await;
    let source = "export default async () => {\n  await tgp.write_file('tmp/x', 'x');\n  await new Promise((resolve) => setTimeout(resolve, 20_000));\n};";
    let call = run(&kernel, &project, source, json!({}));
    let killer = async {
        // Every worker there is when the run is under way; the one that runs is among them.
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        kill_all(&of_kind("run"));
    };
    let (answer, ()) = tokio::join!(call, killer);
    assert_eq!(crate::support::code(&answer), "ERUNTIME");
    assert!(crate::support::error(&answer).message.contains("signal 9"), "{answer:?}");
    assert!(!project.file("tmp/x").exists(), "its writes go with it");
    assert_eq!(result(&run(&kernel, &project, DOUBLE, json!({ "n": 4 })).await), json!(8));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_call_takes_its_worker_and_its_writes_along() {
    if !alone("lifecycle::a_dropped_call_takes_its_worker_and_its_writes_along") {
        return;
    }
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "pool": 1 } })).await;
    assert_eq!(result(&run(&kernel, &project, DOUBLE, json!({ "n": 1 })).await), json!(2));
    let endless = "export default async () => {\n  await tgp.write_file('tmp/x', 'x');\n  await tgp.exec_tool('tools/inner.ts').catch(() => 0);\n  await new Promise((resolve) => setTimeout(resolve, 20_000));\n};";
    project.tool("inner.ts", "export default async () => {\n  await tgp.write_file('tmp/y', 'y');\n  await new Promise((resolve) => setTimeout(resolve, 20_000));\n};");
    let cut =
        tokio::time::timeout(Duration::from_millis(800), run(&kernel, &project, endless, json!({}))).await;
    assert!(cut.is_err(), "it was still running");
    // What is left: the template, the pool's worker, the one in the starter's hands, the compile worker.
    assert!(eventually(|| workers().len() <= 4), "{:?}", workers());
    assert!(!project.file("tmp/x").exists() && !project.file("tmp/y").exists(), "nothing was committed");
    assert_eq!(result(&run(&kernel, &project, DOUBLE, json!({ "n": 3 })).await), json!(6));
    kernel.shutdown().await;
    assert_eq!(workers(), Vec::<i32>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_cannot_have_many_workers_at_once() {
    if !alone("lifecycle::a_tool_cannot_have_many_workers_at_once") {
        return;
    }
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "pool": 1 } })).await;
    project.tool("wait.ts", "export default () => new Promise((resolve) => setTimeout(resolve, 50, 1));");
    let wide = "export default async () => (await Promise.all(Array.from({ length: 40 }, () => tgp.exec_tool('tools/wait.ts')))).length;";
    let most = std::sync::atomic::AtomicUsize::new(0);
    let call = run(&kernel, &project, wide, json!({}));
    let watch = async {
        loop {
            most.fetch_max(of_kind("run").len(), std::sync::atomic::Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let answer = tokio::select! {
        answer = call => answer,
        () = watch => unreachable!(),
    };
    assert_eq!(result(&answer), json!(40));
    // The outer run, four inner ones, those being ended, and the pool's.
    let most = most.load(std::sync::atomic::Ordering::Relaxed);
    assert!((2..=14).contains(&most), "{most} workers at once");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_cannot_be_warmed_does_not_stop_the_pool() {
    for (name, hostile) in [
        ("hangs", "if (typeof args === 'undefined') for (;;) {}"),
        ("throws", "if (typeof args === 'undefined') throw new Error('not yet');"),
        (
            "hoards",
            "if (typeof args === 'undefined') { const all = []; for (;;) all.push(new Array(1000)); }",
        ),
        ("calls", "if (typeof args === 'undefined') tgp.read_file('x').catch(() => 0);"),
        ("speaks", "if (typeof args === 'undefined') console.log('hello');"),
        ("loses", "if (typeof args === 'undefined') Promise.reject(new Error('lost'));"),
    ] {
        let project = Project::new();
        project
            .put("node_modules/odd/package.json", "{\"name\":\"odd\",\"type\":\"module\"}")
            .put("node_modules/odd/index.js", &format!("{hostile}\nexport const z = 1;\n"));
        let kernel = project.kernel(json!({ "allowedImports": ["odd"], "sandbox": { "pool": 1 } })).await;
        let source = "import { z } from 'odd';\nexport default ({ n }: { n: number }) => n + z;";
        for round in 0..8 {
            let started = std::time::Instant::now();
            assert_eq!(
                result(&run(&kernel, &project, source, json!({ "n": round })).await),
                json!(round + 1),
                "{name}, round {round}"
            );
            assert_eq!(
                result(&run(&kernel, &project, DOUBLE, json!({ "n": round })).await),
                json!(round * 2),
                "{name}, round {round}"
            );
            let took = started.elapsed();
            assert!(took < Duration::from_secs(8), "{name}, round {round}: {took:?}");
        }
        let started = std::time::Instant::now();
        kernel.shutdown().await;
        assert!(started.elapsed() < Duration::from_secs(3), "{name}: {:?}", started.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_does_not_wait_for_a_worker_that_hangs() {
    if !alone("lifecycle::a_shutdown_does_not_wait_for_a_worker_that_hangs") {
        return;
    }
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "pool": 1 } })).await;
    assert_eq!(result(&run(&kernel, &project, DOUBLE, json!({ "n": 1 })).await), json!(2));
    assert!(eventually(|| of_kind("compile").len() == 1), "{:?}", workers());
    // A compile worker that is stopped in its job is as slow as one can be.
    for pid in of_kind("compile") {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGSTOP).unwrap();
    }
    let source = format!("// another\n{DOUBLE}");
    let cut =
        tokio::time::timeout(Duration::from_millis(500), run(&kernel, &project, &source, json!({ "n": 1 })))
            .await;
    assert!(cut.is_err(), "it waits for the compile worker");
    let started = std::time::Instant::now();
    kernel.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!(workers(), Vec::<i32>::new());
}
