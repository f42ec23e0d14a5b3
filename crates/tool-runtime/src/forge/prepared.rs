//! Programs that are ready to run: compiled now or before, with their sources and packages as the gates judge them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_compiler::GraphBuilder;
use tgp_contract::{Access, Code, DeclaredTypes, FileSystem, RelativePath, Root, ToolError};
use tgp_router::Invocation;

use super::ToolRuntime;
use super::program::{CompiledTool, PrepareFailure, prepare};
use super::sources::Sources;

impl ToolRuntime {
    /// Every source below the tool root that a tool consists of, as far as they can be found, without the tool itself.
    pub async fn find_sources(
        &self,
        tools: &Arc<dyn FileSystem>,
        path: &RelativePath,
    ) -> BTreeSet<RelativePath> {
        let mut found = Sources::Find(BTreeSet::new());
        // Why a source cannot be compiled, the call itself says when the gates have let it through.
        let _ = self.program(tools, path, &mut found).await;
        found.without(path)
    }

    /// What a tool declares of its arguments and its result, when it is there and compiles. Nothing of it runs.
    pub async fn declared_types(
        &self,
        tools: &Arc<dyn FileSystem>,
        path: &RelativePath,
    ) -> Option<DeclaredTypes> {
        let prepared = self.program(tools, path, &mut Sources::Find(BTreeSet::new())).await.ok()?;
        prepared.declared().cloned()
    }

    /// The sources of a test file, without the file itself.
    pub async fn find_test_sources(
        &self,
        tools: &Arc<dyn FileSystem>,
        file: &RelativePath,
    ) -> BTreeSet<RelativePath> {
        let mut found = Sources::Find(BTreeSet::new());
        let _ = self.test_program(tools, file, &mut found).await;
        found.without(file)
    }

    /// Compiles a program from its sources, or takes the one from before.
    pub(super) async fn prepared(
        &self,
        tools: &Arc<dyn FileSystem>,
        key: String,
        builder: impl FnOnce() -> Result<GraphBuilder, ToolError>,
        sources: &mut Sources<'_>,
    ) -> Result<Arc<CompiledTool>, PrepareFailure> {
        let known = self.programs().get(&key).cloned();
        if let Some(known) = known
            && known.is_current(tools.as_ref(), self.options.foreign.as_deref())
        {
            sources.meet_all(known.sources().iter().map(|(path, _)| path))?;
            return Ok(known);
        }
        let prepared = Arc::new(prepare(self, builder()?, sources).await?);
        self.keep_program(key, &prepared);
        Ok(prepared)
    }

    /// The reason why a program could not be prepared. It may name what a package exports, so a rule that hides a file of
    /// a package comes first.
    pub(super) async fn judged_failure(
        &self,
        invocation: Invocation<'_>,
        failure: PrepareFailure,
    ) -> ToolError {
        let files = failure.packages.iter().map(PathBuf::as_path);
        self.check_packages(invocation, files).await.err().unwrap_or(failure.error)
    }

    /// Refuses a program with a file of a package that the rules do not let the call read. Which packages there are
    /// the configuration says, so a token's paths need not name them.
    ///
    /// # Errors
    /// `EPOLICY` with the file.
    pub(super) async fn check_packages(
        &self,
        invocation: Invocation<'_>,
        files: impl Iterator<Item = &Path>,
    ) -> Result<(), ToolError> {
        let mut files = files.peekable();
        if files.peek().is_none() {
            return Ok(());
        }
        let Some(filter) = invocation.router.file_filter_without_token(invocation).await else {
            return Ok(());
        };
        for file in files {
            let below = file.strip_prefix(&self.options.project).ok().and_then(Path::to_str);
            let Some(path) = below.and_then(|path| RelativePath::new(path).ok()) else { continue };
            if !filter(Root::Project, &path, Access::Read) {
                let message = format!("a rule forbids `{path}`, which the tool imports");
                return Err(ToolError::new(Code::Policy, message)
                    .detail("path", path.as_str())
                    .help("do without the package, or ask a person to change the rule"));
            }
        }
        Ok(())
    }
}
