//! What is known of every tool, and `meta.json` made from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tgp_contract::{
    Change, FileSystem, Finding, FsError, RelativePath, ToolError, ToolMetadata, background, canonical,
};
use tgp_fs::DiskFs;
use tgp_git::{GeneratedFile, RepositorySnapshot};
use tgp_registry::{Index, is_tool};
use tokio::runtime::Handle;

use super::{META_FILE, TOOLS_DIRECTORY};
use crate::ToolRuntime;

/// Begins the name of what this machine has described before, in the kernel's own state: `meta.json` of a repository
/// is an unverified claim, this file is ours. The name continues with the build that made it.
const CACHE_PREFIX: &str = "metadata-";

/// Describes tools, and describes none of them twice.
pub(super) struct ToolDescriber {
    forge: Arc<ToolRuntime>,
    runtime: Handle,
    meta_path: RelativePath,
    state: PathBuf,
    cache_name: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By path; valid for a source with the same hash.
    tools: BTreeMap<RelativePath, Arc<ToolMetadata>>,
    /// Which content hash a blob of git has at a path.
    blobs: BTreeMap<RelativePath, (String, String)>,
    /// The last `meta.json` that was made for a commit: where the working tree has it, it need not be made again.
    derived: Option<Vec<u8>>,
    loaded: bool,
}

/// Whether a scan of the tools may bring `meta.json` up to date.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MetaSync {
    Mend,
    /// For previews, which change nothing.
    Leave,
}

