//! Java: definitions, imports and calls.

use tree_sitter::Node;

use super::reader::{Next, Reader, Scope};
use super::{ImportKind, Kind, Name};

pub(super) fn node<'t>(reader: &mut Reader<'t>, node: Node<'t>, scope: &Scope) -> Next {
    match reader.kind(node) {
        "package_declaration" => {
            reader.out.package = node.named_child(0).map(|name| reader.text(name));
            Next::Stop
        }
        "import_declaration" => {
            import(reader, node);
            Next::Stop
        }
        "class_declaration" | "record_declaration" => define_type(reader, node, scope, Kind::Class),
        "interface_declaration" | "annotation_type_declaration" => {
            define_type(reader, node, scope, Kind::Interface)
        }
        "enum_declaration" => define_type(reader, node, scope, Kind::Enum),
        "method_declaration" | "constructor_declaration" if scope.function.is_none() => {
            let name = reader.field(node, "name").unwrap_or_default();
            let exported = is_public(reader, node);
            let symbol = reader.symbol(Kind::Method, &name, node, scope, exported);
            reader.stand_at_name(symbol, node);
            Next::Descend(scope.body(symbol))
        }
        "method_invocation" => {
            let name = reader.field(node, "name").unwrap_or_default();
            let receiver = node.child_by_field_name("object").map(|object| match object.kind() {
                "identifier" | "this" | "super" | "field_access" | "scoped_identifier" => {
                    let text = reader.text(object);
                    if text.contains('(') { String::new() } else { text }
                }
                _ => String::new(),
            });
            if matches!(name.as_str(), "forName" | "loadClass") {
                load(reader, node);
            }
            reader.call(name, receiver, node, scope);
            Next::Descend(scope.clone())
        }
        "object_creation_expression" => {
            let name = reader.field(node, "type").unwrap_or_default();
            let name = name.split('<').next().unwrap_or_default().to_owned();
            let (receiver, name) = match name.rsplit_once('.') {
                Some((receiver, name)) => (Some(receiver.to_owned()), name.to_owned()),
                None => (None, name),
            };
            reader.call(name, receiver, node, scope);
            Next::Descend(scope.clone())
        }
        _ => Next::Descend(scope.clone()),
    }
}

/// `Class.forName("a.b.C")`, `loader.loadClass("a.b.C")`.
fn load(reader: &mut Reader<'_>, node: Node<'_>) {
    let Some(first) = node.child_by_field_name("arguments").and_then(|arguments| arguments.named_child(0))
    else {
        return;
    };
    let written = reader.unquoted(first);
    if first.kind() == "string_literal" {
        let class = written.rsplit('.').next().unwrap_or_default().to_owned();
        reader.import(ImportKind::Bind, written, vec![Name::new(class, "")], None, node);
    } else {
        reader.computed_import(&written, node);
    }
}

/// Members of an interface are public without being said so.
fn is_public(reader: &Reader<'_>, node: Node<'_>) -> bool {
    let in_interface = node.parent().is_some_and(|parent| parent.kind() == "interface_body");
    let mut cursor = node.walk();
    in_interface
        || node.named_children(&mut cursor).any(|child| {
            child.kind() == "modifiers" && reader.text(child).split_whitespace().any(|word| word == "public")
        })
}

fn define_type(reader: &mut Reader<'_>, node: Node<'_>, scope: &Scope, kind: Kind) -> Next {
    if scope.function.is_some() {
        return Next::Descend(scope.clone());
    }
    let name = reader.field(node, "name").unwrap_or_default();
    let exported = is_public(reader, node);
    let symbol = reader.symbol(kind, &name, node, scope, exported);
    reader.stand_at_name(symbol, node);
    heritage(reader, node, symbol);
    Next::Descend(reader.inside(symbol, &name, scope, true))
}

/// `extends A implements B, C`; an interface extends others.
fn heritage(reader: &mut Reader<'_>, node: Node<'_>, symbol: Option<u32>) {
    let mut cursor = node.walk();
    for clause in node.named_children(&mut cursor) {
        let implements = match clause.kind() {
            "superclass" | "extends_interfaces" => false,
            "super_interfaces" => true,
            _ => continue,
        };
        let mut open = vec![clause];
        while let Some(part) = open.pop() {
            let mut inner = part.walk();
            for child in part.named_children(&mut inner) {
                match child.kind() {
                    "type_list" => open.push(child),
                    "type_identifier" | "scoped_type_identifier" | "generic_type" => {
                        let name = reader.text(child);
                        reader.heritage(symbol, &name, implements);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// `import a.b.C`, `import a.b.*`, `import static a.b.C.m`, `import static a.b.C.*`.
fn import(reader: &mut Reader<'_>, node: Node<'_>) {
    let mut cursor = node.walk();
    let children: Vec<Node<'_>> = node.children(&mut cursor).collect();
    let is_static = children.iter().any(|child| child.kind() == "static");
    let is_wild = children.iter().any(|child| child.kind() == "asterisk");
    let path = children.iter().find(|child| matches!(child.kind(), "scoped_identifier" | "identifier"));
    let Some(path) = path.map(|path| reader.text(*path)) else { return };
    let path: String = path.split_whitespace().collect();
    if is_wild {
        reader.import(ImportKind::Bind, path, vec![Name::new("*", "")], None, node);
    } else if is_static {
        let (class, member) = path.rsplit_once('.').unwrap_or((&path, ""));
        reader.import(ImportKind::Bind, class.to_owned(), vec![Name::new(member, member)], None, node);
    } else {
        // The class is a name of its own file.
        let class = path.rsplit('.').next().unwrap_or_default().to_owned();
        reader.import(ImportKind::Bind, path, vec![Name::new(class.clone(), class)], None, node);
    }
}
