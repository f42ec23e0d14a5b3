//! Sources that are made to do harm: too deep, too large, too many, exponential.

use std::fmt::Write as _;

use tgp_aql::{QueryProblems, compile, explain, format};

use crate::support::{QueryHost, compiled, rendered};

fn kinds(outcome: Result<tgp_aql::CompiledQuery, QueryProblems>) -> Vec<&'static str> {
    let mut kinds: Vec<&'static str> =
        outcome.unwrap_err().problems.iter().map(|problem| problem.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn depth_has_a_bound_whatever_is_nested() {
    let deep = 20_000;
    let cases = [
        format!("query X {{ a: merge(x: {}", "[".repeat(deep)),
        format!("query X {{ a: merge(x: {}1{})}}", "(".repeat(deep), ")".repeat(deep)),
        format!("query X {{ a: merge(x: {}1", "{a:".repeat(deep)),
        format!("query X {{ a: merge(x: a{}) }}", ".b".repeat(deep)),
        format!("query X {{ a: merge(x: a{}) }}", "[0]".repeat(deep / 2)),
        format!("query X {{ a: merge(x: 1{}) }}", " ?? 1".repeat(deep / 4)),
        format!("type T = {}", "[".repeat(deep)),
        format!("type T = {}", "{a:".repeat(deep)),
        format!("query X {{ {}", "a: when(true) {".repeat(deep / 10)),
        format!("query X {{ a: merge(x: {}", "\"{{".repeat(deep / 4)),
    ];
    for text in &cases {
        let found = kinds(compiled(text));
        assert!(
            found.iter().any(|kind| matches!(*kind, "too-deep" | "unclosed-hole" | "unclosed-text")),
            "{found:?} for {}",
            &text[..60]
        );
        assert!(format("main.aql", text).is_err());
    }
    // What is wide and not deep is not a problem.
    let wide = format!("query X {{ return [{}] }}", "1 == 1 and true, ".repeat(2_000));
    assert!(compiled(&wide).is_ok());
    let optional = format!("type T = String{}\nquery X($a: T) {{ }}", "?".repeat(deep));
    assert!(compiled(&optional).is_ok());
    let chain = format!("query X {{ return {}true }}", "true and ".repeat(5_000));
    assert!(compiled(&chain).is_ok());
}

#[test]
fn what_is_deep_and_within_the_bound_goes_all_the_way() {
    let depth = 60;
    let mut text = String::from("query X {\n");
    for at in 0..depth {
        writeln!(text, "m{at}: map(i{at} in [1, 2]) {{ n{at}: merge(x: i{at})").unwrap();
    }
    writeln!(text, "return {}i0{}", "[".repeat(50), "]".repeat(50)).unwrap();
    text.push_str(&"}\n".repeat(depth + 1));
    let plan = compiled(&text);
    // The last line is deeper than the bound: blocks and expressions count together.
    assert_eq!(kinds(plan), ["too-deep"]);
    let text = text.replace(&"[".repeat(50), "").replace(&"]".repeat(50), "");
    let compiled_maps = compiled(&text).unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    let explanation = explain(&compiled_maps.queries[0]);
    assert_eq!(explanation.steps.len(), depth * 2);
    assert_eq!(explanation.steps.last().unwrap().repeats.most, Some(1 << depth));
    crate::diagrams::check_mermaid(&explanation.mermaid());
    let formatted = format("main.aql", &text).unwrap();
    assert_eq!(format("main.aql", &formatted).unwrap(), formatted);
}

#[test]
fn sizes_have_bounds() {
    let large = "# ".repeat(200_000);
    assert_eq!(kinds(compiled(&large)), ["too-large"]);
    let steps: String = (0..1_001).fold(String::new(), |mut text, at| {
        writeln!(text, "s{at}: merge(x: 1)").unwrap();
        text
    });
    assert_eq!(kinds(compiled(&format!("query X {{\n{steps}}}"))), ["too-many-steps"]);
    let mut world = QueryHost::default();
    for at in 0..80 {
        world.sources.push((format!("f{at}.aql"), format!("import \"f{}.aql\"", at + 1)));
    }
    world.sources.push(("f80.aql".to_owned(), String::new()));
    assert_eq!(kinds(compile("main.aql", "import \"f0.aql\"", &world)), ["too-many-files"]);
}

#[test]
fn what_doubles_stays_small() {
    // Types that hold the one before twice.
    let mut types = String::from("type T0 { a: Int }\n");
    for at in 1..40 {
        writeln!(types, "type T{at} {{ a: T{0}, b: T{0} }}", at - 1).unwrap();
    }
    assert!(kinds(compiled(&types)).contains(&"too-large"));
    // Steps whose value holds the one before twice: the type becomes `Any`, and the plan stays.
    let mut steps = String::from("s0: merge(x: 1)\n");
    for at in 1..200 {
        writeln!(steps, "s{at}: merge(a: s{0}, b: s{0}, c: [s{0}, {{ d: s{0} }}])", at - 1).unwrap();
    }
    let plan = compiled(&format!("query X {{\n{steps}}}"))
        .unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    assert!(plan.queries[0].ty.to_string().len() < 50_000);
    // Steps whose value wraps the one before.
    let mut steps = String::from("s0: merge(x: 1)\n");
    for at in 1..1_000 {
        writeln!(steps, "s{at}: merge(a: s{})", at - 1).unwrap();
    }
    let plan = compiled(&format!("query X {{\n{steps}}}"))
        .unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    assert!(plan.queries[0].ty.to_string().matches('{').count() <= 64);
    // Queries that call the one before twice.
    let mut queries = String::from("query Q0 { a: tool(fs_read) { path: \"a\" } }\n");
    for at in 1..30 {
        writeln!(queries, "query Q{at} {{ a: query(Q{0}) b: query(Q{0}, after: a) }}", at - 1).unwrap();
    }
    let compiled_queries = compiled(&queries).unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    let explanation = explain(compiled_queries.queries.last().unwrap());
    assert_eq!(explanation.steps.len(), 2_000);
    assert_eq!(explanation.calls.most, Some(1_000));
    for at in 30..40 {
        writeln!(queries, "query Q{at} {{ a: query(Q{0}) }}", at - 1).unwrap();
    }
    assert_eq!(kinds(compiled(&queries)), ["too-deep"]);
}

#[test]
fn long_lines_and_many_references_are_quick_enough() {
    let names: String = (0..300).fold(String::new(), |mut text, at| {
        write!(text, "s{at}: tool(search_grep) {{ pattern: \"é{{{{s{}}}}}\" }} ", (at + 299) % 300).unwrap();
        text
    });
    // All of them in one circle, in one line.
    let problems = compiled(&format!("query X {{ {names} }}")).unwrap_err();
    assert_eq!(problems.problems[0].kind, "step-cycle");
    assert!(problems.problems[0].labels.len() <= 20);
    // Every reference copies a type of a thousand fields.
    let fields: String = (0..900).map(|at| format!("f{at}: Int ")).collect();
    let uses: String = (0..5_000).map(|_| "a,").collect();
    let text = format!("query X {{ a: agent() as {{ {fields} }} {{ prompt: \"x\" }} return [{uses}] }}");
    assert!(compiled(&text).is_ok());
}

#[test]
fn strange_letters_do_no_harm() {
    for text in [
        "\u{feff}query X { return 1 }",
        "query X {\r\n  return \"\"\"\r\n    a\r\n    b\r\n  \"\"\"\r\n}\r\n",
        "query X { return \"\u{202e}\u{0}\u{7f}\" }",
    ] {
        let plan = compiled(text).unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
        let formatted = format("main.aql", text).unwrap();
        assert_eq!(compiled(&formatted).unwrap().queries[0].ty, plan.queries[0].ty);
    }
    let problems = compiled("query \u{1b}[31m { }").unwrap_err();
    assert!(problems.problems.iter().all(|problem| !problem.message.contains('\u{1b}')));
    let quoted = format!("import \"\u{1b}[2J\u{202e}\\n{}\"", "x".repeat(100_000));
    let problems = compiled(&quoted).unwrap_err();
    let message = &problems.problems[0].message;
    assert!(message.contains("\\u{1b}[2J\\u{202e}\\u{a}") && message.len() < 1_000, "{message}");
    assert!(compiled("").unwrap().queries.is_empty());
    let odd = compile("../../x.aql", "import \"../y.aql\"\nquery X { }", &QueryHost::default());
    assert_eq!(kinds(odd), ["wrong-path"]);
}

#[test]
fn blocks_have_a_bound_through_queries_too() {
    let query = |name: &str, blocks: usize, inner: &str| {
        format!(
            "query {name} {{\n{} {inner} {}}}\n",
            "a: when(true) { ".repeat(blocks - 1),
            "}".repeat(blocks - 1)
        )
    };
    let inner = query("Inner", 30, "b: merge(x: 1)");
    let within = format!("{inner}{}", query("X", 34, "q: query(Inner)"));
    assert!(compiled(&within).is_ok());
    let beyond = format!("{inner}{}query Y {{ q: query(X) }}", query("X", 35, "q: query(Inner)"));
    let problems = compiled(&beyond).unwrap_err();
    let told: Vec<(&str, u32)> =
        problems.problems.iter().map(|problem| (problem.kind, problem.place.line)).collect();
    assert_eq!(told, [("too-deep", 4)], "{}", rendered(&problems));
}

#[test]
fn a12_types_made_of_types_are_resolved_once() {
    let types: String =
        (0..40).map(|at| format!("type T{at} {{ a: T{}, b: T{} }}\n", at + 1, at + 1)).collect();
    let text = format!("{types}type T40 = Int\nquery A {{ return 1 }}\n");
    let problems = compiled(&text).map(|_| ()).expect_err("they are too large together");
    assert!(
        problems.problems.iter().all(|problem| problem.kind == "too-large" || problem.kind == "too-deep")
    );
    assert!(problems.problems.len() < 40, "{}", rendered(&problems));
}
