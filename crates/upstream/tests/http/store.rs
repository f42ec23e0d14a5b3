//! Where definitions are kept.

use tgp_upstream::{Pin, ServerDefinition, StdioServer, UpstreamStore};

use crate::support::recorded;

#[tokio::test]
async fn bug_without_a_home_servers_were_read_from_the_current_directory() {
    let place = std::env::current_dir().unwrap();
    let folder = tempfile::Builder::new().prefix("upstream-").tempdir_in(&place).unwrap();
    let server = StdioServer { command: vec!["true".to_owned()], ..StdioServer::default() };
    let definition = ServerDefinition::Stdio(server);
    let keep =
        async |store: &UpstreamStore| store.keep("srv", &definition, &Pin::default(), recorded().await);
    keep(&UpstreamStore::new(folder.path())).await.unwrap();
    let relative = UpstreamStore::new(folder.path().strip_prefix(&place).unwrap());
    assert_eq!(relative.names().unwrap(), Vec::<String>::new());
    assert_eq!(relative.definition("srv").unwrap(), None);
    assert_eq!(relative.pin("srv").unwrap(), None);
    assert!(keep(&relative).await.is_err() && relative.remove("srv").is_err());
}
