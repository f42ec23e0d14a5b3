//! What the corpus cannot show: roles, limits, places, and how a rule explains itself.

use tgp_compiler::{CheckOptions, MAX_SOURCE_BYTES, SourceRole, Unit, check};
use tgp_contract::Severity;

use super::{error_messages, findings, has_rule, options, tool};

#[test]
fn libraries_and_configurations_are_only_parsed() {
    let source = "let cache: any = process.env.HOME; export default { cache, limit: 42 };";
    for role in [SourceRole::Library, SourceRole::Config] {
        let unit = Unit { id: "npm:thing/index.ts".to_owned(), source: source.to_owned(), role };
        assert_eq!(check(&unit, &options()), []);
        let broken = Unit { source: "const = 1".to_owned(), ..unit };
        assert!(check(&broken, &options()).iter().all(|finding| finding.rule == "syntax"));
        assert!(!check(&broken, &options()).is_empty());
    }
}

#[test]
fn libraries_may_be_sloppy_javascript() {
    let unit = Unit {
        id: "npm:old/index.js".to_owned(),
        source: "with (x) { y = 010 } var let = 1; module.exports = function () { return this }".to_owned(),
        role: SourceRole::Library,
    };
    assert_eq!(check(&unit, &options()), []);
}

#[test]
fn a_source_that_is_too_large_is_refused_before_parsing() {
    let found = findings(&" ".repeat(MAX_SOURCE_BYTES + 1));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].rule, "syntax");
}

#[test]
fn columns_count_characters_and_lines_count_from_one() {
    let found = findings("/** Ä. */\nexport default () => ['äöü 🎉', process];");
    let finding = found.iter().find(|finding| finding.rule == "forbidden-global").unwrap();
    assert_eq!((finding.place.line, finding.place.column), (2, 32));
    assert_eq!(finding.place.file, "tools/sample/tool.ts");
}

#[test]
fn findings_are_sorted_and_unique() {
    let found = findings("export default (a) => { eval(a); process.exit(); return 42 }");
    assert!(found.is_sorted());
    let mut unique = found.clone();
    unique.dedup();
    assert_eq!(found, unique);
}

#[test]
fn a_flood_of_findings_is_cut_but_keeps_its_errors() {
    let source = format!("/** Flood. */\nexport default () => [{}process];", "1000 * 60, ".repeat(5000));
    let found = findings(&source);
    assert!(found.len() <= 400, "{}", found.len());
    assert!(found.iter().any(|finding| finding.message == "Global 'process' is forbidden"));
}

#[test]
fn the_fix_for_a_web_socket_names_fetch() {
    let found = findings("/** Opens. */\nexport default (args: { url: string }) => new WebSocket(args.url);");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "Global 'WebSocket' is forbidden");
    assert!(found[0].fix.contains("fetch"));
}

#[test]
fn allow_list_matches_on_segment_borders() {
    let with = |allowed: &str, specifier: &str| {
        let options = CheckOptions { allowed_imports: vec![allowed.to_owned()] };
        let source = format!("import x from '{specifier}';\n/** T. */\nexport default () => x;");
        !check(&tool(&source), &options).iter().any(|finding| finding.rule == "import-not-allowed")
    };
    assert!(with("zod", "zod"));
    assert!(with("zod", "zod/v4"));
    assert!(with("zod/", "zod/v4"));
    assert!(with("@scope/name", "@scope/name/deep/path"));
    assert!(with("zod/v4", "zod/v4/mini"));
    assert!(with("events", "events"), "a listed package may share its name with a Node.js module");
    assert!(!with("zod/v4", "zod"));
    assert!(!with("zod", "zod-evil"));
    assert!(!with("zod", "zo"));
    assert!(!with("zod", "zod/../evil"));
    assert!(!with("zod", "zod\\\\evil"));
    assert!(!with("@scope/name", "@scope/name-evil"));
    assert!(!with("@scope", "@scopeevil/x"));
    assert!(!with("", "anything"));
    assert!(!with("fs", "node:fs"));
}

