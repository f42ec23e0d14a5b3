//! Which files a call may see, and which database.

mod batch;
mod before_images;
mod cpu_spent;
mod diff;
mod directories;
mod growth;
mod guarded;
mod line_diff;
mod patch;
mod project;
mod protected;
mod seen;
mod tool_directories;
mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tgp_contract::{
    Access, CallContext, Change, Database, Entry, EntryKind, FileEffect, FileFilter, FileSystem, FsError,
    LimitRequest, RelativePath, Root, ToolError, Visibility, canonical, counted_session,
};
use tgp_fs::{DiskFs, DiskOptions, FileLimits, OpenError, OverlayFs, RepositoryAccess, git_directories};

use crate::database::Sql;
pub use before_images::{BeforeImage, BeforeImageToken, BeforeImages, BeforeState};
pub use cpu_spent::CpuSpent;
pub use diff::unified_diff;
pub use diff::{Difference, difference, difference_with_mode};
use directories::Directories;
pub use growth::Growth;
use growth::SessionFiles;
pub use guarded::ProtectedFs;
pub use patch::{Replacement, patch};
pub use project::{Changed, ProjectBase, ProjectFiles};
pub use protected::{check_chronicle, is_protected, is_write_protected};
pub use seen::VisibleFs;
pub use tool_directories::{OpenedDirectories, ToolDirectories, UpwardTraversal};
pub use walk::{Coverage, Flow, IgnorePolicy, Walk, WalkSummary};

/// The largest file of the project that a call reads or writes: it is held in memory as a whole.
pub const MAX_HOST_FILE_BYTES: u64 = 64 << 20;

/// The files and the database of one kernel, or of one run on top of it.
#[derive(Clone)]
pub struct Workspace {
    /// The agent's root (`.tgp`), without git's own files and the kernel's state.
    pub tools: Arc<dyn FileSystem>,
    /// The directory that holds the project and every directory of [`ToolDirectories`].
    pub host: Arc<dyn FileSystem>,
    /// Where the project is in `host`.
    pub project: RelativePath,
    /// The directories of `host` that tools may use.
    pub opened: OpenedDirectories,
    pub upward: UpwardTraversal,
    pub sql: Sql,
    /// True for a run's own view, whose writes wait for the run's end.
    pub overlaid: bool,
    /// What the run around a call can give to it, where there is one.
    pub outer_limits: Option<LimitRequest>,
    /// What counts the CPU time of the runs around a call.
    pub cpu_around: Vec<CpuSpent>,
    pub base: Arc<ProjectBase>,
    /// How many files each session has added.
    sessions: Arc<SessionFiles>,
    /// Keeps what files were before the calls of a session changed them.
    before_images: Option<Arc<dyn BeforeImages>>,
    /// What the gates let a call see, where they do not let it see everything.
    pub filter: Option<FileFilter>,
    /// What every call may see: the same filter for the life of the kernel.
    reach: FileFilter,
    /// What runs have written and not committed yet, the outermost first.
    overlays: Vec<Arc<OverlayFs>>,
    /// The sources that the outermost run and those inside it have executed.
    sources: Arc<Mutex<BTreeSet<RelativePath>>>,
}

