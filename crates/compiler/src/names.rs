//! Module names: which of them are nobody's package, and which the allow-list covers.

/// Modules that Node.js brings along. None of them exists in the sandbox.
const NODE_MODULES: [&str; 42] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "domain",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "repl",
    "stream",
    "string_decoder",
    "sys",
    "timers",
    "tls",
    "trace_events",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

/// True for modules of the host itself, with and without `node:`.
pub(crate) fn is_node_module(specifier: &str) -> bool {
    let name = specifier.split('/').next().unwrap_or(specifier);
    specifier.starts_with("node:") || NODE_MODULES.contains(&name)
}

/// Whether an entry of the allow-list covers a specifier: by whole segments, so that `zod` allows `zod/v4` and never
/// `zod-evil`.
pub(crate) fn is_listed(specifier: &str, entry: &str) -> bool {
    let entry = entry.trim_end_matches('/');
    !entry.is_empty()
        && specifier.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
