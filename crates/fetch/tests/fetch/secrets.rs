//! Secrets that requests use by name: where their value goes, and where it does not.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tgp_contract::{Code, ToolError};
use tgp_fetch::{
    FetchClient, FetchLimits, FetchRequest, FetchResponse, Hop, HopJudge, Redirects, SecretBinding,
    SecretBroker, SecretPlace, SecretSource,
};
use tgp_net::Secret;

use crate::server::{ScriptedResolver, list, refused};
use crate::tls::{ROOT, serve_with};

const VALUE: &str = "s3cr+t/v4lue=";

struct Fixed;

#[async_trait]
impl SecretSource for Fixed {
    async fn value(&self, name: &str) -> Result<Secret, ToolError> {
        Ok(Secret::new(match name {
            "SHORT" => "1234567",
            "LINES" => "two\nlines-of-it",
            _ => VALUE,
        }))
    }
}

/// A server that answers with the request, and leads elsewhere from some paths.
struct Place {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Place {
    fn start() -> Self {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let requests = Arc::clone(&seen);
        let address = serve_with(move |_, request| {
            requests.lock().unwrap().push(request.to_owned());
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            let to = |location: &str| {
                format!(
                    "HTTP/1.1 302 Found\r\nLocation: {location}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
                )
            };
            let with = |headers: &str, body: &str| {
                let length = body.len();
                format!(
                    "HTTP/1.1 200 OK\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
                )
            };
            let answer =
                match path.split('?').next().unwrap_or_default() {
                    "/v1/same" => to("/v1/end"),
                    "/v1/outside" => to("/v2/end"),
                    "/v1/copied" => {
                        to(&format!("/v1/end?{}", path.split_once('?').map_or("", |(_, query)| query)))
                    }
                    "/v1/in-path" => to(&format!("/v1/{}", VALUE.replace('/', "%2F").replace('+', "%2B"))),
                    "/v1/encoded" => with("", &STANDARD.encode(format!("x:{VALUE}"))),
                    "/v1/header" => with(&format!("X-Echo: {VALUE}\r\n"), ""),
                    "/v1/brotli" => with("Content-Encoding: br\r\n", "???"),
                    "/v1/refused" => to(&format!("https://other.example/{VALUE}/x")),
                    "/v1/scheme" => to(&format!("ftp://localhost/{VALUE}")),
                    "/v1/host" => to("https://V4lue.example/"),
                    "/v1/php" => with("", &VALUE.replace('/', "\\/")),
                    "/v1/part" => with("", "").replace("200 OK", "206 Partial Content"),
                    "/v2/later" => with("", &format!("before it was {VALUE}")),
                    "/v2/part" => with("", "s3cr+").replace("200 OK", "206 Partial Content"),
                    "/v2/parts" => with("Content-Type:  Multipart/ByteRanges; boundary=x\r\n", "t/v4"),
                    "/v2/content-range" => with("Content-Range: bytes 0-4/14\r\n", "s3cr+"),
                    "/v2/error-page" => with("Content-Range: bytes 5-13/14\r\n", "t/v4lue=")
                        .replace("200 OK", "404 Not Found"),
                    "/v2/delta" => with("IM: vcdiff\r\n", "s3cr+").replace("200 OK", "226 IM Used"),
                    "/v2/beyond" => with("Content-Range: bytes */14\r\n", "")
                        .replace("200 OK", "416 Range Not Satisfiable"),
                    "/v2/brotli" => with("Content-Encoding: br\r\n", "???"),
                    "/v2/zstd" => with("Content-Encoding: identity, ZSTD\r\n", "???"),
                    "/v2/deep" => with("Content-Encoding: gzip, gzip, gzip\r\n", "???"),
                    "/v2/onward" => to("/v2/end?kept=s3cr%2Bt%2Fv4lue%3D"),
                    "/v2/onward-twice" => to("/v2/end?kept=s3cr%252Bt%252Fv4lue%253D"),
                    "/v2/in-header" => with(&format!("ETag: \"{VALUE}\"\r\nSet-Cookie: a={VALUE}\r\n"), ""),
                    _ => with("", request),
                };
            answer.into_bytes()
        });
        Self { address, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// A client whose secret `KEY` is for this place, below `/v1`, with GET.
    fn client(&self, place: &SecretPlace) -> FetchClient {
        let host = format!("localhost:{}", self.address.port());
        let binding = |name: &str| {
            let (paths, methods) = (["/v1".to_owned()], ["GET".to_owned()]);
            SecretBinding::new(name, std::slice::from_ref(&host), &paths, &methods, place).unwrap()
        };
        let broker = SecretBroker::new(["KEY", "SHORT", "LINES"].map(binding).to_vec(), Arc::new(Fixed));
        FetchClient::new(list(&[&self.url("/"), "http://localhost:1"]), FetchLimits::default())
            .with_resolver(ScriptedResolver::new(&[&["127.0.0.1"]]))
            .with_extra_roots(ROOT)
            .with_secrets(broker)
    }

    fn last(&self) -> String {
        self.seen.lock().unwrap().last().cloned().unwrap_or_default()
    }

    fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

fn using(name: &str, url: String) -> FetchRequest {
    FetchRequest { secret: Some(name.to_owned()), ..FetchRequest::new(url) }
}

/// What a tool can see of an answer.
fn shown(response: &FetchResponse) -> String {
    serde_json::to_string(response).unwrap()
}

#[track_caller]
fn assert_hidden(text: &str) {
    for form in [VALUE, "s3cr%2Bt", "s3cr%2bt", "v4lue"] {
        assert!(!text.contains(form), "{form} is in {text}");
    }
    assert!(!text.contains(&STANDARD.encode(VALUE)[..12]), "{text}");
}

#[tokio::test]
async fn the_value_is_inserted_where_the_request_leaves_and_kept_out_of_the_answer() {
    for (place, sent) in [
        (SecretPlace::Bearer, format!("authorization: Bearer {VALUE}")),
        (SecretPlace::Header("X-Api-Key".to_owned()), format!("x-api-key: {VALUE}")),
        (SecretPlace::Query("key".to_owned()), "/v1/a?b=1&key=s3cr%2Bt%2Fv4lue%3D ".to_owned()),
    ] {
        let here = Place::start();
        let answer = here.client(&place).fetch(using("KEY", here.url("/v1/a?b=1"))).await.unwrap();
        assert!(here.last().contains(&sent), "{place:?}: {}", here.last());
        assert!(shown(&answer).contains("[secret]"), "{}", shown(&answer));
        assert_hidden(&shown(&answer));
        assert_hidden(&format!("{answer:?}"));
        for path in ["/v1/encoded", "/v1/header"] {
            let answer = here.client(&place).fetch(using("KEY", here.url(path))).await.unwrap();
            assert!(shown(&answer).contains("[secret]"), "{path}: {}", shown(&answer));
            assert_hidden(&shown(&answer));
        }
    }
}

#[tokio::test]
async fn a_secret_is_sent_to_what_it_is_bound_to_and_to_nothing_else() {
    let (here, other) = (Place::start(), Place::start());
    let client = here.client(&SecretPlace::Bearer);
    let post = |mut request: FetchRequest| {
        request.method = "POST".to_owned();
        request
    };
    let with = |mut request: FetchRequest, name: &str, value: &str| {
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    };
    for (request, code, words) in [
        (using("KEY", here.url("/v2/a")), Code::Security, "is not for GET"),
        (using("KEY", here.url("/v1/../v2/a")), Code::Security, "is not for GET"),
        (using("KEY", here.url("/v10")), Code::Security, "is not for GET"),
        (post(using("KEY", here.url("/v1/a"))), Code::Security, "is not for POST"),
        (using("KEY", other.url("/v1/a")), Code::Security, ""),
        (using("KEY", "http://localhost:1/v1/a".to_owned()), Code::Security, "is not for GET"),
        (using("KEZ", here.url("/v1/a")), Code::NotFound, "unknown secret `KEZ`"),
        (using("SHORT", here.url("/v1/a")), Code::Config, "less than 8 bytes"),
        (using("LINES", here.url("/v1/a")), Code::Config, "no header may have"),
        (with(using("KEY", here.url("/v1/a")), "Authorization", "mine"), Code::Fetch, "`authorization`"),
        (with(using("KEY", here.url("/v1/a")), "Accept-Encoding", "br"), Code::Fetch, "`accept-encoding`"),
    ] {
        refused(client.fetch(request).await, code, words);
    }
    assert_eq!((here.count(), other.count()), (0, 0), "nothing was sent");
    refused(client.fetch(using("KEY", here.url("/v1/brotli"))).await, Code::Fetch, "hides whether it holds");
    let query = here.client(&SecretPlace::Query("key".to_owned()));
    refused(query.fetch(using("KEY", here.url("/v1/a?key=mine"))).await, Code::Fetch, "`key`");
    // A client without secrets knows none.
    let bare = FetchClient::new(list(&[&here.url("/")]), FetchLimits::default());
    refused(bare.fetch(using("KEY", here.url("/v1/a"))).await, Code::NotFound, "unknown secret");
}

/// Keeps what a judge of redirects sees, which ends in records.
#[derive(Default)]
struct Judge(Mutex<Vec<String>>);

#[async_trait]
impl HopJudge for Judge {
    async fn judge(&self, hop: Hop<'_>) -> Result<(), ToolError> {
        let headers: Vec<_> = hop.headers().collect();
        self.0.lock().unwrap().push(format!("{} {headers:?}", hop.url));
        Ok(())
    }
}

#[tokio::test]
async fn a_redirect_keeps_the_secret_on_its_place_and_out_of_the_record() {
    for place in [SecretPlace::Bearer, SecretPlace::Query("key".to_owned())] {
        let here = Place::start();
        let client = here.client(&place);
        let judge = Judge::default();
        for (path, keeps) in [("/v1/same", true), ("/v1/outside", false), ("/v1/copied?b=1", true)] {
            let answer = client.fetch_judged(using("KEY", here.url(path)), &judge).await.unwrap();
            let has_it = here.last().contains(VALUE) || here.last().contains("s3cr%2Bt");
            assert_eq!(has_it, keeps, "{place:?} {path}: {}", here.last());
            assert_eq!(
                here.last().matches("key=").count(),
                usize::from(keeps && place != SecretPlace::Bearer)
            );
            assert_hidden(&shown(&answer));
        }
        assert_hidden(&judge.0.lock().unwrap().join("\n"));
        let before = here.count();
        refused(
            client.fetch(using("KEY", here.url("/v1/in-path"))).await,
            Code::Security,
            "holds the secret",
        );
        assert_eq!(here.count(), before + 1);
        // What the list refuses is not named with the value in it.
        for path in ["/v1/refused", "/v1/scheme"] {
            let error = client.fetch(using("KEY", here.url(path))).await.unwrap_err();
            assert_hidden(&format!("{error:?}"));
        }
        // A redirect that the tool wants to see itself.
        let manual = FetchRequest { redirect: Redirects::Manual, ..using("KEY", here.url("/v1/copied?b=1")) };
        assert_hidden(&shown(&client.fetch(manual).await.unwrap()));
    }
}

#[tokio::test]
async fn bug_a_value_came_back_in_other_forms_and_in_other_answers() {
    let here = Place::start();
    let client = here.client(&SecretPlace::Bearer);
    refused(client.fetch(using("KEY", here.url("/v1/php"))).await, Code::Fetch, "cannot be removed");
    refused(client.fetch(using("KEY", here.url("/v1/part"))).await, Code::Fetch, "a part of an answer");
    for header in ["Range", "If-Range"] {
        let mut request = using("KEY", here.url("/v1/a"));
        request.headers.push((header.to_owned(), "bytes=3-9".to_owned()));
        refused(client.fetch(request).await, Code::Fetch, &header.to_lowercase());
    }
    // A server that remembers it tells it to a request without it.
    let later = client.fetch(FetchRequest::new(here.url("/v2/later"))).await.unwrap();
    assert_eq!(later.body, b"before it was [secret]");
}

#[tokio::test]
async fn bug_a_value_came_back_in_pieces_by_later_requests() {
    let here = Place::start();
    let client = here.client(&SecretPlace::Bearer);
    let plain = |path: &str| FetchRequest::new(here.url(path));
    let with = |name: &str| FetchRequest {
        headers: vec![(name.to_owned(), "bytes=0-4".to_owned())],
        ..plain("/v2/part")
    };
    // A kernel that has used no secret has nothing to look for.
    assert_eq!(client.fetch(with("Range")).await.unwrap().status, 206);
    client.fetch(using("KEY", here.url("/v1/a"))).await.unwrap();
    let before = here.count();
    for name in ["Range", "range", "If-Range", "A-IM"] {
        refused(client.fetch(with(name)).await, Code::Fetch, &format!("`{}`", name.to_lowercase()));
    }
    assert_eq!(here.count(), before, "nothing was sent");
    for path in ["part", "parts", "content-range", "error-page", "delta"] {
        for method in ["GET", "POST", "HEAD"] {
            let request = FetchRequest { method: method.to_owned(), ..plain(&format!("/v2/{path}")) };
            refused(client.fetch(request).await, Code::Fetch, "a part of an answer");
        }
    }
    for path in ["brotli", "zstd", "deep"] {
        refused(client.fetch(plain(&format!("/v2/{path}"))).await, Code::Fetch, "encoded in a way");
    }
    // One that goes on with the value in its address tells it to the next server, the record and the question.
    let judge = Judge::default();
    for path in ["onward", "onward-twice"] {
        let before = here.count();
        let followed = client.fetch_judged(plain(&format!("/v2/{path}")), &judge).await;
        refused(followed, Code::Security, "holds a secret");
        assert_eq!(here.count(), before + 1);
    }
    assert!(judge.0.lock().unwrap().is_empty());
    let manual = FetchRequest { redirect: Redirects::Manual, ..plain("/v2/onward") };
    assert_hidden(&shown(&client.fetch(manual).await.unwrap()));
    let head = FetchRequest { method: "HEAD".to_owned(), ..plain("/v2/in-header") };
    let head = shown(&client.fetch(head).await.unwrap());
    assert!(head.matches("[secret]").count() == 2, "{head}");
    assert_hidden(&head);
    // An address that the list refuses is not named with the value in it, whose request it ever was.
    let error = client.fetch(plain("/v1/refused")).await.unwrap_err();
    assert_hidden(&format!("{error:?}"));
    // What says that there is no such part is not a part, and a whole answer comes as ever.
    assert_eq!(client.fetch(plain("/v2/beyond")).await.unwrap().status, 416);
    assert_eq!(client.fetch(plain("/v2/later")).await.unwrap().body, b"before it was [secret]");
}

/// A source with a value for each name, and one name whose value is another every time.
#[derive(Default)]
struct Many(Mutex<usize>);

#[async_trait]
impl SecretSource for Many {
    async fn value(&self, name: &str) -> Result<Secret, ToolError> {
        let mut asked = self.0.lock().unwrap();
        *asked += 1;
        Ok(Secret::new(if name == "TURNING" {
            format!("turn-{asked}-of-it")
        } else {
            format!("value-{name}-x")
        }))
    }
}

#[tokio::test]
async fn bug_a_value_was_forgotten_when_many_others_were_used() {
    let here = Place::start();
    let host = format!("localhost:{}", here.address.port());
    let names: Vec<String> = (100..164).map(|number| format!("K{number}")).collect();
    let binding = |name: &str| {
        SecretBinding::new(name, std::slice::from_ref(&host), &[], &[], &SecretPlace::Bearer).unwrap()
    };
    let bindings = names.iter().map(String::as_str).chain(["TURNING"]).map(binding).collect();
    let client = FetchClient::new(list(&[&here.url("/")]), FetchLimits::default())
        .with_resolver(ScriptedResolver::new(&[&["127.0.0.1"]]))
        .with_extra_roots(ROOT)
        .with_secrets(SecretBroker::new(bindings, Arc::new(Many::default())));
    let echo = async |value: &str| {
        let answer = client.fetch(FetchRequest::new(here.url(&format!("/v2/echo?x={value}")))).await.unwrap();
        String::from_utf8(answer.body).unwrap()
    };
    for name in names.iter().take(63) {
        client.fetch(using(name, here.url("/v1/a"))).await.unwrap();
    }
    // New values of a secret take the places of its old ones.
    for _ in 0..3 {
        client.fetch(using("TURNING", here.url("/v1/a"))).await.unwrap();
    }
    assert!(echo("turn-66-of-it").await.contains("[secret]"));
    let refusal = client.fetch(using(&names[63], here.url("/v1/a"))).await;
    refused(refusal, Code::Config, "cannot be searched for it");
    for name in names.iter().take(63) {
        assert!(echo(&format!("value-{name}-x")).await.contains("[secret]"), "{name}");
    }
}

#[test]
fn a_binding_that_would_bind_nothing_is_refused() {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    for (hosts, paths, methods, place, words) in [
        (&[][..], &[][..], &[][..], SecretPlace::Bearer, "names no host"),
        (&["https://a.example"], &[], &[], SecretPlace::Bearer, "is not a host"),
        (&["a.example/x"], &[], &[], SecretPlace::Bearer, "is not a host"),
        (&["*"], &[], &[], SecretPlace::Bearer, "`*`"),
        (&["*.com"], &[], &[], SecretPlace::Bearer, "top-level domain"),
        (&["user@a.example"], &[], &[], SecretPlace::Bearer, "credentials"),
        (&["a.example"], &["v1"], &[], SecretPlace::Bearer, "begin with `/`"),
        (&["a.example"], &["/a/../b"], &[], SecretPlace::Bearer, "dot segments"),
        (&["a.example"], &[], &["FROB"], SecretPlace::Bearer, "FROB"),
        (&["a.example"], &[], &[], SecretPlace::Header("Host".to_owned()), "cannot be a header"),
        (&["a.example"], &[], &[], SecretPlace::Header("a b".to_owned()), "cannot be a header"),
        (&["a.example"], &[], &[], SecretPlace::Query(String::new()), "has no name"),
    ] {
        let made = SecretBinding::new("KEY", &texts(hosts), &texts(paths), &texts(methods), &place);
        let problem = made.err().unwrap_or_default();
        assert!(problem.contains(words), "{hosts:?} {paths:?} {methods:?} {place:?}: {problem}");
    }
}