impl ToolDescriber {
    /// `runtime` is used from the blocking threads on which git works.
    pub(super) fn new(forge: Arc<ToolRuntime>, state: &Path, runtime: Handle) -> Result<Self, ToolError> {
        Ok(Self {
            cache_name: format!("{CACHE_PREFIX}{}.json", forge.build()),
            forge,
            runtime,
            meta_path: RelativePath::new(META_FILE)?,
            state: state.to_owned(),
            known: Mutex::default(),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.loaded {
            known.loaded = true;
            let cached = std::fs::read(self.state.join(&self.cache_name)).ok();
            // A cache that cannot be read is not a cache; everything is described again.
            if let Some(index) = cached.and_then(|bytes| Index::parse(&bytes).ok()) {
                known.tools = index.tools().map(|tool| (tool.path.clone(), Arc::new(tool.clone()))).collect();
            }
        }
        known
    }

    fn find(&self, path: &RelativePath, hash: &str) -> Option<Arc<ToolMetadata>> {
        self.known().tools.get(path).filter(|tool| tool.hash == hash).cloned()
    }

    /// What the checker finds in a source that need not be on disk.
    pub(super) async fn check_source(
        &self,
        path: &RelativePath,
        source: &str,
    ) -> Result<Vec<Finding>, ToolError> {
        self.forge.check_source(path, source).await
    }

    /// An import of a tool that leads to nothing among `tools`.
    pub(super) async fn unresolved_import(
        &self,
        tools: &Arc<dyn FileSystem>,
        path: &RelativePath,
    ) -> Option<Finding> {
        self.forge.unresolved_import(tools, path).await
    }

    /// Metadata of each source, from memory where it is there.
    pub(super) async fn describe(
        &self,
        sources: Vec<(RelativePath, Vec<u8>)>,
    ) -> Result<Vec<Arc<ToolMetadata>>, ToolError> {
        let mut described = Vec::with_capacity(sources.len());
        let mut unknown = Vec::new();
        for (path, content) in sources {
            let known = self.find(&path, &canonical::sha256_hex(&content));
            if known.is_none() {
                unknown.push((path, content));
            }
            described.push(known);
        }
        let mut fresh = self.forge.describe(unknown).await?.into_iter();
        let mut known = self.known();
        Ok(described
            .into_iter()
            .filter_map(|tool| {
                tool.or_else(|| {
                    let tool = Arc::new(fresh.next()?);
                    known.tools.insert(tool.path.clone(), Arc::clone(&tool));
                    Some(tool)
                })
            })
            .collect())
    }

    /// Reads every tool of the working tree.
    pub(super) async fn scan(
        &self,
        files: &Arc<dyn FileSystem>,
    ) -> Result<Vec<Arc<ToolMetadata>>, ToolError> {
        let reader = Arc::clone(files);
        let sources = background::run(move || read_tools(reader.as_ref())).await?;
        self.describe(sources).await
    }

    /// Reads the files at `paths` only. A path that is not in the answer has no tool any more.
    pub(super) async fn scan_some(
        &self,
        files: &Arc<dyn FileSystem>,
        paths: Vec<RelativePath>,
    ) -> Result<Vec<Arc<ToolMetadata>>, ToolError> {
        let reader = Arc::clone(files);
        let named = paths.clone();
        let sources = background::run(move || {
            let mut sources = Vec::new();
            for path in named {
                if reader.entry(&path)?.is_some_and(|entry| tgp_router::files::is_listed(&entry)) {
                    read_tool(reader.as_ref(), path, &mut sources)?;
                }
            }
            Ok::<_, ToolError>(sources)
        })
        .await?;
        let tools = self.describe(sources).await?;
        let mut known = self.known();
        for path in paths.iter().filter(|path| tools.iter().all(|tool| tool.path != **path)) {
            known.tools.remove(path);
            known.blobs.remove(path);
        }
        Ok(tools)
    }

    /// Makes `meta.json` say what `tools` are, which are all there are. Returns what had to be repaired, one sentence
    /// each.
    pub(super) fn mend(
        &self,
        files: &Arc<dyn FileSystem>,
        tools: &[Arc<ToolMetadata>],
    ) -> Result<Vec<String>, ToolError> {
        let stored = match files.read(&self.meta_path) {
            Ok(stored) => Some(stored),
            Err(FsError::NotFound(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let is_derived = |stored: &Vec<u8>| self.known().derived.as_ref() == Some(stored);
        if stored.as_ref().is_some_and(is_derived) {
            return Ok(Vec::new());
        }
        let bytes = Index::from_tools(tools.iter().map(|tool| tool.as_ref().clone())).to_bytes();
        let mut warnings = Vec::new();
        if stored.as_deref() != Some(bytes.as_slice()) {
            match stored.as_deref().map(Index::parse) {
                None if tools.is_empty() => {}
                None => warnings.push(format!("{META_FILE} was missing; it was rebuilt from the tools")),
                Some(Err(damage)) => {
                    warnings
                        .push(format!("{META_FILE} was damaged ({damage}); it was rebuilt from the tools"));
                }
                Some(Ok(_)) => {}
            }
            // Where the index cannot be written, the tools are found all the same.
            if let Err(error) = files.write(&self.meta_path, &bytes) {
                warnings.push(format!("{META_FILE} is out of date and cannot be written: {error}"));
            }
        }
        self.keep(tools, &bytes);
        Ok(warnings)
    }

    /// Forgets what is gone, and remembers the rest beyond this process.
    fn keep(&self, tools: &[Arc<ToolMetadata>], bytes: &[u8]) {
        let mut known = self.known();
        known.tools = tools.iter().map(|tool| (tool.path.clone(), Arc::clone(tool))).collect();
        drop(known);
        if std::fs::create_dir_all(&self.state).is_err() {
            return;
        }
        // It is only a cache: where it cannot be kept, the next process describes the tools again. The directory is opened
        // even if the cache is current: that removes what a killed process left there.
        if let (Ok(state), Ok(name)) = (DiskFs::open(&self.state), RelativePath::new(&self.cache_name)) {
            if state.read(&name).is_ok_and(|stored| stored == bytes) {
                return;
            }
            let mut changes = vec![Change::Write { path: name.clone(), content: bytes.into() }];
            let others = state.list(&RelativePath::root()).unwrap_or_default().into_iter();
            changes.extend(
                others
                    .filter(|entry| entry.path.as_str().starts_with(CACHE_PREFIX) && entry.path != name)
                    .map(|entry| Change::Remove { path: entry.path }),
            );
            let _ = state.apply(&changes);
        }
    }
}

fn read_tools(files: &dyn FileSystem) -> Result<Vec<(RelativePath, Vec<u8>)>, ToolError> {
    let directory = RelativePath::new(TOOLS_DIRECTORY)?;
    let entries = match files.list(&directory) {
        Ok(entries) => entries,
        Err(FsError::NotFound(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut sources = Vec::new();
    for entry in
        entries.into_iter().filter(|entry| tgp_router::files::is_listed(entry) && is_tool(&entry.path))
    {
        read_tool(files, entry.path, &mut sources)?;
    }
    Ok(sources)
}

fn read_tool(
    files: &dyn FileSystem,
    path: RelativePath,
    sources: &mut Vec<(RelativePath, Vec<u8>)>,
) -> Result<(), ToolError> {
    match files.read(&path) {
        Ok(content) => sources.push((path, content)),
        // Removed meanwhile.
        Err(FsError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

impl GeneratedFile for ToolDescriber {
    fn path(&self) -> &RelativePath {
        &self.meta_path
    }

    fn derive(&self, tree: &dyn RepositorySnapshot) -> Result<Vec<u8>, ToolError> {
        let mut tools = Vec::new();
        let mut unread = Vec::new();
        for file in tree.files()?.into_iter().filter(|file| is_tool(&file.path)) {
            let hash = self.known().blobs.get(&file.path).filter(|(blob, _)| *blob == file.blob).cloned();
            match hash.and_then(|(_, hash)| self.find(&file.path, &hash)) {
                Some(tool) => tools.push(tool),
                None => unread.push(file),
            }
        }
        let mut sources = Vec::with_capacity(unread.len());
        for file in unread {
            let content = tree.read(&file.path)?;
            let hash = canonical::sha256_hex(&content);
            self.known().blobs.insert(file.path.clone(), (file.blob, hash));
            sources.push((file.path, content));
        }
        tools.extend(self.runtime.block_on(self.describe(sources))?);
        let bytes = Index::from_tools(tools.iter().map(|tool| tool.as_ref().clone())).to_bytes();
        self.known().derived = Some(bytes.clone());
        Ok(bytes)
    }
}
