//! What a worker wants of an engine. The wire protocol is the same for every engine; a second one is a second
//! implementation of this.

use std::rc::Rc;

use super::host::Host;
use crate::protocol::{ModuleCode, RunOutcome, RunRequest};

pub(super) trait Engine {
    /// Loads and evaluates library modules ahead of the run. False when that left a mark no run should start with: a
    /// module failed, took too long, or left a rejected promise behind.
    fn warm_up(&self, host: &Host, libraries: Vec<ModuleCode>) -> bool;

    /// Frees what nothing refers to.
    fn collect_garbage(&self);

    /// Runs one program to its end. Limits are asked of `host` while it runs, and their marks decide the outcome.
    fn run(&self, host: &Rc<Host>, request: RunRequest) -> RunOutcome;
}
