//! Files as bytes, and directories that tools only read.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::{Value, json};
use tgp::BootOptions;
use tgp::Kernel;
use tgp::contract::canonical::sha256_hex;

use crate::support::{Project, Records, code, error, result, run};

/// `straße;größe` and a line of it in Windows-1252.
const LATIN: &[u8] = b"stra\xdfe;gr\xf6\xdfe\nA \x80 1;2\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_writes_and_reads_exact_bytes() {
    let project = Project::new();
    let kernel = project.kernel(json!({})).await;
    let source = "export default async () => {
        const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);
        await tgp.write_file('tmp/view.bin', bytes);
        await tgp.write_file('tmp/part.bin', bytes.subarray(250));
        await tgp.write_file('tmp/buffer.bin', Buffer.from('ff00fe', 'hex'));
        await tgp.write_file('tmp/array.bin', new Uint16Array([1, 0xffff]).buffer);
        await tgp.write_file('tmp/data.bin', new DataView(new Uint8Array([9, 8, 7]).buffer, 1));
        await tgp.write_file('tmp/empty.bin', new Uint8Array());
        await tgp.write_file('/tmp/scratch.bin', new Uint8Array([1, 255]));
        const read = await tgp.read_file('tmp/view.bin', { encoding: 'bytes' });
        return [
            read instanceof Uint8Array, read.length, read.every((byte, n) => byte === n),
            [...await tgp.read_file('/tmp/scratch.bin', 'bytes')], await tgp.read_file('tmp/empty.bin'),
        ];
    };";
    let answer = run(&kernel, &project, source, json!({})).await;
    assert_eq!(result(&answer), json!([true, 256, true, [1, 255], ""]));
    let all: Vec<u8> = (0..=255).collect();
    for (name, bytes) in [
        ("view", &all[..]),
        ("part", &all[250..]),
        ("buffer", &[0xff, 0, 0xfe]),
        ("array", &[1, 0, 0xff, 0xff]),
        ("data", &[8, 7]),
        ("empty", &[]),
    ] {
        assert_eq!(std::fs::read(project.file(&format!("tmp/{name}.bin"))).unwrap(), bytes, "{name}");
    }
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_in_another_encoding_is_read_by_its_name() {
    let project = Project::new();
    std::fs::create_dir_all(project.file("tmp")).unwrap();
    std::fs::write(project.file("tmp/latin.csv"), LATIN).unwrap();
    let kernel = project.kernel(json!({})).await;
    let text = "straße;größe\nA € 1;2\n";
    for (call, expected) in [
        ("tgp.read_file('tmp/latin.csv', { encoding: 'windows-1252' })", json!(text)),
        ("tgp.read_file('tmp/latin.csv', 'latin1')", json!(text)),
        (
            "tgp.read_file('tmp/latin.csv', { encoding: 'bytes' }).then((b) => new TextDecoder('windows-1252').decode(b))",
            json!(text),
        ),
        (
            "tgp.write_file('tmp/a.txt', 'ä').then(() => tgp.read_file('tmp/a.txt', { encoding: 'utf8' }))",
            json!("ä"),
        ),
        ("tgp.read_file('tmp/a.txt', {})", json!("ä")),
        ("tgp.read_file('tmp/a.txt', null)", json!("ä")),
    ] {
        let answer = run(&kernel, &project, &format!("export default () => {call};"), json!({})).await;
        assert_eq!(result(&answer), expected, "{call}");
    }
    for (call, expected_code, message) in [
        (
            "tgp.read_file('tmp/latin.csv')",
            "EVALIDATION",
            "`tmp/latin.csv` is not UTF-8 text: bad byte at offset 4; pass { encoding: 'windows-1252' } or another \
             encoding that TextDecoder knows, or { encoding: 'bytes' } for a Uint8Array",
        ),
        ("tgp.read_file('tmp/a.txt', { as: 'bytes' })", "ERUNTIME", "no option `as`, only `encoding`"),
        ("tgp.read_file('tmp/a.txt', 'klingon')", "ERUNTIME", "klingon"),
        (
            "tgp.write_file('tmp/a.txt', 5)",
            "EVALIDATION",
            "tgp.write_file takes text or bytes (a Uint8Array) as `content`, not 5",
        ),
        ("tgp.write_file('tmp/a.txt')", "EVALIDATION", "as `content`, not nothing"),
        ("tgp.write_file('tmp/a.txt', [1, 2])", "EVALIDATION", "as `content`, not [1,2]"),
    ] {
        let answer = run(&kernel, &project, &format!("export default () => {call};"), json!({})).await;
        assert_eq!(code(&answer), expected_code, "{call}: {}", error(&answer));
        assert!(error(&answer).message.contains(message), "{call}: {}", error(&answer));
    }
    kernel.shutdown().await;
}

