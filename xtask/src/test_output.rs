//! Reading what the test programs print. They run with `--show-output`, so that a test that skips itself can say so;
//! what else passing tests print is left out again.

use std::collections::{BTreeMap, BTreeSet};

/// Tests that are named below a reason; the count says how many there are.
const MAX_NAMES: usize = 5;

/// What a test means when it says that a variable is not set.
const VARIABLES: [(&str, &str); 10] = [
    ("TGP_TEST_POSTGRES_URL", "no PostgreSQL"),
    ("TGP_TEST_MYSQL_URL", "no MariaDB"),
    ("TGP_TEST_BOLT_URL", "no graph server"),
    ("TGP_TEST_GIT_HTTPS", "no git server over https"),
    ("TGP_TEST_GIT_SSH", "no git server over ssh"),
    ("TGP_TEST_NODE_MODULES", "no npm packages"),
    ("TGP_TEST_PACKAGE_LIST", "no list of npm packages"),
    ("TGP_TEST_MCP_CLIENTS", "no MCP clients"),
    ("TGP_TEST_PYTEST", "no pytest"),
    ("TGP_PACKAGES", "no TGP_PACKAGES"),
];

/// Where in the output of a test program a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// The progress, which is shown.
    Progress,
    /// What passing tests printed, which begins with `successes:`.
    Printed,
    /// The names of the passing tests, below a second `successes:`.
    Names,
    /// Failures and the result, which are shown whatever is in them.
    Results,
}

/// A filter over the lines of `cargo test --quiet -- --show-output`.
pub struct TestOutput {
    section: Section,
    /// The passing test whose output is read.
    test: Option<String>,
    /// An empty line that is shown only if it is not the one before `successes:`.
    is_blank_held: bool,
    /// Whether the program has printed its result.
    has_result: bool,
    pub passed: u64,
    pub failed: u64,
    pub skipped: Skipped,
}

impl TestOutput {
    pub fn new() -> Self {
        Self {
            section: Section::Progress,
            test: None,
            is_blank_held: false,
            has_result: false,
            passed: 0,
            failed: 0,
            skipped: Skipped::default(),
        }
    }

    /// Reads a line, and gives the lines to show.
    pub fn line(&mut self, line: &str) -> Vec<String> {
        match self.section {
            Section::Progress if line == "successes:" => {
                self.section = Section::Printed;
                self.is_blank_held = false;
                Vec::new()
            }
            Section::Progress => {
                // A test may write past the capture, behind the dots of progress.
                if let Some(reason) = line.trim_start_matches(['.', 'i', 'F']).strip_prefix("skipped: ") {
                    self.skipped.add(None, reason);
                }
                self.show(line)
            }
            // libtest prints the header a second time above the names, however few tests passed.
            Section::Printed if line == "successes:" => {
                self.section = Section::Names;
                Vec::new()
            }
            Section::Printed => {
                self.printed(line);
                Vec::new()
            }
            Section::Names if line.is_empty() => {
                self.is_blank_held = true;
                Vec::new()
            }
            Section::Names if line.starts_with("    ") && !self.is_blank_held => Vec::new(),
            Section::Names if line == "failures:" || line.starts_with("test result: ") => {
                self.section = Section::Results;
                self.is_blank_held = line == "failures:";
                self.show(line)
            }
            // A test printed the header itself.
            Section::Names => {
                self.section = Section::Printed;
                self.is_blank_held = false;
                self.printed(line);
                Vec::new()
            }
            Section::Results => {
                // The next program begins, or a test that ran one failed; its output is shown too.
                if line.starts_with("running ") && self.has_result {
                    self.section = Section::Progress;
                    self.has_result = false;
                    self.test = None;
                }
                self.show(line)
            }
        }
    }

    /// The held line when the output is over.
    pub fn end(&mut self) -> Vec<String> {
        if std::mem::take(&mut self.is_blank_held) { vec![String::new()] } else { Vec::new() }
    }

    fn show(&mut self, line: &str) -> Vec<String> {
        let mut shown = self.end();
        if line.is_empty() {
            self.is_blank_held = true;
            return shown;
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.has_result = true;
            self.passed += count_before(counts, " passed");
            self.failed += count_before(counts, " failed");
        }
        shown.push(line.to_owned());
        shown
    }

    fn printed(&mut self, line: &str) {
        let header = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(test) = header {
            self.test = Some(test.to_owned());
        } else if let Some(reason) = skip_reason(line) {
            self.skipped.add(self.test.as_deref(), reason);
        }
    }
}

/// Why a test that passed says it was skipped. Tests word it in three ways: `skipped: REASON`, `REASON, skipped` and
/// `REASON: skipped`, the latter two also with details behind a colon.
fn skip_reason(line: &str) -> Option<&str> {
    if let Some(reason) = line.strip_prefix("skipped: ").or_else(|| line.strip_prefix("tck: skipped, ")) {
        return Some(reason);
    }
    let (reason, rest) = line.split_once(", skipped").or_else(|| line.split_once(": skipped"))?;
    (rest.is_empty() || rest.starts_with(": ")).then_some(reason)
}

/// The tests that were skipped, by reason.
#[derive(Default)]
pub struct Skipped {
    tests: BTreeMap<String, BTreeSet<String>>,
    /// Skips of tests whose names are not known.
    unnamed: BTreeMap<String, usize>,
}

