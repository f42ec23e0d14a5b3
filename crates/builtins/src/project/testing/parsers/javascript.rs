//! vitest, jest, mocha and Node's own runner.

use tgp_contract::RelativePath;

use super::super::counts::{Output, Tally};
use super::super::text::{number_of, path_of_frame, path_of_place, project_path};

pub(in super::super) fn read_vitest(output: &Output<'_>) -> Tally {
    let mut tally = Tally::default();
    let (mut summary, mut errors) = (None, None);
    for line in output.stdout.lines().chain(output.stderr.lines()) {
        let words = line.trim();
        if let Some(test) = words.strip_prefix("FAIL ") {
            // With several projects the name of one is in front, between bars.
            let test = test.trim_start();
            let test =
                test.strip_prefix('|').and_then(|rest| rest.split_once("| ")).map_or(test, |(_, test)| test);
            match test.split_once(" > ") {
                Some((file, _)) => tally.name(test, project_path(output.root, file)),
                None => {
                    let file = test.split(" [").next().unwrap_or_default();
                    tally.broken(file, project_path(output.root, file));
                }
            }
        } else if let Some(numbers) = words.strip_prefix("Tests  ") {
            // The runner's own summary is the last one: tests print before it.
            summary = Some(numbers);
            errors = None;
        } else if let Some(numbers) = words.strip_prefix("Errors  ") {
            errors = Some(numbers);
        }
    }
    if let Some(numbers) = summary {
        read_summary(numbers, &mut tally);
    }
    // Errors outside of any test fail the run, and the file is unknown.
    tally.failed(errors.and_then(|numbers| number_of(numbers, &["error", "errors"])).unwrap_or(0));
    tally
}

fn read_summary(numbers: &str, tally: &mut Tally) {
    tally.is_understood = true;
    tally.passed(number_of(numbers, &["passed"]).unwrap_or(0));
    tally.failed(number_of(numbers, &["failed"]).unwrap_or(0));
    let skipped = number_of(numbers, &["skipped"]).unwrap_or(0);
    tally.skipped(skipped.saturating_add(number_of(numbers, &["todo"]).unwrap_or(0)));
}

pub(in super::super) fn read_jest(output: &Output<'_>) -> Tally {
    const SUITE: &str = "Test suite failed to run";
    let mut tally = Tally::default();
    let mut file: Option<&str> = None;
    for line in output.stderr.lines().chain(output.stdout.lines()) {
        if let Some(path) = line.strip_prefix("FAIL ") {
            file = path.split(" (").next().map(str::trim);
        } else if line.starts_with("PASS ") {
            file = None;
        } else if let (Some(path), Some(test)) = (file, line.strip_prefix("  ● ")) {
            match test.trim() {
                SUITE => tally.broken(path, project_path(output.root, path)),
                "Console" => {}
                test => tally.name(test, project_path(output.root, path)),
            }
        }
    }
    // The runner's own summary is the last one that it writes; tests write before it, and to the other stream.
    if let Some(numbers) = output.stderr.lines().filter_map(|line| line.strip_prefix("Tests:  ")).next_back()
    {
        read_summary(numbers, &mut tally);
    }
    tally
}

pub(in super::super) fn read_mocha(output: &Output<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut in_failures = false;
    let mut open: Option<Failure> = None;
    // The runner's own summary is the last one: tests print before it.
    let is_summary = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
            && words.next() == Some("passing")
            && words.next().is_some_and(|time| time.starts_with('('))
    };
    let begin =
        output.stdout.lines().collect::<Vec<_>>().iter().rposition(|line| is_summary(line)).unwrap_or(0);
    for line in output.stdout.lines().skip(begin) {
        let words = line.trim();
        if !in_failures {
            let number = |word: &str| {
                words
                    .split_once(' ')
                    .filter(|(_, rest)| rest.split(' ').next() == Some(word))?
                    .0
                    .parse::<u64>()
                    .ok()
            };
            if let Some(passing) = number("passing") {
                tally.is_understood = true;
                tally.passed(passing);
            } else if let Some(pending) = number("pending") {
                tally.skipped(pending);
            } else if let Some(failing) = number("failing") {
                tally.failed(failing);
                in_failures = tally.is_understood;
            }
            continue;
        }
        if let Some(title) = numbered(line) {
            if let Some(done) = open.replace(Failure::new(title)) {
                done.tell(&mut tally);
            }
        } else if let Some(failure) = &mut open {
            failure.read(words, output.root);
        }
    }
    if let Some(done) = open {
        done.tell(&mut tally);
    }
    if let Some((_, error)) = output.stderr.split_once("Exception during run:") {
        let message = error.lines().next().unwrap_or_default().trim();
        // The last file of the stack is the one that mocha loaded.
        let stack = error.lines().skip_while(|line| *line != "Require stack:").skip(1);
        let file = stack.map_while(|line| line.strip_prefix("- ")).last();
        tally.is_understood = true;
        tally.broken(message, file.and_then(|file| project_path(output.root, file)));
    }
    tally
}

