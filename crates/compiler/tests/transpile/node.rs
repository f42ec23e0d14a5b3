//! Emitted code of pure samples, run in Node where it is installed.

use std::path::Path;
use std::process::Command;

use tgp_compiler::{CompiledModule, ModuleFormat, compile};

use crate::tool;

const RUNNER: &str = "
const [, , file, kind, args] = process.argv;
const { readFileSync } = await import('node:fs');
let main;
if (kind === 'module') main = (await import(file)).default;
else { const module = { exports: {} }; (0, eval)(readFileSync(file, 'utf8'))(module.exports, () => {}, module, file, file); main = module.exports; }
const result = typeof main === 'function' ? await main(JSON.parse(args)) : main;
console.log(JSON.stringify(result));
";

fn run(compiled: &CompiledModule, arguments: &str) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sample.mjs");
    let runner = directory.path().join("runner.mjs");
    std::fs::write(&file, &compiled.code).unwrap();
    std::fs::write(&runner, RUNNER).unwrap();
    let kind = if compiled.format == ModuleFormat::Module { "module" } else { "common" };
    let output = Command::new("node").arg(&runner).arg(&file).args([kind, arguments]).output().ok()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\n{}", compiled.code);
    Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

fn golden(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transpile/golden");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn samples_give_what_they_should() {
    let features = golden("typescript_features.ts").replace("10n ** 2n", "String(10n ** 2n)");
    let samples: Vec<(String, &str, &str)> = vec![
        ("export default (a: number) => a * 2;".into(), "21", "42"),
        ("const n: number = args.n;\nif (n > 1) return { big: true };\nreturn 'small';".into(), r#"{"n":2}"#, r#"{"big":true}"#),
        (golden("expression_script.ts"), r#"{"n":4}"#, r#"{"n":8,"colour":"Green","lookup":"a"}"#),
        (golden("string_script.ts"), "{}", r#""just a string""#),
        (golden("no_result_script.ts"), "{}", "undefined"),
        (golden("empty.ts"), "{}", "undefined"),
        (golden("types_and_script.ts"), r#"{"n":1}"#, "2"),
        (golden("export_assignment.ts"), r#"{"n":7}"#, "7"),
        ("module.exports = function (args: { n: number }) { return [this === undefined, args.n]; };".into(), r#"{"n":1}"#, "[true,1]"),
        (golden("decorators.ts"), "{}", r#"[2,["field","method0","method","class"]]"#),
        (golden("using_async.ts"), "{}", r#"["body","b","a"]"#),
        (features, "{}", r#"[0,"down",[0,0],"deep","c:1",1,3,"x",2,{"a":1},null,"100",true]"#),
        (
            "export default () => { const log: unknown[] = []; try { using a = { [Symbol.dispose]() { log.push('a'); throw 1; } }; using b = null; throw 2; } catch (e) { log.push((e as Error).name, (e as { error: unknown }).error, (e as { suppressed: unknown }).suppressed); } return log; };".into(),
            "{}",
            r#"["a","SuppressedError",1,2]"#,
        ),
        (
            "function logged(target: object, key: string, d: PropertyDescriptor) { const old = d.value; d.value = function (...a: number[]) { return 'logged ' + old.apply(this, a); }; }\nfunction sealed<T extends new () => object>(C: T) { return class extends C { sealed = true; }; }\n@sealed class A { @logged static s(n: number) { return n; } @logged m(n: number) { return n + 1; } }\n[A.s(1), new A().m(1), (new A() as unknown as { sealed: boolean }).sealed]".into(),
            "{}",
            r#"["logged 1","logged 2",true]"#,
        ),
        (
            "namespace Shapes { export const unit = 1; export function area(r: number) { return r * unit; } export namespace Inner { export const deep = area(3); } }\nimport Alias = Shapes.Inner;\nShapes.area(2) + Alias.deep".into(),
            "{}",
            "5",
        ),
        (
            "abstract class Shape { constructor(public readonly name: string, private size = 2) {} abstract area(): number; get label() { return `${this.name}:${this.size}:${this.area()}`; } }\nclass Square extends Shape { static #made = 0; static { Square.#made = 10; } area() { return 4 + Square.#made; } }\nreturn new Square('sq').label;".into(),
            "{}",
            r#""sq:2:14""#,
        ),
    ];
    for (source, arguments, expected) in samples {
        let compiled = compile(&tool(source.clone())).unwrap();
        match run(&compiled, arguments) {
            Some(result) => assert_eq!(result, expected, "{source}\n{}", compiled.code),
            None => {
                eprintln!("skipped: node is not installed");
                return;
            }
        }
    }
}