impl Skipped {
    /// A test that says it more than once counts once for each reason.
    pub fn add(&mut self, test: Option<&str>, reason: &str) {
        let known = VARIABLES.iter().find(|(variable, _)| reason.contains(variable));
        let reason = known.map_or(reason, |(_, meaning)| meaning).trim().to_owned();
        match test {
            Some(test) => {
                self.tests.entry(reason).or_default().insert(test.to_owned());
            }
            None => *self.unnamed.entry(reason).or_default() += 1,
        }
    }

    /// A line for each reason with the number of tests, and one with their names.
    pub fn report(&self) -> Vec<String> {
        let reasons: BTreeSet<&String> = self.tests.keys().chain(self.unnamed.keys()).collect();
        let mut lines = Vec::new();
        for reason in reasons {
            let names: Vec<&str> = self.tests.get(reason).into_iter().flatten().map(String::as_str).collect();
            let count = names.len() + self.unnamed.get(reason).unwrap_or(&0);
            lines.push(format!("{count} skipped: {reason}"));
            if !names.is_empty() {
                let more = names.len().saturating_sub(MAX_NAMES);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                let names: Vec<&str> = names.into_iter().take(MAX_NAMES).collect();
                lines.push(format!("    {}{more}", names.join(", ")));
            }
        }
        lines
    }
}

/// The number before `word`; 0 when there is none.
fn count_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    before.rsplit([' ', ';']).next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(output: &str, shown: &str, counts: (u64, u64), skipped: &[&str]) {
        let mut filter = TestOutput::new();
        let mut lines: Vec<String> = output.lines().flat_map(|line| filter.line(line)).collect();
        lines.extend(filter.end());
        let lines: String = lines.into_iter().map(|line| line + "\n").collect();
        assert_eq!(lines, shown);
        assert_eq!((filter.passed, filter.failed), counts);
        assert_eq!(filter.skipped.report(), skipped);
    }

    #[test]
    fn what_passing_tests_print_is_left_out() {
        check(
            include_str!("test_output/passing.txt"),
            "\nrunning 4 tests\n....\ntest result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s\n\n",
            (4, 0),
            &[
                "1 skipped: commands cannot run here",
                "    tdd::three",
                "2 skipped: no MariaDB",
                "    sql::one, sql::two",
            ],
        );
    }

    #[test]
    fn what_failing_tests_print_is_shown_in_full() {
        let output = include_str!("test_output/failing.txt");
        let failures = output.find("failures:").unwrap();
        check(
            output,
            &format!("\nrunning 3 tests\n.. 2/3\ntwo --- FAILED\n\n{}", output.get(failures..).unwrap()),
            (2, 1),
            &["1 skipped: no PostgreSQL", "    one"],
        );
    }

    #[test]
    fn several_programs_follow_each_other() {
        let [passing, failing] =
            [include_str!("test_output/passing.txt"), include_str!("test_output/failing.txt")];
        let mut filter = TestOutput::new();
        let lines = [failing, passing, failing].concat();
        let shown: Vec<String> = lines.lines().flat_map(|line| filter.line(line)).collect();
        assert_eq!((filter.passed, filter.failed), (8, 2));
        assert_eq!(shown.iter().filter(|line| *line == "skipped: this is shown, not counted").count(), 2);
        assert!(!shown.iter().any(|line| line == "a measurement" || line.contains("TGP_TEST_MYSQL_URL")));
    }

    #[test]
    fn a_passing_test_may_print_the_words_of_the_runner() {
        check(
            include_str!("test_output/nested.txt"),
            "\nrunning 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s\n\n",
            (2, 0),
            &["1 skipped: no node", "    b_after"],
        );
    }

    #[test]
    fn a_line_past_the_capture_is_counted_and_shown() {
        let output = "running 2 tests\n..skipped: tests on MariaDB (TGP_TEST_MYSQL_URL is not set)\n";
        check(output, output, (0, 0), &["1 skipped: no MariaDB"]);
    }

    #[test]
    fn many_names_are_cut() {
        let mut skipped = Skipped::default();
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            skipped.add(Some(name), "no Landlock");
            skipped.add(Some(name), "no Landlock");
        }
        assert_eq!(skipped.report(), ["7 skipped: no Landlock", "    a, b, c, d, e and 2 more"]);
    }

    #[test]
    fn reasons_are_found_in_each_wording() {
        assert_eq!(skip_reason("skipped: no python3"), Some("no python3"));
        assert_eq!(
            skip_reason("commands cannot run here, skipped: seccomp"),
            Some("commands cannot run here")
        );
        assert_eq!(skip_reason("no pid namespaces here: skipped"), Some("no pid namespaces here"));
        assert_eq!(skip_reason("types: skipped)"), None);
        assert_eq!(skip_reason("3 passed, 1 skipped"), None);
    }

    #[test]
    fn counts_are_before_their_words() {
        assert_eq!(count_before("ok. 12 passed; 3 failed; 0 ignored", " passed"), 12);
        assert_eq!(count_before("ok. 12 passed; 3 failed; 0 ignored", " failed"), 3);
        assert_eq!(count_before("", " failed"), 0);
    }
}
