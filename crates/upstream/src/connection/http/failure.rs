//! ConnectionFailure a server over HTTP could not be used.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::AuthError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError,
};
use tgp_net::causes;

use super::super::ConnectionFailure;

/// What is wrong with an answer, in words for the user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct HttpFailure(pub(super) String);

/// An error of our client inside rmcp.
pub(super) type HttpError = StreamableHttpError<HttpFailure>;

pub(super) fn failure(why: impl Into<String>) -> HttpError {
    HttpError::Client(HttpFailure(why.into()))
}

impl From<&ServiceError> for ConnectionFailure {
    fn from(error: &ServiceError) -> Self {
        match error {
            ServiceError::TransportSend(inner) => of_transport(inner.error.as_ref()),
            other => Self::from(other.to_string()),
        }
    }
}

impl From<&ClientInitializeError> for ConnectionFailure {
    fn from(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::TransportError { error, .. } => of_transport(error.error.as_ref()),
            other => Self::from(other.to_string()),
        }
    }
}

/// rmcp wraps the errors of a transport; the innermost that is known says it best.
fn of_transport(error: &(dyn Error + 'static)) -> ConnectionFailure {
    for cause in causes(error) {
        if cause.is::<AuthRequiredError>()
            || matches!(cause.downcast_ref(), Some(AuthError::AuthorizationRequired))
        {
            return ConnectionFailure::login("it needs a login");
        }
        if cause.is::<InsufficientScopeError>() {
            return ConnectionFailure::login("it needs a login with more rights");
        }
        if let Some(HttpError::Client(failure)) = cause.downcast_ref() {
            return ConnectionFailure::from(failure.0.clone());
        }
    }
    ConnectionFailure::from(error.to_string())
}
