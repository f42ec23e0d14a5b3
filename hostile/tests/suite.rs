//! The bounded part of the attacks. It is alone in its binary, since it inspects the children of its own process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the lines of the families are the result")]

use tgp_hostile::suite::{Selection, Suite};
use tgp_hostile::{binary, load, sandbox};

#[test]
fn every_attack_of_the_bounded_part_is_held() {
    let cases = load::all(&load::folder()).unwrap();
    let selection = Selection { bounded: true, ..Selection::default() };
    let suite = Suite::new(binary::find().unwrap()).unwrap();
    let mut summary = suite.run(&cases, &selection, |family| println!("{}", family.line())).unwrap();
    let corpus = sandbox::run(&suite, &selection).unwrap();
    println!("{}", corpus.line());
    summary.families.push(corpus);
    assert!(summary.failures().next().is_none(), "{}", summary.text());
    println!("{}", summary.text());
}