/// The cap counts the bytes of the file, not those of an encoding on the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_count_as_they_are() {
    let project = Project::new();
    let kernel = project.kernel(json!({ "sandbox": { "outputBytes": 100_000 } })).await;
    let source = "export default async ({ n }: { n: number }) => {
        await tgp.write_file('tmp/x', new Uint8Array(n).fill(255));
        return (await tgp.read_file('tmp/x', 'bytes')).length;
    };";
    assert_eq!(result(&run(&kernel, &project, source, json!({ "n": 99_900 })).await), json!(99_900));
    let answer = run(&kernel, &project, source, json!({ "n": 100_001 })).await;
    assert!(
        error(&answer).message.contains("100010 bytes, more than the 100000 of sandbox.outputBytes"),
        "{answer:?}"
    );
    assert_eq!(std::fs::metadata(project.file("tmp/x")).unwrap().len(), 99_900, "the second run is undone");
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_part_of_the_run_and_recorded_by_hash() {
    let project = Project::new();
    project.put("tgp.config.json", "{}");
    let records = Arc::new(Records::default());
    let recorder = Some(Arc::clone(&records) as _);
    let kernel = Kernel::boot(BootOptions { recorder, ..project.options() }).await.unwrap();
    let source = "export default async ({ fail }: { fail: boolean }) => {
        await tgp.write_file(`tmp/${fail}.bin`, new TextEncoder().encode('\\u0000RAW-CONTENT'));
        if (fail) throw new Error('no');
    };";
    assert_eq!(code(&run(&kernel, &project, source, json!({ "fail": true })).await), "ERUNTIME");
    assert!(!project.file("tmp/true.bin").exists());
    assert!(run(&kernel, &project, source, json!({ "fail": false })).await.is_ok());
    let made = records.take();
    let [_, kept] = &made[..] else { panic!("two calls: {made:?}") };
    let [file] = &kept.files[..] else { panic!("one file: {kept:?}") };
    assert_eq!(file.after, Some(sha256_hex(b"\0RAW-CONTENT")));
    assert!(
        !serde_json::to_string(&made.iter().map(|record| &record.result).collect::<Vec<_>>())
            .unwrap()
            .contains("RAW-CONTENT")
    );
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: no-binaries, effect: deny, where: {path: 'tmp/*.bin'}, reason: none}\n",
    );
    let denied = run(&kernel, &project, source, json!({ "fail": false })).await;
    assert_eq!(code(&denied), "EPOLICY");
    let read = "export default () => tgp.read_file('tmp/false.bin', 'bytes');";
    assert_eq!(code(&run(&kernel, &project, read, json!({})).await), "EPOLICY");
    kernel.shutdown().await;
}

fn reading(path: &str) -> String {
    format!("export default () => tgp.read_file('{path}');")
}

