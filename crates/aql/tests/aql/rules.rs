//! Rules of the language that are easier to say than to show.

use tgp_aql::{Field, Kind, QueryCatalogue, QueryType, Record, compile, format};
use tgp_contract::Code;

use crate::support::{QueryHost, compiled, rendered};

fn type_of(expression: &str) -> String {
    let text = format!(
        "type S = \"low\" | \"high\"\nquery X($s: String, $n: Int, $o: String?, $l: [Int], $c: S, $a: Any, $r: {{ a: Int, b: S? }}, $m: {{ a: Int, l: [Int]? }}?) {{ return {expression} }}"
    );
    compiled(&text).unwrap_or_else(|problems| panic!("{}", rendered(&problems))).queries[0].ty.to_string()
}

#[test]
fn expressions_have_the_types_one_expects() {
    for (expression, ty) in [
        ("1", "Int"),
        ("-1.5", "Float"),
        ("\"a\"", "\"a\""),
        ("\"{{$s}}\"", "String"),
        ("null", "null"),
        ("[1, 2.5]", "[Float]"),
        ("[1, \"a\", null]", "[(Int | \"a\")?]"),
        ("[]", "[Any]"),
        ("{ a: $s, \"b c\": $n }", "{ a: String, \"b c\": Int }"),
        ("$o ?? \"x\"", "String"),
        ("$o ?? null", "String?"),
        ("$o ?? 1", "String | Int"),
        ("null ?? $n", "Int"),
        ("$l[0]", "Int"),
        ("$r.a", "Int"),
        ("$r.b", "(\"high\" | \"low\")?"),
        ("$r[\"a\"]", "Int"),
        ("$r[$s]", "Any"),
        ("$a.x.y[0]", "Any"),
        // What null has inside is null.
        ("$m.a", "Int?"),
        ("$m.a ?? 0", "Int"),
        ("$m.l[0]", "Int?"),
        ("$m[\"a\"]", "Int?"),
        ("$m[$s]", "Any"),
        ("[$m.a ?? $m.l[1]]", "[Int?]"),
        ("$a ?? 1", "Any"),
        ("$n in $l or not $s == \"a\"", "Bool"),
        ("length($s)", "Int"),
        ("join($l, \", \")", "String"),
        ("contains($s, \"a\")", "Bool"),
        ("$c", "\"high\" | \"low\""),
        ("[$r, { a: 1, b: null }]", "[{ a: Int, b: (\"high\" | \"low\")? } | { a: Int, b: null }]"),
    ] {
        assert_eq!(type_of(expression), ty, "{expression}");
    }
}

#[test]
fn types_are_written_so_that_they_can_be_read_again() {
    for ty in [
        "String?",
        "[Int]",
        "{ a: Int, b?: Float }",
        "(\"a\" | \"b\")?",
        "[(String | Int)?]",
        "{}",
        "Any",
        "[{ a: { b: Bool? } }]",
        "{ \"a b\": Int, \"c\\n\\{\"?: Any }",
    ] {
        let read = |ty: &str| {
            compiled(&format!("query X($x: {ty}) {{ return 1 }}")).unwrap().queries[0].inputs[0].ty.clone()
        };
        let once = read(ty);
        assert_eq!(read(&once.to_string()), once, "{ty} became {once}");
    }
    let optional = Field { ty: QueryType::Int, optional: true };
    let record = Record { fields: [("a b".to_owned(), optional)].into(), open: true };
    assert_eq!(QueryType::Record(record).to_string(), "{ \"a b\"?: Int, … }");
}

#[test]
fn the_example_of_the_issue_compiles() {
    let text = "query X { step: agent(model: \"t\"){prompt:\"hi\"} final: merge(step) }";
    let compiled = compiled(text).unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    let plan = &compiled.queries[0];
    assert_eq!(plan.ty.to_string(), "{ final: String }");
    assert_eq!(plan.body.steps[1].needs, [0]);
    assert_eq!(compiled.sources[0].text, text);
}

