//! The contenders of each job, one below the other on one scale.

use super::scale::LogScale;
use super::{Canvas, FAINT, GRID, MARGIN, OURS, PEER, Style, WIDTH, short};
use crate::report::{Contender, Section, Side};

const ROW: f64 = 22.0;
/// Where the names end and the bars begin, and where those end and the values begin.
const BARS: (f64, f64) = (360.0, 740.0);

/// Draws one chart for each job of a section.
pub fn draw(canvas: &mut Canvas, section: &Section) {
    let mut groups: Vec<&str> = Vec::new();
    for contender in &section.contenders {
        if !groups.contains(&contender.group.as_str()) {
            groups.push(&contender.group);
        }
    }
    for group in groups {
        let contenders: Vec<_> =
            section.contenders.iter().filter(|contender| contender.group == group).collect();
        draw_group(canvas, &format!("{}: {group}", section.name), &contenders);
    }
}

fn draw_group(canvas: &mut Canvas, heading: &str, contenders: &[&Contender]) {
    let values = contenders.iter().flat_map(|one| [one.spread.p5, one.spread.p50, one.spread.p95]);
    let Some(scale) = LogScale::over(values, BARS.0, BARS.1) else { return };
    canvas.y += 26.0;
    canvas.text(MARGIN, canvas.y, heading, Style { size: 14.0, bold: true, ..Style::default() });
    canvas.y += 8.0;
    let (top, bottom) = (canvas.y, canvas.y + ROW * contenders.len() as f64);
    for tick in scale.ticks() {
        let x = scale.position(tick);
        canvas.line((x, top), (x, bottom), GRID);
        let style = Style { size: 10.0, colour: FAINT, anchor: "middle", ..Style::default() };
        canvas.text(x, bottom + 12.0, &format!("{tick}"), style);
    }
    for contender in contenders {
        let middle = canvas.y + ROW / 2.0;
        let (colour, bold) = match contender.side {
            Side::Ours => (OURS, true),
            Side::Peer => (PEER, false),
        };
        let spread = contender.spread;
        canvas.text(MARGIN, middle + 4.0, &contender.name, Style { bold, ..Style::default() });
        canvas.range((scale.position(spread.p5), scale.position(spread.p95)), middle, colour);
        canvas.dot(scale.position(spread.p50), middle, colour);
        let value = short(spread.p50, contender.unit);
        canvas.text(BARS.1 + 16.0, middle + 4.0, &value, Style { bold, ..Style::default() });
        let range = format!("{} to {}", short(spread.p5, contender.unit), short(spread.p95, contender.unit));
        let style = Style { size: 10.0, colour: FAINT, anchor: "end", ..Style::default() };
        canvas.text(WIDTH - MARGIN, middle + 4.0, &range, style);
        canvas.y += ROW;
    }
    canvas.y += 14.0;
}
