//! Examples that the help of a command shows. Every one of them parses, as a test checks.

/// The examples of a command, one command line each.
pub fn of(command: &str) -> &'static [&'static str] {
    EXAMPLES.iter().find(|(name, _)| *name == command).map_or(&[], |(_, lines)| lines)
}

const EXAMPLES: [(&str, &[&str]); 38] = [
    ("init", &["tgp init", "tgp -C ~/shop init"]),
    ("demo", &["tgp demo"]),
    (
        "run",
        &[
            "tgp run \"add a test for the parser, and make it pass\" --model NAME",
            "tgp run --resume last",
            "tgp run - --yes --max-cost 0.50 < task.md",
        ],
    ),
    ("sessions", &["tgp sessions list", "tgp sessions show last", "tgp sessions resume last"]),
    ("replay", &["tgp replay last"]),
    ("undo", &["tgp undo last --dry-run", "tgp undo last", "tgp undo 20261118-1030 src/parser.ts"]),
    ("models", &["tgp models", "tgp models --provider anthropic"]),
    ("search", &["tgp search convert a CSV file to JSON"]),
    ("write", &["tgp write tools/math/fib.ts --file fib.ts", "tgp write tools/double.ts < double.ts"]),
    ("patch", &["tgp patch tools/double.ts --search 'n * 3' --replace 'n * 2'"]),
    ("read", &["tgp read tools/math/fib.ts"]),
    ("list", &["tgp list", "tgp list tools/math"]),
    ("check", &["tgp check", "tgp check tools/math/fib.ts"]),
    ("test", &["tgp test", "tgp test tools/math"]),
    ("exec", &["tgp exec tools/math/fib.ts --args '{\"n\": 10}'", "tgp exec tools/report.ts --dry-run"]),
    ("call", &["tgp call fs_read '{\"path\": \"src/main.rs\"}'", "tgp call test_run --yes"]),
    ("tools", &["tgp tools", "tgp tools --format openai"]),
    (
        "sql",
        &[
            "tgp sql 'SELECT * FROM users WHERE id = ?' --params '[7]'",
            "tgp sql 'DELETE FROM carts' --dry-run",
        ],
    ),
    ("log", &["tgp log", "tgp log tools/math/fib.ts"]),
    ("sync", &["tgp sync"]),
    (
        "graph",
        &["tgp graph ingest", "tgp graph query 'MATCH (f:File)-[:IMPORTS]->(g:File) RETURN f.path, g.path'"],
    ),
    ("aql", &["tgp aql check review.aql", "tgp aql run review.aql -i path=src/a.ts"]),
    ("chronicle", &["tgp chronicle tail src/a.ts", "tgp chronicle verify"]),
    ("guardian", &["tgp guardian review plan.json", "tgp guardian reconcile src/a.ts --reason 'moved'"]),
    ("valve", &["tgp valve scan", "tgp valve watch"]),
    ("policy", &["tgp policy check", "tgp policy explain fs_delete '{\"path\": \"src/a.ts\"}'"]),
    ("state", &["tgp state show", "tgp state set halted"]),
    ("token", &["tgp token mint --tools effect:read --expires 12h"]),
    ("audit", &["tgp audit tail -n 5", "tgp audit verify", "tgp audit export --since 7d"]),
    ("approve", &["tgp approve", "tgp approve 3f9a1c", "tgp approve 3f9a1c --deny"]),
    ("trust", &["tgp trust", "tgp trust --revoke"]),
    ("serve", &["tgp serve --socket /run/user/1000/tgp.sock"]),
    (
        "mcp",
        &[
            "tgp mcp install",
            "tgp mcp install --host cursor --yes",
            "tgp mcp --mode direct --only math/fib,exec_sql",
            "tgp mcp --http 7420",
        ],
    ),
    (
        "upstream",
        &[
            "tgp upstream add notes --write ~/notes -- mcp-server-notes ~/notes",
            "tgp upstream show notes",
            "tgp upstream pin notes",
        ],
    ),
    ("doctor", &["tgp doctor", "tgp doctor --bundle report.tar.gz"]),
    ("relay", &["tgp relay run --suite t1", "tgp relay list"]),
    ("completions", &["tgp completions bash", "tgp completions fish | source"]),
    ("man", &["tgp man > tgp.1", "tgp man exec | man -l -"]),
];
