//! `tgp models`: what a provider offers.

use clap::Args;
use serde_json::json;

use super::done;
use super::run::ModelArgs;
use crate::arguments::Global;
use crate::exit::Failure;
use crate::printer::Printer;
use crate::session;
use crate::text::visible;

#[derive(Debug, Args)]
pub struct ModelsArgs {
    #[command(flatten)]
    model: ModelArgs,
}

impl ModelsArgs {
    /// The variable that the command line names for the key.
    pub fn key_variable(&self) -> Option<&String> {
        self.model.key_variable.as_ref()
    }
}

pub async fn run(arguments: ModelsArgs, global: &Global, printer: &Printer) -> Result<(), Failure> {
    let kernel = session::boot(global, None, printer).await?;
    let models = kernel.models(&arguments.model.into()).await;
    kernel.shutdown().await;
    let models = models?;
    if printer.json() {
        printer.document(&done(json!({ "models": models })));
    } else {
        models.iter().for_each(|model| printer.line(&visible(model)));
    }
    Ok(())
}
