//! The clients of the packages: each boots a kernel in a new project and calls one tool.

use std::time::Instant;

use anyhow::{Result, bail};

use super::guest::{Guest, Printed};

/// What every script below prints.
const ANSWER: &str = "42\n";

const ESM: &str = "\
import { TGP } from '@tgp/core';
const kernel = new TGP();
const { result } = await kernel.call('exec_code', { code: 'return 6*7' });
console.log(result);
await kernel.shutdown();
";

const COMMONJS: &str = "\
const { TGP } = require('@tgp/core');
const kernel = new TGP();
const call = kernel.call('exec_code', { code: 'return 6*7' });
const printed = call.then(({ result }) => console.log(result));
printed.finally(() => kernel.shutdown());
";

/// Scripts for the npm package, by their names.
pub(super) const NODE: [(&str, &str); 2] = [("first.mjs", ESM), ("first.cjs", COMMONJS)];

/// The script for the wheel.
pub(super) const PYTHON: (&str, &str) = (
    "first.py",
    "\
from tgp import TGP
with TGP() as kernel:
    answer = kernel.call('exec_code', {'code': 'return 6*7'})
    print(answer['result'])
",
);

/// Runs a script of a client, which prints the answer of its kernel.
pub(super) fn check_answer(name: &str, guest: &Guest, command: &str) -> Result<()> {
    let started = Instant::now();
    check_printed(guest, command, ANSWER)?;
    println!("xtask: {name}: the client has the answer after {:.2} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a command that prints one text and no warning. A client warns when it was made for another program.
pub(super) fn check_printed(guest: &Guest, command: &str, expected: &str) -> Result<()> {
    compare(command, &guest.output(command)?, expected)
}

fn compare(command: &str, printed: &Printed, expected: &str) -> Result<()> {
    let Printed { text, errors } = printed;
    if text != expected || !errors.is_empty() {
        bail!("`{command}` printed `{}`, expected `{}`: {}", text.trim(), expected.trim(), errors.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_other_answers_are_problems() {
        let check = |text: &str, errors: &str| {
            let printed = Printed { text: text.to_owned(), errors: errors.to_owned() };
            compare("node first.mjs", &printed, ANSWER).map_err(|error| error.to_string())
        };
        assert_eq!(check("42\n", ""), Ok(()));
        let expected = "`node first.mjs` printed `41`, expected `42`: ";
        assert_eq!(check("41\n", ""), Err(expected.to_owned()));
        let expected = "`node first.mjs` printed `42`, expected `42`: other definitions";
        assert_eq!(check("42\n", "other definitions\n"), Err(expected.to_owned()));
    }
}
