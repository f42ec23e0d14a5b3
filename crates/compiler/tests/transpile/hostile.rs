//! Sources made to kill the compiler: each ends in an error or in code, and none in an abort.

use std::time::{Duration, Instant};

use tgp_compiler::{SourceRole, Unit, compile};

use crate::tool;

/// What the worker gives the compiler.
const STACK: usize = 256 * 1024 * 1024;

fn on_big_stack<Out: Send + 'static>(work: impl FnOnce() -> Out + Send + 'static) -> Out {
    std::thread::Builder::new().stack_size(STACK).spawn(work).unwrap().join().unwrap()
}

fn repeated(open: &str, middle: &str, close: &str, count: usize) -> String {
    [open.repeat(count), middle.to_owned(), close.repeat(count)].concat()
}

#[test]
fn runaway_sources_are_refused() {
    let cases: Vec<(&str, String)> = vec![
        ("brackets", "[".repeat(100_000)),
        ("closed brackets", repeated("[", "", "]", 100_000)),
        ("parentheses", repeated("(", "1", ")", 100_000)),
        ("blocks", repeated("{", "", "}", 100_000)),
        ("objects", format!("x = {}", repeated("{a:", "1", "}", 50_000))),
        ("not", format!("{}1", "!".repeat(100_000))),
        ("minus", format!("{}1", "- ".repeat(60_000))),
        ("typeof", format!("{}1", "typeof ".repeat(30_000))),
        ("await", format!("{}1", "await ".repeat(30_000))),
        ("new", format!("{}X", "new ".repeat(50_000))),
        ("arrows", format!("{}1", "a=>".repeat(60_000))),
        ("sum", format!("1{}", "+1".repeat(50_000))),
        ("powers", format!("1{}", "**1".repeat(50_000))),
        ("assignments", format!("{}1", "a=".repeat(100_000))),
        ("conditions", format!("{}1", "a?b:".repeat(50_000))),
        ("members", format!("a{}", ".b".repeat(100_000))),
        ("optional members", format!("a{}", "?.b".repeat(60_000))),
        ("members on lines", format!("a{}", "\n.b".repeat(60_000))),
        ("calls", format!("a{}", "()".repeat(100_000))),
        ("indices", format!("a{}", "[0]".repeat(60_000))),
        ("non-null", format!("a{}", "!".repeat(100_000))),
        ("casts", format!("a{}", " as b".repeat(40_000))),
        ("tagged templates", format!("a{}", "``".repeat(100_000))),
        ("templates", repeated("`${", "1", "}`", 50_000)),
        ("else if", format!("if(a){{}}{}", "else if(a){}".repeat(20_000))),
        ("if", format!("{};", "if(a)".repeat(40_000))),
        ("for", format!("{};", "for(;;)".repeat(30_000))),
        ("labels", format!("{};", "a:".repeat(100_000))),
        ("generics", format!("let a: {}", "A<".repeat(100_000))),
        ("comparisons", "a<".repeat(100_000)),
        ("array types", format!("let a: b{}", "[]".repeat(100_000))),
        ("keyof", format!("type A = {}B", "keyof ".repeat(40_000))),
        ("conditional types", format!("type A = {}B", "A extends B ? C : ".repeat(14_000))),
        ("function types", format!("type A = {}B", "() => ".repeat(40_000))),
        ("regular expression", format!("x = /{}/", repeated("(", "a", ")", 100_000))),
        ("character classes", format!("x = /{}/v", repeated("[", "a", "]", 100_000))),
        ("default parameters", "(a=".repeat(80_000)),
        ("async arrows", "async(a=".repeat(30_000)),
        ("classes", repeated("class A extends ", "B", "{}", 14_000)),
        ("functions", repeated("(function(){", "", "})", 18_000)),
        ("decorators", format!("{}class A {{}}", "@a ".repeat(80_000))),
        ("strings that look closed", format!("'\\'{}", "[".repeat(100_000))),
        ("not behind a block", format!("x = {{}}\n/{}1/ 1", "!".repeat(100_000))),
        ("not behind a name", format!("of = 1; of /{}1/ 1", "!".repeat(100_000))),
        ("typeof with odd blanks", format!("{}1", "typeof\u{a0}".repeat(30_000))),
        ("members of a number", format!("1.{}", ".b".repeat(100_000))),
        ("a comment that ends early", format!("//\u{2028}{}", "[".repeat(80_000))),
        ("generics with commas", format!("let a: {}", "A<B,".repeat(50_000))),
        ("keyof on lines", format!("type A = {}B", "keyof\n".repeat(40_000))),
        ("chains in brackets", format!("{}(", "!".repeat(1_000)).repeat(180)),
        ("generics in brackets", format!("let a: {}", format!("{}[", "A<B,".repeat(500)).repeat(100))),
        ("too large", " ".repeat(300 * 1024)),
        ("unterminated comment", format!("/*{}", "[".repeat(100_000))),
        ("after a hash bang", format!("#!x\n{}", "[".repeat(100_000))),
    ];
    for (name, source) in cases {
        let unit = tool(source);
        let started = Instant::now();
        let outcome = on_big_stack(move || compile(&unit));
        let error = outcome.err().unwrap_or_else(|| panic!("{name} was compiled"));
        assert_eq!(error.findings[0].rule, "syntax", "{name}");
        assert!(started.elapsed() < Duration::from_secs(2), "{name} took {:?}", started.elapsed());
    }
}

