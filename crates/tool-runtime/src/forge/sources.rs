//! The sources of a program as targets: found before the gates judge a call, and held to that when it runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use tgp_compiler::GraphBuilder;
use tgp_contract::{Access, Code, FileSystem, RelativePath, Root, Target, ToolError};

use super::Forge;
use super::program::{Prepared, prepare};
use tgp_router::Invocation;

/// What is done about the sources of a program while it is compiled.
pub(super) enum Sources<'a> {
    /// They are noted, for the gates. Nothing that is compiled for this reaches the caller.
    Find(BTreeSet<RelativePath>),
    /// They must be among what the gates have judged.
    Judged(Invocation<'a>),
    /// They are the kernel's own, and no call is about them.
    Own,
}

impl Sources<'_> {
    /// A source that the program consists of.
    pub(super) fn meet(&mut self, path: &RelativePath) -> Result<(), ToolError> {
        match self {
            Self::Find(found) => {
                found.insert(path.clone());
                Ok(())
            }
            Self::Judged(invocation) if invocation.has_judged(Root::Tools, path) => Ok(()),
            Self::Judged(_) => Err(unjudged(path)),
            Self::Own => Ok(()),
        }
    }

    /// The files that an import which failed could have meant. They are judged like sources, so that whether a denied one is
    /// there does not show.
    pub(super) fn miss(&mut self, paths: &[RelativePath]) {
        if let Self::Find(found) = self {
            found.extend(paths.iter().cloned());
        }
    }

    /// The same for a program that was compiled before.
    pub(super) fn meet_all(&mut self, prepared: &Prepared) -> Result<(), ToolError> {
        prepared.sources().iter().try_for_each(|(path, _)| self.meet(path))
    }
}

/// Somebody has changed the sources between the judgement and the run.
fn unjudged(path: &RelativePath) -> ToolError {
    let message = format!("`{path}` became a part of the tool after the rules had judged the call");
    ToolError::new(Code::Conflict, message)
        .detail("path", path.as_str())
        .help("nothing was run; repeat the call")
}

/// Files of the tool repository that a call reads.
pub fn as_targets(paths: impl IntoIterator<Item = RelativePath>) -> Vec<Target> {
    let target = |path| Target::File { root: Root::Tools, path, access: Access::Read };
    paths.into_iter().map(target).collect()
}

impl Forge {
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

    /// The same for a test file.
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
    ) -> Result<Arc<Prepared>, ToolError> {
        let known = self.programs().get(&key).cloned();
        if let Some(known) = known
            && known.is_current(tools.as_ref())
        {
            sources.meet_all(&known)?;
            return Ok(known);
        }
        let prepared = Arc::new(prepare(self, builder()?, sources).await?);
        self.keep_program(key, &prepared);
        Ok(prepared)
    }

    /// Refuses a program with a file of a package that the rules do not let the call read. Which packages there are
    /// the configuration says, so a token's paths need not name them.
    ///
    /// # Errors
    /// `EPOLICY` with the file.
    pub(super) async fn check_packages(
        &self,
        invocation: Invocation<'_>,
        prepared: &Prepared,
    ) -> Result<(), ToolError> {
        let mut files = prepared.package_files().peekable();
        if files.peek().is_none() {
            return Ok(());
        }
        let Some(filter) = invocation.router.file_filter_without_token(invocation).await else {
            return Ok(());
        };
        for file in files {
            let below = file.strip_prefix(&self.options.project).ok().and_then(std::path::Path::to_str);
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

impl Sources<'_> {
    fn without(self, path: &RelativePath) -> BTreeSet<RelativePath> {
        match self {
            Self::Find(mut found) => {
                found.remove(path);
                found
            }
            Self::Judged(_) | Self::Own => BTreeSet::new(),
        }
    }
}
