//! The environment variables by which programs find the proxy.

/// The variables for a program whose proxy listens on `127.0.0.1:port`.
///
/// Programs disagree on upper and lower case, so both are set. `NO_PROXY` is empty, because behind a listener of the jail
/// every host is reached through the proxy. Node reads these variables only when it is told to.
#[must_use]
pub fn proxy_environment(port: u16) -> [(&'static str, String); 7] {
    let proxy = format!("http://127.0.0.1:{port}");
    [
        ("HTTPS_PROXY", proxy.clone()),
        ("https_proxy", proxy.clone()),
        ("HTTP_PROXY", proxy.clone()),
        ("http_proxy", proxy),
        ("NO_PROXY", String::new()),
        ("no_proxy", String::new()),
        ("NODE_USE_ENV_PROXY", "1".to_owned()),
    ]
}
