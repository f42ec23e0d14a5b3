//! A project on disk with a router in front of it.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tgp_builtins::project_tools;
use tgp_contract::{Actor, CallContext, CallRecord, Code, Consent, ToolCall, ToolResult};
use tgp_fs::{RepositoryAccess, outside_places};
use tgp_router::files::{ToolDirectories, UpwardTraversal};
use tgp_router::{DenyAll, RecentCalls, Router, Workspace};

use crate::effect_gate::EffectGate;

pub(crate) struct BlockingPool {
    pub(crate) router: Arc<Router>,
    pub(crate) records: Arc<RecentCalls>,
    folder: tempfile::TempDir,
}

impl BlockingPool {
    /// A project one directory below the temporary one, so that there is an outside; `../shared` may be written to,
    /// so that the host of the files is above the project.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(project.join(".tgp/tools")).unwrap();
        std::fs::create_dir_all(folder.path().join("shared")).unwrap();
        Self::open(folder, &RepositoryAccess::default())
    }

    /// The same project after a person has confirmed where its repository is.
    pub(crate) fn with_confirmed_repository(self) -> Self {
        let places = outside_places(&self.file("")).unwrap();
        Self::open(self.folder, &RepositoryAccess::confirmed(places))
    }

    fn open(folder: tempfile::TempDir, repository: &RepositoryAccess) -> Self {
        let project = folder.path().canonicalize().unwrap().join("project");
        let kept = [PathBuf::from("tgp.config.ts"), PathBuf::from("node_modules")];
        let writable = ["../shared".to_owned()];
        let directories = ToolDirectories {
            writable: &writable,
            readable: &[],
            upward: UpwardTraversal::Allowed,
            repository: Some(repository),
        };
        let workspace = Workspace::open(&project, &project.join(".tgp"), directories, &kept).unwrap();
        let records = Arc::new(RecentCalls::new(16));
        let router = Router::new(
            project_tools().unwrap(),
            vec![Arc::new(EffectGate)],
            Arc::new(DenyAll),
            Arc::clone(&records) as _,
            workspace,
        );
        Self { router: Arc::new(router.unwrap()), records, folder }
    }

    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.outside("project").join(name)
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let file = self.file(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        std::fs::read(self.file(name)).ok().map(|bytes| String::from_utf8(bytes).unwrap())
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_as(tool, arguments, false).await
    }

    pub(crate) async fn preview(&self, tool: &str, arguments: Value) -> ToolResult {
        self.call_as(tool, arguments, true).await
    }

    async fn call_as(&self, tool: &str, arguments: Value, dry_run: bool) -> ToolResult {
        let call = ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments };
        let context = CallContext {
            actor: Actor::Agent("test".to_owned()),
            session: "s".to_owned(),
            consent: Consent::Given,
            dry_run,
            depth: 0,
            token: None,
        };
        self.router.call(call, context).await
    }

    /// The answer of a call that goes well.
    pub(crate) async fn done(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        result.into_result().unwrap_or_else(|error| panic!("{tool} {arguments}: {error:?}"))
    }

    /// The code of a call that fails, which must say what to do next.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> Code {
        let result = self.call(tool, arguments.clone()).await;
        let error = result.error().unwrap_or_else(|| panic!("{tool} {arguments}: {result:?}"));
        assert!(error.help_of().is_some(), "{tool} {arguments}: no help: {error:?}");
        error.code
    }

    pub(crate) fn last_record(&self) -> CallRecord {
        self.records.all().pop().unwrap()
    }
}