#[test]
fn a_part_of_a_merge_may_have_the_name_of_an_option() {
    let text = "query X {
      a: tool(fs_read) { path: \"a\" }
      b: merge(on_error: a, default: a.b, retry: a.c, cache: \"x\", timeout: a, tools: a)
      c: tool(fs_read) { path: \"b\" }
      d: merge(x: 1, after: c)
    }";
    let compiled = compiled(text).unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    let steps = &compiled.queries[0].body.steps;
    assert_eq!((steps[1].needs.as_slice(), steps[3].needs.as_slice()), ([0].as_slice(), [2].as_slice()));
    let ty = "{ cache: \"x\", default: Any, on_error: Any, retry: Any, timeout: Any, tools: Any }";
    assert_eq!(steps[1].ty.to_string(), ty);
    // A step that others only wait for is still a result.
    assert!(compiled.queries[0].ty.to_string().contains("c: Any"));
}

#[test]
fn an_error_says_the_first_and_carries_all() {
    let problems = compiled("query X {\n  a: merge(x: b)\n  c: tool(fs_raed)\n}").unwrap_err();
    let error = problems.to_error();
    assert_eq!(error.code, Code::Validation);
    assert_eq!(error.message, "there is no step `b` here (and 1 more)");
    let place = error.place_of().unwrap();
    assert_eq!((place.file.as_str(), place.line, place.column), ("main.aql", 2, 15));
    let all = &error.details["problems"];
    assert_eq!(all[1]["kind"], "unknown-tool");
    assert_eq!(all[1]["help"], "did you mean `fs_read`?");
    assert_eq!(all[1]["place"]["line"], 3);
}

#[test]
fn imports_are_found_beside_the_file_that_imports() {
    let mut world = QueryHost::default();
    world
        .sources
        .push(("lib/a.aql".to_owned(), "import \"../other/b.aql\"\nquery A { q: query(B) }".to_owned()));
    world
        .sources
        .push(("other/b.aql".to_owned(), "type T { x: Int }\nquery B($t: T?) { return $t }".to_owned()));
    let text = "import \"./a.aql\"\nimport \"../other/./b.aql\"\nquery X($t: T) { a: query(A) b: query(B) { t: $t } }";
    let compiled =
        compile("lib/main.aql", text, &world).unwrap_or_else(|problems| panic!("{}", rendered(&problems)));
    let paths: Vec<&str> = compiled.sources.iter().map(|source| source.path.as_str()).collect();
    assert_eq!(paths, ["lib/main.aql", "lib/a.aql", "other/b.aql"]);
    assert_eq!(compiled.queries.len(), 1);
    assert_eq!(compiled.queries[0].ty.to_string(), "{ a: { q: { x: Int }? }, b: { x: Int }? }");
    let Kind::Query { query, .. } = &compiled.queries[0].body.steps[0].kind else { panic!("no query") };
    assert_eq!(query.name, "A");
}

#[test]
fn a_broken_import_of_a_formatted_file_does_not_matter() {
    let text = "import \"nowhere.aql\"\nquery X { a: query(Unknown) }\n";
    assert_eq!(
        format("main.aql", text).unwrap(),
        "import \"nowhere.aql\"\n\nquery X {\n  a: query(Unknown)\n}\n"
    );
    assert!(QueryHost::default().source("nowhere.aql").is_err());
}

#[test]
fn long_texts_lose_their_common_indentation_and_nothing_else() {
    for (written, said) in [
        ("\"\"\"\n    a\n      b\n\n    c\n  \"\"\"", "a\n  b\n\nc"),
        ("\"\"\"a\n    b\n   c\"\"\"", "a\n b\nc"),
        ("\"\"\"\n\ta\n\t\tb\n\"\"\"", "a\n\tb"),
        ("\"\"\"\n    a\\n  b\n    \\u{41}\\{{x}}\\\"\n    \"\"\"", "a\n  b\nA{{x}}\""),
        ("\"\"\"\"\"\"", ""),
        ("\"\"\"\n\"\"\"", ""),
        ("\"\"\"\n\n  a\n\n\"\"\"", "\na\n"),
        ("\"\"\" a \"b\" \"\"\"", " a \"b\" "),
        // Lines of nothing but blanks are empty, wherever they are.
        ("\"\"\"\n    a\n          \n    \"\"\"", "a\n"),
        ("\"\"\"\n        \n    a\n \t \r\n      b\n  \"\"\"", "\na\n\n  b"),
        ("\"\"\"\n     \n\"\"\"", ""),
        ("\"\"\"a\r\r\n     \r\n  b\"\"\"", "a\n\nb"),
        ("\"{ } }} \\{{\"", "{ } }} {{"),
    ] {
        let compiled = compiled(&format!("query X {{ return {{ t: {written} }} }}"));
        let compiled = compiled.unwrap_or_else(|problems| panic!("{written}\n{}", rendered(&problems)));
        let tgp_aql::ExpressionForm::Value(value) = &compiled.queries[0].body.value.form else {
            panic!("{written}")
        };
        assert_eq!(value["t"], said, "{written}");
    }
}

#[test]
fn one_letter_that_is_missing_is_told_and_nothing_that_follows_from_it() {
    let text = "type T { a: Int }
query A($path: String, $list: [T]) budget(calls: 5) {
  file: tool(fs_read, retry: 1) as { text: String } { path: $path }
  each: map(item in $list, concurrency: 2) {
    one: tool(search_grep) { pattern: \"{{item.a}}\", paths: [file.text] }
    return { one: one, a: item.a }
  }
  which: when(length(each) > 1) { last: merge(each[0].a) } else { last: merge(each, file) }
  all: merge(which.last, file.text, each)
  return { all: all, path: $path }
}
query B { a: query(A) { path: \"x\", list: [] } return a.path }";
    assert!(compiled(text).is_ok());
    let mut broken = 0;
    for (at, letter) in text.char_indices().filter(|(_, letter)| !letter.is_whitespace()) {
        let source = format!("{}{}", &text[..at], &text[at + letter.len_utf8()..]);
        let Err(syntax) = format("main.aql", &source) else { continue };
        let all = compiled(&source).unwrap_err();
        assert_eq!(rendered(&all), rendered(&syntax), "{source}");
        broken += 1;
    }
    assert!(broken > 100, "{broken}");
}
