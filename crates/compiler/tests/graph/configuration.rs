//! The graph of `tgp.config.ts`.

use tgp_compiler::{GraphBuilder, SourceRole, Unit};

use crate::support::{Project, build, links, shown};

fn config(source: &str) -> Result<tgp_compiler::ModuleGraph, tgp_contract::ToolError> {
    let project = Project::new(&[("tools/a.ts", "1")]).allow(&["zod"]);
    let unit = Unit { id: "tgp.config.ts".to_owned(), source: source.to_owned(), role: SourceRole::Config };
    build(GraphBuilder::for_unit(project.host(), unit))
}

#[test]
fn it_imports_core() {
    let graph = config(
        "import { defineTGPConfig } from '@tgp/core';\nexport default defineTGPConfig({ a: process.env.A_NAME });",
    )
    .unwrap();
    assert_eq!(graph.entry, "tgp.config.ts");
    assert_eq!(links(&graph, "tgp.config.ts"), ["@tgp/core -> tgp:core"]);
    assert_eq!(graph.modules["tgp.config.ts"].environment, ["A_NAME"]);
}

#[test]
fn it_imports_nothing_else() {
    for specifier in ["zod", "./tools/a.ts", "/lib/a.ts", "@tgp/std", "node:fs"] {
        let error = config(&format!("import x from '{specifier}';\nexport default x;")).unwrap_err();
        assert!(shown(&error).contains("ESECURITY 1:15"), "{}", shown(&error));
        assert!(shown(&error).contains("may import only `@tgp/core`"), "{}", shown(&error));
    }
}
