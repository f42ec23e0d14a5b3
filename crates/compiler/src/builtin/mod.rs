//! The modules every project has without installing anything.

use crate::{SourceRole, Unit};

/// The id of the standard library.
pub const STANDARD_LIBRARY: &str = "tgp:std";

/// The specifier and the id of the standard library.
pub(crate) const STANDARD: (&str, &str) = ("@tgp/std", STANDARD_LIBRARY);

/// The specifier and the id of what a configuration imports.
pub(crate) const CORE: (&str, &str) = ("@tgp/core", "tgp:core");

/// The specifier and the id of what test files import.
pub(crate) const TEST: (&str, &str) = ("@tgp/test", "tgp:test");

/// The id of the module that runs a test file's tests. No specifier names it.
pub(crate) const TEST_MAIN: &str = "test:main";

/// How [`TEST_MAIN`] names the test file.
const TEST_FILE: &str = "./file.test.ts";

/// How the name of a test file ends.
const TEST_ENDING: &str = ".test.ts";

/// How the name of a tool ends.
const TOOL_ENDINGS: [&str; 8] = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs"];

/// Whether a file of the tool root holds tests: it is not a tool itself, and may import `@tgp/test`.
#[must_use]
pub fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.len() > TEST_ENDING.len() && name.ends_with(TEST_ENDING)
}

/// The tools that a test file may stand beside, the usual one first: `tools/fib.ts` for `tools/fib.test.ts`.
pub fn tested_files(path: &str) -> impl Iterator<Item = String> {
    let stem = path.strip_suffix(TEST_ENDING).filter(|_| is_test_file(path));
    stem.into_iter().flat_map(|stem| TOOL_ENDINGS.iter().map(move |ending| format!("{stem}{ending}")))
}

/// The test file that stands beside a tool: `tools/fib.test.ts` for `tools/fib.ts` and for `tools/fib.js`.
#[must_use]
pub fn test_file(path: &str) -> Option<String> {
    let stem = TOOL_ENDINGS.iter().find_map(|ending| path.strip_suffix(ending));
    let stem = stem.filter(|_| !is_test_file(path))?;
    Some(format!("{stem}{TEST_ENDING}"))
}

/// The module that loads a test file and runs its tests.
pub(crate) fn test_main() -> Unit {
    let source = format!("import '{TEST_FILE}';\nexport {{ run as default }} from '{}';\n", TEST.0);
    Unit { id: TEST_MAIN.to_owned(), source, role: SourceRole::Library }
}

/// The engine's own module behind `require`; it has no source.
pub(crate) const REQUIRE: &str = "tgp:require";

/// The engine's own module with the natives of the standard library; it has no source. Only built-in modules may name it.
pub(crate) const CSV: &str = "tgp:csv";

/// The engine's own module behind the modules of other programs; it has no source, and only they may name it.
pub(crate) const FOREIGN: &str = "tgp:foreign";

/// How the specifier of the module of an upstream server begins.
pub const UPSTREAM_SCHEME: &str = "mcp:";

/// How the specifier of a module of the embedding program begins.
pub const HOST_SCHEME: &str = "host:";

/// Whether a specifier names a module of another program.
#[must_use]
pub fn is_foreign(specifier: &str) -> bool {
    foreign_name(specifier).is_some()
}

/// The rest of the specifier of a module of another program: the name of the server, or of the module of the host.
pub(crate) fn foreign_name(specifier: &str) -> Option<&str> {
    specifier.strip_prefix(UPSTREAM_SCHEME).or_else(|| specifier.strip_prefix(HOST_SCHEME))
}

/// The source of a built-in module.
pub(crate) fn unit(id: &str) -> Option<Unit> {
    let source = match id {
        "tgp:std" => include_str!("std.ts"),
        "tgp:core" => include_str!("core.ts"),
        "tgp:test" => include_str!("test.ts"),
        _ => return None,
    };
    Some(Unit { id: id.to_owned(), source: source.to_owned(), role: SourceRole::Library })
}
