//! The sources of the prelude. The build script reads them, and nothing else does.

/// The core's files, in the order they depend on each other. They share one function scope.
const CORE: [&str; 9] = [
    include_str!("00_keep.js"),
    include_str!("20_random_and_clock.js"),
    include_str!("40_timers.js"),
    include_str!("45_races.js"),
    include_str!("60_modules.js"),
    include_str!("70_bridge.js"),
    include_str!("75_locale_methods.js"),
    include_str!("80_lazy.js"),
    include_str!("90_run.js"),
];

/// The parts that are loaded on demand, by the name the core asks for them.
const LAZY: [(&str, &[&str]); 11] = [
    ("blob", &[include_str!("lazy/blob.js")]),
    ("buffer", &[include_str!("lazy/buffer.js"), include_str!("lazy/buffer_numbers.js")]),
    (
        "console",
        &[
            include_str!("lazy/inspect.js"),
            include_str!("lazy/inspect_layout.js"),
            include_str!("lazy/console.js"),
        ],
    ),
    ("encoding", &[include_str!("lazy/encoding.js")]),
    ("events", &[include_str!("lazy/events.js")]),
    (
        "fetch",
        &[include_str!("lazy/headers.js"), include_str!("lazy/body.js"), include_str!("lazy/fetch.js")],
    ),
    (
        "intl",
        &[
            include_str!("lazy/intl_options.js"),
            include_str!("lazy/intl_formats.js"),
            include_str!("lazy/intl_object.js"),
        ],
    ),
    ("streams", &[include_str!("lazy/readable_stream.js"), include_str!("lazy/writable_stream.js")]),
    ("structured_clone", &[include_str!("lazy/structured_clone.js")]),
    ("subtle", &[include_str!("lazy/crypto_keys.js"), include_str!("lazy/subtle.js")]),
    ("url", &[include_str!("lazy/url.js")]),
];

/// The name that frames of the prelude carry in a stack; the kernel leaves them out of what people see.
pub(crate) const PRELUDE_NAME: &str = "tgp:prelude";

/// The globals that every part finds as the engine made them, whatever the tool has done to them since.
const KEPT: &str = "AggregateError, Array, ArrayBuffer, BigInt, Boolean, DataView, Date, DOMException, Error, JSON, Map, Math, \
                    Number, Object, Promise, RangeError, Reflect, RegExp, Set, String, Symbol, TypeError, Uint8Array, WeakMap, \
                    WeakRef, WeakSet";

/// All parts, each with its name and one script.
pub(crate) fn scripts() -> Vec<(&'static str, String)> {
    let core = format!("(function (host) {{ 'use strict';\n{}\n}})\n", CORE.join("\n"));
    // A part may run long after the tool has begun, so the globals it uses are those the core has kept.
    let lazy = LAZY.iter().map(|(name, files)| {
        let script = format!(
            "(function (host, kit) {{ 'use strict';\nconst {{ {KEPT} }} = kit;\nreturn (function () {{\n{}\n}})();\n}})\n",
            files.join("\n")
        );
        (*name, script)
    });
    std::iter::once(("core", core)).chain(lazy).collect()
}
