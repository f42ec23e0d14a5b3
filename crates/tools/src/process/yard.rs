//! Where commands run: from an order to an end, bounded in number, and ended with whoever waits for them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tgp_contract::{Access, Code, FileFilter, RelativePath, Root, ToolError};
use tgp_jail::{Finished, JailError, Killer, NetworkAccess, ProcessOrder, Template};
use tokio::sync::Semaphore;

use super::{ProcessOptions, protected_paths};

/// Commands at a time. Each may use as much memory as its template gives it; those beyond wait.
const PARALLEL: usize = 4;

/// Starts commands for one project.
pub(super) struct Yard {
    pub(super) options: ProcessOptions,
    places: Arc<Semaphore>,
}

/// What a call wants to run.
pub(super) struct Wanted {
    pub(super) template: Template,
    /// For `sh -c`.
    pub(super) command: String,
    pub(super) directory: RelativePath,
    pub(super) network: Network,
    pub(super) stdin: Vec<u8>,
    pub(super) deadline_ms: Option<u64>,
    /// Whether build output may be written straight to the project.
    pub(super) output: BuildOutput,
    /// Build output of this command, besides what the configuration names.
    pub(super) direct: Vec<PathBuf>,
    pub(super) environment: Vec<(String, String)>,
    /// What the gates let the call see and touch.
    pub(super) filter: Option<FileFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    OfTemplate,
    Granted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuildOutput {
    Direct,
    InLayer,
}

impl Yard {
    pub(super) fn new(options: ProcessOptions) -> Self {
        Self { options, places: Arc::new(Semaphore::new(PARALLEL)) }
    }

    /// Runs a command to its end. Dropping the future ends every process of it.
    pub(super) async fn run(self: &Arc<Self>, wanted: Wanted) -> Result<Finished, ToolError> {
        let broken = || ToolError::new(Code::Internal, "the command was broken off");
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| broken())?;
        let yard = Arc::clone(self);
        let process = tokio::task::spawn_blocking(move || {
            tgp_jail::start(&yard.order(wanted)?).map_err(|error| refused(&error))
        })
        .await
        .map_err(|_| broken())??;
        let _guard = EndWithCaller(process.killer());
        let finished = tokio::task::spawn_blocking(move || {
            let _place = place;
            process.wait()
        });
        finished.await.map_err(|_| broken())?.map_err(|error| refused(&error))
    }

    /// Makes directories for build output, so that they can be written to directly: in a layer they would be thrown away
    /// with every run, and the next one would build everything again.
    pub(super) fn make_build_output(&self, names: &[&str]) -> Vec<PathBuf> {
        let made = |path: &PathBuf| {
            let whole = self.options.project.join(path);
            let exists = std::fs::create_dir(&whole).is_ok() || whole.is_dir();
            exists && is_plain(&self.options.project, path)
        };
        names.iter().map(PathBuf::from).filter(made).collect()
    }

    fn order(&self, wanted: Wanted) -> Result<ProcessOrder, ToolError> {
        let options = &self.options;
        std::fs::create_dir_all(&options.scratch).map_err(|error| {
            ToolError::new(Code::Internal, format!("no place for the command's layer: {error}"))
                .help("set TGP_CACHE_DIR to a directory that can be written, outside the project")
        })?;
        let protected = protected_paths::find(options, wanted.filter.as_ref())?;
        let mut order = wanted.template.order("/bin/sh", &options.project, &options.scratch);
        order.arguments = vec!["-c".into(), wanted.command.into()];
        order.directory = PathBuf::from(wanted.directory.as_str());
        order.environment.clone_from(&options.environment);
        order.environment.extend(wanted.environment);
        order.hidden = protected.hidden;
        order.read_only = protected.read_only;
        if wanted.output == BuildOutput::Direct {
            let known = options.direct.iter().chain(&wanted.direct);
            // A directory that a rule has something against is written in the layer, where the rule is asked.
            let is_free = |path: &Path| may_write_below(wanted.filter.as_ref(), path);
            order.direct =
                known.filter(|path| is_plain(&options.project, path) && is_free(path)).cloned().collect();
            order.direct.sort();
            order.direct.dedup();
        }
        order.readable.clone_from(&options.readable);
        if wanted.network == Network::Granted {
            order.network = NetworkAccess::Unrestricted;
        }
        order.stdin = wanted.stdin;
        let caps = options.caps;
        let limits = &mut order.limits;
        limits.memory_bytes = caps.memory_bytes.unwrap_or(limits.memory_bytes);
        limits.processes = caps.processes.unwrap_or(limits.processes);
        limits.file_bytes = caps.file_bytes.unwrap_or(limits.file_bytes);
        limits.layer_bytes = caps.layer_bytes.unwrap_or(limits.layer_bytes);
        order.output_bytes = caps.output_bytes.unwrap_or(order.output_bytes);
        let longest = caps.deadline.unwrap_or(order.deadline);
        // A caller may have less time than the configuration gives, never more.
        order.deadline =
            wanted.deadline_ms.map_or(longest, |ms| longest.min(std::time::Duration::from_millis(ms)));
        Ok(order)
    }
}

/// Whether nothing forbids to write files of any name in a directory of the project.
fn may_write_below(filter: Option<&FileFilter>, directory: &Path) -> bool {
    let Some(filter) = filter else { return true };
    let below = directory.to_str().and_then(|text| RelativePath::new(&format!("{text}/file")).ok());
    below.is_some_and(|path| filter(Root::Project, &path, Access::Write))
}

/// A directory on the way to which nothing is a link.
fn is_plain(project: &Path, path: &Path) -> bool {
    let mut whole = project.to_owned();
    path.components().all(|part| {
        whole.push(part);
        std::fs::symlink_metadata(&whole).is_ok_and(|metadata| metadata.is_dir())
    })
}

/// Ends a command whose caller has gone away; one that has ended is not touched.
struct EndWithCaller(Killer);

impl Drop for EndWithCaller {
    fn drop(&mut self) {
        self.0.kill();
    }
}

fn refused(error: &JailError) -> ToolError {
    match error {
        JailError::Lacks { .. } => ToolError::new(Code::Security, error.to_string())
            .help("commands run in a whole jail or not at all; `tgp doctor` says what this machine lacks"),
        _ => ToolError::new(Code::Internal, format!("the jail cannot be built: {error}"))
            .help("`tgp doctor` says what this machine lacks"),
    }
}
