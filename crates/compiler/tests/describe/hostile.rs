//! What holds for any source: no panic, valid schemas, bounded output, the same answer twice.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use tgp_compiler::describe;
use tgp_contract::{RelativePath, ToolMetadata};

use crate::{sources, tests, tool_path};

/// What the worker gives the compiler.
const STACK: usize = 256 * 1024 * 1024;

/// What takes longer than this, even on a busy machine, has no bound.
const ENDLESS: Duration = Duration::from_secs(20);

/// No metadata may be larger, whatever the source.
const MAX_BYTES: usize = 64 * 1024;

fn on_big_stack<Out: Send + 'static>(work: impl FnOnce() -> Out + Send + 'static) -> Out {
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap()
}

fn path() -> RelativePath {
    RelativePath::new("tools/sample.ts").unwrap()
}

/// Describes a source and checks what must hold of every answer.
fn described(source: &str) -> ToolMetadata {
    let metadata = describe(&path(), source);
    let shown = || source.chars().take(2_000).collect::<String>();
    if let Some(problem) = &metadata.problem {
        // A panic inside is caught and becomes a problem, so it must be looked for.
        assert!(!problem.contains("compiler failed"), "{}", shown());
        assert_eq!((&metadata.parameters, &metadata.result), (&json!(true), &json!(true)), "{}", shown());
        assert!(metadata.signature.is_empty() && metadata.identifiers.is_empty(), "{}", shown());
    }
    for schema in [&metadata.parameters, &metadata.result] {
        if let Err(error) = jsonschema::draft202012::new(schema) {
            panic!("{error}\n{schema}\n{}", shown());
        }
    }
    let size = serde_json::to_vec(&metadata).unwrap().len();
    assert!(size <= MAX_BYTES, "{size} bytes\n{}", shown());
    assert!(metadata.description.chars().count() <= 1_000 && metadata.signature.chars().count() <= 300);
    assert!(metadata.identifiers.len() <= 24);
    assert!(metadata.identifiers.iter().all(|name| (2..=40).contains(&name.chars().count())));
    assert!(metadata.imports.is_sorted_by(|one, other| one < other), "{:?}", metadata.imports);
    assert!(metadata.exports.is_sorted_by(|one, other| one < other), "{:?}", metadata.exports);
    assert!(!metadata.description.contains(['\n', '\r', '\t']) && !metadata.signature.contains(['\n', '\r']));
    metadata
}

