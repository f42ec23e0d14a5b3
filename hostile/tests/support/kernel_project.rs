//! A project in a temporary directory with a kernel of this process on it.

use serde_json::{Value, json};
use tempfile::TempDir;
use tgp::contract::{TddMode, ToolResult};
use tgp::{BootOptions, Kernel};
use tgp_hostile::{binary, corpus};

const GOOD: &str = "export default ({ n }: { n: number }) => n * 2;";

/// An initialised project.
pub struct Project {
    directory: TempDir,
}

impl Project {
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("tgp-hostile-").tempdir().unwrap();
        tgp::project::initialise(directory.path()).unwrap();
        std::fs::remove_file(directory.path().join("tgp.config.ts")).unwrap();
        let project = Self { directory };
        project.put(".tgp/tools/good.ts", GOOD);
        project
    }

    fn put(&self, name: &str, content: &str) {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn install(&self, case: &corpus::Case) {
        for (name, content) in case.files() {
            self.put(&format!(".tgp/tools/hostile/{name}"), content);
        }
    }

    /// A kernel with this configuration and these options, whose workers are the built binary.
    pub async fn kernel(&self, config: &Value, adapt: impl FnOnce(BootOptions) -> BootOptions) -> Kernel {
        self.put("tgp.config.json", &config.to_string());
        let options = BootOptions {
            worker: Some(binary::find().unwrap()),
            tdd_mode: Some(TddMode::Explore),
            ..BootOptions::new(self.directory.path())
        };
        Kernel::boot(adapt(options)).await.unwrap()
    }
}

pub async fn exec(kernel: &Kernel, path: &str, args: Value) -> ToolResult {
    kernel.call("exec_tool", json!({ "path": path, "args": args })).await
}

/// The good tool still works.
pub async fn good_call_works(kernel: &Kernel, after: &str) {
    let mut answer = exec(kernel, "tools/good.ts", json!({ "n": 21 })).await;
    // It runs under the same tight limits; a machine that stops it for that long gets another try.
    for _ in 0..3 {
        if answer.is_ok() {
            break;
        }
        answer = exec(kernel, "tools/good.ts", json!({ "n": 21 })).await;
    }
    match answer {
        ToolResult::Done(data) => assert_eq!(data["result"], 42, "after `{after}`"),
        ToolResult::Failed(error) => panic!("after `{after}`: {error}"),
    }
}