/// A project with a directory to read, one to write in it, and things in it that no tool gets.
async fn with_data(more: Value) -> (Project, Kernel) {
    let project = Project::new();
    project
        .put("data/in.csv", "a;b")
        .put("data/deep/more.csv", "c;d")
        .put("data/.env", "SECRET=1")
        .put("data/sub/.git/config", "[core]")
        .put("secret/plan.txt", "hidden")
        .put("both/x.txt", "x")
        .put("tmp/raw/x.txt", "raw");
    symlink("../secret", project.file("data/link")).unwrap();
    let mut config = json!({ "fs": {
        "allowedDirs": ["./tmp", "data/out", "both"],
        "readDirs": ["data", "./both", "tmp/raw"],
    } });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let kernel = project.kernel(config).await;
    (project, kernel)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_directory_is_read_and_not_written() {
    let (project, kernel) = with_data(json!({})).await;
    for (path, content) in [
        ("data/in.csv", "a;b"),
        ("./data/deep/more.csv", "c;d"),
        ("both/x.txt", "x"),
        ("tmp/raw/x.txt", "raw"),
    ] {
        let answer = run(&kernel, &project, &reading(path), json!({})).await;
        assert_eq!(result(&answer), json!(content), "{path}");
    }
    let listed = run(&kernel, &project, "export default () => tgp.list_files('data');", json!({})).await;
    assert_eq!(result(&listed), json!(["data/deep/more.csv", "data/in.csv"]));
    // The inner of two directories decides, and a directory in both lists is only read.
    let write = |path: &str| format!("export default () => tgp.write_file('{path}', 'new');");
    for path in ["data/out/new.csv", "tmp/new.txt"] {
        assert!(run(&kernel, &project, &write(path), json!({})).await.is_ok(), "{path}");
        assert_eq!(project.text(path).as_deref(), Some("new"));
    }
    for path in ["data/in.csv", "data/new.csv", "data", "both/x.txt", "tmp/raw/new.txt", "data/out/../in.csv"]
    {
        let answer = run(&kernel, &project, &write(path), json!({})).await;
        assert_eq!(code(&answer), "ESECURITY", "{path}");
    }
    let refused = run(&kernel, &project, &write("data/in.csv"), json!({})).await;
    assert_eq!(
        error(&refused).message,
        "security violation: tools only read the directories of fs.readDirs: `data/in.csv`; a tool can write tmp/, \
         data/out/, both/, /tmp/ (until the run ends)"
    );
    assert_eq!(project.text("data/in.csv").as_deref(), Some("a;b"));
    kernel.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_directory_has_the_usual_protections() {
    let (project, kernel) = with_data(json!({})).await;
    for path in ["data/.env", "data/sub/.git/config", "data/link/plan.txt", "data/../secret/plan.txt"] {
        let answer = run(&kernel, &project, &reading(path), json!({})).await;
        assert!(matches!(code(&answer), "ESECURITY" | "EPOLICY" | "ENOTFOUND"), "{path}: {answer:?}");
    }
    project.put(
        "tgp.policy.yaml",
        "version: 1\nrules:\n  - {id: deep, effect: deny, tools: fs_read, where: {path: 'data/deep/**'}, reason: none}\n",
    );
    assert_eq!(code(&run(&kernel, &project, &reading("data/deep/more.csv"), json!({})).await), "EPOLICY");
    let listed = run(&kernel, &project, "export default () => tgp.list_files('data');", json!({})).await;
    assert_eq!(result(&listed), json!(["data/in.csv"]));
    kernel.shutdown().await;
}

/// The same words whether the file is there or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_outside_is_answered_with_what_a_tool_can_see() {
    let (project, kernel) = with_data(json!({})).await;
    let list = |path: &str| format!("export default () => tgp.list_files('{path}');");
    let told = |path: &str, answer: &tgp::contract::ToolResult| error(answer).message.replace(path, "PATH");
    let there = run(&kernel, &project, &reading("secret/plan.txt"), json!({})).await;
    assert_eq!(code(&there), "ENOTFOUND");
    assert_eq!(
        error(&there).message,
        "no such file or directory: `secret/plan.txt`; a tool can read its own repository, such as tools/, \
         /lib/ (the tools), /tmp/ (until the run ends), tmp/ (also to write), data/out/ (also to write), both/ (also to \
         write), data/ (read-only), both/ (read-only), tmp/raw/ (read-only)"
    );
    let absent = run(&kernel, &project, &reading("secret/none.txt"), json!({})).await;
    assert_eq!(told("secret/plan.txt", &there), told("secret/none.txt", &absent));
    let (there, absent) = (
        run(&kernel, &project, &list("secret"), json!({})).await,
        run(&kernel, &project, &list("secrets"), json!({})).await,
    );
    assert_eq!(told("`secret`", &there), told("`secrets`", &absent));
    for (path, expected) in [("/etc/passwd", "absolute"), ("../x", "upward traversal")] {
        let answer = run(&kernel, &project, &reading(path), json!({})).await;
        assert_eq!(code(&answer), "ESECURITY");
        let message = &error(&answer).message;
        assert!(message.contains(expected) && message.contains("a tool can read"), "{message}");
    }
    kernel.shutdown().await;
    let many: Vec<String> = (0..40).map(|number| format!("d{number}")).collect();
    let kernel = project.kernel(json!({ "fs": { "readDirs": many } })).await;
    let message =
        error(&run(&kernel, &project, &reading("secret/plan.txt"), json!({})).await).message.clone();
    assert!(message.ends_with("d6/ (read-only), 33 more of fs.allowedDirs and fs.readDirs"), "{message}");
    kernel.shutdown().await;
}

/// Outside the project a directory to read is named like one to write, and commands get neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_directory_outside_the_project() {
    let project = Project::new();
    let outer = tempfile::tempdir_in(project.path().parent().unwrap()).unwrap();
    let outside = outer.path().canonicalize().unwrap();
    std::fs::write(outside.join("shared.txt"), "shared").unwrap();
    let refused = json!({ "fs": { "readDirs": [outside] } });
    project.put("tgp.config.json", &refused.to_string());
    let error_of_boot = project.boot().await.map(|_| ()).unwrap_err().to_string();
    assert!(
        error_of_boot.contains("leaves the project; set fs.blockUpwardTraversal to false"),
        "{error_of_boot}"
    );
    let kernel =
        project.kernel(json!({ "fs": { "readDirs": [outside], "blockUpwardTraversal": false } })).await;
    let name = format!("../{}/shared.txt", outside.file_name().unwrap().to_str().unwrap());
    assert_eq!(result(&run(&kernel, &project, &reading(&name), json!({})).await), json!("shared"));
    let write = format!("export default () => tgp.write_file('{name}', 'new');");
    assert_eq!(code(&run(&kernel, &project, &write, json!({})).await), "ESECURITY");
    let command = format!("echo new > {}/shared.txt", outside.display());
    let ran = kernel.call("shell_exec", json!({ "command": command })).await;
    assert_eq!(std::fs::read_to_string(outside.join("shared.txt")).unwrap(), "shared", "{ran:?}");
    kernel.shutdown().await;
}