#[test]
fn relative_imports_may_climb_inside_the_root_only() {
    let allowed = |id: &str, specifier: &str| {
        let unit = Unit {
            id: id.to_owned(),
            source: format!("import x from '{specifier}';\n/** T. */\nexport default () => x;"),
            role: SourceRole::Tool,
        };
        !check(&unit, &options()).iter().any(|finding| finding.rule == "import-not-allowed")
    };
    assert!(allowed("tools/a/b.ts", "../c"));
    assert!(allowed("tools/a/b.ts", "../../meta.json"));
    assert!(!allowed("tools/a/b.ts", "../../../outside"));
    assert!(!allowed("b.ts", "../outside"));
    assert!(!allowed("tools/b.ts", "./x/../../../outside"));
    assert!(allowed("tools/b.ts", "/lib/x.ts"));
    assert!(!allowed("tools/b.ts", "/lib/../x.ts"));
    assert!(!allowed("tools/b.ts", "/library/x.ts"));
}

#[test]
fn scripts_may_use_top_level_variables() {
    assert_eq!(
        error_messages("/** Sum. */\nlet n = 0;\nfor (const v of args.list) n += v;\nreturn n;"),
        Vec::<String>::new()
    );
    assert!(has_rule("/** Sum. */\nlet n = 0;\nexport default () => ++n;", "stateless"));
}

#[test]
fn severity_of_the_standards() {
    let severity = |source: &str, rule: &str| {
        findings(source).into_iter().find(|finding| finding.rule == rule).map(|finding| finding.severity)
    };
    assert_eq!(severity("export default (args: any) => args", "no-any"), Some(Severity::Error));
    assert_eq!(severity("export default () => 42", "magic-number"), Some(Severity::Error));
    assert_eq!(severity("export default () => 1000", "magic-number"), Some(Severity::Warning));
    assert_eq!(severity("export default () => 1", "missing-jsdoc"), Some(Severity::Warning));
    assert_eq!(severity("export default (a) => a", "typed-params"), Some(Severity::Error));
    assert_eq!(severity("export default () => {}", "must-return"), Some(Severity::Error));
}

#[test]
fn javascript_files_need_no_types() {
    let unit = Unit {
        id: "tools/old.js".to_owned(),
        source: "/** Adds. */\nmodule.exports = (args) => args.a + args.b;".to_owned(),
        role: SourceRole::Tool,
    };
    assert_eq!(check(&unit, &options()), []);
}

#[test]
fn hostile_source_is_checked_in_good_time() {
    // Each of these made a naive check quadratic or exponential.
    let references = format!(
        "/** T. */\nexport default (a: number) => {{ const x = a; return [{}]; }};",
        "x,".repeat(40_000)
    );
    let doubling: String =
        (1..40).map(|step| format!("const v{step} = v{} + v{};\n", step - 1, step - 1)).collect();
    let doubling = format!("const v0 = '';\n{doubling}/** T. */\nexport default (a: object[]) => a[v39];");
    let choices: String =
        (1..40).map(|step| format!("const v{step} = v{} || v{};\n", step - 1, step - 1)).collect();
    let choices = format!("const v0 = Math;\n{choices}/** T. */\nexport default () => v39.max(1);");
    let texts = format!("/** T. */\nexport default () => [{}];", "'a' + 'b',".repeat(10_000));
    let numbers = format!("/** T. */\nexport default () => [{}];", "12345,".repeat(40_000));
    let calls = format!("/** T. */\nexport default (f: () => void) => [{}];", "f(),".repeat(40_000));
    for source in [references, doubling, choices, texts, numbers, calls] {
        let start = std::time::Instant::now();
        let _ = findings(&source);
        let elapsed = start.elapsed();
        assert!(elapsed.as_secs() < 5, "{elapsed:?} for {}", &source[..60]);
    }
}

#[test]
fn a_byte_order_mark_moves_nothing() {
    let found = findings("\u{feff}process.exit()");
    let finding = found.iter().find(|finding| finding.rule == "forbidden-global").unwrap();
    assert_eq!((finding.place.line, finding.place.column), (1, 1));
}

#[test]
fn deep_nesting_is_refused_before_it_can_exhaust_the_stack() {
    for source in [
        "[".repeat(100_000),
        "(".repeat(100_000),
        "!".repeat(100_000),
        "a.".repeat(100_000),
        "1+".repeat(100_000),
    ] {
        let found = findings(&source);
        assert!(!found.is_empty() && found.iter().all(|finding| finding.rule == "syntax"));
    }
}
