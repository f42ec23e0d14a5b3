//! The prelude: what a tool finds on its global object, written in JavaScript.
//!
//! The core runs in every worker before its run. What costs something to make is in parts below `prelude/lazy`, each
//! with bytecode of its own that is read when a tool first names one of its globals.

/// The core's files, in the order they depend on each other. They share one function scope.
const CORE: [&str; 9] = [
    include_str!("prelude/00_keep.js"),
    include_str!("prelude/20_random_and_clock.js"),
    include_str!("prelude/40_timers.js"),
    include_str!("prelude/45_races.js"),
    include_str!("prelude/60_modules.js"),
    include_str!("prelude/70_bridge.js"),
    include_str!("prelude/75_locale_methods.js"),
    include_str!("prelude/80_lazy.js"),
    include_str!("prelude/90_run.js"),
];

/// The parts that are loaded on demand, by the name the core asks for them.
const LAZY: [(&str, &[&str]); 11] = [
    ("blob", &[include_str!("prelude/lazy/blob.js")]),
    ("buffer", &[include_str!("prelude/lazy/buffer.js"), include_str!("prelude/lazy/buffer_numbers.js")]),
    (
        "console",
        &[
            include_str!("prelude/lazy/inspect.js"),
            include_str!("prelude/lazy/inspect_layout.js"),
            include_str!("prelude/lazy/console.js"),
        ],
    ),
    ("encoding", &[include_str!("prelude/lazy/encoding.js")]),
    ("events", &[include_str!("prelude/lazy/events.js")]),
    (
        "fetch",
        &[
            include_str!("prelude/lazy/headers.js"),
            include_str!("prelude/lazy/body.js"),
            include_str!("prelude/lazy/fetch.js"),
        ],
    ),
    (
        "intl",
        &[
            include_str!("prelude/lazy/intl_options.js"),
            include_str!("prelude/lazy/intl_formats.js"),
            include_str!("prelude/lazy/intl_object.js"),
        ],
    ),
    (
        "streams",
        &[include_str!("prelude/lazy/readable_stream.js"), include_str!("prelude/lazy/writable_stream.js")],
    ),
    ("structured_clone", &[include_str!("prelude/lazy/structured_clone.js")]),
    ("subtle", &[include_str!("prelude/lazy/crypto_keys.js"), include_str!("prelude/lazy/subtle.js")]),
    ("url", &[include_str!("prelude/lazy/url.js")]),
];

/// The name its frames carry in a stack; the kernel leaves them out of what people see.
pub(crate) const PRELUDE_ID: &str = "tgp:prelude";

/// The globals that every part finds as the engine made them, whatever the tool has done to them since.
const KEPT: &str = "AggregateError, Array, ArrayBuffer, BigInt, Boolean, DataView, Date, DOMException, Error, JSON, Map, Math, \
                    Number, Object, Promise, RangeError, Reflect, RegExp, Set, String, Symbol, TypeError, Uint8Array, WeakMap, \
                    WeakRef, WeakSet";

/// Begins the line that separates two parts in the source; the part's name follows.
const SEPARATOR: &str = "//# tgp-prelude-part ";
const CORE_NAME: &str = "core";

/// The sources of all parts, each behind a line with its name. The kernel caches bytecode by this text.
pub(crate) fn source() -> String {
    let mut text =
        format!("{SEPARATOR}{CORE_NAME}\n(function (host) {{ 'use strict';\n{}\n}})\n", CORE.join("\n"));
    for (name, files) in LAZY {
        // A part may run long after the tool has begun, so the globals it uses are those the core has kept.
        text.push_str(&format!(
            "{SEPARATOR}{name}\n(function (host, kit) {{ 'use strict';\nconst {{ {KEPT} }} = kit;\n\
             return (function () {{\n{}\n}})();\n}})\n",
            files.join("\n")
        ));
    }
    text
}

/// The parts of what [`source`] gives: name and script.
pub(in crate::worker) fn parts(source: &str) -> impl Iterator<Item = (&str, &str)> {
    source.split(SEPARATOR).filter_map(|part| part.split_once('\n'))
}

/// The bytecode of all parts.
pub(super) struct PreludeCode {
    parts: Vec<(&'static str, &'static [u8])>,
}

impl PreludeCode {
    /// Reads what the compile worker has made of [`source`]. The engine reads bytecode in place, and a worker lives for
    /// one run: the bytes may stay for good.
    pub(super) fn read(bytes: Vec<u8>) -> Option<Self> {
        let bytes: &'static [u8] = bytes.leak();
        postcard::from_bytes(bytes).ok().map(|parts| Self { parts })
    }

    pub(super) fn core(&self) -> Option<&'static [u8]> {
        self.part(CORE_NAME)
    }

    pub(super) fn part(&self, name: &str) -> Option<&'static [u8]> {
        self.parts.iter().find_map(|(known, bytecode)| (*known == name).then_some(*bytecode))
    }
}
