//! Where the loop is that the engine was in, from the last place that it noted.

use tgp_compiler::compile;

use crate::tool;

#[test]
fn a_place_before_a_loop_leads_to_the_loop() {
    let cases = [
        // The place of a function in which nothing was noted is that of the words before it.
        ("const spin = () => {\n  let n = 0;\n  while (true) n++;\n};\nspin();", (1, 7), (3, 3)),
        (
            "export default function spin(): number {\n  let n = 0;\n  for (;;) n++;\n  return n;\n}",
            (1, 1),
            (3, 3),
        ),
        // What was noted last is before the loop, in it, or behind it.
        (
            "export default (args: { n: number }) => {\n  let n = args.n;\n  while (true) n++;\n};",
            (2, 11),
            (3, 3),
        ),
        (
            "export default (args: { n: number }) => {\n  let n = 0;\n  while (true) n += args.n;\n};",
            (3, 21),
            (3, 21),
        ),
        (
            "export default (args: { n: number }) => {\n  for (let i = 0; i < 3; i++) {}\n  return args.n;\n};",
            (3, 10),
            (3, 10),
        ),
        // A loop of another function does not count.
        (
            "export default (args: { n: number }) => {\n  const n = args.n;\n  const f = () => {\n    for (;;) {}\n  };\n  do {} while (n > 0);\n  return f;\n};",
            (2, 13),
            (6, 3),
        ),
        ("export default () => [1].map((n) => n);", (1, 22), (1, 22)),
    ];
    for (source, noted, loop_at) in cases {
        let compiled = compile(&tool(source)).unwrap();
        assert_eq!(compiled.loops.busy_place(noted.0, noted.1), loop_at, "{source}");
    }
}
