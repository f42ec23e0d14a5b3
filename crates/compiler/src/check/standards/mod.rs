//! The eight standards of code quality, as rules with names.
//!
//! | standard | rules |
//! | --- | --- |
//! | 1 abstract | `magic-number` |
//! | 2 composable | `composable`, `must-return` |
//! | 3 higher-order functions | `prefer-hof` |
//! | 4 stateless | `stateless` |
//! | 5 reusable | `missing-jsdoc`, `no-any` |
//! | 6 general by parameters | `typed-params` |
//! | 7 no hard-coded values | `hardcoded-value`, `magic-number` |
//! | 8 orchestrator capable | `import-not-allowed`, `dynamic-import`, `dynamic-require` (in `imports`) |

mod completion;
mod composable;
mod defaults;
mod docs;
mod hardcoded;
mod loops;
mod mutation;
mod numbers;
mod returns;
mod secrets;
mod state;
mod types;

use super::report::Report;
use super::shape::Shape;
use super::tree::Tree;

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    types::check(tree, shape, report);
    numbers::check(tree, report);
    hardcoded::check(tree, report);
    state::check(tree, shape, report);
    loops::check(tree, report);
    returns::check(tree, shape, report);
    composable::check(tree, shape, report);
    docs::check(tree, shape, report);
}
