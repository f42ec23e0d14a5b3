//! The stable error codes, listed once.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)+) => {
        /// A stable error code. Programs match on it; people read the message beside it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Code {
            $($(#[doc = $doc])+ #[serde(rename = $text)] $variant,)+
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The code as it is on every wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)+ }
            }

            /// One sentence for the documentation and for `--help`.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc,)+).trim_ascii_start(),)+ }
            }
        }
    };
}

codes! {
    /// The arguments do not fit the tool's schema or its declared types; nothing ran.
    Validation = "EVALIDATION",
    /// The TDD state does not allow this tool now.
    State = "ESTATE",
    /// A policy rule or a token's scope forbids the call.
    Policy = "EPOLICY",
    /// The call needs an approval that was not given.
    Approval = "EAPPROVAL",
    /// The actor may not touch this resource.
    Permission = "EPERMISSION",
    /// An invariant is broken; work stops until a person looks.
    Halt = "EHALT",
    /// The call tried to leave its jail.
    Security = "ESECURITY",
    /// This machine or host lacks what the call needs.
    Capability = "ECAPABILITY",
    /// The source does not compile, or no caller of a tool can call its function; nothing was written or ran.
    Compile = "ECOMPILE",
    /// The tool used more memory than its cap.
    IsolateMemory = "ERR_ISOLATE_MEMORY",
    /// The tool used more CPU time or wall-clock time than its cap.
    IsolateTimeout = "ERR_ISOLATE_TIMEOUT",
    /// The tool threw, or did something its run does not allow.
    Runtime = "ERUNTIME",
    /// A file, tool or name does not exist.
    NotFound = "ENOTFOUND",
    /// Two changes contradict each other.
    Conflict = "ECONFLICT",
    /// Git refused or failed.
    Git = "EGIT",
    /// The database refused or failed.
    Sql = "ESQL",
    /// A request over the network was refused or failed.
    Fetch = "EFETCH",
    /// An upstream server failed, or says that a call did.
    Upstream = "EUPSTREAM",
    /// An upstream server describes a tool differently from what a person has seen; nothing was called.
    Pin = "EPIN",
    /// The model provider refused or failed.
    Provider = "EPROVIDER",
    /// A budget of steps, tokens, time or money is used up.
    Budget = "EBUDGET",
    /// A record does not match its hash.
    Integrity = "EINTEGRITY",
    /// The configuration is wrong.
    Config = "ECONFIG",
    /// A fault of the kernel itself.
    Internal = "EINTERNAL",
}

impl JsonSchema for Code {
    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all: Vec<&str> = Self::ALL.iter().map(|code| code.as_str()).collect();
        json_schema!({ "enum": all })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
