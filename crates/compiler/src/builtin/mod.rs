//! The modules every project has without installing anything.

use crate::{Role, Unit};

/// The specifier and the id of the standard library.
pub(crate) const STANDARD: (&str, &str) = ("@tgp/std", "tgp:std");

/// The specifier and the id of what a configuration imports.
pub(crate) const CORE: (&str, &str) = ("@tgp/core", "tgp:core");

/// The engine's own module behind `require`; it has no source.
pub(crate) const REQUIRE: &str = "tgp:require";

/// The source of a built-in module.
pub(crate) fn unit(id: &str) -> Option<Unit> {
    let source = match id {
        "tgp:std" => include_str!("std.ts"),
        "tgp:core" => include_str!("core.ts"),
        _ => return None,
    };
    Some(Unit { id: id.to_owned(), source: source.to_owned(), role: Role::Library })
}
