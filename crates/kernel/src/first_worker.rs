//! The worker that a kernel starts while it boots.

use tgp_sandbox::Sandbox;

/// The worker that is started while a kernel boots, because the first call is likely to need it. Any other is started when
/// a call needs it. A machine on which none can be started boots all the same: the call reports why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstWorker {
    /// Tools are run.
    #[default]
    Run,
    /// Sources are compiled or checked.
    Compile,
    /// Perhaps none is needed.
    None,
}

impl FirstWorker {
    pub(crate) async fn start(self, sandbox: &Sandbox) {
        match self {
            Self::Run => {
                if let Err(error) = sandbox.warm().await {
                    tracing::warn!(target: "worker", "{error}");
                }
            }
            Self::Compile => sandbox.warm_compiler(),
            Self::None => {}
        }
    }
}
