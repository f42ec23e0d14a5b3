//! The chapters about what no tool may read, and about the record of all of it.

use std::path::Path;

use serde_json::json;
use tgp::Kernel;
use tgp::contract::{Code, ToolError};

use super::{Demo, cannot_write};
use crate::exit::Failure;
use crate::session;
use crate::text::visible;

impl Demo<'_> {
    pub(super) async fn keep_secrets(&mut self, kernel: &Kernel, project: &Path) -> Result<(), Failure> {
        self.chapter("Secrets stay out of reach, even with approval");
        let secret = "API_KEY=not-for-agents";
        std::fs::write(project.join(".env"), secret).map_err(|error| cannot_write(&error))?;
        let read = self.call(kernel, "fs_read", json!({ "path": ".env" })).await;
        let Some(error) = read.error() else { return self.expect(false, "the secret that was read") };
        self.expect(error.code == Code::Policy, "the refusal of the secret")?;
        self.say(&format!("fs_read .env: {}", visible(&error.to_string())));
        if tgp::sandbox::process_support().complete() {
            let command = json!({ "command": "cat .env; cat ./*; echo; ls -A" });
            let answer = self.call(kernel, "shell_exec", command).await.into_result()?;
            self.expect(!answer.to_string().contains(secret), "the secret and a command")?;
            self.say("shell_exec cat .env: the command does not find it");
        } else {
            self.say(
                "this machine cannot jail commands, so shell_exec refuses them all (tgp doctor says why)",
            );
        }
        self.steps.push(json!({ "step": "secrets", "code": error.code }));
        Ok(())
    }

    pub(super) async fn verify_the_record(&mut self, kernel: &Kernel) -> Result<(), Failure> {
        self.chapter("Every call has left one entry, bound to the one before by its hash");
        kernel.flush().await?;
        let options = tgp::BootOptions {
            trust: tgp::trust::Trust::Everything,
            ..session::boot_options(kernel.project().to_owned())
        };
        let report = tgp::audit::open_records(&options).await.map_err(ToolError::from)?.verify()?;
        self.say(&format!("tgp audit verify: intact, {} entries", report.entries));
        let last = kernel.sessions().find("last")?;
        let replay = kernel.sessions().replay(&last).await?;
        let same = matches!(replay.played, tgp::agent::Replayed::Same { .. })
            && replay.sealed == (tgp::agent::TranscriptIntegrity::Same { lines_after: 0 });
        self.expect(same, "the replay of the session")?;
        self.say("tgp replay: the first session, played again without a model, is the same byte for byte");
        self.steps.push(json!({ "step": "record", "entries": report.entries }));
        Ok(())
    }
}
