//! The globals that the engine has.

/// ECMAScript, the web globals of the sandbox, and what the kernel adds. Those that `names` forbids are not repeated.
pub(super) const GLOBALS: [&str; 118] = [
    "AbortController",
    "AbortSignal",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncDisposableStack",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Blob",
    "Boolean",
    "Buffer",
    "ByteLengthQueuingStrategy",
    "CompressionStream",
    "CountQueuingStrategy",
    "Crypto",
    "CryptoKey",
    "CustomEvent",
    "DOMException",
    "DataView",
    "Date",
    "DecompressionStream",
    "DisposableStack",
    "Error",
    "EvalError",
    "Event",
    "EventTarget",
    "File",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "FormData",
    "Headers",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "InternalError",
    "Intl",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReadableStream",
    "ReadableStreamDefaultController",
    "ReadableStreamDefaultReader",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Request",
    "Response",
    "Set",
    "String",
    "SubtleCrypto",
    "SuppressedError",
    "Symbol",
    "SyntaxError",
    "TextDecoder",
    "TextDecoderStream",
    "TextEncoder",
    "TextEncoderStream",
    "TransformStream",
    "TransformStreamDefaultController",
    "TypeError",
    "URIError",
    "URL",
    "URLSearchParams",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "WritableStream",
    "WritableStreamDefaultController",
    "WritableStreamDefaultWriter",
    "args",
    "arguments",
    "atob",
    "btoa",
    "clearImmediate",
    "clearInterval",
    "clearTimeout",
    "console",
    "crypto",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "exports",
    "fetch",
    "global",
    "globalThis",
    "isFinite",
    "isNaN",
    "module",
    "parseFloat",
    "parseInt",
    "performance",
    "queueMicrotask",
    "require",
    "self",
    "setImmediate",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "tgp",
    "undefined",
    "unescape",
];

/// What a tool can call on `tgp`, as `tgp.d.ts` of the kernel declares it; a test compares them.
pub(super) const KERNEL_FUNCTIONS: [&str; 8] =
    ["exec_sql", "exec_tool", "fetch", "list_files", "log", "query", "read_file", "write_file"];

/// Names that models expect, and where they are.
pub(super) fn hint(name: &str) -> Option<&'static str> {
    Some(match name {
        "chunk" | "groupBy" | "keyBy" | "countBy" | "uniq" | "partition" | "sortBy" | "zip" | "range"
        | "sum" | "mean" | "median" | "quantile" | "clamp" | "round" | "pick" | "omit" | "mapValues"
        | "deepEqual" | "slugify" | "words" | "capitalize" | "truncate" | "parseCsvRows" | "parseCsv"
        | "toCsv" => "Import it from the standard library: `import { … } from '@tgp/std'`.",
        "_" | "lodash" => {
            "Import what is needed from '@tgp/std' (`groupBy`, `uniq`, `chunk`, …), or use array methods."
        }
        "z" | "zod" => "Import it: `import { z } from 'zod'`, when `allowedImports` has zod.",
        "moment" | "dayjs" | "luxon" | "DateTime" => {
            "Use `Date` and `Intl.DateTimeFormat`, or import an allowed package such as date-fns."
        }
        "axios" | "got" | "request" | "superagent" | "$" | "jQuery" => "Use `await tgp.fetch(url, init)`.",
        "db" | "sql" | "sqlite" | "pool" | "knex" | "prisma" => "Use `await tgp.exec_sql('… ?', [value])`.",
        "fs" | "path" | "readFile" | "writeFile" | "readFileSync" | "writeFileSync" => {
            "Use `await tgp.read_file(path)` and `await tgp.write_file(path, text)`."
        }
        "test" | "it" | "describe" | "expect" | "beforeEach" | "afterEach" => {
            "In a test file import it: `import { expect, test } from '@tgp/test'`."
        }
        "jest" | "vi" => "Write tests with `import { expect, test } from '@tgp/test'`; there are no mocks.",
        "DOMParser" | "XMLSerializer" | "HTMLElement" | "Image" | "alert" | "location" | "history" => {
            "Return plain data; a browser is not there. Parse text with an allowed package."
        }
        "Temporal" => "Use `Date` with its `UTC` methods, or an allowed package such as date-fns.",
        "ctx" | "context" | "env" | "config" | "options" | "input" | "params" => {
            "Everything a tool gets is in its argument object: add it there, `args.name`."
        }
        _ => return None,
    })
}
