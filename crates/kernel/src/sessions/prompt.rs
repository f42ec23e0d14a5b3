//! The system prompt of this kernel, made of what it has.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use serde_json::Value;
use tgp_agent::{AgentClock, ForgedTool, PromptFacts, ToolPlatform};
use tgp_contract::{Actor, CallContext, Consent, FileFilter, Root, TddState, ToolCall, Visibility};
use tgp_registry::Index;

use super::ports::SystemClock;
use super::run::USUAL_ACTOR;
use crate::Kernel;
use crate::knowledge::tool_index;

/// Where projects keep what agents should know of them.
const NOTES_FILE: &str = "AGENTS.md";
/// The prompt has room for less, and says what it has left out.
const MAX_NOTES_BYTES: u64 = 256 << 10;

/// Tools that a prompt names; the others are found by searching.
const MAX_NAMED: usize = 40;

impl Kernel {
    /// The system prompt of a session: the protocol, the standards, the state of the tests, the forged tools.
    pub async fn system_prompt(&self) -> String {
        self.system_prompt_at(SystemClock.now_ms(), USUAL_ACTOR, "").await
    }

    /// The same at another time, for an agent of this name in this session. It names what the agent may see.
    pub(super) async fn system_prompt_at(&self, now_ms: u64, actor: &str, session: &str) -> String {
        let call = ToolCall { id: String::new(), tool: "search".to_owned(), arguments: Value::Null };
        let context = CallContext {
            actor: Actor::Agent(actor.to_owned()),
            session: session.to_owned(),
            consent: Consent::Ask,
            dry_run: false,
            depth: 0,
            token: None,
        };
        let nothing: FileFilter = Arc::new(|_, _, _| false);
        let visible = self.session_parts().0.visibility(&call, &context).await;
        let visible = visible.unwrap_or_else(|_| Visibility::new(Some(nothing), None));
        let (forged, total) = self.forged(&visible);
        let tdd = self.state().tdd();
        let config = self.config();
        let shown = |names: &[String]| -> Vec<String> {
            let names = names.iter().map(|name| name.trim_start_matches("./"));
            names.filter(|name| visible.shows_named(name)).map(str::to_owned).collect()
        };
        let (write_dirs, read_dirs) = (shown(&config.fs.allowed_dirs), shown(&config.fs.read_dirs));
        tgp_agent::system_prompt(&PromptFacts {
            mode: tdd.mode(),
            state: tdd.state(&tgp_tdd::Scope::Project).unwrap_or(TddState::Halted),
            forged: &forged,
            forged_total: total,
            date: &date(now_ms),
            platform: std::env::consts::OS,
            project: &self.project().file_name().unwrap_or_default().to_string_lossy(),
            notes: self.notes(&visible).as_deref().map(|text| (NOTES_FILE, text)),
            platform_of_tools: ToolPlatform {
                packages: &config.allowed_imports,
                fetch_urls: &config.allowed_fetch_urls,
                upstream: &self.upstream_modules(),
                host: &self.host_modules(),
                read_dirs: &read_dirs,
                write_dirs: &write_dirs,
                cpu: config.sandbox.limits.cpu,
                wall: config.sandbox.limits.wall,
                memory_bytes: config.sandbox.limits.heap_bytes,
            },
        })
    }

    /// What the project's owner has written for agents.
    fn notes(&self, visible: &Visibility) -> Option<String> {
        if !visible.shows_named(NOTES_FILE) {
            return None;
        }
        // A link could name a secret outside of the project, and a pipe would never end.
        let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
        let file =
            File::options().read(true).custom_flags(flags).open(self.project().join(NOTES_FILE)).ok()?;
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let mut bytes = Vec::new();
        file.take(MAX_NOTES_BYTES).read_to_end(&mut bytes).ok().filter(|_| is_file)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// What the library holds; a damaged index is repaired by the next write, and hides nothing from a
    /// search.
    fn forged(&self, visible: &Visibility) -> (Vec<ForgedTool>, usize) {
        let index = Index::parse(&tool_index(self.root())).unwrap_or_default();
        let shown = || index.tools().filter(|tool| visible.shows(Root::Tools, &tool.path));
        let total = shown().count();
        let tools = shown().take(MAX_NAMED).map(|tool| ForgedTool {
            path: tool.path.to_string(),
            description: tool.description.clone(),
            signature: tool.signature.clone(),
        });
        (tools.collect(), total)
    }
}

/// The day, such as `2026-11-15`.
fn date(now_ms: u64) -> String {
    tgp_text::rfc3339(now_ms).split('T').next().unwrap_or_default().to_owned()
}
