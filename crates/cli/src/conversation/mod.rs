//! The conversation on the terminal: what shows a session as it goes, and what asks the person.
//!
//! [`follow`] shows the events of one session and puts its questions; [`approver`] makes the end that the kernel asks;
//! [`Interrupts`] turns signals into the wish to stop.

mod approval_prompt;
mod approval_view;
mod approver;
mod asked;
mod call_line;
mod details;
mod interrupts;
mod key;
mod keyboard;
mod layout;
mod live;
mod output;
mod pattern;
mod screen;
mod session_renderer;
mod summary;
mod test_line;

pub use approval_prompt::{Answer, Offer, interview, is_unanswered};
pub use approval_view::ApprovalView;
pub use approver::{ApprovalMode, Question, approver};
pub use asked::ApprovalQuestion;
pub use call_line::was_answered;
pub use interrupts::{InterruptState, Interrupts};
pub use key::key_arguments;
pub use keyboard::{Keyboard, TerminalKeyboard};
pub use output::{Output, StandardError, StandardOutput, TextStyle};
pub use session_renderer::follow;

/// How much is shown of each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// One line; failures with their place and the next step.
    #[default]
    Brief,
    /// Also arguments and results, shortened.
    Detailed,
    /// Also arguments and results, all of them.
    Everything,
}

impl Verbosity {
    /// By how often `-v` was given.
    pub fn from_count(count: u8) -> Self {
        match count {
            0 => Self::Brief,
            1 => Self::Detailed,
            _ => Self::Everything,
        }
    }
}

#[cfg(test)]
mod tests;
