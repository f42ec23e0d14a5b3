//! Unit plan 3 of the specification: tool validation logic, static analysis.

use tgp_compiler::{CheckOptions, check};
use tgp_contract::Severity;

use super::{error_messages, findings, tool};

#[test]
fn unit_plan_3_process_exit_is_forbidden() {
    let found = findings("process.exit()");
    let finding = found.iter().find(|finding| finding.rule == "forbidden-global").expect("a finding");
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(finding.message, "Global 'process' is forbidden");
    assert_eq!((finding.place.line, finding.place.column), (1, 1));
    assert_eq!((finding.end.line, finding.end.column), (1, 8));
}

#[test]
fn unit_plan_3_import_fs_is_refused() {
    let source = "import fs from 'fs';\n/** Reads. */\nexport default (args: { path: string }) => fs.readFileSync(args.path);";
    let messages = error_messages(source);
    assert_eq!(
        messages,
        ["import-not-allowed: Import 'fs' is not allowed: Node.js modules do not exist in the sandbox"]
    );
}

#[test]
fn unit_plan_3_import_is_allowed_when_it_is_listed() {
    let source = "import { z } from 'zod';\n/** Parses. */\nexport default (args: { value: unknown }) => z.string().parse(args.value);";
    assert_eq!(error_messages(source), Vec::<String>::new());
    let refused = check(&tool(source), &CheckOptions::default());
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].rule, "import-not-allowed");
}
