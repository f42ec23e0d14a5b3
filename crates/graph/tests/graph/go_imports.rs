//! Imports of Go, however they are written (security review 3, A7).

use serde_json::Value;

use crate::support::{committed, rows};

/// What a file of the domain imports: paths of files, specifiers of what is nowhere behind `?`, and packages.
fn imports(code: &str, others: &[(&str, &str)]) -> Vec<String> {
    let mut files = vec![
        ("go.mod", "module example.com/shop\n"),
        ("src/web/page.go", "package web\n\nfunc Page() {}\n"),
        ("src/web/x.h", "int x;\n"),
        ("src/domain/price.go", "package domain\n"),
        ("src/domain/a.go", code),
    ];
    files.retain(|(path, _)| !others.iter().any(|(other, _)| other == path));
    files.extend(others);
    let (_project, store) = committed(&files);
    crate::support::assert_written_one_by_one(&files, &store);
    let broken = rows(&store, "HEAD", "MATCH (f:File {broken: true}) RETURN f.path");
    assert_eq!(broken, Vec::<Vec<Value>>::new(), "{code}");
    let query = "MATCH (:File {path: 'src/domain/a.go'})-[:IMPORTS]->(t) \
                 RETURN DISTINCT t.path, t.specifier, t.name";
    let name = |row: Vec<Value>| match row.as_slice() {
        [Value::String(path), ..] => path.clone(),
        [_, Value::String(specifier), _] => format!("?{specifier}"),
        [_, _, name] => name.as_str().unwrap().to_owned(),
        _ => panic!("{row:?}"),
    };
    let mut found: Vec<String> = rows(&store, "HEAD", query).into_iter().map(name).collect();
    found.sort();
    found
}

const OTHER: &str = "package domain\n\nimport \"example.com/other\"\n";

#[test]
fn a_replaced_module_of_go_is_its_directory() {
    for manifest in [
        "module example.com/shop\nreplace example.com/other => ./src/web\n",
        "module example.com/shop\n\nreplace example.com/other v1.2.3 => ./src/web // why\n",
        "module example.com/shop\nreplace (\n\t// example.com/other => ./src/ok\n\texample.com/other => ./src/web\n)\n",
        "module (\n\texample.com/shop\n)\nreplace(\n\texample.com/other v1.0.0 => ./src/web\n)\n",
        "module\texample.com/shop\nreplace\t\"example.com/other\"\t=>\t`./src/web`\n",
        "module \"example.com/shop\"//x\nreplace example.com/other => ./src/domain/../web/\r\n",
    ] {
        assert_eq!(imports(OTHER, &[("go.mod", manifest)]), ["src/web/page.go"], "{manifest}");
    }
    let below = "package domain\n\nimport \"example.com/other/web\"\n";
    let manifest = "module example.com/shop\nreplace example.com/other => ./src\n";
    assert_eq!(imports(below, &[("go.mod", manifest)]), ["src/web/page.go"]);
    // The longest name wins, and another module stays one.
    let manifest = "module example.com/shop\nreplace example.com/other => ./src/domain\n\
                    replace example.com/other/web => ./src/web\n";
    assert_eq!(imports(below, &[("go.mod", manifest)]), ["src/web/page.go"]);
    let manifest = "module example.com/shop\nreplace example.com/other => example.org/fork v1.0.0\n";
    assert_eq!(imports(OTHER, &[("go.mod", manifest)]), ["example.com/other"]);
    // The root may be meant by the name of its directory.
    for outside in ["../shop/src/web", "/home/me/shop/src/web"] {
        let manifest = format!("module example.com/shop\nreplace example.com/other => {outside}\n");
        assert_eq!(imports(OTHER, &[("go.mod", &manifest)]), ["?example.com/other"]);
    }
    let manifest = "module example.com/shop\nreplace example.com/other => ./src/gone\n";
    assert_eq!(imports(OTHER, &[("go.mod", manifest)]), ["?example.com/other"]);
}

