//! The configuration of the user: what is read, refused and merged.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use super::{Permissions, Theme, UserConfig};
use crate::boot::Environment;

fn home(directory: &Path) -> Environment {
    let directory = directory.display().to_string();
    Arc::new(move |name| (name == "TGP_HOME").then(|| directory.clone()))
}

#[test]
fn every_field_is_read() {
    let text = r#"
        provider = "openai-chat"
        baseUrl = "https://gateway.example/v1"
        model = "m-1"
        theme = "plain"
        permissions = "yes"
        [keys]
        openai = "WORK_KEY"
        "https://gateway.example/v1/" = "GATEWAY_KEY"
    "#;
    let config = UserConfig::from_text("config.toml", text).unwrap();
    assert_eq!(config.provider.as_deref(), Some("openai-chat"));
    assert_eq!((config.theme, config.permissions), (Theme::Plain, Permissions::Yes));
    for (provider, address, variable) in [
        ("openai", None, Some("WORK_KEY")),
        ("openai-chat", None, Some("WORK_KEY")),
        ("anthropic", None, None),
        // A key by name goes to the provider's own address only.
        ("openai", Some("https://other.example/v1"), None),
        ("openai", Some("https://gateway.example/v1"), Some("GATEWAY_KEY")),
        ("https://gateway.example/v1", Some("https://gateway.example/v1?x=1"), Some("GATEWAY_KEY")),
        ("openai", Some("http://gateway.example/v1"), None),
        ("openai", Some("https://gateway.example:8443/v1"), None),
        ("openai", Some("https://gateway.example/v10"), None),
        ("openai", Some("https://gateway.example.evil/v1"), None),
    ] {
        assert_eq!(config.key_variable(provider, address), variable, "{provider} {address:?}");
    }
    assert_eq!(UserConfig::from_text("config.toml", "").unwrap(), UserConfig::default());
}

#[test]
fn wrong_fields_are_named_and_keys_are_not_repeated() {
    for (text, expected) in [
        ("modle = 'x'", "did you mean `model`?"),
        ("theme = 'dark'", "theme: must be one of 'auto', 'plain'"),
        ("permissions = 'accept-all'", "permissions: must be one of 'ask', 'yes'"),
        ("provider = 7", "provider: must be a string"),
        ("keys = 'OPENAI_API_KEY'", "keys: must be an object"),
        ("[keys]\nopenai = 'sk-secret'", "keys (entry 1): is not the name of an environment variable"),
        ("[keys]\nopenai = 'gsk_secret'", "keys (entry 1): looks like a key"),
        ("[keys]\nopenai = 3", "keys (entry 1): must name an environment variable"),
        ("[keys]\nsk-secret = 'A'", "keys (entry 1): must be for openai, anthropic, or a base URL"),
        ("[keys]\n'https://u:secret@host' = 'A'", "keys (entry 1): must be for openai"),
        ("[keys]\nopenai-chat = 'A'", "keys (entry 1): must be for openai"),
        ("model = 'a'\nopenai = sk-secret", "is not valid TOML at line 2"),
    ] {
        let error = UserConfig::from_text("config.toml", text).unwrap_err();
        let shown = format!("{error} {:?}", error.details);
        assert!(error.message.contains(expected), "{text}: {error}");
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!(error.code.as_str(), "ECONFIG");
        assert!(error.help_of().is_some());
    }
}

#[test]
fn bug_a_base_url_that_no_provider_takes_was_read() {
    for (text, expected) in [
        ("baseUrl = 'ftp://x'", "baseUrl: must begin with http:// or https://"),
        ("baseUrl = 'gateway.example'", "baseUrl: is not a URL"),
        ("baseUrl = 'https://u:secret@gateway.example'", "baseUrl: must have no user and no password"),
    ] {
        let error = UserConfig::from_text("config.toml", text).unwrap_err();
        assert!(error.message.contains(expected), "{text}: {error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
    assert!(UserConfig::from_text("config.toml", "baseUrl = 'http://localhost:11434/v1?k=1'").is_ok());
}

#[test]
fn bug_a_misspelt_owner_of_a_key_was_not_named() {
    let error = UserConfig::from_text("config.toml", "[keys]\nantropic = 'A'").unwrap_err();
    assert!(error.message.contains("not for `antropic`; did you mean `anthropic`?"), "{error}");
}

#[test]
fn bug_a_file_that_is_not_text_was_an_internal_error() {
    let directory = tempfile::tempdir().unwrap();
    let environment = home(directory.path());
    let file = UserConfig::place(&environment).unwrap();
    std::fs::create_dir(directory.path().join("config")).unwrap();
    std::fs::write(&file, b"model = 'm'\ntheme = '\xff'\n").unwrap();
    let error = UserConfig::read(&environment).unwrap_err();
    assert_eq!(error.code.as_str(), "ECONFIG", "{error}");
    assert!(error.message.contains("is not UTF-8 text at line 2"), "{error}");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let error = UserConfig::read(&environment).unwrap_err();
    assert!(error.message.contains("it is a directory"), "{error}");
}

#[test]
fn a_file_that_others_may_have_written_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let environment = home(directory.path());
    assert_eq!(UserConfig::read(&environment).unwrap(), UserConfig::default());
    let file = UserConfig::place(&environment).unwrap();
    assert_eq!(file, directory.path().join("config/config.toml"));
    std::fs::create_dir(directory.path().join("config")).unwrap();
    std::fs::write(&file, "model = 'm'").unwrap();
    for (mode, is_used) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        match UserConfig::read(&environment) {
            Ok(config) => assert!(is_used && config.model.as_deref() == Some("m"), "{mode:o}"),
            Err(error) => assert!(!is_used && error.code.as_str() == "ESECURITY", "{mode:o}: {error}"),
        }
    }
    // A link leads to a file that has to keep the same rules.
    let elsewhere = directory.path().join("dotfiles.toml");
    std::fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert_eq!(UserConfig::read(&environment).unwrap_err().code.as_str(), "ESECURITY");
    std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(UserConfig::read(&environment).unwrap().model.as_deref(), Some("m"));
    std::fs::write(&elsewhere, vec![b'#'; 70 << 10]).unwrap();
    assert!(UserConfig::read(&environment).unwrap_err().message.contains("too large"));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert_eq!(UserConfig::read(&environment).unwrap_err().code.as_str(), "ESECURITY");
    // Without a home there is none.
    assert_eq!(UserConfig::read(&(Arc::new(|_: &str| None) as Environment)).unwrap(), UserConfig::default());
}
