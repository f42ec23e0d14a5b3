//! Programs for the kit, and runs of it that need no kernel.

use std::path::PathBuf;
use std::time::Duration;

use tgp_relay::{Against, Externals, Kit, KitOptions, PartKind, RelayReport};

/// Generous for one case; a test that waits for silence says less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A path in `relay/`.
pub(crate) fn place(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The command line of a Python program in `relay/`, which leaves no compiled copy behind.
pub(crate) fn python(program: &str, arguments: &str) -> String {
    format!("exec python3 -B '{}' {arguments}", place(program).display())
}

pub(crate) fn externals(part: PartKind, command: String) -> Externals {
    let mut externals = Externals::default();
    match part {
        PartKind::Llm => externals.llm = Some(command),
        PartKind::Tools => externals.tools = Some(command),
        PartKind::Chronicle => externals.chronicle = Some(command),
        PartKind::Graph => externals.graph = Some(command),
    }
    externals
}

/// Runs the kit against fakes.
pub(crate) async fn run(externals: Externals, suites: &[&str], timeout: Duration) -> RelayReport {
    let options = KitOptions {
        externals,
        suites: suites.iter().map(|suite| (*suite).to_owned()).collect(),
        against: Against::Fakes,
        timeout,
        ..KitOptions::new("/nowhere/tgp")
    };
    Kit::new(options).unwrap().run(|_| {}).await
}
