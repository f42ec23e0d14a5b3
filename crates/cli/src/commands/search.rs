//! `tgp search`.

use clap::Args;
use console::Style;
use serde_json::json;
use tgp::results::{SearchResult, SearchVerdict};

use super::{done, result_of};
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What the tool should do, in your own words.
    #[arg(required = true, num_args = 1.., value_name = "WORDS")]
    query: Vec<String>,
    /// How many tools to show.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=50))]
    limit: u64,
}

pub async fn run(arguments: SearchArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let call = json!({ "query": arguments.query.join(" "), "limit": arguments.limit });
    let data = session::call(&kernel, "search", call, session::typed(false)).await?;
    kernel.shutdown().await;
    if printer.json() {
        printer.document(&done(data));
        return Ok(());
    }
    let SearchResult { results, verdict, warnings } = result_of(data)?;
    warnings.iter().for_each(|warning| printer.warn(warning));
    for hit in &results {
        let (word, style) = match hit.verdict {
            SearchVerdict::Reuse => ("reuse", Style::new().green().bold()),
            SearchVerdict::Review => ("review", Style::new().yellow()),
            SearchVerdict::Forge => ("forge", Style::new().dim()),
        };
        let word = printer.paint_out(&style, &format!("{word:<6}"));
        printer.line(&format!("{:.2} {word} {}", hit.score, visible(hit.path.as_str())));
        for line in [&hit.description, &hit.signature, &hit.why].map(|line| visible(line)) {
            if !line.is_empty() {
                printer.line(&format!("            {}", line.replace('\n', " ")));
            }
        }
    }
    printer.note(match verdict {
        SearchVerdict::Reuse => "the first one does it: use it",
        SearchVerdict::Review => "one of them may do it: read it before you forge another",
        SearchVerdict::Forge if results.is_empty() => "there are no tools yet: forge one with `tgp write`",
        SearchVerdict::Forge => "none of them does it: forge one",
    });
    Ok(())
}
