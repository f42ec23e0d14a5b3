//! Platforms without any of this: processes still run, and the report says that nothing holds them.

#[path = "unsupported_process.rs"]
mod process;

use std::convert::Infallible;
use std::net::TcpListener;
use std::process::Command;

use crate::{JailError, LockReport, Profile, ResourceLimits};
pub use process::{
    JailedProcess, KillHandle, OverlayLayer, exceeds, process_support, remove_tree, start,
    start_with_listener,
};

pub(crate) fn is_root() -> bool {
    false
}

/// Locks nothing, and says so.
pub fn lock_this_process(_profile: &Profile) -> Result<LockReport, JailError> {
    Ok(probe())
}

/// Locks nothing.
#[derive(Debug)]
pub struct ChildLock;

impl ChildLock {
    pub fn prepare(_limits: &ResourceLimits) -> Result<Self, JailError> {
        Ok(Self)
    }

    pub fn apply(&mut self) -> Result<(), JailError> {
        Ok(())
    }
}

/// Hands the command back unchanged.
pub fn jailed_command(_profile: &Profile, command: Command) -> Result<Command, JailError> {
    Ok(command)
}

/// Never made: there are no network namespaces.
#[derive(Debug)]
pub struct JailListener(Infallible);

impl JailListener {
    pub fn receive(self) -> Result<TcpListener, JailError> {
        match self.0 {}
    }
}

/// Refuses: without a network of its own the command would have that of its caller.
pub fn jailed_command_with_listener(
    _profile: &Profile,
    _command: Command,
    _port: u16,
) -> Result<(Command, JailListener), JailError> {
    Err(JailError::Lacks { missing: vec!["This operating system has no network namespaces.".to_owned()] })
}

/// Reports that everything is missing.
pub fn probe() -> LockReport {
    LockReport {
        no_new_privileges: false,
        landlock_abi: None,
        seccomp: false,
        namespaces: Vec::new(),
        missing: ["no-new-privileges", "Landlock", "seccomp", "namespaces"]
            .iter()
            .map(|part| format!("This operating system has no {part}."))
            .collect(),
    }
}
