//! What holds for any source: tricks do not slip by, words do not trip, nothing panics.

use proptest::prelude::*;
use tgp_compiler::{SourceRole, Unit, check};
use tgp_contract::Finding;

use super::corpus::{folder, sources};
use super::{findings, options};

/// Ways to reach a forbidden global in an expression.
const ACCESSES: [&str; 16] = [
    "process",
    "process.env",
    "globalThis.process",
    "globalThis['process']",
    "globalThis['pro' + 'cess']",
    "globalThis[`process`]",
    "globalThis?.process",
    "Reflect.get(globalThis, 'process')",
    "(globalThis as unknown as { process: object }).process",
    "eval('1')",
    "(0, eval)('1')",
    "new Function('return 1')",
    "[].constructor.constructor('return 1')",
    "(() => 1)['constructor']('return 1')",
    "Object.getPrototypeOf(async () => 1).constructor",
    "importScripts('x')",
];

/// Harmless contexts for an expression; `§` is where it goes.
const EXPRESSION_CONTEXTS: [&str; 22] = [
    "(§)",
    "[§]",
    "{ key: § }.key",
    "(true ? § : 1)",
    "(false || §)",
    "(§ ?? 1)",
    "(1, §)",
    "(() => §)()",
    "(() => { return §; })()",
    "(function () { return §; })()",
    "(async () => await §)()",
    "(class { value = §; })",
    "(class { static { void (§); } })",
    "(class { get value() { return §; } })",
    "(class { [`${§}`] = 1; })",
    "({ method() { return §; } }).method()",
    "((value = §) => value)()",
    "`text ${§}`",
    "(§ as unknown)",
    "(§)!",
    "[...[§]]",
    "((text: string) => text)(String(§))",
];

/// Harmless contexts for a statement.
const STATEMENT_CONTEXTS: [&str; 14] = [
    "void (§);",
    "const x = §;",
    "{ { void (§); } }",
    "if (args) { void (§); } else { void 0; }",
    "for (const item of [1]) { void [item, §]; }",
    "while (!args) { void (§); }",
    "try { void (§); } catch { void 0; } finally { void 0; }",
    "switch (1) { default: void (§); }",
    "function inner() { return §; } inner();",
    "function inner(value = §) { return value; } inner();",
    "class Inner { run() { return §; } } new Inner().run();",
    "label: { void (§); break label; }",
    "const { a = § } = args;",
    "namespace Inner { export const value = §; }",
];

/// A panic inside is caught and becomes a finding, so it must be looked for.
fn survives(found: &[Finding]) {
    let broke = found.iter().any(|finding| finding.message.ends_with("failed on this source"));
    assert!(!broke, "{found:?}");
}

