//! Finding the messages of one file: constructors with what is chained to them, struct literals, attributes, macros.

use proc_macro2::TokenStream;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprCall, ExprMethodCall, Token};

use super::functions::{MessageFunctions, Parameters, type_name};
use super::resolve::{Scopes, Text, first_literal, source};
use super::{Message, is_test_item};
use crate::sources::SourceFile;

/// Methods that add a next step to an error.
const HELP_METHODS: [&str; 3] = ["help", "maybe_help", "hint"];

/// What the command line prints beside errors.
const PRINTER_METHODS: [&str; 5] = ["note", "warn", "line", "failure", "failed"];

pub(super) fn messages(file: &SourceFile, functions: &MessageFunctions) -> Vec<Message> {
    let scopes = Scopes::with_constants(&file.syntax);
    let mut collector = Collector { file, functions, scopes, owner: None, found: Vec::new() };
    collector.visit_file(&file.syntax);
    collector.found
}

struct Collector<'f> {
    file: &'f SourceFile,
    functions: &'f MessageFunctions,
    scopes: Scopes,
    /// The type of the `impl` around, which `Self` means.
    owner: Option<String>,
    found: Vec<Message>,
}

/// A message whose chain of methods is still being read.
struct Draft {
    line: usize,
    code: Option<String>,
    /// The expression of the message; none for a lone help.
    message: Option<Expr>,
    helps: Vec<Text>,
}

