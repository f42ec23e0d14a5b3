//! `chronicle`, `graph` and `guardian`: what is known of the project, and what may not be broken.

use std::time::Duration;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChronicleConfig {
    /// Globs of the files that events may be written to, instead of the usual ones.
    pub scope: Option<Vec<String>>,
    pub durability: ChronicleDurability,
    /// Whether every change of a project file that the kernel makes becomes an event.
    pub edits: bool,
}

impl Default for ChronicleConfig {
    fn default() -> Self {
        Self { scope: None, durability: ChronicleDurability::default(), edits: true }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphConfig {
    /// Commits of the history that are read, the newest ones.
    pub history: usize,
    pub max_rows: usize,
    pub timeout: Duration,
    /// A server that speaks Bolt, instead of the embedded store.
    pub server: Option<GraphServer>,
}

impl Default for GraphConfig {
    fn default() -> Self {
        Self { history: 20_000, max_rows: 1_000, timeout: Duration::from_secs(5), server: None }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct GraphServer {
    pub url: String,
    pub user: String,
    pub password: String,
    pub database: Option<String>,
}

impl std::fmt::Debug for GraphServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GraphServer").field("user", &self.user).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardianConfig {
    /// The file of invariants, relative to the project.
    pub invariants: String,
    /// Whether a write is halted when the chronicle contradicts one of its files.
    pub halts_touched: bool,
}

impl Default for GuardianConfig {
    fn default() -> Self {
        Self { invariants: ".sage/invariants.yml".to_owned(), halts_touched: false }
    }
}

pub(super) fn read_chronicle(mut chronicle: Fields<'_>) -> ChronicleConfig {
    let defaults = ChronicleConfig::default();
    let durabilities = [("batched", ChronicleDurability::Batched), ("event", ChronicleDurability::Event)];
    let config = ChronicleConfig {
        scope: chronicle.texts("scope"),
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
    let mut config = GraphConfig {
        history: size(graph.number("history", (1, 1_000_000)), defaults.history),
        max_rows: size(graph.number("maxRows", (1, 100_000)), defaults.max_rows),
        timeout: graph.number("timeoutMs", (1, 600_000)).map_or(defaults.timeout, Duration::from_millis),
        server: None,
    };
    if let Some(server) = graph.section("server") {
        config.server = read_server(server);
    }
    graph.done();
    config
}

fn read_server(mut server: Fields<'_>) -> Option<GraphServer> {
    let url = server.text("url").filter(|url| !url.is_empty());
    if url.is_none() {
        server.problem("url", "is missing, such as 'bolt://localhost:7687'");
    }
    let found = url.map(|url| GraphServer {
        url,
        user: server.text("user").unwrap_or_default(),
        password: server.text("password").unwrap_or_default(),
        database: server.text("database").filter(|name| !name.is_empty()),
    });
    server.done();
    found
}

pub(super) fn read_guardian(mut guardian: Fields<'_>) -> GuardianConfig {
    let defaults = GuardianConfig::default();
    let config = GuardianConfig {
        invariants: guardian
            .text("invariants")
            .filter(|file| !file.is_empty())
            .unwrap_or(defaults.invariants),
        halts_touched: guardian
            .choice("touchedFiles", &[("pass", false), ("halt", true)])
            .unwrap_or(defaults.halts_touched),
    };
    guardian.done();
    config
}
