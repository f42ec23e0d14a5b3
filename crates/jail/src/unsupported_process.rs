//! Processes where there is no jail for them: none is started, and the reason is reported.

use std::convert::Infallible;
use std::path::Path;

use crate::{CommandExit, CommandSpec, JailError, LayerChange, ProcessSupport};

/// Starts nothing: there is no fallback without a jail.
pub fn start(_order: &CommandSpec) -> Result<JailedProcess, JailError> {
    Err(JailError::Lacks { missing: process_support().missing })
}

/// Starts nothing either.
pub fn start_with_listener(
    order: &CommandSpec,
    _port: u16,
) -> Result<(JailedProcess, std::net::TcpListener), JailError> {
    start(order).map(|process| match process.0 {})
}

/// Reports that processes cannot be run.
pub fn process_support() -> ProcessSupport {
    ProcessSupport {
        missing: vec!["The jail for processes needs Linux.".to_owned()],
        has_control_group: false,
    }
}

/// Whether the directory holds more than these bytes: no command has filled one here.
#[must_use]
pub fn exceeds(_directory: &Path, _limit: u64) -> bool {
    false
}

/// Removes a folder.
///
/// # Errors
/// When something in it cannot be removed.
pub fn remove_tree(folder: &Path) -> std::io::Result<()> {
    std::fs::remove_dir_all(folder)
}

/// A process that cannot exist here.
#[derive(Debug)]
pub struct JailedProcess(Infallible);

impl JailedProcess {
    /// Never called.
    #[must_use]
    pub fn killer(&self) -> KillHandle {
        match self.0 {}
    }

    /// Never called.
    pub fn wait(self) -> Result<CommandExit, JailError> {
        match self.0 {}
    }
}

/// Ends a process that cannot exist here.
#[derive(Clone, Debug)]
pub struct KillHandle(Infallible);

impl KillHandle {
    /// Never called.
    pub fn kill(&self) {
        match self.0 {}
    }
}

/// A layer that cannot exist here.
#[derive(Debug)]
pub struct OverlayLayer(Infallible);

impl OverlayLayer {
    /// Never called.
    #[must_use]
    pub fn project(&self) -> &Path {
        match self.0 {}
    }

    /// Never called.
    pub fn changes(&self, _limit: usize) -> Result<Vec<LayerChange>, JailError> {
        match self.0 {}
    }
}
