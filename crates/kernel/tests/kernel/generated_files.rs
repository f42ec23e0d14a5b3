//! The files that describe the kernel to type checkers and agents follow its version, and keep what a person changed.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use tgp::contract::{Actor, CallContext, Consent, ToolCall};

use crate::support::{Project, code, data};

const NAMES: [&str; 2] = ["tgp.d.ts", "tsconfig.json"];

fn file(project: &Project, name: &str) -> PathBuf {
    project.path().join(".tgp").join(name)
}

fn read(project: &Project, name: &str) -> String {
    fs::read_to_string(file(project, name)).unwrap()
}

async fn start_and_stop(project: &Project) {
    project.boot().await.unwrap().shutdown().await;
}

/// The file as another version would have written it: with other content under a first line that fits.
fn of_another_version(text: &str) -> String {
    let (first, _) = text.split_once('\n').unwrap();
    let content = "// other\n";
    let hash = tgp::contract::canonical::sha256_hex(content.as_bytes());
    let start = first.find(", content ").unwrap() + ", content ".len();
    let line = format!("{}{}{}", &first[..start], &hash[..16], &first[start + 16..]);
    format!("{}\n{content}", line.replace(env!("CARGO_PKG_VERSION"), "0.0.1"))
}

#[tokio::test]
async fn files_of_another_version_are_replaced_when_the_kernel_starts() {
    let project = Project::new();
    for name in NAMES {
        let current = read(&project, name);
        fs::write(file(&project, name), of_another_version(&current)).unwrap();
        start_and_stop(&project).await;
        assert_eq!(read(&project, name), current, "{name}");
        assert!(
            fs::read_dir(project.path().join(".tgp"))
                .unwrap()
                .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with(".tgp-tmp") })
        );
    }
}

#[tokio::test]
async fn files_of_versions_that_did_not_name_themselves_are_replaced() {
    let project = Project::new();
    let current = read(&project, "tgp.d.ts");
    let earlier = "// What a tool finds in the sandbox. Written by `tgp init`; the kernel does not read it.\n\ndeclare const args: any;\n";
    fs::write(file(&project, "tgp.d.ts"), earlier).unwrap();
    start_and_stop(&project).await;
    assert_eq!(read(&project, "tgp.d.ts"), current);
}

#[tokio::test]
async fn what_a_person_changed_or_removed_stays_so() {
    let project = Project::new();
    for name in NAMES {
        let changed = read(&project, name) + "// mine\n";
        fs::write(file(&project, name), &changed).unwrap();
        start_and_stop(&project).await;
        assert_eq!(read(&project, name), changed, "{name}");
        fs::write(file(&project, name), "// mine\n").unwrap();
        start_and_stop(&project).await;
        assert_eq!(read(&project, name), "// mine\n", "{name}");
        fs::remove_file(file(&project, name)).unwrap();
        start_and_stop(&project).await;
        assert!(!file(&project, name).exists(), "{name}");
    }
}

#[tokio::test]
async fn a_link_in_their_place_is_not_followed() {
    let project = Project::new();
    let outside = project.path().join("outside.ts");
    let outdated = of_another_version(&read(&project, "tgp.d.ts"));
    fs::write(&outside, &outdated).unwrap();
    fs::remove_file(file(&project, "tgp.d.ts")).unwrap();
    std::os::unix::fs::symlink(&outside, file(&project, "tgp.d.ts")).unwrap();
    start_and_stop(&project).await;
    assert_eq!(fs::read_to_string(&outside).unwrap(), outdated);
    assert!(file(&project, "tgp.d.ts").is_symlink());
}

#[tokio::test]
async fn an_agent_reads_the_declarations_and_does_not_write_them() {
    let project = Project::new();
    let kernel = project.boot().await.unwrap();
    let call = |tool: &str, arguments| {
        let context = CallContext {
            actor: Actor::Agent("test".to_owned()),
            session: "test".to_owned(),
            consent: Consent::Given,
            dry_run: false,
            depth: 0,
            token: None,
        };
        kernel.call_with(ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments }, context)
    };
    let shown = call("read_file", json!({ "path": "tgp.d.ts" })).await;
    assert!(data(&shown).as_str().is_some_and(|text| text.contains("declare const tgp")), "{shown:?}");
    let refused = call("write_file", json!({ "path": "tgp.d.ts", "content": "x" })).await;
    assert_eq!(code(&refused), "EVALIDATION");
    kernel.shutdown().await;
}
