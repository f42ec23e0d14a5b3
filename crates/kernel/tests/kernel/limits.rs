//! Limits that a call asks for: what is free, what is asked about, what is refused, and that they hold.

use std::sync::Arc;

use serde_json::{Value, json};
use tgp::audit::AuditFilter;
use tgp::contract::{Consent, LimitRequest, Target, ToolResult};
use tgp::{BootOptions, Kernel};

use crate::approval::Asked;
use crate::router::{call, context};
use crate::support::{Project, code, data, error, place, result};

/// Uses 200 MB of memory.
const HUNGRY: &str = "export default () => new Uint8Array(200 * 1024 * 1024).fill(1).length;";
/// No engine does this in 50 ms, and every one in ten seconds.
const BUSY: &str = "export default () => {
  let total = 0;
  for (let i = 0; i < 5_000_000; i++) {
    total = (total + i * 7) % 1_000_003;
  }
  return total > 0;
};";
/// Runs another tool, and answers with the code and message of its failure.
const OUTER: &str = "export default async ({ path, options }: { path: string; options?: object }) => {
  try {
    return await tgp.exec_tool(path, {}, options);
  } catch (error: any) {
    return `${error.code}: ${error.message}`;
  }
};";
const RUN_TOOLS: &str = "version: 1
rules:
  - {id: run-tools, effect: allow, tools: exec_tool, reason: tools may run}
";

fn with_tools() -> Project {
    let project = Project::new();
    project.tool("hungry.ts", HUNGRY).tool("busy.ts", BUSY).tool("outer.ts", OUTER);
    project.tool("quick.ts", "export default () => 1;").put("tgp.policy.yaml", RUN_TOOLS);
    project
}

/// A kernel whose runs have 50 ms of CPU time and 64 MB, and whose calls may ask for 10 s and 512 MB.
async fn boot(project: &Project, approver: &Arc<Asked>) -> Kernel {
    let config = json!({ "sandbox": { "cpuMs": 50, "wallMs": 30_000 } });
    project.put("tgp.config.json", &config.to_string());
    Kernel::boot(BootOptions { approver: Arc::clone(approver) as _, ..project.options() }).await.unwrap()
}

async fn exec(kernel: &Kernel, consent: Consent, path: &str, limits: Value) -> ToolResult {
    let arguments = json!({ "path": path, "limits": limits });
    kernel.call_with(call("exec_tool", arguments), context(consent)).await
}