#[test]
fn a_workspace_of_go_replaces_too() {
    let workspace = "go 1.22\nuse (\n\t.\n\t./src/web\n)\nreplace example.com/other => ./src/web\n";
    assert_eq!(imports(OTHER, &[("go.work", workspace)]), ["src/web/page.go"]);
    // A module in a subdirectory is known by its own manifest.
    let module = ("src/web/go.mod", "module example.com/other\n");
    assert_eq!(imports(OTHER, &[("go.work", "use ./src/web\n"), module]), ["src/web/page.go"]);
    // Another module may be built with what its own manifest replaces.
    let nested = ("tools/go.mod", "module example.com/tools\nreplace example.com/other => ../src/web\n");
    assert_eq!(imports(OTHER, &[nested]), ["src/web/page.go"]);
}

#[test]
fn a_file_of_go_is_in_its_own_module() {
    let code = "package domain\n\nimport \"example.com/shop/src/web\"\n";
    let copy = [("z/go.mod", "module example.com/shop\n"), ("z/src/web/other.go", "package web\n")];
    assert_eq!(imports(code, &copy), ["src/web/page.go"]);
}

#[test]
fn a_vendored_package_of_go_is_its_directory() {
    let vendored = ("vendor/example.com/other/other.go", "package other\n");
    assert_eq!(imports(OTHER, &[vendored]), ["vendor/example.com/other/other.go"]);
}

#[test]
fn a_go_import_is_an_edge_however_it_is_written() {
    for code in [
        "import \"example.com/shop/src/web\"\n",
        "import `example.com/shop/src/web`\n",
        "import . \"example.com/shop/src/web\"\n",
        "import _ \"example.com/shop/src/web\"\n",
        "import w `example.com/shop/src/web`; import ()\n",
        "import /* a */ w /* b */ \"example.com/shop/src/web\" // c\n",
        "import (\n\t// a\n\t. `example.com/shop/src/web`\n)\n",
        "import \"../web\"\n",
        "import _ \"unsafe\"\n\n//go:linkname page example.com/shop/src/web.Page\nfunc page()\n",
        "//go:linkname page example.com/shop/src/web.(*Page).Show\nfunc page()\n",
    ] {
        let found = imports(&format!("package domain\n\n{code}"), &[]);
        assert!(found.contains(&"src/web/page.go".to_owned()), "{code} {found:?}");
    }
    assert_eq!(
        imports("package domain\n\nimport \"example.com/shop/src/w\\u0065b\"\n", &[]),
        ["?\"example.com/shop/src/w\\u0065b\""]
    );
}

#[test]
fn a_file_that_go_embeds_or_includes_is_an_edge() {
    let inner = [("src/domain/web/page.go", "package web\n"), ("src/domain/web/deep/b.txt", "b\n")];
    for (pattern, expected) in [
        ("web/page.go", &["src/domain/web/page.go"][..]),
        ("web", &["src/domain/web/deep/b.txt", "src/domain/web/page.go"]),
        ("all:web/*.go \"web/deep\"", &["src/domain/web/deep/b.txt", "src/domain/web/page.go"]),
        ("none", &[]),
    ] {
        let code = format!("package domain\n\nimport _ \"embed\"\n\n//go:embed {pattern}\nvar text string\n");
        let mut found = imports(&code, &inner);
        found.retain(|path| path != "embed");
        assert_eq!(found, expected, "{pattern}");
    }
    for code in [
        "// #include \"../web/x.h\"\nimport \"C\"\n",
        "/*\n#include <stdio.h>\n  # include \"../web/x.h\"\n*/\nimport \"C\"\n",
        "import (\n\t\"fmt\"\n\t// #include \"../web/x.h\"\n\t\"C\"\n)\n",
    ] {
        let found = imports(&format!("package domain\n\n{code}"), &[]);
        assert!(found.contains(&"src/web/x.h".to_owned()), "{code} {found:?}");
    }
    assert_eq!(imports("package domain\n\n// #include \"../web/x.h\"\nimport \"fmt\"\n", &[]), ["fmt"]);
}
