//! Names that lead to addresses that are not on the public internet.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use tgp_contract::Code;
use tgp_fetch::{AllowList, FetchClient, FetchLimits, NameResolver};
use tgp_net::root_cause;
use url::Url;

use crate::support::watched;

struct Private;

#[async_trait]
impl NameResolver for Private {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec!["10.0.0.1".parse().unwrap()])
    }
}

#[tokio::test]
async fn a_public_name_at_a_private_address_is_not_reached() {
    watched(async {
        let list = AllowList::parse(&["https://mcp.example.com".to_owned()]).unwrap();
        let client = FetchClient::new(list, FetchLimits::default()).with_resolver(Arc::new(Private));
        let url = Url::parse("https://mcp.example.com/mcp").unwrap();
        let error = client.http_client(&url).await.unwrap().get(url).send().await.unwrap_err();
        assert!(root_cause(&error).contains("a private address"), "{error:?}");
        for literal in ["https://10.0.0.1/", "http://127.0.0.1:1/", "http://169.254.169.254/latest"] {
            let error = client.http_client(&Url::parse(literal).unwrap()).await.unwrap_err();
            assert_eq!(error.code, Code::Security, "{literal}");
        }
        let own = AllowList::parse(&["http://127.0.0.1:1".to_owned()]).unwrap();
        let client = FetchClient::new(own, FetchLimits::default());
        assert!(client.http_client(&Url::parse("http://127.0.0.1:1/mcp").unwrap()).await.is_ok());
    })
    .await;
}
