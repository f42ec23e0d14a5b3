//! Which functions take a message: those with a parameter named `message` or `reason`. Their callers write the text.

use std::collections::HashMap;

use syn::visit::{self, Visit};

use super::is_test_item;
use crate::sources::SourceFile;

/// Crates whose functions all other crates call.
const SHARED: [&str; 2] = ["contract", "text"];

/// Where a function takes what, counted without `self`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parameters {
    pub(super) message: Option<usize>,
    pub(super) help: Option<usize>,
    pub(super) code: Option<usize>,
}

/// How a function is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Callee {
    /// `Type::name(…)`
    Associated(String, String),
    /// `name(…)`, with the crate's folder.
    Free(String, String),
    /// `value.name(…)`, with the crate's folder.
    Method(String, String),
}

/// The functions that take a message.
#[derive(Default)]
pub(super) struct MessageFunctions {
    known: HashMap<Callee, Parameters>,
}

impl MessageFunctions {
    pub(super) fn of(files: &[&SourceFile]) -> Self {
        let mut functions = Self::default();
        for file in files {
            let mut visitor = Definitions { crate_folder: &file.crate_folder, owner: None, functions };
            visitor.visit_file(&file.syntax);
            functions = visitor.functions;
        }
        functions
    }

    pub(super) fn associated(&self, owner: &str, name: &str) -> Option<Parameters> {
        let known = self.known.get(&Callee::Associated(owner.to_owned(), name.to_owned())).copied();
        // Also where the type is another crate's, or its constructor is made by a macro.
        known.or_else(|| (owner == "ToolError" && name == "new").then_some(TOOL_ERROR))
    }

    pub(super) fn free(&self, crate_folder: &str, name: &str) -> Option<Parameters> {
        self.in_crates(crate_folder, |folder| Callee::Free(folder, name.to_owned()))
    }

    pub(super) fn method(&self, crate_folder: &str, name: &str) -> Option<Parameters> {
        self.in_crates(crate_folder, |folder| Callee::Method(folder, name.to_owned()))
    }

    fn in_crates(&self, own: &str, callee: impl Fn(String) -> Callee) -> Option<Parameters> {
        [own].iter().chain(&SHARED).find_map(|folder| self.known.get(&callee((*folder).to_owned())).copied())
    }
}

/// `ToolError::new(code, message)`.
const TOOL_ERROR: Parameters = Parameters { message: Some(1), help: None, code: Some(0) };

struct Definitions<'f> {
    crate_folder: &'f str,
    /// The type of the `impl` around.
    owner: Option<String>,
    functions: MessageFunctions,
}

impl Definitions<'_> {
    fn add(&mut self, signature: &syn::Signature) {
        let name = signature.ident.to_string();
        // `.help(…)` is looked for by its name.
        if name == "help" || name == "maybe_help" {
            return;
        }
        let mut parameters = Parameters::default();
        let arguments = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(typed),
            syn::FnArg::Receiver(_) => None,
        });
        for (index, argument) in arguments.enumerate() {
            let syn::Pat::Ident(pattern) = &*argument.pat else { continue };
            match pattern.ident.to_string().as_str() {
                "message" | "reason" if is_text(&argument.ty) => parameters.message = Some(index),
                "help" if is_text(&argument.ty) => parameters.help = Some(index),
                "code" | "kind" => parameters.code = Some(index),
                _ => {}
            }
        }
        if parameters.message.is_none() && parameters.help.is_none() {
            return;
        }
        let folder = self.crate_folder.to_owned();
        let callee = match (&self.owner, signature.receiver()) {
            (_, Some(_)) => Callee::Method(folder, name),
            (Some(owner), None) => Callee::Associated(owner.clone(), name),
            (None, None) => Callee::Free(folder, name),
        };
        self.functions.known.insert(callee, parameters);
    }
}

impl<'ast> Visit<'ast> for Definitions<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(module) if is_test_item(&module.attrs) => {}
            syn::Item::Fn(function) if is_test_item(&function.attrs) => {}
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = self.owner.replace(type_name(&item.self_ty).unwrap_or_default());
        visit::visit_item_impl(self, item);
        self.owner = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        // A function inside of a method belongs to no type.
        let outer = self.owner.take();
        self.add(&item.sig);
        visit::visit_item_fn(self, item);
        self.owner = outer;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig);
        visit::visit_impl_item_fn(self, item);
    }
}

/// The last name of a type's path.
pub(super) fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

/// Whether a parameter takes text. A message of a protocol has the same name and another type.
fn is_text(of: &syn::Type) -> bool {
    match of {
        syn::Type::ImplTrait(_) => true,
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|segment| match &segment.arguments {
            syn::PathArguments::AngleBracketed(arguments) => arguments
                .args
                .iter()
                .any(|argument| matches!(argument, syn::GenericArgument::Type(inner) if is_text(inner))),
            _ => segment.ident == "String" || segment.ident == "str",
        }),
        syn::Type::Reference(reference) => is_text(&reference.elem),
        _ => false,
    }
}
