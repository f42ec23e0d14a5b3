//! `exec_tool` through the socket with more and more sessions at the same time.

use anyhow::Result;

use super::{CurveBuilder, Sizes};
use crate::callers::{Server, load};
use crate::project::Project;
use crate::report::{Section, Unit};
use crate::samples::Samples;
use crate::settings::BenchSettings;

const SIZES: Sizes =
    Sizes { smoke: &[1, 4], usual: &[1, 2, 4, 8, 16, 32, 64], long: &[1, 2, 4, 8, 16, 32, 64] };
/// The fewest runs of each session.
const EACH: usize = 5;

pub fn measure(section: &mut Section, settings: &BenchSettings) -> Result<()> {
    let each = settings.or_smoke(EACH, 1);
    let project = Project::new()?;
    let server = Server::start(&project)?;
    let mut rates = CurveBuilder::new("runs per second over sessions", "sessions", Unit::RunsPerSecond);
    let mut times = CurveBuilder::new("time of a run over sessions", "sessions", Unit::Milliseconds);
    for &sessions in SIZES.chosen(settings.scale) {
        let load = load(&server, sessions, settings.runs.max(sessions * each))?;
        let rate: Samples = [load.rate].into_iter().collect();
        rates.point("exec_tool through the socket, all sessions", sessions, &rate);
        times.point("exec_tool through the socket, one run", sessions, &load.times);
    }
    rates.finish(section);
    times.finish(section);
    Ok(())
}