async fn exec_outer(kernel: &Kernel, args: Value, limits: Value) -> Value {
    let arguments = json!({ "path": "tools/outer.ts", "args": args, "limits": limits });
    result(&kernel.call_with(call("exec_tool", arguments), context(Consent::Given)).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_that_a_call_asks_for_hold() {
    let project = with_tools();
    let kernel = boot(&project, &Asked::new(|_, _| false)).await;
    let usual = exec(&kernel, Consent::Given, "tools/hungry.ts", json!({ "cpuMs": 10_000 })).await;
    assert_eq!(code(&usual), "ERR_ISOLATE_MEMORY", "{usual:?}");
    let more = json!({ "memoryMb": 512, "cpuMs": 10_000 });
    let ran = exec(&kernel, Consent::Given, "tools/hungry.ts", more).await;
    assert_eq!(data(&ran)["result"], 200 << 20);
    assert!(data(&ran)["stats"]["heap_peak_bytes"].as_u64().unwrap() > 200 << 20);
    let still = json!({ "memoryMb": 150, "cpuMs": 10_000 });
    let ran = exec(&kernel, Consent::Given, "tools/hungry.ts", still).await;
    assert_eq!(code(&ran), "ERR_ISOLATE_MEMORY");
    assert!(error(&ran).message.contains("150 MB"), "{ran:?}");
    // The workers of the pool are as they were.
    let usual = exec(&kernel, Consent::Given, "tools/hungry.ts", json!({ "cpuMs": 10_000 })).await;
    assert_eq!(code(&usual), "ERR_ISOLATE_MEMORY", "{usual:?}");

    let usual = exec(&kernel, Consent::Given, "tools/busy.ts", json!({})).await;
    assert_eq!(code(&usual), "ERR_ISOLATE_TIMEOUT");
    let ran = exec(&kernel, Consent::Given, "tools/busy.ts", json!({ "cpuMs": 10_000 })).await;
    assert_eq!(data(&ran)["result"], true);
    // Less than usual needs no approval, and holds as well.
    let less = exec(&kernel, Consent::Ask, "tools/busy.ts", json!({ "cpuMs": 20 })).await;
    assert!(error(&less).message.contains("20 ms of CPU time"), "{less:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_tool_names_the_line_where_its_time_was_spent() {
    let project = with_tools();
    let approver = Asked::new(|_, _| false);
    let kernel = boot(&project, &approver).await;
    let stopped = exec(&kernel, Consent::Given, "tools/busy.ts", json!({})).await;
    let message = &error(&stopped).message;
    assert!(message.starts_with("the tool used more than its 50 ms of CPU time; "), "{message}");
    let (words, rest) = message.split_once(" in tools/busy.ts:").unwrap();
    let (line, samples) = rest.split_once(' ').unwrap();
    assert!(["3", "4"].contains(&line), "{message}");
    // Two lines share the time: what is said of one of them is as much as its samples say.
    let counts: Vec<u32> =
        samples.split(|letter: char| !letter.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    let [here, all] = counts[..] else { panic!("{message}") };
    let expected = if here * 2 > all { "; most of the time was spent" } else { "; it was often" };
    assert!(words.ends_with(expected), "{message}");
    assert!(place(&stopped).starts_with(&format!("tools/busy.ts:{line}:")), "{stopped:?}");
    // Loops without a call, in a function that is called, after an await, in a package's callback, and in a regular
    // expression; each names its own line.
    for (source, lines) in [
        (
            "const text = 'a'.repeat(40);\nexport default () => {\n  const found = /^(a+)+$/.test(text + 'b');\n  for (const one of [1]) text.at(one);\n  return found;\n};",
            vec!["3"],
        ),
        ("export default () => {\n  for (;;) {}\n};", vec!["2"]),
        ("let n = 0;\nwhile (true) n++;\nreturn n;", vec!["2"]),
        (
            "const spin = () => {\n  let n = 0;\n  while (true) n++;\n};\nexport default () => {\n  const n = [1].length;\n  spin();\n  return n;\n};",
            vec!["3"],
        ),
        (
            "export default async () => {\n  await null;\n  let n = 0;\n  while (n >= 0) {\n    n = (n + 1) % 10;\n  }\n};",
            vec!["4", "5"],
        ),
        (
            "export default () => [1, 2].map((n) => {\n  let m = n;\n  for (;;) m = (m * 3) % 7;\n});",
            vec!["3"],
        ),
        ("const text = 'a'.repeat(40);\nexport default () =>\n  /^(a+)+$/.test(text + 'b');", vec!["3"]),
        ("export default () => {\n  try {\n    for (;;) {}\n  } catch {}\n  for (;;) {}\n};", vec!["3"]),
    ] {
        project.tool("stopped.ts", source);
        let stopped = exec(&kernel, Consent::Given, "tools/stopped.ts", json!({ "cpuMs": 50 })).await;
        let found = place(&stopped);
        let line = found.split(':').nth(1).unwrap();
        assert!(lines.contains(&line), "{source}: {found} {:?}", error(&stopped).message);
    }
    assert!(approver.take().is_empty());
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_above_the_usual_ones_are_asked_for() {
    let project = with_tools();
    let approver = Asked::new(|number, _| number > 0);
    let kernel = boot(&project, &approver).await;
    for free in
        [json!({}), json!({ "cpuMs": 50, "wallMs": 30_000, "memoryMb": 64 }), json!({ "memoryMb": 4 })]
    {
        let ran = exec(&kernel, Consent::Ask, "tools/quick.ts", free.clone()).await;
        assert!(approver.take().is_empty(), "{free}: {ran:?}");
    }
    // The first question is refused.
    let more = json!({ "cpuMs": 5_000, "memoryMb": 64 });
    let refused = exec(&kernel, Consent::Ask, "tools/quick.ts", more.clone()).await;
    assert_eq!(code(&refused), "EAPPROVAL", "{refused:?}");
    let [shown] = &approver.take()[..] else { panic!("one question") };
    let asked = LimitRequest { cpu_ms: Some(5_000), ..LimitRequest::default() };
    assert!(shown.targets.contains(&Target::Limits(asked)), "{shown:?}");
    assert!(shown.reasons().iter().any(|reason| reason.contains("5000 ms of CPU time")), "{shown:?}");
    kernel.shutdown().await;

    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, &approver).await;
    assert_eq!(result(&exec(&kernel, Consent::Ask, "tools/quick.ts", more.clone()).await), 1);
    // An approval is for these limits, and no others.
    assert_eq!(result(&exec(&kernel, Consent::Ask, "tools/quick.ts", json!({ "cpuMs": 5_001 })).await), 1);
    let shown = approver.take();
    assert_eq!(shown.len(), 2);
    assert_ne!(shown[0].hash(), shown[1].hash());
    kernel.flush().await.unwrap();
    let reader = tgp::audit::open_records(&project.options()).await.unwrap();
    let recorded = reader.tail(&AuditFilter::default(), 1).unwrap().pop().unwrap().body;
    assert!(recorded.to_string().contains(r#"{"cpuMs":5001,"kind":"limits"}"#), "{recorded}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_decide_about_limits_by_their_numbers() {
    let project = with_tools();
    let rules = "version: 1
rules:
  - {id: run-tools, effect: allow, tools: exec_tool, reason: tools may run}
  - id: some-more
    effect: allow
    tools: exec_tool
    where: {limits: {cpuMs: {max: 2000}, memoryMb: {max: 128}}}
    match: [{tool: exec_tool, targets: [{limits: {cpuMs: 2000}}]}]
    not_match: [{tool: exec_tool, targets: [{limits: {cpuMs: 2000, wallMs: 40000}}]}]
  - {id: no-giants, effect: deny, where: {limits: {memoryMb: {min: 257}}}, reason: this machine is small}
";
    project.put("tgp.policy.yaml", rules);
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, &approver).await;
    for (limits, asks) in [
        (json!({ "cpuMs": 2_000 }), false),
        (json!({ "cpuMs": 2_000, "memoryMb": 128 }), false),
        (json!({ "cpuMs": 2_001 }), true),
        (json!({ "cpuMs": 2_000, "wallMs": 40_000 }), true),
        (json!({ "wallMs": 40_000 }), true),
        (json!({ "memoryMb": 256 }), true),
    ] {
        let ran = exec(&kernel, Consent::Ask, "tools/quick.ts", limits.clone()).await;
        assert_eq!(result(&ran), 1);
        assert_eq!(approver.take().len(), usize::from(asks), "{limits}");
    }
    for consent in [Consent::Ask, Consent::Given, Consent::Everything] {
        let denied = exec(&kernel, consent, "tools/quick.ts", json!({ "memoryMb": 257 })).await;
        assert_eq!((code(&denied), approver.take().len()), ("EPOLICY", 0), "{denied:?}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_outside_of_their_bounds_are_refused_before_anything_is_asked() {
    let project = with_tools();
    let approver = Asked::new(|_, _| true);
    let kernel = boot(&project, &approver).await;
    for limits in [
        json!({ "cpuMs": 0 }),
        json!({ "cpuMs": -1 }),
        json!({ "cpuMs": 10_001 }),
        json!({ "cpuMs": 1e308 }),
        json!({ "cpuMs": 18_446_744_073_709_551_615_u64 }),
        json!({ "cpuMs": 1.5 }),
        json!({ "cpuMs": "5000" }),
        json!({ "cpuMs": null }),
        json!({ "cpuMs": [5_000] }),
        json!({ "wallMs": 9 }),
        json!({ "wallMs": 60_001 }),
        json!({ "memoryMb": 3 }),
        json!({ "memoryMb": 513 }),
        json!({ "cpu": 5_000 }),
        json!({ "stackMb": 64 }),
        json!([5_000]),
        json!("all"),
    ] {
        for consent in [Consent::Ask, Consent::Everything] {
            let refused = exec(&kernel, consent, "tools/quick.ts", limits.clone()).await;
            assert_eq!(code(&refused), "EVALIDATION", "{limits}: {refused:?}");
        }
    }
    assert!(approver.take().is_empty());
    let refused = exec(&kernel, Consent::Ask, "tools/quick.ts", json!({ "cpuMs": 20_000 })).await;
    assert_eq!(
        error(&refused).message,
        "`limits.cpuMs` is 20000: a call can ask for 1 to 10000 ms of CPU time"
    );
    assert!(error(&refused).help_of().unwrap().contains("sandbox.ceiling.cpuMs"), "{refused:?}");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_inside_a_run_gets_no_more_than_the_run_around_it() {
    let project = with_tools();
    let kernel = boot(&project, &Asked::new(|_, _| false)).await;
    let inner = |path: &str, limits: Value| json!({ "path": path, "options": { "limits": limits } });
    let roomy = json!({ "cpuMs": 10_000, "memoryMb": 512 });
    // The outer run has the usual limits.
    let refused = exec_outer(&kernel, inner("tools/hungry.ts", json!({ "memoryMb": 512 })), json!({})).await;
    assert_eq!(
        refused,
        "EVALIDATION: `limits.memoryMb` is 512, and the run that makes this call has 64 MB of memory left"
    );
    let refused = exec_outer(&kernel, inner("tools/quick.ts", json!({ "wallMs": 30_000 })), json!({})).await;
    assert!(refused.as_str().unwrap().starts_with("EVALIDATION: `limits.wallMs` is 30000"), "{refused}");
    // Its own limits can be given on.
    let ran = exec_outer(
        &kernel,
        inner("tools/hungry.ts", json!({ "memoryMb": 300, "cpuMs": 9_000 })),
        roomy.clone(),
    );
    assert_eq!(ran.await, 200 << 20);
    // What is not asked for is not given.
    let args = json!({ "path": "tools/busy.ts" });
    let stopped = exec_outer(&kernel, args, roomy.clone()).await;
    assert!(stopped.as_str().unwrap().contains("50 ms of CPU time"), "{stopped}");
    // A run with less than usual gives no more than that.
    let args = json!({ "path": "tools/busy.ts" });
    let stopped = exec_outer(&kernel, args, json!({ "cpuMs": 20 })).await;
    assert!(stopped.as_str().unwrap().contains("20 ms of CPU time"), "{stopped}");
    // What JSON does not have is refused before the call, and options that do not exist are an error.
    project.tool("odd.ts", "export default async () => {
  const codes: string[] = [];
  for (const options of [{ limits: { cpuMs: NaN } }, { limits: { cpuMs: -1 } }, { limits: 5 }, { cpuMs: 5 }, 'all', 7] as any[]) {
    codes.push(await tgp.exec_tool('tools/quick.ts', {}, options).then(() => 'ran', (error: any) => error.code ?? error.name));
  }
  return codes;
};");
    let odd = exec(&kernel, Consent::Given, "tools/odd.ts", json!({ "cpuMs": 10_000 })).await;
    let refused = ["TypeError", "EVALIDATION", "EVALIDATION", "EVALIDATION", "EVALIDATION", "EVALIDATION"];
    assert_eq!(result(&odd), json!(refused));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_inner_runs_beside_or_inside_each_other_multiplied_the_cpu_time() {
    let project = with_tools();
    let kernel = boot(&project, &Asked::new(|_, _| false)).await;
    project.tool(
        "beside.ts",
        "export default async () => (await Promise.allSettled([1, 2, 3].map(() => tgp.exec_tool('tools/waits.ts', {}, { limits: { cpuMs: 900 } })))).map((one: any) => one.reason?.code ?? 'ran');",
    );
    // It is still running when the others begin, however slow the machine is.
    project.tool(
        "waits.ts",
        "export default async () => {\n  await new Promise((done) => setTimeout(done, 2_000));\n  return 1;\n};",
    );
    let beside = exec(&kernel, Consent::Given, "tools/beside.ts", json!({ "cpuMs": 1_000 })).await;
    assert_eq!(result(&beside), json!(["ran", "EVALIDATION", "EVALIDATION"]));
    // What the first one uses by another tool counts for the run around all of them.
    project.tool(
        "hop.ts",
        "export default async () => tgp.exec_tool('tools/busy.ts', {}, { limits: { cpuMs: 9_000 } });",
    );
    project.tool(
        "hops.ts",
        "export default async () => {
  for (let ran = 0; ; ran++) {
    try {
      await tgp.exec_tool('tools/hop.ts', {}, { limits: { cpuMs: 9_900 } });
    } catch (error: any) {
      return [ran, error.code];
    }
  }
};",
    );
    let hops = exec(&kernel, Consent::Given, "tools/hops.ts", json!({ "cpuMs": 10_000 })).await;
    let hops = result(&hops);
    // One takes more than 50 ms, and 100 ms may be used up.
    assert!(hops[0].as_u64().unwrap() <= 2, "{hops}");
    assert_eq!(hops[1], "EVALIDATION");
    kernel.shutdown().await;
}

/// Many inner runs together get no more CPU time by asking than the run around them has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inner_runs_share_the_cpu_time_that_they_ask_for() {
    let project = with_tools();
    let kernel = boot(&project, &Asked::new(|_, _| false)).await;
    project.tool(
        "many.ts",
        "export default async () => {
  let ran = 0;
  for (;;) {
    try {
      await tgp.exec_tool('tools/busy.ts', {}, { limits: { cpuMs: 9_000 } });
      ran++;
    } catch (error: any) {
      return [ran, error.code, error.message];
    }
  }
};",
    );
    let many = exec(&kernel, Consent::Given, "tools/many.ts", json!({ "cpuMs": 10_000 })).await;
    let many = result(&many);
    // One of them takes more than 50 ms, so that at most twenty fit into the second that may be used up.
    assert!((1..=20).contains(&many[0].as_u64().unwrap()), "{many}");
    assert_eq!(many[1], "EVALIDATION");
    assert!(many[2].as_str().unwrap().contains("ms of CPU time left"), "{many}");
    kernel.shutdown().await;
}
