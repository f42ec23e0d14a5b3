//! Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 refused by a gate, 4 halted or integrity broken,
//! 130 interrupted, 143 ended by SIGTERM.

use tgp::contract::{Code, ToolError};

pub const DONE: u8 = 0;
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
const REFUSED: u8 = 3;
const HALTED: u8 = 4;
pub const INTERRUPTED: u8 = 130;
pub const TERMINATED: u8 = 143;

/// Why a command did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// To be shown.
    Error(Box<ShownError>),
    /// The command has printed all there is to say.
    Silent(Code),
    Interrupted,
    /// Interrupted, and the command has said so.
    Stopped,
}

/// An error, and the source it points into when the command has it.
#[derive(Debug)]
pub struct ShownError {
    pub error: ToolError,
    pub source: Option<String>,
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Error(Box::new(ShownError { error, source: None }))
    }
}

pub fn exit_code(failure: &Failure) -> u8 {
    match failure {
        Failure::Error(shown) => of(shown.error.code),
        Failure::Silent(code) => of(*code),
        Failure::Interrupted | Failure::Stopped => INTERRUPTED,
    }
}

fn of(code: Code) -> u8 {
    match code {
        Code::Validation | Code::Config | Code::Capability => USAGE,
        Code::State | Code::Policy | Code::Approval | Code::Permission | Code::Security | Code::Pin => {
            REFUSED
        }
        Code::Halt | Code::Integrity => HALTED,
        Code::Compile
        | Code::IsolateMemory
        | Code::IsolateTimeout
        | Code::Runtime
        | Code::NotFound
        | Code::Conflict
        | Code::Git
        | Code::Sql
        | Code::Fetch
        | Code::Upstream
        | Code::Provider
        | Code::Budget
        | Code::Internal => FAILED,
    }
}
