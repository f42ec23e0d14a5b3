//! The few run-time helpers that lowered syntax calls, written into the module that needs them.
//!
//! The transformer can only import helpers from a package. Its imports are taken out of the tree again and the
//! helpers stand on the first emitted line instead, so that no module needs another one only for syntax.

use oxc::allocator::{Allocator, TakeIn};
use oxc::ast::ast::*;
use oxc::ast::builder::AstBuilder;

/// What the transformer is told to import from; `/helpers/NAME` follows.
pub(super) const HELPER_PACKAGE: &str = "tgp:lowered";

const HELPER_PREFIX: &str = "tgp:lowered/helpers/";

/// `__decorate` of TypeScript's experimental decorators.
const DECORATE: &str = "function $(decorators, target, key, description) { \
    const count = arguments.length; \
    let result = count < 3 ? target : description === null ? description = Object.getOwnPropertyDescriptor(target, key) : description; \
    for (let index = decorators.length - 1; index >= 0; index--) { \
        const decorator = decorators[index]; \
        if (decorator) result = (count < 3 ? decorator(result) : count > 3 ? decorator(target, key, result) : decorator(target, key)) || result; \
    } \
    if (count > 3 && result) Object.defineProperty(target, key, result); \
    return result; \
}";

/// `__param` of TypeScript's experimental decorators.
const DECORATE_PARAM: &str =
    "function $(index, decorator) { return (target, key) => { decorator(target, key, index); }; }";

/// The stack of resources behind `using` and `await using`.
///
/// The two symbols are made before the body runs, because a class of the same module may use them as names.
const USING_CTX: &str = "Symbol.dispose ??= Symbol.for(\"Symbol.dispose\"); \
    Symbol.asyncDispose ??= Symbol.for(\"Symbol.asyncDispose\"); \
    function $() { \
    const none = {}; \
    const stack = []; \
    const use = (isAsync, value) => { \
        if (value === null || value === undefined) { if (isAsync) stack.push({ isAsync }); return value; } \
        if (Object(value) !== value) throw new TypeError(\"using declarations need an object, null or undefined\"); \
        let method = isAsync ? value[Symbol.asyncDispose] : undefined; \
        if (method === undefined || method === null) { \
            const sync = value[Symbol.dispose]; \
            method = isAsync && typeof sync === \"function\" ? function () { try { sync.call(this); } catch (error) { return Promise.reject(error); } } : sync; \
        } \
        if (typeof method !== \"function\") throw new TypeError(\"this resource cannot be disposed of: it has no Symbol.dispose method\"); \
        stack.push({ value, method, isAsync }); \
        return value; \
    }; \
    return { \
        e: none, \
        u: (value) => use(false, value), \
        a: (value) => use(true, value), \
        d() { \
            let error = this.e; \
            const fail = (next) => { \
                if (error === none) { error = next; return; } \
                const both = new Error(\"an error was suppressed while a resource was disposed of\"); \
                both.name = \"SuppressedError\"; both.error = next; both.suppressed = error; error = both; \
            }; \
            const step = () => { \
                for (let entry = stack.pop(); entry; entry = stack.pop()) { \
                    try { \
                        const outcome = entry.method ? entry.method.call(entry.value) : undefined; \
                        if (entry.isAsync) return Promise.resolve(outcome).then(step, (next) => { fail(next); return step(); }); \
                    } catch (next) { fail(next); } \
                } \
                if (error !== none) throw error; \
            }; \
            return step(); \
        }, \
    }; \
}";

fn source(name: &str) -> Option<&'static str> {
    match name {
        "decorate" => Some(DECORATE),
        "decorateParam" => Some(DECORATE_PARAM),
        "usingCtx" => Some(USING_CTX),
        _ => None,
    }
}

/// Takes the helper imports out of the tree and gives the helpers' declarations, or the name of one we do not have.
pub(super) fn inline<'a>(program: &mut Program<'a>, allocator: &'a Allocator) -> Result<String, String> {
    let builder = AstBuilder::new(allocator);
    let mut declarations = String::new();
    let mut unknown = None;
    let body = program.body.take_in(&builder);
    program.body = oxc::allocator::ArenaVec::from_iter_in(
        body.into_iter().filter(|statement| {
            let Some((helper, local)) = requested(statement) else { return true };
            match source(helper) {
                Some(text) => declarations.push_str(&text.replacen('$', local, 1)),
                None => unknown = Some(helper.to_owned()),
            }
            false
        }),
        &builder,
    );
    unknown.map_or(Ok(declarations), Err)
}

/// The helper and its local name when `statement` is one of the transformer's own imports.
fn requested<'s>(statement: &'s Statement<'_>) -> Option<(&'s str, &'s str)> {
    match statement {
        Statement::ImportDeclaration(import) if import.span.is_empty() => {
            let helper = import.source.value.as_str().strip_prefix(HELPER_PREFIX)?;
            let ImportDeclarationSpecifier::ImportDefaultSpecifier(local) =
                import.specifiers.as_ref()?.first()?
            else {
                return None;
            };
            Some((helper, local.local.name.as_str()))
        }
        Statement::VariableDeclaration(variable) if variable.span.is_empty() => {
            let declarator = variable.declarations.first()?;
            let Some(Expression::CallExpression(call)) = &declarator.init else { return None };
            let helper = call.common_js_require()?.value.as_str().strip_prefix(HELPER_PREFIX)?;
            Some((helper, declarator.id.get_identifier_name()?.as_str()))
        }
        _ => None,
    }
}