/// A failure of mocha's list: its title over several lines, then the error with its stack.
struct Failure {
    title: String,
    is_titled: bool,
    file: Option<RelativePath>,
}

impl Failure {
    fn new(title: &str) -> Self {
        let is_titled = title.ends_with(':');
        Self { title: title.trim_end_matches(':').to_owned(), is_titled, file: None }
    }

    fn read(&mut self, words: &str, root: Option<&str>) {
        /// Titles are short; this only keeps strange output from piling up in one.
        const MAX_TITLE_BYTES: usize = 1024;
        if !self.is_titled {
            self.is_titled = words.ends_with(':') || words.is_empty() || self.title.len() > MAX_TITLE_BYTES;
            self.title.push(' ');
            self.title.push_str(words.trim_end_matches(':'));
        } else if let Some(path) = path_of_frame(words).and_then(|path| project_path(root, path)) {
            // The test's own frame is the one that mocha called.
            if self.file.is_none() || words.starts_with("at Context.") {
                self.file = Some(path);
            }
        }
    }

    fn tell(self, tally: &mut Tally) {
        tally.name(self.title.trim(), self.file);
    }
}

/// The title in `  12) title`.
fn numbered(line: &str) -> Option<&str> {
    let (number, title) = line.strip_prefix("  ")?.split_once(") ")?;
    (!number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(title)
}

/// TAP, and the `spec` reporter, which says the same with other signs.
pub(in super::super) fn read_node(output: &Output<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut open: Option<(&str, Option<RelativePath>)> = None;
    let mut place: Option<&str> = None;
    for line in output.stdout.lines() {
        let words = line.trim();
        if let Some(rest) = words.strip_prefix("not ok ") {
            let name = rest.split_once(" - ").map_or(rest, |(_, name)| name);
            let is_todo = name.contains(" # TODO");
            tell_node(open.take(), &mut tally);
            open = (!is_todo).then_some((name, None));
        } else if words.starts_with("ok ") {
            tell_node(open.take(), &mut tally);
        } else if let (Some((_, file)), Some(place)) = (&mut open, words.strip_prefix("location: ")) {
            *file = project_path(output.root, path_of_place(place.trim_matches('\'')));
        } else if words.strip_prefix("failureType: ").is_some_and(|kind| kind.contains("subtestsFailed")) {
            // It is only above one that failed.
            open = None;
        } else if let Some(at) = line.strip_prefix("test at ") {
            place = Some(at);
        } else if let (Some(at), Some(name)) = (place, words.strip_prefix("✖ ")) {
            let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
            tally.name(name, project_path(output.root, path_of_place(at)));
            place = None;
        }
    }
    tell_node(open, &mut tally);
    for line in node_summary(output.stdout) {
        read_node_number(line, &mut tally);
    }
    tally
}

/// The numbers that the runner itself writes. What a test prints has the same sign before it, but is above them: the
/// summary begins with the last line that counts all tests.
fn node_summary(stdout: &str) -> Vec<&str> {
    let signed = |line| str::strip_prefix(line, "# ").or_else(|| str::strip_prefix(line, "ℹ "));
    let mut lines: Vec<&str> = stdout.lines().filter_map(signed).collect();
    let begin = lines.iter().rposition(|line| line.starts_with("tests ")).unwrap_or(lines.len());
    lines.split_off(begin)
}

fn tell_node(open: Option<(&str, Option<RelativePath>)>, tally: &mut Tally) {
    if let Some((name, file)) = open {
        tally.name(name, file);
    }
}

fn read_node_number(text: &str, tally: &mut Tally) {
    let Some((word, number)) = text.split_once(' ') else { return };
    let Ok(number) = number.parse::<u64>() else { return };
    match word {
        "pass" => {
            tally.is_understood = true;
            tally.passed(number);
        }
        "fail" | "cancelled" => tally.failed(number),
        "skipped" | "todo" => tally.skipped(number),
        _ => {}
    }
}
