//! TLS for protocols other than HTTP.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};

/// Why a TLS configuration could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of authorities cannot be read or is not PEM.
    #[error(transparent)]
    Pem(#[from] pem::Error),
    /// The file of authorities has no certificate.
    #[error("the file has no certificate")]
    Empty,
    /// A certificate or the configuration is not usable.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// A configuration that always verifies the server's certificate and name: with the authorities of a PEM file and no
/// others, or with the public ones.
///
/// # Errors
/// When the file cannot be read, or has no certificate that can be used.
pub fn tls_config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    match authorities {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            for certificate in CertificateDer::pem_file_iter(file)? {
                roots.add(certificate?)?;
            }
            if roots.is_empty() {
                return Err(TlsError::Empty);
            }
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
