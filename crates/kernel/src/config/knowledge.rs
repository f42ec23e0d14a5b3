//! `chronicle`, `graph` and `guardian`: what is known of the project, and what may not be broken.

use std::path::Path;
use std::time::Duration;

use tgp_contract::ChronicleLayout;
use tgp_text::RulePurpose;

use super::fields::Fields;

/// When an event counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChronicleDurability {
    /// When the operating system has it.
    #[default]
    Batched,
    /// When it is on the disk.
    Event,
}

/// The section `chronicle`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChronicleConfig {
    /// Globs of the files that events may be written to, instead of the usual ones.
    pub scope: Option<Vec<String>>,
    /// Where the files of chronicles are.
    pub layout: ChronicleLayout,
    pub durability: ChronicleDurability,
    /// Whether every change of a project file that the kernel makes becomes an event.
    pub edits: bool,
}

impl Default for ChronicleConfig {
    fn default() -> Self {
        Self {
            scope: None,
            layout: ChronicleLayout::default(),
            durability: ChronicleDurability::default(),
            edits: true,
        }
    }
}

/// The section `graph`.
#[derive(Clone, PartialEq, Eq)]
pub struct GraphConfig {
    /// Commits of the history that are read, the newest ones.
    pub history: usize,
    pub max_rows: usize,
    pub timeout: Duration,
    /// A server that speaks Bolt, with its user and password, that is asked instead of the embedded store.
    pub url: Option<String>,
}

impl std::fmt::Debug for GraphConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A URL holds a password, which must not reach a log.
        let url = self.url.as_ref().map(|_| "[redacted]");
        formatter
            .debug_struct("GraphConfig")
            .field("history", &self.history)
            .field("url", &url)
            .finish_non_exhaustive()
    }
}

impl Default for GraphConfig {
    fn default() -> Self {
        Self { history: 20_000, max_rows: 1_000, timeout: Duration::from_secs(5), url: None }
    }
}

/// The section `guardian`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardianConfig {
    /// The file of invariants, relative to the project, instead of the one with a usual name.
    pub invariants: Option<String>,
    /// Whether a write is halted when the chronicle contradicts one of its files.
    pub halts_touched: bool,
}

impl GuardianConfig {
    /// Returns the file of invariants of a project, relative to it: the one that is named, or that is there.
    pub(crate) fn file(&self, project: &Path) -> String {
        let usual = RulePurpose::Invariants.paths();
        let there = usual.iter().find(|name| project.join(name).symlink_metadata().is_ok()).or(usual.first());
        self.invariants.clone().or_else(|| there.map(|name| (*name).to_owned())).unwrap_or_default()
    }
}

pub(super) fn read_chronicle(mut chronicle: Fields<'_>) -> ChronicleConfig {
    let defaults = ChronicleConfig::default();
    let durabilities = [("batched", ChronicleDurability::Batched), ("event", ChronicleDurability::Event)];
    let layouts = [("tree", ChronicleLayout::Tree), ("beside", ChronicleLayout::Beside)];
    let config = ChronicleConfig {
        scope: chronicle.texts("scope"),
        layout: chronicle.choice("layout", &layouts).unwrap_or(defaults.layout),
        durability: chronicle.choice("durability", &durabilities).unwrap_or(defaults.durability),
        edits: chronicle.flag("edits").unwrap_or(defaults.edits),
    };
    chronicle.done();
    config
}

pub(super) fn read_graph(mut graph: Fields<'_>) -> GraphConfig {
    let defaults = GraphConfig::default();
    let size = |number: Option<u64>, default: usize| {
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
    };
    let config = GraphConfig {
        history: size(graph.number("history", (1, 1_000_000)), defaults.history),
        max_rows: size(graph.number("maxRows", (1, 100_000)), defaults.max_rows),
        timeout: graph.number("timeoutMs", (1, 600_000)).map_or(defaults.timeout, Duration::from_millis),
        url: graph.text("url").filter(|url| !url.is_empty()),
    };
    graph.done();
    config
}

pub(super) fn read_guardian(mut guardian: Fields<'_>) -> GuardianConfig {
    let defaults = GuardianConfig::default();
    let config = GuardianConfig {
        invariants: guardian.text("invariants").filter(|file| !file.is_empty()),
        halts_touched: guardian
            .choice("touchedFiles", &[("pass", false), ("halt", true)])
            .unwrap_or(defaults.halts_touched),
    };
    guardian.done();
    config
}
