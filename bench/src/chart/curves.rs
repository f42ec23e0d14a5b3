//! Values over sizes, two charts beside each other.

use super::scale::LogScale;
use super::{Canvas, FAINT, GRID, LINES, MARGIN, Style, WIDTH, short};
use crate::report::{Curve, CurvePoint};

const HEIGHT: f64 = 220.0;
const GAP: f64 = 40.0;
/// Room for the values beside a chart.
const LABELS: f64 = 70.0;

/// Draws every curve.
pub fn draw(canvas: &mut Canvas, curves: &[&Curve]) {
    let width = (WIDTH - 2.0 * MARGIN - GAP) / 2.0;
    for pair in curves.chunks(2) {
        canvas.y += 30.0;
        let top = canvas.y;
        let mut lowest = top;
        for (number, curve) in pair.iter().enumerate() {
            canvas.y = top;
            draw_curve(canvas, curve, MARGIN + number as f64 * (width + GAP), width);
            lowest = lowest.max(canvas.y);
        }
        canvas.y = lowest;
    }
}

fn draw_curve(canvas: &mut Canvas, curve: &Curve, left: f64, width: f64) {
    let points = || curve.lines.iter().flat_map(|line| &line.points);
    let (begin, end) = (left + LABELS, left + width);
    canvas.text(left, canvas.y, &curve.title, Style { size: 14.0, bold: true, ..Style::default() });
    let (top, bottom) = (canvas.y + 14.0, canvas.y + 14.0 + HEIGHT);
    let sizes = LogScale::over(points().map(|point| point.size as f64), begin, end);
    let values = points().flat_map(|point| [point.spread.p5, point.spread.p50, point.spread.p95]);
    let (Some(sizes), Some(values)) = (sizes, LogScale::over(values, bottom, top)) else { return };
    let small = Style { size: 10.0, colour: FAINT, ..Style::default() };
    for tick in values.ticks() {
        let y = values.position(tick);
        canvas.line((begin, y), (end, y), GRID);
        canvas.text(begin - 6.0, y + 3.0, &label(tick, curve), Style { anchor: "end", ..small });
    }
    let mut known: Vec<usize> = points().map(|point| point.size).collect();
    known.sort_unstable();
    known.dedup();
    for size in known {
        let x = sizes.position(size as f64);
        canvas.line((x, bottom), (x, bottom + 4.0), GRID);
        canvas.text(x, bottom + 16.0, &size.to_string(), Style { anchor: "middle", ..small });
    }
    canvas.text(end, bottom + 30.0, &curve.size, Style { anchor: "end", ..small });
    canvas.y = bottom + 30.0;
    for (line, colour) in curve.lines.iter().zip(LINES.iter().cycle()) {
        let at = |point: &CurvePoint, value: f64| (sizes.position(point.size as f64), values.position(value));
        let upper = line.points.iter().map(|point| at(point, point.spread.p95));
        let lower = line.points.iter().rev().map(|point| at(point, point.spread.p5));
        canvas.area(&upper.chain(lower).collect::<Vec<_>>(), colour);
        let middle: Vec<_> = line.points.iter().map(|point| at(point, point.spread.p50)).collect();
        canvas.path(&middle, colour);
        middle.iter().for_each(|(x, y)| canvas.dot(*x, *y, colour));
        canvas.y += 16.0;
        canvas.dot(left + 6.0, canvas.y - 4.0, colour);
        let ends = line.points.first().zip(line.points.last()).map(|(first, last)| {
            format!(": {} to {}", short(first.spread.p50, curve.unit), short(last.spread.p50, curve.unit))
        });
        let legend = format!("{}{}", line.name, ends.unwrap_or_default());
        canvas.text(left + 16.0, canvas.y, &legend, Style { size: 11.0, ..Style::default() });
    }
}

fn label(tick: f64, curve: &Curve) -> String {
    let text = short(tick, curve.unit);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}")
}