impl Collector<'_> {
    /// Adds a message for each text that its expression can be.
    fn add(&mut self, draft: Draft) {
        let Draft { line, code, message, helps } = draft;
        let texts = message.as_ref().map(|message| self.scopes.texts(message)).unwrap_or_default();
        if texts.is_empty() {
            // A parameter that is passed on: the callers have the text.
            let is_passed_on = message.as_ref().is_none_or(is_parameter);
            if is_passed_on && helps.is_empty() {
                return;
            }
            let message = message.filter(|_| !is_passed_on).map(|message| format!("<{}>", source(&message)));
            let line = if message.is_none() { helps.first().map_or(line, |help| help.line) } else { line };
            self.push(line, code, message, &helps);
            return;
        }
        for Text { text, line } in texts {
            self.push(line, code.clone(), Some(text), &helps);
        }
    }

    fn push(&mut self, line: usize, code: Option<String>, message: Option<String>, helps: &[Text]) {
        let helps = helps.iter().map(|help| help.text.clone()).collect();
        self.found.push(Message { file: self.file.path.clone(), line, code, message, helps });
    }

    /// The message that a call makes, if its function takes one.
    fn draft<'a>(
        &self,
        parameters: Parameters,
        arguments: impl Iterator<Item = &'a Expr>,
        line: usize,
    ) -> Draft {
        let arguments: Vec<&Expr> = arguments.collect();
        let argument = |index: Option<usize>| index.and_then(|index| arguments.get(index).copied());
        Draft {
            line,
            code: argument(parameters.code).and_then(code),
            message: argument(parameters.message).cloned(),
            helps: argument(parameters.help).map(|help| self.scopes.texts(help)).unwrap_or_default(),
        }
    }

    fn call_parameters(&self, call: &ExprCall) -> Option<Parameters> {
        let Expr::Path(function) = &*call.func else { return None };
        let names: Vec<String> =
            function.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match names.as_slice() {
            [.., owner, name] => {
                let owner = if owner == "Self" { self.owner.as_deref().unwrap_or_default() } else { owner };
                let associated = self.functions.associated(owner, name);
                associated.or_else(|| self.functions.free(&self.file.crate_folder, name))
            }
            [name] => self.functions.free(&self.file.crate_folder, name),
            [] => None,
        }
    }

    /// Reads `constructor(…).detail(…).help(…)` from the inside out.
    fn chain(&mut self, outermost: &ExprMethodCall) {
        let mut calls = vec![outermost];
        let mut root = &*outermost.receiver;
        while let Expr::MethodCall(call) = root {
            calls.push(call);
            root = &call.receiver;
        }
        let mut draft = self.root_draft(root);
        for call in calls.into_iter().rev() {
            let (name, line) = (call.method.to_string(), call.method.span().start().line);
            let is_printed = PRINTER_METHODS.contains(&name.as_str()) && is_printer(&call.receiver);
            if HELP_METHODS.contains(&name.as_str()) {
                let helps = call.args.first().map(|help| self.scopes.texts(help)).unwrap_or_default();
                let draft =
                    draft.get_or_insert_with(|| Draft { line, code: None, message: None, helps: Vec::new() });
                draft.helps.extend(helps);
            } else if is_printed {
                let printed = Parameters { message: Some(0), ..Parameters::default() };
                self.printed(&self.draft(printed, call.args.iter(), line));
            } else if let Some(parameters) = self.functions.method(&self.file.crate_folder, &name) {
                let next = self.draft(parameters, call.args.iter(), line);
                if let Some(draft) = draft.replace(next) {
                    self.add(draft);
                }
            }
            for argument in &call.args {
                self.visit_expr(argument);
            }
        }
        if let Some(draft) = draft {
            self.add(draft);
        }
    }

    /// What is printed is data more often than text; only texts are messages.
    fn printed(&mut self, draft: &Draft) {
        let texts = draft.message.as_ref().map(|message| self.scopes.texts(message)).unwrap_or_default();
        for Text { text, line } in texts {
            self.push(line, None, Some(text), &[]);
        }
    }

    /// The message at the root of a chain. What is inside of it is visited too.
    fn root_draft(&mut self, root: &Expr) -> Option<Draft> {
        match root {
            Expr::Call(call) => {
                for argument in &call.args {
                    self.visit_expr(argument);
                }
                let parameters = self.call_parameters(call)?;
                Some(self.draft(parameters, call.args.iter(), call.func.span().start().line))
            }
            Expr::Struct(literal) => {
                visit::visit_expr_struct(self, literal);
                self.literal_draft(literal)
            }
            _ => {
                self.visit_expr(root);
                None
            }
        }
    }

    /// The message in a struct literal with a field `message` or `reason`.
    fn literal_draft(&self, literal: &syn::ExprStruct) -> Option<Draft> {
        let field = |wanted: &str| {
            let is_wanted = |field: &&syn::FieldValue| matches!(&field.member, syn::Member::Named(name) if name == wanted);
            literal.fields.iter().find(is_wanted).map(|field| &field.expr)
        };
        let message = field("message").or_else(|| field("reason"));
        let message = message.filter(|message| !self.scopes.texts(message).is_empty())?;
        Some(Draft {
            line: literal.path.span().start().line,
            code: field("code").or_else(|| field("kind")).and_then(code),
            message: Some(message.clone()),
            helps: field("help").map(|help| self.scopes.texts(help)).unwrap_or_default(),
        })
    }

    /// The code inside of a macro, as far as it is code.
    fn tokens(&mut self, tokens: TokenStream) {
        if let Ok(expressions) = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens.clone()) {
            for expression in &expressions {
                self.visit_expr(expression);
            }
        } else if let Ok(statements) = Block::parse_within.parse2(tokens.clone()) {
            self.scopes.enter_block();
            for statement in &statements {
                self.visit_stmt(statement);
            }
            self.scopes.leave_block();
        } else {
            for token in tokens {
                if let proc_macro2::TokenTree::Group(group) = token {
                    self.tokens(group.stream());
                }
            }
        }
    }

    fn function(&mut self, block: &Block) {
        let outer = self.scopes.enter_function();
        self.visit_block(block);
        self.scopes.leave_function(outer);
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        match item {
            syn::Item::Mod(module) if is_test_item(&module.attrs) => {}
            syn::Item::Fn(function) if is_test_item(&function.attrs) => {}
            syn::Item::Impl(block) if is_test_item(&block.attrs) => {}
            // Patterns in there are not code.
            syn::Item::Macro(definition) if definition.mac.path.is_ident("macro_rules") => {}
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let outer = self.owner.replace(type_name(&item.self_ty).unwrap_or_default());
        visit::visit_item_impl(self, item);
        self.owner = outer;
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test_item(&item.attrs) {
            self.function(&item.block);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.scopes.enter_block();
        visit::visit_block(self, block);
        self.scopes.leave_block();
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        self.scopes.bind(local);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let (true, syn::Meta::List(list)) = (attribute.path().is_ident("error"), &attribute.meta)
            && let Some(Text { text, line }) = first_literal(list.tokens.clone())
        {
            self.push(line, None, Some(text), &[]);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.chain(call);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Some(parameters) = self.call_parameters(call) {
            let draft = self.draft(parameters, call.args.iter(), call.func.span().start().line);
            self.add(draft);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_struct(&mut self, literal: &'ast syn::ExprStruct) {
        if let Some(draft) = self.literal_draft(literal) {
            self.add(draft);
        }
        visit::visit_expr_struct(self, literal);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let is_error =
            call.path.segments.last().is_some_and(|name| name.ident == "bail" || name.ident == "anyhow");
        match first_literal(call.tokens.clone()).filter(|_| is_error) {
            Some(Text { text, line }) => self.push(line, None, Some(text), &[]),
            None => self.tokens(call.tokens.clone()),
        }
    }
}

/// `Config` of `Code::Config`, or the literal itself.
fn code(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => {
            let name = path.path.segments.last()?.ident.to_string();
            // A variable is not a code.
            name.starts_with(char::is_uppercase).then_some(name)
        }
        Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(literal), .. }) => Some(literal.value()),
        _ => None,
    }
}

/// Whether a message is what the function was called with.
fn is_parameter(message: &Expr) -> bool {
    match message {
        Expr::Path(path) => path.path.get_ident().is_some_and(|name| name == "message" || name == "reason"),
        Expr::MethodCall(call) if call.args.is_empty() => is_parameter(&call.receiver),
        Expr::Reference(reference) => is_parameter(&reference.expr),
        _ => false,
    }
}

fn is_printer(receiver: &Expr) -> bool {
    match receiver {
        Expr::Path(path) => path.path.segments.last().is_some_and(|name| name.ident == "printer"),
        Expr::Field(field) => matches!(&field.member, syn::Member::Named(name) if name == "printer"),
        _ => false,
    }
}