fn wrapped() -> impl Strategy<Value = String> {
    let access = proptest::sample::select(&ACCESSES[..]);
    let expressions = proptest::collection::vec(proptest::sample::select(&EXPRESSION_CONTEXTS[..]), 0..5);
    let statement = proptest::sample::select(&STATEMENT_CONTEXTS[..]);
    (access, expressions, statement).prop_map(|(access, expressions, statement)| {
        let expression = expressions.iter().fold(access.to_owned(), |inner, context| {
            // An object literal needs parentheses wherever it is put.
            let context = if context.starts_with('{') { format!("({context})") } else { (*context).to_owned() };
            context.replace('§', &inner)
        });
        let body = statement.replace('§', &expression);
        if body.starts_with("namespace") {
            format!("{body}\n/** T. */\nexport default (args: {{ a: number }}) => args.a;")
        } else {
            format!("/** T. */\nexport default function tool(args: {{ a: number }}) {{\n{body}\nreturn args.a;\n}}")
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn harmless_context_never_hides_a_forbidden_access(source in wrapped()) {
        let found = findings(&source);
        prop_assert!(!found.iter().any(|finding| finding.rule == "syntax"), "not valid: {source}\n{found:?}");
        prop_assert!(found.iter().any(|finding| finding.rule == "forbidden-global"), "hidden in: {source}");
    }

    #[test]
    fn words_in_comments_and_strings_never_trip(
        access in proptest::sample::select(&ACCESSES[..]),
        context in proptest::sample::select(&EXPRESSION_CONTEXTS[..]),
    ) {
        let words = context.replace('§', access);
        let quoted = words.replace('\\', "").replace('\'', "\"").replace('`', "");
        let source = format!(
            "// {words}\n/** T: {words} */\nexport default function tool(args: {{ a: number }}): unknown[] {{\n  /* {words} */\n  return [args.a, '{quoted}', `{}`];\n}}\n// {words}",
            quoted.replace("${", "$ {"),
        );
        let found = findings(&source);
        prop_assert!(found.is_empty(), "{source}\n{found:?}");
    }

    #[test]
    fn a_local_of_the_same_name_never_trips(
        name in proptest::sample::select(&["process", "fetch", "Buffer", "window", "self", "global", "Deno", "document"][..]),
        declaration in proptest::sample::select(&[
            "const § = args;",
            "let § = args;",
            "function §() { return args; }",
            "class § {}",
            "const { a: § } = args;",
            "const [§] = [args];",
            "import § from './other';",
            "import { x as § } from './other';",
            "enum § { A }",
        ][..]),
    ) {
        let declared = declaration.replace('§', name);
        let source = if declaration.starts_with("import") {
            format!("{declared}\n/** T. */\nexport default (args: {{ a: number }}) => [{name}, {name}.exit, args.a];")
        } else {
            format!("/** T. */\nexport default (args: {{ a: number }}) => {{ {declared} return [{name}, {name}.exit, args.a]; }};")
        };
        let found = findings(&source);
        prop_assert!(found.is_empty(), "{source}\n{found:?}");
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let source = String::from_utf8_lossy(&bytes).into_owned();
        survives(&findings(&source));
    }

    #[test]
    fn random_tokens_never_panic(tokens in proptest::collection::vec(proptest::sample::select(&TOKENS[..]), 0..60)) {
        let source = tokens.join(" ");
        for role in [SourceRole::Tool, SourceRole::Library, SourceRole::Config] {
            survives(&check(&Unit { id: "tools/x.ts".to_owned(), source: source.clone(), role }, &options()));
        }
    }
}

const TOKENS: [&str; 72] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ";",
    ",",
    ".",
    "?.",
    "...",
    "=>",
    "=",
    "==",
    "+",
    "-",
    "*",
    "/",
    "!",
    "?",
    ":",
    "`",
    "${",
    "'",
    "\"",
    "@",
    "#",
    "\\",
    "0",
    "1n",
    "0x",
    "1e999",
    "'a'",
    "/x/g",
    "`t`",
    "a",
    "b",
    "args",
    "process",
    "globalThis",
    "eval",
    "this",
    "constructor",
    "import",
    "export",
    "default",
    "from",
    "require",
    "const",
    "let",
    "var",
    "function",
    "class",
    "static",
    "async",
    "await",
    "yield",
    "return",
    "for",
    "of",
    "in",
    "while",
    "switch",
    "case",
    "enum",
    "namespace",
    "declare",
    "type",
    "as",
    "any",
];

#[test]
fn truncated_corpus_files_never_panic() {
    for path in sources(&folder("ok")).into_iter().chain(sources(&folder("err"))) {
        let source = std::fs::read_to_string(&path).unwrap();
        for end in (0..source.len()).step_by(7).filter(|&end| source.is_char_boundary(end)) {
            survives(&findings(&source[..end]));
            survives(&findings(&source[end..]));
        }
    }
}

#[test]
fn corpus_files_without_one_word_never_panic() {
    for path in sources(&folder("ok")).into_iter().chain(sources(&folder("err"))) {
        let source = std::fs::read_to_string(&path).unwrap();
        let words: Vec<&str> = source.split_inclusive([' ', '\n', '(', ')', '.', ',']).collect();
        for skipped in 0..words.len() {
            let rest: String =
                words.iter().enumerate().filter(|(at, _)| *at != skipped).map(|(_, word)| *word).collect();
            survives(&findings(&rest));
        }
    }
}
