//! The vocabulary of test-driven work: how strictly it is enforced, and the state of a piece of work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $line:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[doc = $line])+ $variant,)+
        }

        impl $name {
            /// Every one, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The one that is written so.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

words! {
    /// How strictly code has to follow tests.
    TddMode {
        /// Code only after a test has failed; exempt files are free.
        Strict = "strict",
        /// Nothing is refused; runs and states are noted all the same.
        Explore = "explore",
        /// Code may be changed to look for a fault, but no new code file may be made.
        Debug = "debug",
    }
}

words! {
    /// Where a piece of work is between a test and its code.
    TddState {
        /// Nothing is under way.
        Idle = "idle",
        /// A test was written or changed, and has not been run.
        TestWritten = "test_written",
        /// A new or changed test has failed in a real run.
        Red = "red",
        /// Code was written for the failing test, and no run has seen it.
        CodeAllowed = "code_allowed",
        /// A run of the files as they are has passed.
        Green = "green",
        /// Code was changed while green, and no run has seen it.
        Refactor = "refactor",
        /// The work was declared finished while green.
        Done = "done",
        /// A person has stopped everything; no tool runs until they lift it.
        Halted = "halted",
    }
}
