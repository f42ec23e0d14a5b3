//! The eight standards of code quality, as rules with names.
//!
//! | standard | rules |
//! | --- | --- |
//! | 1 abstract | `magic-number` |
//! | 2 composable | `composable`, `must-return`, `single-parameter` |
//! | 3 higher-order functions | `prefer-hof` |
//! | 4 stateless | `stateless`, `mutated-arguments` |
//! | 5 reusable | `missing-jsdoc`, `no-any` |
//! | 6 general by parameters | `typed-params`, `single-parameter`, `sql-template` |
//! | 7 no hard-coded values | `hardcoded-value`, `magic-number` |
//! | 8 orchestrator capable | `floating-call`, `import-not-allowed`, `dynamic-import`, `dynamic-require` (in `imports`) |

mod completion;
mod composable;
mod defaults;
mod docs;
mod floating_call;
mod hardcoded;
mod loops;
mod mutated_arguments;
mod mutation;
mod numbers;
mod returns;
mod schema;
mod secrets;
mod single_parameter;
mod sql_template;
mod state;
mod types;
mod well_known;

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
    single_parameter::check(tree, shape, report);
    mutated_arguments::check(tree, shape, report);
    floating_call::check(tree, shape, report);
    sql_template::check(tree, report);
}
