//! How far an ingest is, on standard error: a bar at a terminal, now and then a line elsewhere.

use std::future::Future;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use tgp::Kernel;

use crate::printer::Printer;

/// How often the bar moves.
const FRAME: Duration = Duration::from_millis(200);
/// What ends before needs no line.
const FIRST_LINE: Duration = Duration::from_secs(2);
/// Between two lines.
const NEXT_LINE: Duration = Duration::from_secs(10);
/// Cells of the bar.
const CELLS: u64 = 24;
/// A terminal without room for more gets the words alone.
const MIN_WIDTH: usize = 80;

/// Waits for `work` and shows meanwhile how far the ingest of this process is.
pub(super) async fn shown<T>(kernel: &Kernel, printer: &Printer, work: impl Future<Output = T>) -> T {
    if printer.json() {
        return work.await;
    }
    let mut view = View::new(printer);
    let mut ticks = tokio::time::interval(FRAME);
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                view.end();
                return done;
            }
            _ = ticks.tick() => {
                if let Some(at) = kernel.knowledge().graph_progress() {
                    view.show(&Shown { phase: at.phase.name(), done: at.done, total: at.total });
                }
            }
        }
    }
}

/// What is shown of a progress.
struct Shown {
    phase: &'static str,
    done: u64,
    /// 0 where it is not known.
    total: u64,
}

struct View<'p> {
    printer: &'p Printer,
    /// Of a terminal; none elsewhere.
    width: Option<usize>,
    next_line: Instant,
    has_bar: bool,
}

impl<'p> View<'p> {
    fn new(printer: &'p Printer) -> Self {
        let next_line = Instant::now() + FIRST_LINE;
        Self { printer, width: printer.look_err().width, next_line, has_bar: false }
    }

    fn show(&mut self, progress: &Shown) {
        match self.width {
            Some(width) => {
                let line = if width < MIN_WIDTH { words(progress) } else { bar(progress) };
                self.has_bar = true;
                self.write(&format!("\r\u{1b}[2K{line}"));
            }
            None if Instant::now() >= self.next_line => {
                self.next_line = Instant::now() + NEXT_LINE;
                self.printer.note(&words(progress));
            }
            None => {}
        }
    }

    /// Leaves the terminal as it was.
    fn end(&mut self) {
        if std::mem::take(&mut self.has_bar) {
            self.write("\r\u{1b}[2K");
        }
    }

    fn write(&self, text: &str) {
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn words(progress: &Shown) -> String {
    let Shown { phase, done, total } = progress;
    let of = if *total == 0 { String::new() } else { format!("{done} of {total} ") };
    match *phase {
        "files" => format!("reading {of}files"),
        "links" => format!("linking {total} files"),
        "commits" => format!("reading {of}new commits"),
        _ => format!("reading history, newest first: {of}commits"),
    }
}

fn bar(progress: &Shown) -> String {
    let words = words(progress);
    if progress.total == 0 || progress.phase == "links" {
        return words;
    }
    let full = progress.done.saturating_mul(CELLS) / progress.total;
    let cells: String = (0..CELLS).map(|cell| if cell < full { '#' } else { '.' }).collect();
    format!("[{cells}] {words}")
}

#[cfg(test)]
mod tests {
    use super::{Shown, bar, words};

    #[test]
    fn progress_is_shown_in_words_and_as_a_bar() {
        let at = |phase, done, total| Shown { phase, done, total };
        assert_eq!(words(&at("files", 10, 40)), "reading 10 of 40 files");
        assert_eq!(words(&at("history", 1, 0)), "reading history, newest first: commits");
        assert_eq!(bar(&at("links", 0, 40)), "linking 40 files");
        assert_eq!(
            bar(&at("history", 10, 40)),
            "[######..................] reading history, newest first: 10 of 40 commits"
        );
    }
}