fn corpus() -> Vec<String> {
    ["describe/golden", "check/corpus/ok", "check/corpus/err", "transpile/golden"]
        .iter()
        .flat_map(|folder| sources(&tests(folder)))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn the_corpus_of_tools_is_described_and_twice_the_same() {
    let corpus = corpus();
    assert!(corpus.len() >= 150, "{} sources", corpus.len());
    for source in corpus {
        assert_eq!(described(&source), described(&source));
    }
}

#[test]
fn good_tools_have_no_problem_and_say_what_they_take() {
    let mut described_parameters = 0;
    let good = sources(&tests("check/corpus/ok"));
    for path in &good {
        let metadata = describe(&tool_path(path), &std::fs::read_to_string(path).unwrap());
        assert_eq!(metadata.problem, None, "{}", path.display());
        described_parameters += usize::from(metadata.parameters != Value::Bool(true));
    }
    assert!(described_parameters * 3 >= good.len() * 2, "{described_parameters} of {}", good.len());
}

#[test]
fn truncated_sources_never_panic() {
    for source in corpus() {
        for end in (0..source.len()).step_by(11).filter(|&end| source.is_char_boundary(end)) {
            described(&source[..end]);
            described(&source[end..]);
        }
    }
}

#[test]
fn types_that_explode_are_bounded() {
    let chain = |count: usize, body: &dyn Fn(usize) -> String| -> String {
        (0..count).map(|at| format!("type T{at} = {};\n", body(at))).collect()
    };
    let tool = "export default (args: T0): T0 => args;\n";
    let keys = (0..40).map(|at| format!("'key{at}'")).collect::<Vec<_>>().join(" | ");
    let cases: Vec<(&str, String)> = vec![
        ("doubling", chain(40, &|at| format!("{{ one: T{0}; two: T{0} }}", at + 1))),
        ("records", chain(12, &|at| format!("Record<{keys}, T{}>", at + 1))),
        ("mapped", chain(12, &|at| format!("{{ [K in {keys}]: T{} }}", at + 1))),
        ("unions", chain(40, &|at| format!("T{0}[] | [T{0}, T{0}] | {{ a: T{0} }}", at + 1))),
        ("intersections", chain(40, &|at| format!("T{0} & {{ a{at}: T{0} }} & Partial<T{0}>", at + 1))),
        (
            "generics",
            "type T0 = G<G<G<G<G<G<G<string>>>>>>>;\ntype G<A> = { a: A; b: A; c: A; d: A };\n".into(),
        ),
        ("endless generics", "type T0 = G<string>;\ntype G<A> = { next: G<A[]>; self: G<G<A>> };\n".into()),
        ("endless aliases", "type T0 = T1;\ntype T1 = T0;\n".into()),
        ("endless heritage", "interface T0 extends T1 { a: T0 }\ninterface T1 extends T0 { b: T1 }\n".into()),
        ("endless defaults", "type T0<A = B, B = A> = { a: A; b: B };\n".into()),
        ("endless keys", "type T0 = { [K in keyof T0]: T0[K] } & Pick<T0, keyof T0>;\n".into()),
        (
            "many members",
            format!(
                "type T0 = {{ {} }};\n",
                (0..9_000).map(|at| format!("m{at}: string; ")).collect::<String>()
            ),
        ),
        (
            "many literals",
            format!("type T0 = {};\n", (0..1_900).map(|at| format!("| 'v{at}' ")).collect::<String>()),
        ),
        ("long literal", format!("type T0 = '{}';\n", "x".repeat(200_000))),
        (
            "many values",
            format!(
                "const LIST = [{}] as const;\ntype T0 = {{ a: (typeof LIST)[number]; b: (typeof LIST)[number] }};\n",
                "'v',".repeat(30_000)
            ),
        ),
        (
            "schemas of zod",
            format!(
                "{}type T0 = z.infer<typeof Z0>;\n",
                (0..60)
                    .rev()
                    .map(|at| format!("const Z{at} = z.object({{ a: Z{0}, b: Z{0} }});\n", at + 1))
                    .collect::<String>()
            ),
        ),
        ("nested arrays", format!("type T0 = {}string{};\n", "Array<".repeat(190), ">".repeat(190))),
        ("nested literals", format!("type T0 = {}string{};\n", "{ a: ".repeat(190), " }".repeat(190))),
    ];
    for (name, types) in cases {
        let source = format!("{types}{tool}");
        let started = Instant::now();
        let metadata = on_big_stack(move || described(&source));
        assert_eq!(metadata.problem, None, "{name}");
        assert!(metadata.signature.starts_with("(args: "), "{name}: {}", metadata.signature);
        assert!(started.elapsed() < ENDLESS, "{name} took {:?}", started.elapsed());
    }
}

#[test]
fn long_texts_and_lists_are_bounded() {
    let many = |count: usize, text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<String>();
    let cases: Vec<(&str, String)> = vec![
        ("a long comment", format!("/** {} */\nexport default () => 1;", "word ".repeat(40_000))),
        (
            "control characters",
            format!("/** {} */\nexport default () => 1;", "\u{1}\u{7f}\u{85}".repeat(5_000)),
        ),
        (
            "many tags",
            format!(
                "/**\n{} */\nexport default (args) => 1;",
                many(5_000, &|at| format!(" * @param {{{{ a: number }}}} args.p{at} text\n"))
            ),
        ),
        (
            "a tag of brackets",
            format!("/** @param {{{}}} args */\nexport default (args) => 1;", "[".repeat(1_900)),
        ),
        (
            "a tag of generics",
            format!("/** @returns {{{}}} */\nexport default (args) => 1;", "A<".repeat(900)),
        ),
        ("many imports", many(4_000, &|at| format!("import 'package-{at}-\\u0001\\u0001\\u0001\\u0001';\n"))),
        ("many exports", many(6_000, &|at| format!("export const exported_{at} = {at};\n"))),
        ("many reads", many(8_000, &|at| format!("args.name_{at};\n"))),
        (
            "many parameters",
            format!("export default ({}) => 1;", many(3_000, &|at| format!("name{at}: string,"))),
        ),
        ("many typedefs", many(1_500, &|at| format!("/** @typedef {{{{ a: T{at} }}}} T{at} */\nf();\n"))),
        ("long names", format!("export default (args: {{ {}: string }}) => 1;", "n".repeat(20_000))),
    ];
    for (name, source) in cases {
        let started = Instant::now();
        let metadata = on_big_stack(move || described(&source));
        assert_eq!(metadata.problem, None, "{name}");
        assert!(started.elapsed() < ENDLESS, "{name} took {:?}", started.elapsed());
    }
}

#[test]
fn what_cannot_be_read_has_a_problem() {
    let cases: Vec<(&str, String, &str)> = vec![
        ("unclosed", "export default function (args {".into(), "1:"),
        ("too large", " ".repeat(300 * 1024), "bytes"),
        ("too deep", "[".repeat(100_000), "nested"),
        ("too long", format!("1{}", "+1".repeat(50_000)), "tokens"),
        ("not TypeScript", "\u{0}\u{1}".into(), ":"),
    ];
    for (name, source, words) in cases {
        let metadata = on_big_stack(move || described(&source));
        let problem = metadata.problem.unwrap_or_else(|| panic!("{name} was read"));
        assert!(problem.contains(words), "{name}: {problem}");
        assert_eq!((metadata.name.as_str(), metadata.hash.len()), ("sample", 64));
    }
}

#[derive(Clone, Debug)]
enum Mutation {
    Remove { at: usize, length: usize },
    Insert { at: usize, text: &'static str },
    Repeat { at: usize, length: usize },
}

const SNIPPETS: [&str; 28] = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "|",
    "&",
    "?",
    ":",
    ";",
    ",",
    "/** @param {",
    "*/",
    "//",
    "`",
    "'",
    "\\",
    "...",
    " extends ",
    " keyof ",
    " typeof ",
    " in ",
    "export default ",
    "\u{2028}",
    "é😀",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<usize>();
    prop_oneof![
        (at, 1_usize..40).prop_map(|(at, length)| Mutation::Remove { at, length }),
        (at, proptest::sample::select(&SNIPPETS[..])).prop_map(|(at, text)| Mutation::Insert { at, text }),
        (at, 1_usize..60).prop_map(|(at, length)| Mutation::Repeat { at, length }),
    ]
}

fn mutated(source: &str, mutations: &[Mutation]) -> String {
    let mut characters: Vec<char> = source.chars().collect();
    for mutation in mutations {
        let place = |at: usize| at % (characters.len() + 1);
        match *mutation {
            Mutation::Remove { at, length } => {
                let at = place(at);
                characters.drain(at..characters.len().min(at + length));
            }
            Mutation::Insert { at, text } => {
                let at = place(at);
                characters.splice(at..at, text.chars());
            }
            Mutation::Repeat { at, length } => {
                let at = place(at);
                let copy = characters[at..characters.len().min(at + length)].to_vec();
                characters.splice(at..at, copy);
            }
        }
    }
    characters.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_sources_never_panic(
        source in proptest::sample::select(corpus()),
        mutations in proptest::collection::vec(mutation(), 1..6),
    ) {
        described(&mutated(&source, &mutations));
    }
}

#[test]
fn bug_a_template_with_a_line_break_was_in_a_signature() {
    let metadata = described("export default function tool(x: `a\nb` | 'c'): number {\n  return 1;\n}\n");
    assert!(metadata.signature.contains("`a\\nb`"), "{}", metadata.signature);
}
