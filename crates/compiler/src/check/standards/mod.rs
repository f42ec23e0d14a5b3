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
mod floating_call;
mod hardcoded_value;
mod magic_number;
mod missing_jsdoc;
mod must_return;
mod mutated_arguments;
mod mutation;
mod no_any;
mod prefer_hof;
mod schema;
mod secrets;
mod single_parameter;
mod sql_template;
mod stateless;
mod typed_params;
mod well_known;

pub(super) use typed_params::check_dates;

use super::report::Report;
use super::shape::Shape;
use super::tree::Tree;

pub(super) fn check<'a>(tree: &Tree<'_, 'a>, shape: &Shape<'a>, report: &mut Report<'_>) {
    no_any::check(tree, shape, report);
    typed_params::check(tree, shape, report);
    magic_number::check(tree, report);
    hardcoded_value::check(tree, report);
    stateless::check(tree, shape, report);
    prefer_hof::check(tree, report);
    must_return::check(tree, shape, report);
    composable::check(tree, shape, report);
    missing_jsdoc::check(tree, shape, report);
    single_parameter::check(tree, shape, report);
    mutated_arguments::check(tree, shape, report);
    floating_call::check(tree, shape, report);
    sql_template::check(tree, report);
}
