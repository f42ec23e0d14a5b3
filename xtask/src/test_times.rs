//! How long each test program ran. Cargo names a program when it starts it, and says nothing when it ends.

use std::time::{Duration, Instant};

/// How many of the slowest programs are reported.
const MAX_SLOWEST: usize = 10;

/// The first words of the lines that only report progress.
const PROGRESS: [&str; 10] = [
    "Blocking",
    "Compiling",
    "Doc-tests",
    "Downloaded",
    "Downloading",
    "Finished",
    "Fresh",
    "Locking",
    "Running",
    "Updating",
];

/// The columns to whose right end cargo aligns the first word.
const WORD_COLUMNS: usize = 12;

/// The test programs in the order in which they ran.
#[derive(Default)]
pub struct TestTimes {
    running: Option<(String, Instant)>,
    ended: Vec<(String, Duration)>,
}

impl TestTimes {
    /// Reads a line of cargo's standard error. True when it is only progress.
    pub fn line(&mut self, line: &str, now: Instant) -> bool {
        let plain = without_colours(line);
        let Some((word, rest)) = progress(&plain) else { return false };
        let name = match word {
            "Running" => program_name(rest),
            "Doc-tests" => format!("{rest} (documentation)"),
            _ => return true,
        };
        self.end(now);
        self.running = Some((name, now));
        true
    }

    /// The program that runs has ended.
    pub fn end(&mut self, now: Instant) {
        if let Some((name, started)) = self.running.take() {
            self.ended.push((name, now.saturating_duration_since(started)));
        }
    }

    /// The slowest programs, the slowest first, below a headline.
    pub fn report(&self) -> Vec<String> {
        let mut slowest: Vec<&(String, Duration)> = self.ended.iter().collect();
        slowest.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let mut lines = Vec::new();
        for (name, time) in slowest.into_iter().take(MAX_SLOWEST) {
            if lines.is_empty() {
                lines.push("slowest test programs:".to_owned());
            }
            lines.push(format!("{:>8.1} s  {name}", time.as_secs_f64()));
        }
        lines
    }
}

/// The first word and the rest of a line that reports progress. A test may print the word itself, but not in its columns.
fn progress(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_at_checked(WORD_COLUMNS)?;
    let word = word.trim_start();
    Some((word, rest.strip_prefix(' ')?)).filter(|(word, _)| PROGRESS.contains(word))
}

/// `unittests src/lib.rs (target/debug/deps/tgp-0123456789abcdef)` as `tgp (unittests src/lib.rs)`.
fn program_name(text: &str) -> String {
    let parts = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("));
    let Some((source, path)) = parts else { return text.to_owned() };
    let file = path.rsplit('/').next().unwrap_or(path);
    let name = file.rsplit_once('-').map_or(file, |(name, _hash)| name);
    format!("{name} ({source})")
}

fn without_colours(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text));
    std::iter::once(first).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with the second in which each comes.
    fn times(lines: &[(u64, &str)], end: u64) -> (Vec<bool>, Vec<String>) {
        let start = Instant::now();
        let mut times = TestTimes::default();
        let is_progress = lines
            .iter()
            .map(|(second, line)| times.line(line, start + Duration::from_secs(*second)))
            .collect();
        times.end(start + Duration::from_secs(end));
        (is_progress, times.report())
    }

    #[test]
    fn programs_are_reported_by_their_time() {
        let (is_progress, report) = times(
            &[
                (0, "   Compiling tgp-text v0.1.0 (/tgp/crates/text)"),
                (1, "warning: unused variable"),
                (60, "    Finished `test` profile [unoptimized] target(s) in 1m 00s"),
                (60, "     Running unittests src/lib.rs (target/debug/deps/tgp_text-0123456789abcdef)"),
                (
                    62,
                    "\u{1b}[1m\u{1b}[92m     Running\u{1b}[0m tests/a-b/main.rs (/t/deps/a_b-0123456789abcdef)",
                ),
                (72, "Running tests/no.rs (target/debug/deps/no-0)"),
                (73, "   Doc-tests tgp_text"),
            ],
            77,
        );
        assert_eq!(is_progress, [true, false, true, true, true, false, true]);
        assert_eq!(
            report,
            [
                "slowest test programs:",
                "    11.0 s  a_b (tests/a-b/main.rs)",
                "     4.0 s  tgp_text (documentation)",
                "     2.0 s  tgp_text (unittests src/lib.rs)",
            ]
        );
    }

    #[test]
    fn only_the_slowest_are_reported() {
        let lines: Vec<(u64, String)> = (0..30)
            .map(|number| (number * number, format!("     Running tests/{number}.rs (d/t{number}-0)")))
            .collect();
        let lines: Vec<(u64, &str)> = lines.iter().map(|(second, line)| (*second, line.as_str())).collect();
        let (_, report) = times(&lines, 10_000);
        assert_eq!(report.len(), 1 + MAX_SLOWEST);
        assert_eq!(report.get(1).map(String::as_str), Some("  9159.0 s  t29 (tests/29.rs)"));
        assert!(times(&[], 1).1.is_empty());
    }
}
