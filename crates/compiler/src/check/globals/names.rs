//! The globals a tool must not touch, and what to do instead.

/// Names under which engines keep their global object.
pub(super) const GLOBAL_OBJECTS: [&str; 4] = ["globalThis", "global", "self", "window"];

/// What to write instead of a forbidden global; `None` when the global is fine.
pub(super) fn remedy(name: &str) -> Option<&'static str> {
    Some(match name {
        "process" => {
            "Take the value as an argument and return a result; a tool has no process, environment or exit."
        }
        "eval" | "Function" => {
            "Write the logic as TypeScript; text never becomes code. Choose between functions with a lookup table."
        }
        "XMLHttpRequest" | "WebSocket" | "EventSource" => "Use `fetch`; it is the only way to the network.",
        "__dirname" | "__filename" => "Take the path as an argument, or use `/lib` and `/tmp`.",
        "Deno" | "Bun" => "Use `tgp.read_file`, `tgp.write_file`, `tgp.exec_sql` and `tgp.fetch`.",
        "Worker" | "SharedWorker" | "SharedArrayBuffer" | "Atomics" | "BroadcastChannel" => {
            "Do the work in the tool itself, or call other tools with `tgp.exec_tool`; a run has one thread."
        }
        "WebAssembly" => "Write the logic as TypeScript; native code cannot be checked.",
        "importScripts" => "Use `import` or `require` with a literal path.",
        "document" | "window" | "navigator" | "localStorage" | "sessionStorage" | "indexedDB" => {
            "Return plain data; there is no browser around a tool."
        }
        _ => return None,
    })
}
