//! The server for the host that started this process.

use std::sync::Arc;

use rmcp::service::ServerInitializeError;
use tgp::Kernel;
use tgp_contract::{Code, ToolError};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::approval::ApprovalStatus;
use crate::client::{Client, Shared};
use crate::handler::{ClientSource, Handler};
use crate::options::ServerOptions;
use crate::transport::LineTransport;

/// Serves one host until it closes its side. The connection has a token of its own, minted here.
///
/// # Errors
/// `EVALIDATION` for options that name an unknown tool, or a host that does not speak MCP.
pub async fn serve_stdio<R, W>(
    kernel: Arc<Kernel>,
    options: ServerOptions,
    approvals: Arc<dyn ApprovalStatus>,
    reader: R,
    writer: W,
) -> Result<(), ToolError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let shared = Arc::new(Shared::new(Arc::clone(&kernel), options, approvals)?);
    let token = kernel.mint_token(&shared.options.caveats("mcp stdio")).await?;
    let client = Arc::new(Client::new(&shared, token)?);
    let handler = Handler::new(ClientSource::One(Arc::clone(&client)), Arc::clone(&shared));
    let served = rmcp::serve_server(handler, LineTransport::new(reader, writer)).await;
    let ended = match served {
        Ok(service) => {
            // A task that panicked is the end of the connection and nothing else.
            let _ = service.waiting().await;
            Ok(())
        }
        // A host that closes at once has asked for nothing.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => {
            let reason = tgp_text::one_line(&error.to_string(), 200);
            Err(ToolError::new(Code::Validation, format!("the host does not speak MCP: {reason}"))
                .help("start `tgp mcp` from an MCP host; docs/mcp.md has a section for each"))
        }
    };
    client.runs.cancel_all();
    ended
}
