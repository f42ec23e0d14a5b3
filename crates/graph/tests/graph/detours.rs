//! Ways to import in TypeScript and JavaScript past a reader that knows only the usual ones: each is an edge, an import of
//! something unknown, or a file that was not read whole.

use serde_json::Value;
use tgp_contract::{Change, Graph, GraphQuery, RelativePath};

use crate::support::{Project, ingest, rows, run};

/// Returns the imports of a file as the graph has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Edge,
    Unresolved,
    Unparsed,
    /// Nothing of these.
    Clean,
}

use Shown::{Clean, Edge, Unparsed, Unresolved};

fn shown(answers: &[Vec<Vec<Value>>]) -> Vec<Shown> {
    let all = [Edge, Unresolved, Unparsed].into_iter().zip(answers);
    let found: Vec<Shown> = all.filter(|(_, rows)| !rows.is_empty()).map(|(shown, _)| shown).collect();
    if found.is_empty() { vec![Clean] } else { found }
}

/// A project with files, in which the first one is written last, and what is asked of that one.
fn check(files: &[(&str, &[u8])], expected: Shown) {
    let project = Project::new();
    project.write("src/web/page.ts", "export const page = 1;\n");
    project.write("src/domain/price.ts", "export const price = 1;\n");
    let ((at, content), others) = files.split_first().unwrap();
    for (path, content) in others {
        project.write(path, content);
    }
    let store = project.open();
    ingest(&store, "WORKTREE");
    let questions = [
        format!(
            "MATCH (f:File {{path: '{at}'}})-[:IMPORTS]->(g:File {{path: 'src/web/page.ts'}}) RETURN g.path"
        ),
        format!("MATCH (f:File {{path: '{at}'}})-[:IMPORTS]->(u:Unresolved) RETURN u.specifier"),
        format!("MATCH (f:File {{path: '{at}', unparsed: true}}) RETURN f.path"),
    ];
    let change = Change::Write { path: RelativePath::new(at).unwrap(), content: (*content).into() };
    let asked: Vec<GraphQuery> = questions.iter().map(GraphQuery::new).collect();
    let answers = run(store.propose(&[change], &asked)).unwrap();
    let proposed: Vec<Vec<Vec<Value>>> = answers.into_iter().map(|(_, after)| after.rows).collect();
    let text = String::from_utf8_lossy(content);
    assert!(shown(&proposed).contains(&expected), "{at}: {text}\n{others:?}\n{proposed:?}");
    // The files as they are say the same as the proposal.
    project.write(at, content);
    ingest(&store, "WORKTREE");
    let written: Vec<Vec<Vec<Value>>> =
        questions.iter().map(|question| rows(&store, "WORKTREE", question)).collect();
    assert_eq!(shown(&written), shown(&proposed), "{at}: {text}");
}

/// Each row is one file.
fn check_all(rows: &[(&str, &str, Shown)]) {
    for (at, content, expected) in rows {
        check(&[(at, content.as_bytes())], *expected);
    }
}

const ALIAS: &str = r#"{"compilerOptions": {"paths": {"@/*": ["./src/*"]}}}"#;
const OF_ALIAS: (&str, &[u8]) = ("src/domain/a.ts", b"import '@/web/page';\n");

#[test]
fn bug_a_query_or_a_loader_in_a_path_hid_where_it_leads() {
    check_all(&[
        ("src/domain/a.ts", "import './price?/../../web/page';\n", Edge),
        ("src/domain/a.ts", "import './price!/../../web/page';\n", Edge),
        ("src/domain/a.js", "require('../web/page!./price');\n", Edge),
        ("src/domain/a.ts", "import './price?raw!../web/page';\n", Edge),
        ("src/domain/a.ts", "import './price%3F/../../web/page';\n", Edge),
        ("src/domain/a.ts", "import '..\\\\web\\\\page';\n", Edge),
        ("src/domain/a.ts", "import '.\\\\..\\\\web\\\\page';\n", Edge),
        ("src/domain/a.ts", "import './price\\\\..\\\\..\\\\web\\\\page';\n", Edge),
        ("src/domain/a.ts", "import '../we\\tb/page';\n", Edge),
        ("src/domain/a.ts", "import '..\\\\none\\\\page';\n", Unresolved),
        ("src/domain/a.ts", "import 'FILE:/abs/src/web/page.js';\n", Unresolved),
        ("src/domain/a.ts", "import ' file:/abs/src/web/page.js';\n", Unresolved),
        ("src/domain/a.ts", "import 'fi\\nle:/abs/src/web/page.js';\n", Unresolved),
        ("src/domain/a.ts", "import './price?raw';\nimport 'left-pad';\nimport 'raw!./price';\n", Clean),
    ]);
}

