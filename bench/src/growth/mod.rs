//! How times grow with the number of tools, of parallel sessions, and of audit entries.

mod audit_entries;
mod sessions;
mod tools;

use anyhow::{Context, Result};

use crate::report::{Curve, CurveLine, CurvePoint, Row, Section, Unit};
use crate::samples::Samples;
use crate::settings::{BenchSettings, Scale};

pub async fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    tools::measure(section, settings).await.context("growth with tools")?;
    sessions::measure(section, settings).context("growth with sessions")?;
    audit_entries::measure(section, settings).await.context("growth with audit entries")?;
    if settings.scale == Scale::Usual {
        section.note("10,000 tools and 1,000,000 audit entries are measured with `--long`".to_owned());
    }
    Ok(())
}

/// The sizes of one kind of growth.
struct Sizes {
    smoke: &'static [usize],
    usual: &'static [usize],
    long: &'static [usize],
}

impl Sizes {
    fn chosen(&self, scale: Scale) -> &'static [usize] {
        match scale {
            Scale::Smoke => self.smoke,
            Scale::Usual => self.usual,
            Scale::Long => self.long,
        }
    }
}

/// A chart that is filled size by size.
struct CurveBuilder {
    curve: Curve,
}

impl CurveBuilder {
    fn new(title: &str, size: &str, unit: Unit) -> Self {
        let curve = Curve { title: title.to_owned(), size: size.to_owned(), unit, lines: Vec::new() };
        Self { curve }
    }

    /// Adds what was measured at a size to the line with that name.
    fn point(&mut self, line: &str, size: usize, samples: &Samples) {
        let point = CurvePoint { size, spread: samples.spread() };
        match self.curve.lines.iter_mut().find(|known| known.name == line) {
            Some(known) => known.points.push(point),
            None => self.curve.lines.push(CurveLine { name: line.to_owned(), points: vec![point] }),
        }
    }

    /// Adds the chart, and for each line a row that compares its largest size with its smallest.
    fn finish(self, section: &mut Section) {
        let Curve { size, unit, .. } = &self.curve;
        for line in &self.curve.lines {
            if let [first, .., last] = line.points.as_slice() {
                let what = format!("{}, {} {size}", line.name, last.size);
                let row = Row::new(&what, *unit).ours(last.spread.p50);
                section.row(row.peer(&format!("with {} {size}", first.size), first.spread.p50));
            }
        }
        section.curves.push(self.curve);
    }
}
