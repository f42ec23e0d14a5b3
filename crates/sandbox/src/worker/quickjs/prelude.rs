//! The prelude: what a tool finds on its global object, written in JavaScript.

/// The prelude's parts, in the order they depend on each other. They share one function scope.
const PARTS: [&str; 10] = [
    include_str!("prelude/00_keep.js"),
    include_str!("prelude/10_inspect.js"),
    include_str!("prelude/20_random_and_clock.js"),
    include_str!("prelude/30_text_and_url.js"),
    include_str!("prelude/40_events_and_timers.js"),
    include_str!("prelude/50_structured_clone.js"),
    include_str!("prelude/55_intl.js"),
    include_str!("prelude/60_modules.js"),
    include_str!("prelude/70_bridge.js"),
    include_str!("prelude/90_run.js"),
];

/// The name its frames carry in a stack; the kernel leaves them out of what people see.
pub(crate) const PRELUDE_ID: &str = "tgp:prelude";

/// The source of a script whose value is `function (host) {…}`.
pub(crate) fn source() -> String {
    format!("(function (host) {{ 'use strict';\n{}\n}})", PARTS.join("\n"))
}
