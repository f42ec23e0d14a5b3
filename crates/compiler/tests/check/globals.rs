//! The names that the checker takes for known are those that a tool finds: `tgp.d.ts` lists them for the type checker.

use std::path::Path;

use super::{findings, has_rule};

fn declarations() -> String {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel/src/scaffold/templates");
    let read = |name: &str| std::fs::read_to_string(templates.join(name)).unwrap();
    // What modules declare is imported, not global.
    let kernel = read("tgp.d.ts").split("declare module").next().unwrap().to_owned();
    kernel + &read("platform.d.ts")
}

fn name_of(text: &str) -> &str {
    text.split(|character: char| !(character.is_alphanumeric() || character == '_')).next().unwrap()
}

#[test]
fn every_declared_global_is_known() {
    let declarations = declarations();
    let kinds = ["declare const ", "declare let ", "declare function ", "declare class "];
    let names: Vec<&str> = declarations
        .lines()
        .filter_map(|line| kinds.iter().find_map(|kind| line.strip_prefix(kind)))
        .map(name_of)
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let source = format!("/** T. */\nexport default () => String({name});");
        assert!(
            !has_rule(&source, "unknown-global"),
            "`{name}` is declared in tgp.d.ts and unknown to the checker"
        );
    }
}

#[test]
fn every_declared_function_of_the_kernel_is_known() {
    let declarations = declarations();
    let body = declarations.split("declare const tgp: {").nth(1).unwrap().split("\n};").next().unwrap();
    let functions: Vec<&str> = body
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| {
            line.starts_with(|character: char| character.is_ascii_lowercase()) && line.contains('(')
        })
        .map(name_of)
        .collect();
    assert!(functions.contains(&"exec_sql") && functions.len() >= 7, "{functions:?}");
    for function in functions {
        let source = format!("/** T. */\nexport default async () => tgp.{function}('a');");
        assert!(
            !has_rule(&source, "unknown-global"),
            "`tgp.{function}` is in tgp.d.ts and unknown to the checker"
        );
    }
}

#[test]
fn a_misspelt_name_gets_a_suggestion_and_an_expected_one_a_hint() {
    let fix = |expression: &str| {
        let source = format!(
            "/** T. */\nexport default async (args: {{ total: number }}) => {{ const total = args.total; return [total, {expression}]; }};"
        );
        let found = findings(&source);
        let finding = found.iter().find(|finding| finding.rule == "unknown-global");
        finding.unwrap_or_else(|| panic!("no finding for {expression}: {found:?}")).fix.clone()
    };
    for (expression, suggestion) in [
        ("Maht.max(1)", "`Math`"),
        ("totl", "`total`"),
        ("consol.log(1)", "`console`"),
        ("setTimout(() => 1)", "`setTimeout`"),
        ("proces", "`process`"),
        ("tgp.readFile('a')", "`tgp.read_file`"),
        ("tgp.execSql('a')", "`tgp.exec_sql`"),
        ("groupBy([])", "@tgp/std"),
        ("axios.get('a')", "tgp.fetch"),
        ("db.query('a')", "tgp.exec_sql"),
        ("expect(1)", "@tgp/test"),
        ("somethingElseEntirely", "args.somethingElseEntirely"),
    ] {
        let fix = fix(expression);
        assert!(fix.contains(suggestion), "{expression}: {fix}");
    }
}

#[test]
fn what_the_platform_has_is_known() {
    for name in [
        "Blob",
        "Buffer",
        "File",
        "FormData",
        "Headers",
        "Intl",
        "ReadableStream",
        "Request",
        "Response",
        "TransformStream",
        "WritableStream",
        "crypto.subtle",
        "fetch",
        "setImmediate",
        "self.Math",
        "global.Math",
    ] {
        let source = format!("/** T. */\nexport default () => String({name});");
        assert_eq!(findings(&source), [], "{name}");
    }
}
