//! Errors as they reach the kernel.

use tgp_sandbox::{RunErrorKind, ToolRunOptions};

use crate::Test;
use crate::worker::{Tested, Workers, limits};

pub const TESTS: &[Test] = &[
    ("errors_name_the_expression", expressions),
    ("errors_keep_their_causes", causes),
    ("errors_of_an_aggregate_are_kept", aggregate),
    ("errors_with_hostile_properties_are_reported", hostile),
];

fn message(workers: &Workers, expression: &str) -> Result<String, Box<dyn std::error::Error>> {
    let options = ToolRunOptions { limits: limits(), ..ToolRunOptions::default() };
    Ok(workers.failure(expression, options)?.message)
}

fn expressions(workers: &Workers) -> Tested {
    for (code, expected) in [
        ("((args) => args.items.map((x) => x))({ items: {} })", "args.items.map is not a function"),
        (
            "((args) => { const r = args.foo(1, args.x.y); return r; })({ x: {} })",
            "args.foo is not a function",
        ),
        ("((a) => a.b(a.c(1)).d(2))({ b: () => ({}), c: () => 1 })", "a.b(a.c(1)).d is not a function"),
        ("((a) => a['k'](1))({})", "a['k'] is not a function"),
        ("((a) => new a.b(1))({})", "a.b is not a constructor"),
        ("((f) => f(1, 2))(1)", "f is not a function"),
        ("((a) => a\n  .one()\n  .two(1))({ one: () => ({}) })", "a.one().two is not a function"),
        ("((a) => a.go('text)(', function () { return [1, 2]; }))({})", "a.go is not a function"),
        ("((a) => a.sort(a.cmp()))({ sort() {} })", "not a function: a.cmp or a.sort"),
        ("(async (a) => { await a.save(); })({})", "a.save is not a function"),
        ("((a) => [...a])(5)", "a is not iterable"),
        ("((a) => { for (const x of a.list) x; })({ list: 1 })", "a.list is not iterable"),
        ("(() => (void 0)())()", "not a function"),
    ] {
        let found = message(workers, code)?;
        if found != expected {
            return Err(format!("{code}\n  expected: {expected}\n  but was:  {found}").into());
        }
    }
    Ok(())
}

fn causes(workers: &Workers) -> Tested {
    let code = "(() => { throw new Error('cannot read config', { cause: new SyntaxError('bad token', { cause: 'line 3' }) }); })()";
    let options = ToolRunOptions { limits: limits(), ..ToolRunOptions::default() };
    let error = workers.failure(code, options)?;
    if error.related.causes != ["SyntaxError: bad token", "line 3"] {
        return Err(format!("{error:?}").into());
    }
    let expected = "cannot read config (caused by: SyntaxError: bad token) (caused by: line 3)";
    if error.message == expected { Ok(()) } else { Err(error.message.into()) }
}

fn aggregate(workers: &Workers) -> Tested {
    let code = "Promise.any([Promise.reject(new Error('first')), Promise.reject(new RangeError('second'))])";
    let options = ToolRunOptions { limits: limits(), ..ToolRunOptions::default() };
    let error = workers.failure(code, options)?;
    if error.related.errors == ["first", "RangeError: second"]
        && error.message == "2 errors: first; RangeError: second"
    {
        return Ok(());
    }
    Err(format!("{error:?}").into())
}

fn hostile(workers: &Workers) -> Tested {
    let options = ToolRunOptions { limits: limits(), ..ToolRunOptions::default() };
    for code in [
        "(() => { const e = new Error('a'); e.cause = e; throw e; })()",
        "(() => { throw Object.defineProperty(new Error('a'), 'cause', { get() { throw 1; } }); })()",
        "(() => { const e = new Error('a'); let at = e; for (let n = 0; n < 1000; n += 1) at = at.cause = new Error('x'.repeat(10000)); throw e; })()",
        "(() => { throw new AggregateError(Array.from({ length: 10000 }, () => new Error('b')), 'a'); })()",
        "(() => { const e = new AggregateError([], 'a'); Object.defineProperty(e, 'errors', { get() { throw 1; } }); throw e; })()",
        "(() => { const e = new TypeError('not a function'); e.stack = '    at x (tools/test.js:99999999999999:1)'; throw e; })()",
        "(() => { const e = new TypeError('not a function'); e.stack = '    at x (tools/test.js:2:1)'; throw e; })()",
        "(() => { throw new Proxy({}, { get() { throw 1; }, has() { throw 2; } }); })()",
    ] {
        let error = workers.failure(code, options)?;
        if error.kind != RunErrorKind::Thrown
            || error.related.causes.len() > 8
            || error.related.errors.len() > 16
            || error.message.len() > 32 * 1024
        {
            return Err(format!("{code}\n  {error:?}").into());
        }
    }
    Ok(())
}
