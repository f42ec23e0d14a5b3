//! Who is OpenAI itself, and who is called by a name, cannot be asked on the loopback.

use crate::endpoint::Endpoint;
use crate::options::{HttpOptions, Wire};

#[test]
fn a_provider_is_called_by_its_url_where_it_has_one() {
    let cases = [
        (None, "openai"),
        (Some("https://example.org/v1/?key=secret"), "https://example.org/v1"),
        (Some("http://localhost:11434"), "http://localhost:11434"),
    ];
    for (base_url, expected) in cases {
        let options =
            HttpOptions { base_url: base_url.map(str::to_owned), ..HttpOptions::new(Wire::OpenAiChat) };
        assert_eq!(Endpoint::new(&options).unwrap().called("openai", &options), expected);
    }
}

#[test]
fn only_openai_gets_the_names_that_only_openai_knows() {
    let cases = [
        (None, true),
        (Some("https://eu.api.openai.com/v1"), true),
        (Some("https://mine.openai.azure.com/openai/v1"), true),
        (Some("https://notopenai.com/v1"), false),
        (Some("https://openai.com.example.org/v1"), false),
        (Some("http://localhost:11434/v1"), false),
    ];
    for (base_url, expected) in cases {
        let options =
            HttpOptions { base_url: base_url.map(str::to_owned), ..HttpOptions::new(Wire::OpenAiChat) };
        let endpoint = Endpoint::new(&options).unwrap();
        assert_eq!(endpoint.is_openai(), expected, "{base_url:?}");
        let dialect =
            crate::wire::Dialect { is_openai: endpoint.is_openai(), ..crate::wire::Dialect::default() };
        let chat: tgp_contract::ChatOptions = serde_json::from_str(
            r#"{"model":"m","system":"","messages":[],"tools":[],"maxOutputTokens":5,"turn":0}"#,
        )
        .unwrap();
        let body = crate::wire::request(Wire::OpenAiChat, "mine", &chat, dialect);
        assert_eq!(body.get("max_completion_tokens").is_some(), expected, "{base_url:?}");
        assert_eq!(body.get("max_tokens").is_some(), !expected, "{base_url:?}");
    }
}
