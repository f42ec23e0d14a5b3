//! Undo: what the calls of a session have changed in the project, put back as it was.
//!
//! Before a call of a session changes files, their contents are stored in the folder of the session, so that they are removed
//! with it. `undo_session` writes them back through the router, where the gates judge it like any other write.

mod images;
mod other_effects;
mod plan;
mod tool;

pub(crate) use images::SessionImages;
pub use other_effects::OtherEffect;
pub(crate) use tool::undo_tool;
pub use tool::{UndoResult, UndoneFile, UnkeptFile};