/// Nesting that the scan cannot see for what it is, or that stays just below the caps.
#[test]
fn allowed_nesting_fits_the_stack() {
    let tools: Vec<(&str, String)> = vec![
        ("brackets", repeated("[", "1", "]", 199)),
        ("parentheses", repeated("(", "1", ")", 199)),
        ("blocks", repeated("{", "", "}", 199)),
        ("functions", repeated("(function(){", "", "})", 99)),
        ("default parameters", format!("{}1{}", "(a=".repeat(99), ")=>1".repeat(99))),
        ("not", format!("{}1", "!".repeat(3_900))),
        ("arrows", format!("{}1", "a=>".repeat(1_200))),
        ("sum", format!("1{}", "+1".repeat(1_900))),
        ("members", format!("a{}", ".b".repeat(1_900))),
        ("calls", format!("a{}", "()".repeat(3_900))),
        ("conditions", format!("{}1", "a?b:".repeat(950))),
        ("if on lines", format!("{};", "if(a)\n".repeat(900))),
        ("else if", format!("if(a){{}}{}", "else if(a){}".repeat(900))),
        ("objects in lines", format!("x = [{}]", "{a: 1},\n".repeat(20_000))),
        ("statements", "let_(1)\n".repeat(20_000)),
        ("functions in a row", "function a(){}".repeat(15_000)),
        ("cases", format!("switch (a) {{ {} }}", "case 1:\n".repeat(20_000))),
        ("closed regular expressions", "x = /\\(/.test(a)\n".repeat(5_000)),
    ];
    for (name, source) in tools {
        let unit = tool(source);
        let started = Instant::now();
        let outcome = on_big_stack(move || compile(&unit));
        if let Err(error) = outcome {
            // What is not a valid program may say so; what is too deep may not be called too deep.
            assert!(!error.findings[0].reason.contains("stack"), "{name}: {:?}", error.findings[0]);
        }
        assert!(started.elapsed() < Duration::from_secs(5), "{name} took {:?}", started.elapsed());
    }
    let libraries: Vec<(&str, String)> = vec![
        ("brackets", repeated("[", "1", "]", 399)),
        ("not", format!("{}1", "!".repeat(39_000))),
        ("sum", format!("1{}", "+1".repeat(19_000))),
        ("members", format!("a{}", ".b".repeat(19_000))),
        ("calls", format!("a{}", "()".repeat(39_000))),
        ("arrows", format!("{}1", "a=>".repeat(13_000))),
        ("else if", format!("if(a){{}}{}", "else if(a){}".repeat(9_000))),
    ];
    for (name, source) in libraries {
        let unit = Unit { id: "npm:x/index.js".to_owned(), source, role: SourceRole::Library };
        on_big_stack(move || compile(&unit)).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
}

#[test]
fn odd_bytes_are_errors_or_code() {
    for source in [
        "\0",
        "\u{feff}",
        "\u{feff}\u{feff}",
        "\u{2028}",
        "'\u{2028}",
        "`",
        "${",
        "/",
        "/*",
        "//",
        "\\",
        "\\u{",
        "#",
        "#!",
        "@",
        "<",
        "</",
        "<!--",
        "'\\",
        "1n.",
        "0b",
        "😀",
        "\u{202e}a",
    ] {
        let _ = compile(&tool(source));
        let _ = compile(&Unit {
            id: "npm:x/y.js".to_owned(),
            source: source.to_owned(),
            role: SourceRole::Library,
        });
        let _ = compile(&Unit {
            id: "npm:x/y.json".to_owned(),
            source: source.to_owned(),
            role: SourceRole::Library,
        });
    }
}

#[test]
fn nested_json_is_an_error() {
    let unit = Unit { id: "npm:x/y.json".to_owned(), source: "[".repeat(100_000), role: SourceRole::Library };
    assert!(compile(&unit).is_err());
}
