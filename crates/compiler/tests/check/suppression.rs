//! `tgp-allow` comments: what they cover, what they must say, and what they can never silence.

use tgp_contract::Severity;

use super::findings;

fn rules(source: &str) -> Vec<String> {
    findings(source).into_iter().map(|finding| finding.rule).collect()
}

fn price(body: &str) -> String {
    format!("/** A price. */\nexport default function price(args: {{ net: number }}): number {{\n{body}\n}}")
}

#[test]
fn a_reason_allows_a_warning_on_the_line_and_in_the_statement_below() {
    assert_eq!(rules(&price("  return args.net * 1.19;")), ["magic-number"]);
    let allowed = [
        "  return args.net * 1.19; // tgp-allow magic-number: one rate by law",
        "  // tgp-allow magic-number: one rate by law\n  return args.net * 1.19;",
        "  /* tgp-allow magic-number: one rate by law */\n  return args.net * 1.19;",
        "  // tgp-allow magic-number: one rate by law\n\n  // and a remark\n  return args.net * 1.19;",
        "  // tgp-allow magic-number: one rate by law\n  return (\n    args.net *\n    1.19\n  );",
        "  // tgp-allow prefer-hof, magic-number: a sum with a rate\n  let sum = 0; for (const n of [args.net]) sum += n * 1.19;\n  return sum;",
    ];
    for body in allowed {
        assert_eq!(rules(&price(body)), Vec::<String>::new(), "{body}");
    }
}

#[test]
fn a_comment_covers_nothing_else() {
    let body = "  // tgp-allow magic-number: one rate by law\n  const gross = args.net * 1.19;\n  return gross * 3.75;";
    assert_eq!(rules(&price(body)), ["magic-number"]);
    let body = "  // tgp-allow magic-number: one rate by law\n  if (args.net > 1) {\n    return args.net * 1.19;\n  }\n  return 1;";
    assert_eq!(rules(&price(body)), ["suppression", "magic-number"]);
}

#[test]
fn a_comment_without_a_reason_is_ignored_and_reported() {
    for comment in ["tgp-allow magic-number", "tgp-allow magic-number:", "tgp-allow magic-number :  "] {
        let found = findings(&price(&format!("  // {comment}\n  return args.net * 1.19;")));
        let rules: Vec<&str> = found.iter().map(|finding| finding.rule.as_str()).collect();
        assert_eq!(rules, ["suppression", "magic-number"], "{comment}");
        assert!(found[0].message.contains("has no reason"), "{found:?}");
        assert_eq!(found[0].severity, Severity::Warning);
    }
    assert_eq!(rules(&price("  // tgp-allow\n  return args.net;")), ["suppression"]);
}

#[test]
fn a_comment_that_allows_nothing_is_reported() {
    let source = price("  // tgp-allow magic-number: left over\n  return args.net;");
    let found = findings(&source);
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("allows nothing here"), "{found:?}");
    assert_eq!(rules(&price("  // tgp-allowed by nobody\n  return args.net;")), Vec::<String>::new());
}

#[test]
fn an_error_is_never_silenced() {
    let cases = [
        ("forbidden-global", "  return process.pid;"),
        ("hardcoded-value", "  return 'ghp_abcdEFGH1234abcdEFGH1234abcdEFGH1234'.length;"),
        ("hardcoded-value", "  return 'anna@acme-corp.de'.length;"),
        ("dynamic-import", "  return import(args.net);"),
        ("no-any", "  return args.net as any;"),
        ("sql-template", "  return tgp.exec_sql(`SELECT * FROM t WHERE a = '${args.net}'`);"),
        ("unknown-global", "  return unheardOf;"),
        ("unsupported-intl", "  return new Intl.DurationFormat().format({}).length;"),
        ("forbidden-syntax", "  debugger;"),
    ];
    for (rule, line) in cases {
        let source =
            price(&format!("  // tgp-allow {rule}: because I want it\n{line} // tgp-allow {rule}: here too"));
        let found = findings(&source);
        assert!(
            found.iter().any(|finding| finding.rule == rule && finding.severity == Severity::Error),
            "{source}\n{found:?}"
        );
        assert!(found.iter().any(|finding| finding.rule == "suppression"), "{source}\n{found:?}");
    }
    let import = "// tgp-allow import-not-allowed: I need it\nimport fs from 'fs';\n/** Reads. */\nexport default (args: { path: string }) => fs.readFileSync(args.path);";
    assert!(rules(import).contains(&"import-not-allowed".to_owned()));
}