#[test]
fn bug_one_configuration_hid_the_aliases_of_another() {
    let empty: &[u8] = b"{}";
    for path in
        ["jsconfig.json", "src/domain/tsconfig.json", "src/domain/jsconfig.json", "tsconfig-tsconfig.json"]
    {
        check(&[OF_ALIAS, ("tsconfig.json", ALIAS.as_bytes()), (path, empty)], Edge);
    }
    for (path, content) in [
        ("tsconfig.json", r#"{"files": [], "references": [{"path": "./tsconfig.app.json"}]}"#),
        ("tsconfig.json", "{}"),
        ("none.json", "{}"),
    ] {
        check(&[OF_ALIAS, (path, content.as_bytes()), ("tsconfig.app.json", ALIAS.as_bytes())], Edge);
    }
    let inner = r#"{"include": ["../src"], "compilerOptions": {"paths": {"@/*": ["../src/*"]}}}"#;
    for (reference, path) in [("cfg", "cfg/tsconfig.json"), ("./cfg/app.json", "cfg/app.json")] {
        let outer = format!(r#"{{"references": [{{"path": "{reference}"}}]}}"#);
        check(&[OF_ALIAS, ("tsconfig.json", outer.as_bytes()), (path, inner.as_bytes())], Edge);
    }
    // Each package of a workspace has the same names for its own files.
    let own = r#"{"compilerOptions": {"paths": {"@/*": ["./*"]}}}"#;
    let root = r#"{"references": [{"path": "./src"}, {"path": "./src/domain"}]}"#;
    let file: (&str, &[u8]) = ("src/domain/a.ts", b"import '@/page';\n");
    let others: [(&str, &[u8]); 3] = [
        ("src/web/tsconfig.json", own.as_bytes()),
        ("src/domain/tsconfig.json", own.as_bytes()),
        ("tsconfig.json", root.as_bytes()),
    ];
    check(&[file, others[0], others[1], others[2]], Clean);
}

#[test]
fn bug_a_file_that_nobody_loads_hid_another_one() {
    let both = r#"{"compilerOptions": {"paths": {"@x/*": ["./src/domain/*", "./src/web/*"]}}}"#;
    check(
        &[
            ("src/domain/a.ts", b"import '@x/page';\n"),
            ("tsconfig.json", both.as_bytes()),
            ("src/domain/page.json", b"{}"),
        ],
        Edge,
    );
    let main = br#"{"main": "../../web/page.js"}"#;
    for (code, other) in [
        ("require('./x');\n", "src/domain/x/index.js"),
        ("require('./x/');\n", "src/domain/x/index.js"),
        ("require('./x');\n", "src/domain/x.ts"),
        ("require('./x/y/..');\n", "src/domain/x/index.ts"),
    ] {
        check(
            &[("src/domain/a.js", code.as_bytes()), ("src/domain/x/package.json", main), (other, b"")],
            Edge,
        );
    }
    let browser = br#"{"browser": "../../web/page.ts"}"#;
    check(&[("src/domain/a.ts", b"import './x';\n"), ("src/domain/x/package.json", browser)], Edge);
}

#[test]
fn bug_a_template_hid_a_script() {
    check_all(&[
        (
            "src/domain/a.vue",
            "<script>0 //</script><script setup>import { page } from '../web/page'</script>\n",
            Edge,
        ),
        ("src/domain/a.vue", "<script>`</script>\n<script setup>import('../web/page');`x`</script>\n", Edge),
        (
            "src/domain/a.vue",
            "<!-- <script>/* -->\n<script>import '../web/page'</script>\n<!-- */ -->",
            Unparsed,
        ),
        ("src/domain/a.vue", "<!-- /* -->\n<script>import '../web/page'</script>\n", Edge),
        ("src/domain/a.svelte", "{\"<!--\"}<script>import '../web/page'</script>{\"-->\"}\n", Unparsed),
        ("src/domain/a.vue", "<!--><script>import '../web/page'</script>-->\n", Unparsed),
        ("src/domain/a.vue", "<script type='text/plain'>import '../web/page'</script>\n", Edge),
        ("src/domain/a.vue", "<script data-x=\" type='a/b'\">import '../web/page'</script>\n", Edge),
        ("src/domain/a.vue", "<script>/*</script x>*/\nimport '../web/page'</script>\n", Unparsed),
        ("src/domain/a.vue", "<script>0</script >\n<script setup>import '../web/page'</script\n>\n", Edge),
        ("src/domain/a.svelte", "<script>/*</SCRIPT>*/ import '../web/page'</script>\n", Unparsed),
        ("src/domain/a.vue", "<p a='<script>/*'></p><script>import '../web/page'</script>\n", Unparsed),
        ("src/domain/a.vue", "<script a=`>`>import '../web/page'</script>\n", Unparsed),
        ("src/domain/a.astro", "<!-- own -->\n---\nimport '../web/page'\n---\n<p/>\n", Edge),
        ("src/domain/a.astro", "A page.\n---\nimport '../web/page'\n---\n<p/>\n", Edge),
        ("src/domain/a.svelte", "{#await import('../web/page')}{/await}\n", Edge),
        ("src/domain/a.svelte", "{#await import/* a */ ( '../web/' + name )}{/await}\n", Unresolved),
        ("src/domain/a.vue", "<template><p @click=\"() => import('../web/page')\" /></template>\n", Edge),
        ("src/domain/a.vue", "<p @click=\"() => &#105;mport(&quot;../web/page&quot;)\" />\n", Edge),
        ("src/domain/a.astro", "<p>{(await import.meta.glob('../web/*.ts')).a}</p>\n", Unresolved),
        ("src/domain/a.vue", "<script src=../web/page.ts></script>\n", Edge),
        ("src/domain/a.vue", "<script type='text/plain' src='../web/page.ts'></script>\n", Edge),
        ("src/domain/a.vue", "<script src=\"..&#47;web&#x2f;page.ts\"></script>\n", Edge),
        ("src/domain/a.astro", "<script src={'../web/page.ts'}></script>\n", Edge),
        ("src/domain/a.astro", "<script src={where}></script>\n", Unresolved),
        ("src/domain/a.astro", "<script>import '../web/page'\n", Unparsed),
        // Data, templates and words are not code.
        (
            "src/domain/a.vue",
            "<!-- an import -->\n<script type='application/ld+json'>{\"@context\": \"x\", \"a\": [1]}</script>\n\
             <script type='text/x-template'><p>it's</p></script>\n<p>import it, at {import.meta.env.BASE} @import(a)</p>\n\
             <script setup lang=\"ts\" generic=\"T extends { a: number }\">\nconst a: T = '</p>'\n</script>\n",
            Clean,
        ),
        (
            "src/domain/a.astro",
            "---\nimport { price } from './price';\n---\n<p>a --- b</p>\n<!-- --- -->\n\
             <script is:inline define:vars={{ price }}>go(price)</script>\n",
            Clean,
        ),
    ]);
    let many = "<script>0</script>\n".repeat(64) + "<script>import '../web/page'</script>\n";
    check(&[("src/domain/a.astro", many.as_bytes())], Unparsed);
    for mark in [b"\xFF\xFE", b"\xFE\xFF"] {
        let component = [mark, &b"<script>import '../web/page'</script>\n"[..]].concat();
        check(&[("src/domain/a.vue", &component)], Unparsed);
        check(&[("src/domain/a.ts", &[mark, &b"import '../web/page'\n"[..]].concat())], Unparsed);
    }
}

#[test]
fn bug_a_script_that_is_a_module_as_well_hid_what_it_loads() {
    check_all(&[
        ("src/domain/a.cjs", "var a=1;\na <!-- /*\nrequire('../web/page');\n//*/ a\n", Edge),
        (
            "src/domain/a.js",
            "globalThis.g=1;globalThis.await=1;\nvar x = await / require('..\\x2fweb\\x2fpage') /g\n",
            Edge,
        ),
        ("src/domain/a.js", "const f = async () => await /* why */ g();\nconst b = '<!-- -->';\n", Clean),
    ]);
}

#[test]
fn bug_require_that_is_given_away_left_no_import() {
    check_all(&[
        ("src/domain/a.js", "((r=require)=>r('../web/page'))()\n", Unresolved),
        ("src/domain/a.js", "const {r=require}={}; r('../web/page')\n", Unresolved),
        ("src/domain/a.js", "(0||require)('../web/page')\n", Unresolved),
        ("src/domain/a.js", "(1?require:0)('../web/page')\n", Unresolved),
        ("src/domain/a.js", "const o={r:require}; o.r('../web/page')\n", Unresolved),
        ("src/domain/a.js", "const o={require}; o.require('../web/page')\n", Unresolved),
        ("src/domain/a.js", "let r; (r=require)('../web/page')\n", Unresolved),
        ("src/domain/a.js", "class A{static r=require}\nA.r('../web/page')\n", Unresolved),
        ("src/domain/a.js", "[require][0]('../web/page')\n", Unresolved),
        ("src/domain/a.js", "require.call(null, '../web/page')\n", Unresolved),
        ("src/domain/a.js", "Reflect.apply(require, null, ['../web/page'])\n", Unresolved),
        ("src/domain/a.js", "const r=require; [r][0]('../web/page')\n", Unresolved),
        ("src/domain/a.js", "[module.require][0]('../web/page')\n", Unresolved),
        ("src/domain/a.js", "module.constructor._load('../web/page')\n", Edge),
        (
            "src/domain/a.ts",
            "import { createRequire } from 'node:module';\n[createRequire(import.meta.url)][0]('../web/page');\n",
            Unresolved,
        ),
        (
            "src/domain/a.ts",
            "import { createRequire } from 'node:module';\nexport const load = createRequire(import.meta.url);\n",
            Unresolved,
        ),
        (
            "src/domain/a.js",
            "if (typeof require === 'function' && require.main === module) require('./price');\n\
             const r = require; let s; s = require; r('./price'); s.resolve('./price'); (0, require)('./price');\n\
             delete require.cache[require.resolve('./price')]; module.require('./price');\n",
            Clean,
        ),
        (
            "src/domain/a.ts",
            "import { createRequire } from 'node:module';\nconst load: typeof require = createRequire(import.meta.url);\n\
             load('./price');\ncreateRequire(import.meta.url)('./price');\n",
            Clean,
        ),
    ]);
}

#[test]
fn bug_lines_and_texts_in_a_comment_hid_a_type() {
    check_all(&[
        ("src/domain/a.js", "/** @type {import(\n * '../web/page').T} */\nlet a;\n", Edge),
        ("src/domain/a.js", "/** @import {fromX} from '../web/page' */\nlet a;\n", Edge),
        ("src/domain/a.js", "/**\n * @import { from,\n * T } from '../web/page'\n */\nlet a;\n", Edge),
        ("src/domain/a.js", "/** @type {'}' | import('../web/page').T} */\nlet a;\n", Edge),
        (
            "src/domain/a.js",
            "/** @param {string} a\n * @example\n * const { page } = import('../web/page') */\nlet a;\n",
            Clean,
        ),
        ("src/domain/.ts", "import '../web/page';\n", Edge),
    ]);
}
