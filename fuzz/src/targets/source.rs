//! Code of TypeScript and JavaScript, as the graph reads it.

use tgp_graph::SourceSummary;

use super::{ensure, same};
use crate::Target;
use crate::mutate::sentence;

pub(super) const TARGET: Target = Target {
    name: "source",
    about: "what is imported behind any code is seen, or the file counts as broken; positions and comments do not matter",
    oracle: check,
    dictionary: &[
        "import ",
        "import type ",
        "import * as a from ",
        "import(",
        "export ",
        "export * from ",
        "export default ",
        "export = ",
        "require(",
        "'./x'",
        "\"./x\"",
        "`./x`",
        "`${",
        "}`",
        "/`/",
        "/'/g",
        " / ",
        "interface A {\n",
        "<T>(a: T): T\n",
        "<T,>(a) => ",
        "type A = ",
        "class A {",
        "function f() {",
        "async ",
        "await ",
        "yield ",
        "abstract ",
        "declare ",
        "namespace A {",
        "accessor ",
        "using ",
        "satisfies ",
        "as ",
        "<a>",
        "</a>",
        "{/* ",
        " */}",
        "/* ",
        " */",
        "// ",
        "<!--",
        "-->",
        "#!",
        "@a ",
        "\\u0061",
        "\u{2028}",
        "\u{feff}",
        "=>",
        "?.",
        "??=",
        "...",
        "if (a) ",
        "else ",
        "for (;;) ",
        "a\n++b",
        ";",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "\n",
    ],
    generate: Some(|random| sentence(random, GRAMMAR, "file", DEPTH).into_bytes()),
    iterations: 3_000,
};

/// How deep generated code nests.
const DEPTH: u32 = 7;

/// Code most of which is valid.
const GRAMMAR: &[(&str, &[&str])] = &[
    ("file", &["a()\n", "<statement><file>", "<statement>", "<import><file>"]),
    (
        "import",
        &[
            "import './x'\n",
            "import a, { b as c, type d } from './x'\n",
            "import type * as a from './x'\n",
            "export type * from './x'\n",
            "export { a as 'b' } from './x'\n",
            "import a = require('./x')\n",
            "import defer * as a from './x'\n",
        ],
    ),
    (
        "statement",
        &[
            "a\n",
            "<value>\n",
            "const a = <value>\n",
            "let a: <type> = <value>\n",
            "if (<value>) <statement>",
            "for (const a of <value>) <statement>",
            "{ <statement> }\n",
            "interface A<T> {\n<member><member>}\n",
            "type A<T> = <type>\n",
            "declare function f<T>(a: <type>): <type>\n",
            "export function f(a: <type>) { return <value> }\n",
            "class A extends B { a = <value>; static { <statement> } f() { <statement> } }\n",
            "export enum A { b = 1, c }\n",
            "namespace A.B { <statement> }\n",
            "export default <value>\n",
            "/* a */ <statement>",
        ],
    ),
    ("member", &["<K extends string>(key: K): K\n", "a: <type>\n", "f(): <type>\n", "new <T>(a: T): T\n"]),
    (
        "type",
        &[
            "A",
            "A<<type>, B>",
            "{ a: <type> }",
            "() => <type>",
            "<type>[]",
            "typeof import('./x')",
            "A extends <type> ? B : <type>",
            "`a${<type>}`",
            "keyof <type>",
        ],
    ),
    (
        "value",
        &[
            "a",
            "<value> + <value>",
            "<value> / <value>",
            "(<value>)",
            "[<value>, <value>]",
            "({ a: <value>, b })",
            "`a${<value>}`",
            "/[`'\"]/g",
            "<value>.a",
            "<value>?.[<value>]",
            "f(<value>)",
            "f<A>(<value>)",
            "a < b, c > (d)",
            "(a) => <value>",
            "async <T,>(a: T) => <value>",
            "function () { <statement> }",
            "<value> as <type>",
            "<value> satisfies <type>",
            "a ? (b) : c => <value>",
            "import('./x')",
            "require('./x')",
            "!<value>",
            "await <value>",
        ],
    ),
];

const BEHIND: &str = "./behind-all-of-it";

fn check(input: &[u8]) -> Result<(), String> {
    for path in ["a.ts", "a.tsx", "a.js", "a.vue", "a.astro"] {
        let read = SourceSummary::read(path, input);
        ensure!(!read.unparsed || read.broken, "{path} was not read whole, and is not broken");
        same("read again", &SourceSummary::read(path, input), &read)?;
        if path.ends_with("ue") || path.ends_with("ro") {
            continue;
        }
        // One import more, behind a line of its own.
        let mut longer = input.to_vec();
        longer.extend_from_slice(format!("\n;import '{BEHIND}';\n").as_bytes());
        let behind = SourceSummary::read(path, &longer);
        let is_seen = behind.imports.iter().any(|specifier| specifier == BEHIND);
        ensure!(is_seen || behind.broken, "{path}: the import behind it is not seen: {behind:?}");
        if !read.broken && !behind.broken {
            let mut imports = read.imports.clone();
            imports.push(BEHIND.to_owned());
            same("other imports with one more behind", &behind.imports, &imports)?;
        }
    }
    Ok(())
}
