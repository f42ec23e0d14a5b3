//! Thousands of tools that do different jobs: trades, what they handle, and what is done with it.

/// Trades, what they handle, and what is done with it. None is the job of a tool of the labelled set.
const TRADES: [&str; 25] = [
    "museum",
    "theatre",
    "harbour",
    "zoo",
    "orchard",
    "brewery",
    "choir",
    "bakery",
    "vineyard",
    "ski resort",
    "aquarium",
    "monastery",
    "shipyard",
    "beekeeping",
    "forestry",
    "pottery",
    "film set",
    "circus",
    "observatory",
    "dance school",
    "antique shop",
    "quarry",
    "lighthouse",
    "rowing club",
    "fire brigade",
];
const THINGS: [&str; 20] = [
    "exhibits",
    "costumes",
    "moorings",
    "enclosures",
    "harvests",
    "barrels",
    "rehearsals",
    "ovens",
    "cellars",
    "slopes",
    "tanks",
    "manuscripts",
    "hulls",
    "hives",
    "saplings",
    "kilns",
    "scenes",
    "acrobats",
    "telescopes",
    "instructors",
];
const JOBS: [(&str, &str); 20] = [
    ("list", "List the {thing} of a {trade}."),
    ("inspect", "Inspection report on the {thing} of a {trade}."),
    ("label", "Print labels for the {thing} of a {trade}."),
    ("insure", "Insurance value of the {thing} of a {trade}."),
    ("lend", "Lend {thing} of a {trade} to a partner."),
    ("oldest", "Oldest {thing} in a {trade} and who cares for them."),
    ("clean", "Cleaning plan for the {thing} of a {trade}."),
    ("photograph", "Photo catalogue of the {thing} in a {trade}."),
    ("repair", "Repairs needed on the {thing} of a {trade}."),
    ("visitors", "Visitors who looked at the {thing} of a {trade} in a season."),
    ("donate", "Donors of the {thing} in a {trade}."),
    ("season", "Opening season of a {trade} with its {thing}."),
    ("guide", "Guided tour past the {thing} of a {trade}."),
    ("replace", "Replacement cost of the {thing} in a {trade}."),
    ("archive", "Archive records about the {thing} of a {trade}."),
    ("rename", "Rename {thing} of a {trade}."),
    ("volunteers", "Volunteers who look after the {thing} of a {trade}."),
    ("count", "Count the {thing} in a {trade}."),
    ("move", "Move {thing} of a {trade} to another building."),
    ("noise", "Noise level near the {thing} of a {trade}."),
];

/// How far apart two tools of neighbouring numbers are. It has no common divisor with the number of tools, so that each
/// number below that is another tool, and neighbours differ in trade and job.
const STRIDE: usize = 407;

/// A tool that does a job for a trade.
#[derive(Clone, Copy, Debug)]
pub struct TradeTool {
    trade: &'static str,
    thing: &'static str,
    verb: &'static str,
    text: &'static str,
    job: usize,
}

impl TradeTool {
    /// How many different ones there are.
    pub const COUNT: usize = TRADES.len() * THINGS.len() * JOBS.len();

    /// The tool with a number; beyond [`Self::COUNT`] they begin again.
    pub fn new(number: usize) -> Self {
        let (rest, job) = (number / JOBS.len(), number % JOBS.len());
        let (trade, thing) = (rest / THINGS.len() % TRADES.len(), rest % THINGS.len());
        let (verb, text) = JOBS.get(job).copied().unwrap_or_default();
        Self {
            trade: TRADES.get(trade).copied().unwrap_or_default(),
            thing: THINGS.get(thing).copied().unwrap_or_default(),
            verb,
            text,
            job,
        }
    }

    /// The tools in an order in which neighbours have little in common.
    pub fn scattered(number: usize) -> Self {
        Self::new(number * STRIDE % Self::COUNT)
    }

    pub fn name(&self) -> String {
        format!("{}_{}", self.verb, self.thing)
    }

    pub fn path(&self) -> String {
        format!("tools/{}/{}.ts", self.trade.replace(' ', "_"), self.name())
    }

    pub fn description(&self) -> String {
        self.text.replace("{thing}", self.thing).replace("{trade}", self.trade)
    }

    /// The source of the tool. `version` changes a constant in it.
    pub fn source(&self, version: usize) -> String {
        let Self { thing, verb, .. } = self;
        let body = match self.job % 4 {
            0 => format!(
                "(args: {{ {thing}: string[]; limit: number }}): string[] =>\n  \
                 args.{thing}.filter((one) => one.length > {version}).slice(0, args.limit);"
            ),
            1 => format!(
                "(args: {{ {thing}: {{ name: string; weight: number }}[] }}): number =>\n  \
                 args.{thing}.reduce((sum, one) => sum + one.weight, {version});"
            ),
            2 => format!(
                "(args: {{ {thing}: string[]; prefix: string }}): Record<string, string> =>\n  \
                 Object.fromEntries(args.{thing}.map((one, index) => [one, `${{args.prefix}}-${{index + {version}}}`]));"
            ),
            _ => format!(
                "(args: {{ {verb}: boolean; {thing}: number }}): {{ {thing}: number; done: boolean }} =>\n  \
                 ({{ {thing}: args.{thing} + {version}, done: args.{verb} }});"
            ),
        };
        format!("/** {} */\nexport default {body}\n", self.description())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::TradeTool;

    #[test]
    fn every_number_is_another_tool() {
        let paths: BTreeSet<String> =
            (0..TradeTool::COUNT).map(|number| TradeTool::new(number).path()).collect();
        assert_eq!(paths.len(), TradeTool::COUNT);
        let scattered = (0..TradeTool::COUNT).map(|number| TradeTool::scattered(number).path());
        assert_eq!(scattered.collect::<BTreeSet<_>>(), paths);
    }

    #[test]
    fn a_version_changes_the_source_and_nothing_else() {
        let tool = TradeTool::scattered(1);
        assert_ne!(tool.source(1), tool.source(2));
        assert!(tool.source(1).starts_with(&format!("/** {} */", tool.description())));
    }
}
