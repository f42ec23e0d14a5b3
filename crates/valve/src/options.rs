//! What a valve is given.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tgp_contract::{Chronicle, ChronicleLayout, RelativePath};
use tgp_fs::RepositoryAccess;

use crate::Actions;

/// Milliseconds since the epoch.
pub type ValveClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How a running watch learns that it should look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanRequest {
    /// The system notifies; when it cannot watch so many directories, as [`ScanRequest::Every`].
    #[default]
    WhenTold,
    /// The whole tree again and again, for file systems without change notifications.
    Every(Duration),
}

/// What a valve is given.
#[derive(Clone)]
pub struct ValveOptions {
    /// The root of the work tree.
    pub project: PathBuf,
    /// Where its repository may be besides in it.
    pub repository: RepositoryAccess,
    /// The journal's own file, such as `.tgp/state/valve.sqlite`. Its folder is made when it is not there.
    pub journal: PathBuf,
    /// The file of personas in the project, such as `.sage/valve.yml`.
    pub personas_file: RelativePath,
    pub chronicle: Arc<dyn Chronicle>,
    /// Where its files are.
    pub layout: ChronicleLayout,
    pub actions: Arc<dyn Actions>,
    pub clock: ValveClock,
    /// Whether the first scan reports every file as created. Otherwise it is only remembered.
    pub all: bool,
    pub look: ScanRequest,
}

impl std::fmt::Debug for ValveOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ValveOptions")
            .field("project", &self.project)
            .field("journal", &self.journal)
            .field("personas_file", &self.personas_file)
            .field("all", &self.all)
            .field("look", &self.look)
            .finish_non_exhaustive()
    }
}