/// Why the directories of a project could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("`{0}` leaves the project; set fs.blockUpwardTraversal to false to allow that")]
    Outside(String),
    #[error("`{0}` is inside the tool root, which tools read as it is and do not write")]
    InsideRoot(String),
    #[error("the tool root must be a directory of its own, not one that holds the project")]
    RootHoldsProject,
    #[error("cannot open `{path}`: {source}")]
    Open { path: PathBuf, source: OpenError },
    #[error("cannot open `{path}`: {source}")]
    Directory { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Path(#[from] tgp_contract::PathError),
}

impl Workspace {
    /// Opens the tool root and the directories tools may use. `project` must be absolute. `kept_files` of the
    /// project, git's own files and the tool root itself stay out of a tool's reach even in a directory it may use.
    ///
    /// # Errors
    /// When a directory cannot be opened, overlaps the tool root, or leaves the project while upward traversal is
    /// blocked.
    pub fn open(
        project: &Path,
        tool_root: &Path,
        wanted: ToolDirectories<'_>,
        kept_files: &[PathBuf],
    ) -> Result<Self, WorkspaceError> {
        let open = |path: &Path| {
            DiskFs::open(path).map_err(|source| WorkspaceError::Open { path: path.to_owned(), source })
        };
        let directories = wanted.places(project)?;
        let root =
            directories.iter().fold(project.to_owned(), |root, (_, directory)| common(&root, directory));
        let below = |path: &Path| -> Result<RelativePath, WorkspaceError> {
            let rest = path.strip_prefix(&root).unwrap_or(path);
            Ok(RelativePath::new(&rest.to_string_lossy())?)
        };
        // Whatever a project lets its tools write to, they do not write the tools, nor what the kernel itself loads.
        let real_root = tool_root.canonicalize().unwrap_or_else(|_| lexical(tool_root));
        if project.starts_with(&real_root) {
            return Err(WorkspaceError::RootHoldsProject);
        }
        if let Some((text, _)) = directories.iter().find(|(_, directory)| {
            directory.starts_with(&real_root) || directory.starts_with(lexical(tool_root))
        }) {
            return Err(WorkspaceError::InsideRoot((*text).to_owned()));
        }
        let in_host = |paths: Vec<PathBuf>| -> Result<Vec<RelativePath>, WorkspaceError> {
            paths.iter().filter(|path| path.starts_with(&root)).map(|path| below(path)).collect()
        };
        let sealed = in_host(kept_files.iter().map(|file| lexical(&project.join(file))).collect())?;
        let mut git = git_directories(project);
        git.retain(|directory| !project.starts_with(directory));
        let hidden = in_host([vec![lexical(tool_root), real_root], git].concat())?;
        let kept = [sealed.clone(), hidden.clone()].concat();
        let limits = FileLimits { file_bytes: MAX_HOST_FILE_BYTES, ..FileLimits::default() };
        let unopened = |source| WorkspaceError::Open { path: root.clone(), source };
        let disk: Arc<dyn FileSystem> = Arc::new(
            DiskFs::open_with(&root, DiskOptions { limits, ..DiskOptions::default() }).map_err(unopened)?,
        );
        let tree = Directories::open(&root)
            .map_err(|source| WorkspaceError::Directory { path: root.clone(), source })?;
        let base = Arc::new(ProjectBase {
            disk: Arc::clone(&disk),
            directories: tree,
            place: project.to_owned(),
            repository: wanted.repository.cloned().unwrap_or_default(),
            sealed,
            hidden,
            commit_lock: Arc::default(),
        });
        let place = below(project)?;
        let opened: Vec<RelativePath> =
            directories.iter().map(|(_, directory)| below(directory)).collect::<Result<_, _>>()?;
        Ok(Self {
            reach: within_reach(Arc::clone(&base), place.clone()),
            tools: Arc::new(ProtectedFs::of_tools(Arc::new(open(tool_root)?))),
            host: Arc::new(ProtectedFs::new(disk, kept).with_packages_of(place.clone())),
            project: place,
            opened: OpenedDirectories {
                writable: opened.iter().take(wanted.writable.len()).cloned().collect(),
                readable: opened.into_iter().skip(wanted.writable.len()).collect(),
            },
            upward: wanted.upward,
            sql: Sql::Absent,
            overlaid: false,
            outer_limits: None,
            cpu_around: Vec::new(),
            filter: None,
            sessions: Arc::default(),
            before_images: None,
            base,
            overlays: Vec::new(),
            sources: Arc::default(),
        })
    }

    /// The same with other files as the tools, where they are not those of the disk.
    #[must_use]
    pub fn with_tools(self, kept: Option<Arc<dyn FileSystem>>) -> Self {
        match kept {
            Some(kept) => Self { tools: Arc::new(ProtectedFs::of_tools(kept)), ..self },
            None => self,
        }
    }

    /// The same files with a database beside them.
    #[must_use]
    pub fn with_database(self, database: Arc<dyn Database>) -> Self {
        Self { sql: Sql::Each(database), ..self }
    }

    /// The same with another number of files that a session may add.
    #[must_use]
    pub fn with_session_files(self, limit: u64) -> Self {
        Self { sessions: Arc::new(SessionFiles::new(limit)), ..self }
    }

    /// Counts files and directories that a call of a session is about to add and remove. What is not kept is given back.
    ///
    /// # Errors
    /// `ESECURITY` when the session may not add that many.
    pub fn grow(&self, context: &CallContext, added: u64, removed: u64) -> Result<Growth, ToolError> {
        SessionFiles::grow(&self.sessions, counted_session(&context.session), added, removed)
    }

    /// The project on the disk.
    #[must_use]
    pub fn project_place(&self) -> &Path {
        &self.base.place
    }

    /// Where the project's repository may be.
    #[must_use]
    pub fn repository(&self) -> &RepositoryAccess {
        &self.base.repository
    }

    /// The directory on the disk that `host` is.
    #[must_use]
    pub fn host_place(&self) -> PathBuf {
        let above = self.project.parts().count();
        self.base.place.ancestors().nth(above).unwrap_or(&self.base.place).to_owned()
    }

    /// What a change of a file of `host` leaves in the record.
    pub fn effect(&self, path: &RelativePath, before: Option<String>, after: Option<&[u8]>) -> FileEffect {
        let (root, path) = self.name_of(path);
        FileEffect::new(root, path, before, after.map(canonical::sha256_hex))
    }

    /// How a file of `host` is called by people: by its place in the project, if it is in there.
    pub fn name_of(&self, path: &RelativePath) -> (Root, RelativePath) {
        if !path.is_inside(&self.project) {
            return (Root::Host, path.clone());
        }
        let skipped = self.project.parts().count();
        let names: Vec<&str> = path.parts().skip(skipped).collect();
        RelativePath::new(&names.join("/"))
            .map_or_else(|_| (Root::Host, path.clone()), |path| (Root::Project, path))
    }

    /// The same with every write held back: files in an overlay, which is returned to be committed or dropped, and
    /// statements in a transaction.
    pub fn overlay(&self) -> (Self, Arc<OverlayFs>) {
        let overlay = Arc::new(OverlayFs::new(Arc::clone(&self.host)));
        let host = Arc::clone(&overlay) as Arc<dyn FileSystem>;
        let overlays = self.overlays.iter().cloned().chain([Arc::clone(&overlay)]).collect();
        let sources = if self.overlaid { Arc::clone(&self.sources) } else { Arc::default() };
        (Self { host, sql: self.sql.for_run(), overlaid: true, overlays, sources, ..self.clone() }, overlay)
    }

    /// The same with one more file in the tool repository, which is never stored.
    ///
    /// # Errors
    /// When the file is larger than a file may be.
    pub fn with_tool_file(&self, path: &RelativePath, content: &str) -> Result<Self, FsError> {
        let tools = OverlayFs::new(Arc::clone(&self.tools));
        tools.write(path, content.as_bytes())?;
        Ok(Self { tools: Arc::new(tools), ..self.clone() })
    }

    /// Notes the sources that a run executes; answers them with those of the runs around it and inside it.
    pub fn run_sources(&self, executed: impl Iterator<Item = RelativePath>) -> Vec<RelativePath> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.extend(executed);
        sources.iter().cloned().collect()
    }

    /// The project as this call sees it, with what its run has written so far.
    pub fn project_files(&self) -> ProjectFiles {
        let changes = self.overlays.iter().flat_map(|overlay| overlay.changes());
        let pending: BTreeMap<RelativePath, Option<u64>> = changes
            .map(|change| match change {
                Change::Write { path, content } => (path, Some(content.len() as u64)),
                Change::Remove { path } => (path, None),
            })
            .collect();
        ProjectFiles {
            host: Arc::clone(&self.host),
            base: Arc::clone(&self.base),
            project: self.project.clone(),
            pending: Arc::new(pending),
            overlaid: self.overlaid,
            filter: self.filter.clone(),
        }
    }

    /// The same with only what a filter lets through; what it does not is as if it were not there.
    #[must_use]
    pub fn filtered(&self, filter: Option<FileFilter>) -> Self {
        Self { filter, ..self.clone() }
    }

    /// What a call with this filter may see.
    pub fn visibility(&self, filter: Option<FileFilter>) -> Visibility {
        Visibility::new(Some(Arc::clone(&self.reach)), filter)
    }

    /// The tool repository without what a call may not see of it.
    pub fn tools_seen_by(&self, visible: Visibility) -> Arc<dyn FileSystem> {
        Arc::new(VisibleFs::new(Arc::clone(&self.tools), Root::Tools, visible))
    }

    /// Whether a file of `host` may be seen.
    pub fn shows(&self, path: &RelativePath) -> bool {
        let (root, path) = self.name_of(path);
        self.filter.as_ref().is_none_or(|filter| filter(root, &path, Access::Read))
    }
}

/// What no call may see, whatever its actor: what is protected, and in the project also the tool root.
fn within_reach(base: Arc<ProjectBase>, project: RelativePath) -> FileFilter {
    Arc::new(move |root, path, _| match root {
        Root::Project => {
            let host = if path.is_root() { Ok(project.clone()) } else { project.join(path.as_str()) };
            host.is_ok_and(|host| !base.is_hidden(&host, path))
        }
        Root::Tools => !guarded::is_hidden_name(path) && !is_protected(root, path),
        // Which directories of the host may be seen is in the rules' table alone; the names are the same everywhere.
        Root::Host => !is_protected(Root::Project, path),
    })
}

/// Whether a listing shows an entry: files, but not those that only keep an empty directory in git.
pub fn is_listed(entry: &Entry) -> bool {
    entry.kind == EntryKind::File && entry.path.name() != Some(".gitkeep")
}

/// Resolves `.` and `..` by text alone. Links are the file system's business, which never follows one.
fn lexical(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut done, component| {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                done.pop();
            }
            other => done.push(other),
        }
        done
    })
}

fn common(one: &Path, other: &Path) -> PathBuf {
    one.components().zip(other.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
}
