//! A report as one SVG: the contenders of each job with the range that nine of ten runs are in, and the curves of growth.

mod bars;
mod curves;
mod scale;

use crate::report::{Report, Unit};

/// Of the whole picture.
const WIDTH: f64 = 960.0;
const MARGIN: f64 = 24.0;

const OURS: &str = "#2563eb";
const PEER: &str = "#6b7280";
const TEXT: &str = "#111827";
const FAINT: &str = "#4b5563";
const GRID: &str = "#e5e7eb";
/// Colours of the lines of a curve.
const LINES: [&str; 4] = [OURS, "#d97706", "#059669", "#9333ea"];

/// The picture of a report. It has a white background, so that it is readable on dark pages too.
pub fn svg(report: &Report) -> String {
    let mut canvas = Canvas { body: String::new(), y: MARGIN + 16.0 };
    canvas.text(
        MARGIN,
        canvas.y,
        "TGP against its peers",
        Style { size: 18.0, bold: true, ..Style::default() },
    );
    canvas.y += 20.0;
    let machine = &report.machine;
    let about = format!(
        "{}, {} cores, {}, profile {}. Dot: median; bar: p5 to p95; logarithmic scales.",
        machine.cpu, machine.cores, machine.kernel, machine.profile
    );
    canvas.text(MARGIN, canvas.y, &about, Style { colour: FAINT, ..Style::default() });
    canvas.y += 16.0;
    for section in &report.sections {
        bars::draw(&mut canvas, section);
    }
    let curves: Vec<_> = report.sections.iter().flat_map(|section| &section.curves).collect();
    curves::draw(&mut canvas, &curves);
    canvas.finish()
}

/// What has been drawn, and where the next thing begins.
struct Canvas {
    body: String,
    y: f64,
}

/// How a text looks.
#[derive(Clone, Copy)]
struct Style {
    size: f64,
    bold: bool,
    colour: &'static str,
    anchor: &'static str,
}

impl Default for Style {
    fn default() -> Self {
        Self { size: 12.0, bold: false, colour: TEXT, anchor: "start" }
    }
}

impl Canvas {
    fn text(&mut self, x: f64, y: f64, text: &str, style: Style) {
        let Style { size, bold, colour, anchor } = style;
        let weight = if bold { " font-weight=\"600\"" } else { "" };
        let text = escape(text);
        self.body.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" text-anchor=\"{anchor}\"{weight}>{text}</text>\n"
        ));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
        self.body.push_str(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>\n"
        ));
    }

    /// A range as a bar with round ends.
    fn range(&mut self, (x1, x2): (f64, f64), y: f64, colour: &str) {
        let (x, width) = (x1.min(x2) - 4.0, (x2 - x1).abs() + 8.0);
        let top = y - 4.0;
        self.body.push_str(&format!(
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"8\" rx=\"4\" fill=\"{colour}\" fill-opacity=\"0.3\"/>\n"
        ));
    }

    fn dot(&mut self, x: f64, y: f64, colour: &str) {
        self.body.push_str(&format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>\n"));
    }

    /// A line through points.
    fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let points = pairs(points);
        self.body.push_str(&format!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n"
        ));
    }

    /// The area between points.
    fn area(&mut self, points: &[(f64, f64)], colour: &str) {
        let points = pairs(points);
        self.body
            .push_str(&format!("<polygon points=\"{points}\" fill=\"{colour}\" fill-opacity=\"0.15\"/>\n"));
    }

    fn finish(self) -> String {
        let height = self.y + MARGIN;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
             width=\"{WIDTH:.0}\" height=\"{height:.0}\" font-family=\"system-ui, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

fn pairs(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A value with as many digits as say something.
fn short(value: f64, unit: Unit) -> String {
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    let unit = match unit {
        Unit::Milliseconds => "ms",
        Unit::Kilobytes => "KB",
        Unit::Megabytes => "MB",
        Unit::RunsPerSecond => "runs/s",
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::svg;
    use crate::page::tests::small_report;

    #[test]
    fn every_contender_and_line_is_in_the_picture() {
        let picture = svg(&small_report());
        assert!(picture.starts_with("<svg "), "{picture}");
        assert!(picture.ends_with("</svg>\n"), "{picture}");
        for text in ["tgp, own process", "isolated-vm &lt;5&gt;", "verify the whole chain", "0.300 ms"] {
            assert!(picture.contains(text), "`{text}` is not in {picture}");
        }
        assert!(!picture.contains("NaN"), "{picture}");
    }
}
