//! The deepest code that is read: each construct within the caps, and over them.

use tgp_graph::SourceSummary;
use tgp_text::max_depth;

/// A name, what is repeated before the middle, the middle, and what is repeated behind it.
type Construct = (&'static str, &'static str, &'static str, &'static str);

const CONSTRUCTS: &[Construct] = &[
    ("arrays", "[", "", "]"),
    ("parens", "(", "1", ")"),
    ("calls", "f(", "1", ")"),
    ("members", "a.", "a", ""),
    ("chains", "a?.", "a", ""),
    ("indexes", "a[", "1", "]"),
    ("not", "!", "1", ""),
    ("minus", "- ", "1", ""),
    ("typeof", "typeof ", "a", ""),
    ("new", "new ", "A", ""),
    ("assertions", "a", "!", "!"),
    ("sums", "1+", "1", ""),
    ("powers", "1**", "1", ""),
    ("strings", "'a'+", "'b'", ""),
    ("logic", "a&&", "b", ""),
    ("conditions", "a?b:", "c", ""),
    ("inner conditions", "a?", "b", ":c"),
    ("inner arrows", "a?(b)=>", "c", ":d"),
    ("assignments", "a=", "1", ""),
    ("arrows", "()=>", "1", ""),
    ("async arrows", "async()=>", "1", ""),
    ("default values", "(a=", "1", ")=>1"),
    ("parens with values", "(a=", "1", ")"),
    ("templates", "`${", "1", "}`"),
    ("tags", "", "a", "``"),
    ("objects", "({a:", "1", "})"),
    ("functions", "(function(){", "", "})"),
    ("classes", "(class{a=", "1", "})"),
    ("heritage", "(class extends ", "A", "{})"),
    ("blocks", "{", "", "}"),
    ("else", "if(a);else ", ";", ""),
    ("if", "if(a)", ";", ""),
    ("while", "while(a)", ";", ""),
    ("labels", "a:", ";", ""),
    ("elements", "<a>", "", "</a>"),
    ("attributes", "<a b=", "<a/>", "/>"),
    ("containers", "<a>{", "1", "}</a>"),
    ("type arguments", "let a:A<", "B", ">"),
    ("type arguments alone", "A<", "B", ">"),
    ("instantiations", "f<", "B", ">"),
    ("types", "type A=[", "1", "]"),
    ("arrays of types", "type A=B", "[]", "[]"),
    ("parens of types", "type A=(", "B", ")"),
    ("function types", "type A=()=>", "B", ""),
    ("conditional types", "type A=B extends C?D:", "E", ""),
    ("object types", "type A={a:", "B", "}"),
    ("operators of types", "type A=keyof ", "B", ""),
    ("templates of types", "type A=`${", "B", "}`"),
    ("generic arrows", "<T>(a=", "1", ")=>1"),
    ("casts", "<A>", "b", ""),
    ("as", "a", " as A", " as A"),
    ("namespaces", "namespace A{", "", "}"),
    ("patterns", "[", "a", "]=1"),
    ("await", "await ", "a", ""),
    ("yield", "yield ", "a", ""),
    ("decorators", "@a ", "class A{}", ""),
];

/// So many of a construct as open nearly a number of levels.
fn nested((_, before, middle, behind): &Construct, levels: usize) -> String {
    // What begins a declaration is there once.
    let is_declaration = before.starts_with("type ") || before.starts_with("let ");
    let head = if is_declaration { before.find(['=', ':']).map_or(0, |at| at + 1) } else { 0 };
    let (head, before) = before.split_at(head);
    let count = levels / max_depth(&format!("{before} {behind}")).max(1);
    format!("{head}{}{middle}{}", before.repeat(count), behind.repeat(count))
}

const PATHS: [&str; 3] = ["a.ts", "a.tsx", "a.js"];

#[test]
fn what_is_within_the_caps_is_read_and_what_is_over_them_is_not() {
    for construct in CONSTRUCTS {
        for path in PATHS {
            for levels in [40, 380] {
                let code = format!("import './before'\n{}\nimport './behind'\n", nested(construct, levels));
                let read = SourceSummary::read(path, code.as_bytes());
                assert!(
                    read.broken || read.imports == ["./before", "./behind"],
                    "{} {path} {levels}: {read:?}",
                    construct.0
                );
            }
        }
    }
    for (before, middle, behind) in [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{", "", "}"),
        ("`${", "1", "}`"),
        ("f(", "1", ")"),
        ("<a>{", "1", "}</a>"),
    ] {
        let code = format!("import './before'\n{}{middle}{}\n", before.repeat(500), behind.repeat(500));
        let read = SourceSummary::read("a.tsx", code.as_bytes());
        assert!(read.unparsed && read.broken && read.imports.is_empty(), "{before}: {read:?}");
    }
    for (before, behind) in [("!", "1"), ("a.", "a"), ("1+", "1"), ("typeof ", "a"), ("A<", "B")] {
        let code = format!("import './before'\n{}{behind}\n", before.repeat(45_000));
        assert!(SourceSummary::read("a.ts", code.as_bytes()).unparsed, "{before}");
    }
}

/// Parentheses with values take the parser time that grows with the square of their depth. A regular expression that the
/// scan takes for a division hides them from it.
#[test]
fn bug_hidden_depth_kept_a_thread_for_minutes() {
    // What is not nested is read, however much there is of it.
    let wide = format!("import './before'\n{}import './behind'\n", "f((a = 1));\n".repeat(10_000));
    let read = SourceSummary::read("a.ts", wide.as_bytes());
    assert!(!read.broken && read.imports == ["./before", "./behind"], "{read:?}");
    let code = nested(&("parens with values", "(a=", "1", ")"), 60_000);
    let hidden = format!("import './before'\n{{}}/`/; {code} ; /`/\nimport './behind'\n");
    let read = SourceSummary::read("a.ts", hidden.as_bytes());
    assert!(read.broken && read.unparsed && read.imports.is_empty(), "{read:?}");
}
