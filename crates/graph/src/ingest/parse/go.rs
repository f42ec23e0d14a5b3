//! Go: definitions, imports and calls.

use tree_sitter::Node;

use super::reader::{Next, Reader, Scope};
use super::{ImportKind, Kind, MAX_PATTERNS, Name};

pub(super) fn node<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    match reader.kind(node) {
        "package_clause" => {
            reader.out.package = node.named_child(0).map(|name| reader.text(name));
            Next::Stop
        }
        "import_spec" => {
            import(reader, node);
            Next::Stop
        }
        "comment" => {
            comment(reader, node);
            Next::Stop
        }
        "function_declaration" => {
            let name = reader.field(node, "name").unwrap_or_default();
            let symbol = reader.symbol(Kind::Function, &name, node, scope, is_public(&name));
            Next::Descend(scope.body(symbol))
        }
        "method_declaration" => {
            let name = reader.field(node, "name").unwrap_or_default();
            let owner = node.child_by_field_name("receiver").map(|list| receiver_type(reader, list));
            let place = reader.inside(None, &owner.unwrap_or_default(), scope, true);
            let symbol = reader.symbol(Kind::Method, &name, node, &place, is_public(&name));
            Next::Descend(place.body(symbol))
        }
        "type_spec" | "type_alias" if scope.is_top() => define_type(reader, node, scope),
        "method_elem" | "method_spec" if scope.members => {
            let name = reader.field(node, "name").unwrap_or_default();
            let symbol = reader.symbol(Kind::Method, &name, node, scope, is_public(&name));
            Next::Descend(scope.body(symbol))
        }
        "const_spec" if scope.is_top() => define_values(reader, node, scope, Kind::Const),
        "var_spec" if scope.is_top() => define_values(reader, node, scope, Kind::Variable),
        "call_expression" => {
            if let Some(target) = node.child_by_field_name("function") {
                callee(reader, target, node, scope);
            }
            Next::Descend(scope.clone())
        }
        _ => Next::Descend(scope.clone()),
    }
}

fn is_public(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

/// `(s *Server[T])` is a method of `Server`.
fn receiver_type(reader: &Reader<'_>, list: Node<'_>) -> String {
    let text = list.named_child(0).and_then(|parameter| reader.field(parameter, "type")).unwrap_or_default();
    let name: String = text.trim_start_matches(['*', '(', ' ']).to_owned();
    name.split(['[', ')', ' ']).next().unwrap_or_default().to_owned()
}

fn define_type(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope) -> Next {
    let name = reader.field(node, "name").unwrap_or_default();
    let kind = match node.child_by_field_name("type").map(|kind| kind.kind()) {
        Some("struct_type") => Kind::Struct,
        Some("interface_type") => Kind::Interface,
        _ => Kind::Type,
    };
    let symbol = reader.symbol(kind, &name, node, scope, is_public(&name));
    Next::Descend(reader.inside(symbol, &name, scope, true))
}

fn define_values<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope, kind: Kind) -> Next {
    let mut cursor = node.walk();
    let names: Vec<Node<'t>> = node.children_by_field_name("name", &mut cursor).collect();
    for name in names {
        let text = reader.text(name);
        if text != "_" && text != "," {
            reader.symbol(kind, &text, name, scope, is_public(&text));
        }
    }
    Next::Descend(scope.clone())
}

/// The package is bound under its alias, else under the last part of its path.
fn import(reader: &mut Reader<'_>, node: Node<'_>) {
    let Some(path) = node.child_by_field_name("path") else { return };
    let specifier = reader.unquoted(path);
    let headers = std::mem::take(&mut reader.headers);
    if specifier == "C" {
        for (header, at) in headers {
            reader.import(ImportKind::Bind, header, Vec::new(), None, at);
        }
    }
    if path.kind() != "raw_string_literal" && specifier.contains('\\') {
        let written = reader.text(path);
        return reader.computed_import(&written, node);
    }
    let alias = reader.field(node, "name");
    let last = package_name(&specifier);
    match alias.as_deref() {
        Some(".") => reader.import(ImportKind::Bind, specifier, vec![Name::new("*", "")], None, node),
        Some("_") => reader.import(ImportKind::Bind, specifier, Vec::new(), None, node),
        _ => reader.import(ImportKind::Bind, specifier, Vec::new(), alias.or(Some(last)), node),
    }
}

/// Notes what a comment imports that is one for the compiler.
fn comment<'t>(reader: &mut Reader<'t>, node: Node<'t>) {
    let written = String::from_utf8_lossy(reader.source.get(node.byte_range()).unwrap_or_default());
    if let Some(words) = written.strip_prefix("//go:linkname ") {
        // `//go:linkname here example.com/package.there`
        let there = words.split_whitespace().nth(1).unwrap_or_default();
        let name = there.rsplit('/').next().and_then(|last| last.find('.').map(|dot| last.len() - dot));
        if let Some(package) = name.and_then(|name| there.get(..there.len() - name)) {
            let package = reader.kept_whole(&package.replace("%2e", "."));
            reader.import(ImportKind::Bind, package, Vec::new(), None, node);
        }
    } else if let Some(patterns) = written.strip_prefix("//go:embed ") {
        // A directory means what is below it.
        for pattern in patterns.split_whitespace() {
            if reader.count_of(ImportKind::Pattern) >= MAX_PATTERNS {
                return reader.computed_import(patterns, node);
            }
            let pattern = pattern.trim_matches(['"', '`']).trim_start_matches("all:");
            let pattern = reader.kept_whole(&format!("./{{{pattern},{pattern}/**}}"));
            reader.import(ImportKind::Pattern, pattern, Vec::new(), None, node);
        }
    } else {
        // What `import "C"` below includes.
        let headers = written.lines().filter_map(|line| {
            let rest = line.trim_start_matches(['/', '*', ' ', '\t']).strip_prefix('#')?;
            let header = rest.trim_start().strip_prefix("include")?.trim_start().strip_prefix('"')?;
            Some(reader.kept_whole(&format!("./{}", header.split('"').next()?)))
        });
        let headers: Vec<(String, Node<'t>)> = headers.map(|header| (header, node)).collect();
        reader.headers.extend(headers);
    }
}

/// `example.com/yaml/v3` is called `yaml`.
fn package_name(path: &str) -> String {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let is_version = last
        .strip_prefix('v')
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|character| character.is_ascii_digit()));
    if is_version { parts.next().unwrap_or(last).to_owned() } else { last.to_owned() }
}

fn callee(reader: &mut Reader<'_>, target: Node<'_>, node: Node<'_>, scope: &Scope) {
    match target.kind() {
        "identifier" => {
            let name = reader.text(target);
            reader.call(name, None, node, scope);
        }
        "selector_expression" => {
            let name = reader.field(target, "field").unwrap_or_default();
            let operand = target.child_by_field_name("operand");
            let receiver = match operand.map(|operand| operand.kind()) {
                Some("identifier" | "selector_expression") => {
                    reader.field(target, "operand").unwrap_or_default()
                }
                _ => String::new(),
            };
            let receiver = if receiver.contains('(') { String::new() } else { receiver };
            reader.call(name, Some(receiver), node, scope);
        }
        _ => {}
    }
}
