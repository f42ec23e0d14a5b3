//! The fakes against the suites, and what the kit says of itself.

use std::collections::BTreeSet;

use tgp_relay::{Against, Externals, Kit, KitOptions, Outcome};

use crate::support::{PATIENCE, place, run};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fake_keeps_the_contract() {
    let report = run(Externals::default(), &[], PATIENCE).await;
    let failed: Vec<_> = report.rows.iter().filter(|row| row.result != Outcome::Passed).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(report.is_green());
    let suites: BTreeSet<&str> = report.rows.iter().map(|row| row.suite.as_str()).collect();
    assert_eq!(suites, ["fixtures", "t1", "t2", "t3", "t4", "t6"].into());
    // Nobody took a role who was not asked to.
    assert!(report.rows.iter().all(|row| row.external.is_empty() && !row.fake.is_empty()));
}

#[test]
fn the_matrix_has_every_case_and_every_combination() {
    let cases: Vec<&str> = Kit::list().iter().map(|listed| listed.case).collect();
    assert_eq!(cases.len(), cases.iter().collect::<BTreeSet<_>>().len(), "a case has two places");
    let counts = |suite: &str| cases.iter().filter(|case| case.starts_with(suite)).count();
    assert_eq!(
        ["t1.", "t2.", "t3.", "t4.", "t5.", "t6.", "fixtures."].map(counts),
        [4, 4, 5, 4, 4, 4, 3],
        "{cases:?}"
    );
    let rows = |suites: &[&str], externals: Externals, against: Against| {
        let suites = suites.iter().map(|suite| (*suite).to_owned()).collect();
        Kit::new(KitOptions { suites, externals, against, ..KitOptions::new("tgp") }).map(|kit| kit.rows())
    };
    let none = Externals::default;
    // Tools, models and runners of agents: 2 times 3 times 2.
    for (suite, expected) in
        [("t1.loop", 6), ("t2.rename-chain", 2), ("t3.veto", 8), ("t4.parallel", 12), ("t5.streamed-line", 2)]
    {
        assert_eq!(rows(&[suite], none(), Against::Everything).unwrap(), expected, "{suite}");
    }
    assert_eq!(rows(&["t6"], none(), Against::Everything).unwrap(), 16);
    // A program takes its role alone, and suites without that role are left out.
    let chronicle = || Externals { chronicle: Some("true".to_owned()), ..Externals::default() };
    assert_eq!(rows(&[], chronicle(), Against::Fakes).unwrap(), 5 + 4 + 3);
    assert_eq!(rows(&["t3"], chronicle(), Against::Everything).unwrap(), 5 * 4);
    let error = rows(&["t2"], chronicle(), Against::Everything).unwrap_err();
    assert!(error.message.contains("no row"), "{error}");
    let error = rows(&["t9"], none(), Against::Everything).unwrap_err();
    assert!(error.help_of().unwrap().contains("t1, t2, t3, t4, t5, t6, fixtures"), "{error:?}");
}

/// The fixtures are part of the program, because it is run where no repository is; so none may be forgotten.
#[test]
fn every_fixture_is_in_the_program() {
    let source = std::fs::read_to_string(place("src/suites/fixtures.rs")).unwrap();
    let mut count = 0;
    for folder in ["canonical-json", "chronicle-events"] {
        for entry in std::fs::read_dir(place("fixtures").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            // What has no canonical form cannot be said to a chronicle; the contract's own tests read that file.
            if folder == "canonical-json" && name == "refused.json" {
                continue;
            }
            assert!(source.contains(&format!("fixtures/{folder}/{name}\"")), "{folder}/{name} is forgotten");
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} fixtures were found");
}
