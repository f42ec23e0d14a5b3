//! Tokens: what they let through, and that none can be widened.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::Sha256;
use tgp_contract::{Access, Actor, CapabilityToken, Code, Effect, RelativePath, Root, Target, ToolError};
use tgp_policy::{Caveats, PastCall, TokenKey, attenuate, mint, verify};

use crate::support::{call, command, file, host, statement, written};

fn key() -> TokenKey {
    TokenKey::from_bytes([7; 32])
}

fn words(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

fn tools(names: &[&str]) -> Caveats {
    Caveats { tools: words(names), ..Caveats::default() }
}

fn paths(globs: &[&str]) -> Caveats {
    Caveats { paths: words(globs), ..Caveats::default() }
}

/// Why a chain of caveats refuses a call; empty when it does not.
fn refusal(chain: &[Caveats], call: &PastCall, now_ms: u64) -> String {
    let mut token = mint(&key(), &chain[0]).unwrap();
    for caveats in &chain[1..] {
        token = attenuate(&token, caveats).unwrap();
    }
    match verify(&key(), &token).unwrap().check(&call.as_question(), now_ms) {
        Ok(()) => String::new(),
        Err(error) => {
            assert_eq!(error.code, Code::Policy);
            error.message
        }
    }
}

fn policy_error(result: Result<impl Sized, ToolError>, kind: &str) {
    let error = result.err().unwrap_or_else(|| panic!("taken, not {kind}"));
    assert_eq!((error.code, error.details["token"].as_str().unwrap()), (Code::Policy, kind), "{error}");
    assert!(error.help_of().is_some());
}

#[test]
fn every_caveat_has_to_hold() {
    let write = |targets: Vec<Target>| call("fs_write", Effect::Write, targets);
    let both = Caveats { tools: words(&["fs_*", "shell_exec"]), ..paths(&["src/**"]) };
    let cases: Vec<(Vec<Caveats>, PastCall, &str)> = vec![
        (vec![Caveats::default()], write(vec![written("x")]), ""),
        (vec![tools(&["fs_write"])], write(vec![written("x")]), ""),
        (vec![tools(&["effect:write"])], write(vec![written("x")]), ""),
        (vec![tools(&["fs_read"])], write(vec![written("x")]), "`fs_write` is not among its tools"),
        (vec![tools(&[])], write(vec![written("x")]), "`fs_write` is not among its tools"),
        (vec![tools(&["*"]), tools(&["fs_read"])], write(vec![]), "`fs_write` is not among its tools"),
        (vec![tools(&["fs_read"]), tools(&["*"])], write(vec![]), "`fs_write` is not among its tools"),
        (vec![paths(&["src/**"])], write(vec![written("src/a/b")]), ""),
        (
            vec![paths(&["src/**"])],
            write(vec![written("src/a"), written("lib/a")]),
            "`lib/a` is not among its paths",
        ),
        (vec![paths(&["src/**"])], write(vec![written("src")]), "`src` is not among its paths"),
        (vec![paths(&["src/**"])], write(vec![written("SRC/a")]), "`SRC/a` is not among its paths"),
        (
            vec![paths(&["src/**"]), paths(&["**/*.rs"])],
            write(vec![written("src/a.ts")]),
            "`src/a.ts` is not",
        ),
        (vec![paths(&["src/**"]), paths(&["**/*.rs"])], write(vec![written("src/a.rs")]), ""),
        // Roots.
        (vec![paths(&["a/**"])], write(vec![file(Root::Tools, "a/x", Access::Read)]), ""),
        (
            vec![paths(&["a/**"])],
            write(vec![file(Root::Host, "a/x", Access::Read)]),
            "is not among its paths",
        ),
        (vec![paths(&["host:a/**"])], write(vec![file(Root::Host, "a/x", Access::Read)]), ""),
        (vec![paths(&["project:a/**"])], write(vec![file(Root::Tools, "a/x", Access::Read)]), "is not among"),
        (
            vec![paths(&["tools:a/**", "x"])],
            write(vec![file(Root::Tools, "a/x", Access::Read), written("x")]),
            "",
        ),
        // What a path cannot check needs a tool that is spelt out beside it.
        (vec![paths(&["**"])], write(vec![]), "what `fs_write` touches is not only files"),
        (
            vec![paths(&["**"])],
            call("exec_sql", Effect::Write, vec![statement("x", &[])]),
            "is not only files",
        ),
        (vec![paths(&["**"])], call("fetch", Effect::Network, vec![host("a.org")]), "is not only files"),
        (
            vec![paths(&["**"])],
            call("x", Effect::Read, vec![written("a"), Target::Network]),
            "is not only files",
        ),
        (vec![paths(&["**"])], call("exec_tool", Effect::Execute, vec![written("a")]), "is not only files"),
        (vec![both.clone()], call("shell_exec", Effect::Execute, vec![command("make")]), ""),
        (
            vec![both.clone()],
            call("shell_exec", Effect::Execute, vec![command("make"), written("lib/x")]),
            "`lib/x` is not among its paths",
        ),
        (
            vec![Caveats { tools: words(&["*"]), ..both.clone() }],
            call("sh", Effect::Execute, vec![command("x")]),
            "is not only",
        ),
        // A later block cannot spell out what an earlier one did not.
        (
            vec![paths(&["**"]), tools(&["sh"])],
            call("sh", Effect::Execute, vec![command("x")]),
            "is not only files",
        ),
        // Session and time.
        (vec![Caveats { session: Some("one".to_owned()), ..Caveats::default() }], write(vec![]), ""),
        (
            vec![Caveats { session: Some("two".to_owned()), ..Caveats::default() }],
            write(vec![]),
            "another session",
        ),
        (vec![Caveats { expires_ms: Some(1001), ..Caveats::default() }], write(vec![]), ""),
        (
            vec![Caveats { expires_ms: Some(1000), ..Caveats::default() }],
            write(vec![]),
            "the token has expired",
        ),
        (
            vec![
                Caveats { expires_ms: Some(1000), ..Caveats::default() },
                Caveats { expires_ms: Some(9000), ..Caveats::default() },
            ],
            write(vec![]),
            "the token has expired",
        ),
    ];
    for (chain, call, expected) in cases {
        let found = refusal(&chain, &call, 1000);
        assert!(
            found.contains(expected) && found.is_empty() == expected.is_empty(),
            "{chain:?}\n{call:?}\n{found}"
        );
    }
}

#[test]
fn a_token_is_known_by_its_id_and_hides_its_text() {
    let token = mint(&key(), &Caveats::default()).unwrap();
    let child = attenuate(&token, &tools(&["x"])).unwrap();
    let other = mint(&key(), &Caveats::default()).unwrap();
    let id = |token: &CapabilityToken| verify(&key(), token).unwrap().id().to_owned();
    assert_eq!(id(&token), id(&token));
    assert_ne!(id(&token), id(&child));
    assert_eq!(id(&token)[..12], id(&child)[..12]);
    assert_ne!(id(&token)[..12], id(&other)[..12]);
    assert!(token.reveal().starts_with("tgp1."));
    assert!(token.reveal().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
    let shown = format!("{:?}{:?}", key(), verify(&key(), &token).unwrap());
    assert!(!shown.contains("7, 7") && !shown.contains(token.reveal()), "{shown}");
    let fresh = TokenKey::generate().unwrap();
    assert_ne!(fresh.reveal(), TokenKey::generate().unwrap().reveal());
    policy_error(verify(&fresh, &token), "forged");
}

#[test]
fn caveats_that_mean_nothing_are_refused_before_they_are_signed() {
    let long = "x".repeat(300);
    for caveats in [
        tools(&["fs_["]),
        tools(&["effect:all"]),
        tools(&[""]),
        paths(&["/etc"]),
        paths(&["../x"]),
        paths(&["host:"]),
        Caveats { tools: Some(vec!["a".to_owned(); 65]), ..Caveats::default() },
        Caveats { session: Some(long.clone()), ..Caveats::default() },
        Caveats { note: Some(long), ..Caveats::default() },
        Caveats { calls: Some(u64::MAX), ..Caveats::default() },
    ] {
        assert_eq!(mint(&key(), &caveats).unwrap_err().code, Code::Validation, "{caveats:?}");
        let token = mint(&key(), &Caveats::default()).unwrap();
        assert_eq!(attenuate(&token, &caveats).unwrap_err().code, Code::Validation, "{caveats:?}");
    }
}

#[test]
fn a_token_holds_32_blocks_and_8_kib() {
    let mut token = mint(&key(), &Caveats::default()).unwrap();
    for _ in 1..32 {
        token = attenuate(&token, &Caveats::default()).unwrap();
    }
    verify(&key(), &token).unwrap();
    policy_error(attenuate(&token, &Caveats::default()), "full");

    let wide = paths(&["x".repeat(1000).as_str()]);
    let mut token = mint(&key(), &wide).unwrap();
    let error = loop {
        match attenuate(&token, &wide) {
            Ok(next) => token = next,
            Err(error) => break error,
        }
    };
    assert!(token.reveal().len() <= 8192);
    policy_error(Err::<(), _>(error), "full");
}

/// A token taken apart and put together again by an attacker who knows the format but not the key.
struct Parts {
    id: Vec<u8>,
    blocks: Vec<Vec<u8>>,
    signature: Vec<u8>,
}

impl Parts {
    fn of(token: &CapabilityToken) -> Self {
        let bytes = URL_SAFE_NO_PAD.decode(token.reveal().strip_prefix("tgp1.").unwrap()).unwrap();
        let mut rest = &bytes[17..bytes.len() - 32];
        let mut blocks = Vec::new();
        while let [high, low, tail @ ..] = rest {
            let (block, after) = tail.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            blocks.push(block.to_vec());
            rest = after;
        }
        assert_eq!(usize::from(bytes[16]), blocks.len());
        Self { id: bytes[..16].to_vec(), blocks, signature: bytes[bytes.len() - 32..].to_vec() }
    }

    fn token(&self) -> CapabilityToken {
        let mut bytes = self.id.clone();
        bytes.push(u8::try_from(self.blocks.len()).unwrap());
        for block in &self.blocks {
            bytes.extend(u16::try_from(block.len()).unwrap().to_be_bytes());
            bytes.extend(block);
        }
        bytes.extend(&self.signature);
        CapabilityToken::new(format!("tgp1.{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Adds any bytes as a block, with a right signature: a holder can do that.
    fn signed_with(mut self, block: &[u8]) -> CapabilityToken {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.signature).unwrap();
        mac.update(block);
        self.signature = mac.finalize().into_bytes().to_vec();
        self.blocks.push(block.to_vec());
        self.token()
    }
}

#[test]
fn blocks_cannot_be_left_out_moved_doubled_or_changed() {
    let mut token = mint(&key(), &tools(&["fs_*"])).unwrap();
    for caveats in [paths(&["src/**"]), tools(&["fs_read"]), Caveats { calls: Some(3), ..Caveats::default() }]
    {
        token = attenuate(&token, &caveats).unwrap();
    }
    verify(&key(), &Parts::of(&token).token()).unwrap();
    let forged = |change: &dyn Fn(&mut Parts)| {
        let mut parts = Parts::of(&token);
        change(&mut parts);
        policy_error(verify(&key(), &parts.token()), "forged");
    };
    for index in 0..4 {
        forged(&|parts| drop(parts.blocks.remove(index)));
        forged(&|parts| parts.blocks.truncate(index.max(1)));
        forged(&|parts| parts.blocks.push(parts.blocks[index].clone()));
        forged(&|parts| parts.blocks[index] = b"{}".to_vec());
        for other in 0..index {
            forged(&|parts| parts.blocks.swap(index, other));
        }
    }
    // The signature of a parent does not fit its child, nor the other way round.
    let parent = mint(&key(), &Caveats::default()).unwrap();
    let child = attenuate(&parent, &tools(&["x"])).unwrap();
    let mut parts = Parts::of(&child);
    parts.signature = Parts::of(&parent).signature;
    policy_error(verify(&key(), &parts.token()), "forged");
    let mut parts = Parts::of(&parent);
    parts.signature = Parts::of(&child).signature;
    policy_error(verify(&key(), &parts.token()), "forged");
    let mut parts = Parts::of(&parent);
    parts.blocks.clear();
    policy_error(verify(&key(), &parts.token()), "malformed");
}

#[test]
fn blocks_that_nobody_can_read_are_refused() {
    let token = || Parts::of(&mint(&key(), &Caveats::default()).unwrap());
    verify(&key(), &token().signed_with(b"{\"tools\":[\"x\"]}")).unwrap();
    for (block, kind) in [
        (&b"{\"colour\":\"red\"}"[..], "unknown"),
        (b"{\"tools\":[\"x\"],\"admin\":true}", "unknown"),
        (b"{\"tools\":[\"x\"],\"tools\":[\"*\"]}", "malformed"),
        (b"{\"tools\":\"*\"}", "malformed"),
        (b"{\"tools\":[\"[\"]}", "malformed"),
        (b"{\"calls\":-1}", "malformed"),
        (b"{\"calls\":1.5}", "malformed"),
        (b"{} {}", "malformed"),
        (b"", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[]", "malformed"),
        (b"[[\"x\"]]", "malformed"),
        (b" {}", "malformed"),
        (b"null", "malformed"),
    ] {
        policy_error(verify(&key(), &token().signed_with(block)), kind);
    }
}

#[test]
fn texts_that_are_no_tokens_are_malformed() {
    let right = mint(&key(), &Caveats::default()).unwrap().reveal().to_owned();
    let body = right.strip_prefix("tgp1.").unwrap();
    for text in [
        String::new(),
        "tgp1.".to_owned(),
        body.to_owned(),
        format!("tgp2.{body}"),
        format!("TGP1.{body}"),
        format!(" {right}"),
        format!("{right}\n"),
        format!("{right}="),
        format!("{right}AAAA"),
        format!("tgp1.{}", "A".repeat(9000)),
        format!("tgp1.{}", &body[..body.len() - 4]),
        right.replace('_', "/").replace('-', "+") + "+",
    ] {
        policy_error(verify(&key(), &CapabilityToken::new(text.clone())), "malformed");
        policy_error(attenuate(&CapabilityToken::new(text), &Caveats::default()), "malformed");
    }
}

fn any_caveats() -> impl Strategy<Value = Caveats> {
    let tool = prop::sample::select(vec!["*", "a", "b", "sh", "fs_*", "effect:read", "effect:write"]);
    let glob =
        prop::sample::select(vec!["**", "src/**", "*", "src/*.rs", "tools:**", "project:src/**", "host:**"]);
    (
        prop::option::of(prop::collection::vec(tool, 0..3)),
        prop::option::of(prop::collection::vec(glob, 0..3)),
        prop::option::of(0_u64..20),
        prop::option::weighted(0.2, prop::sample::select(vec!["one", "two"])),
    )
        .prop_map(|(tools, paths, expires_ms, session)| Caveats {
            tools: tools.as_deref().and_then(words),
            paths: paths.as_deref().and_then(words),
            expires_ms,
            session: session.map(str::to_owned),
            ..Caveats::default()
        })
}

fn any_question() -> impl Strategy<Value = PastCall> {
    let target = prop::sample::select(vec![
        written("src/a.rs"),
        written("src/deep/a.rs"),
        written("x"),
        file(Root::Tools, "x", Access::Read),
        file(Root::Host, "src/x", Access::Delete),
        command("make"),
        host("a.org"),
        Target::Network,
        statement("select 1", &["select"]),
    ]);
    (
        prop::sample::select(vec!["a", "b", "sh", "fs_write"]),
        prop::sample::select(&crate::model::EFFECTS[..]),
        prop::collection::vec(target, 0..3),
    )
        .prop_map(|(tool, effect, targets)| call(tool, effect, targets))
}

proptest! {
    #[test]
    fn a_derived_token_never_lets_more_through(
        chain in prop::collection::vec(any_caveats(), 1..6),
        questions in prop::collection::vec(any_question(), 1..12),
        now_ms in 0_u64..20,
    ) {
        let mut token = mint(&key(), &chain[0]).unwrap();
        let mut parent = verify(&key(), &token).unwrap();
        for caveats in &chain[1..] {
            token = attenuate(&token, caveats).unwrap();
            let child = verify(&key(), &token).unwrap();
            let alone = verify(&key(), &mint(&key(), caveats).unwrap()).unwrap();
            for question in &questions {
                let question = question.as_question();
                let allows = |grant: &tgp_policy::Grant| grant.check(&question, now_ms).is_ok();
                // Exactly what both let through: nothing more, and nothing is lost.
                prop_assert_eq!(allows(&child), allows(&parent) && allows(&alone), "{:?}", question);
            }
            parent = child;
        }
    }

    #[test]
    fn a_single_changed_bit_or_letter_is_found(
        caveats in prop::collection::vec(any_caveats(), 1..4),
        place in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        letter in "[A-Za-z0-9_-]",
    ) {
        let mut token = mint(&key(), &caveats[0]).unwrap();
        for more in &caveats[1..] {
            token = attenuate(&token, more).unwrap();
        }
        let body = token.reveal().strip_prefix("tgp1.").unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(body).unwrap();
        let index = place.index(bytes.len());
        bytes[index] ^= 1 << bit;
        let flipped = CapabilityToken::new(format!("tgp1.{}", URL_SAFE_NO_PAD.encode(bytes)));
        prop_assert_eq!(verify(&key(), &flipped).unwrap_err().code, Code::Policy);

        let mut text = token.reveal().to_owned();
        let index = place.index(text.len());
        text.replace_range(index..=index, &letter);
        let result = verify(&key(), &CapabilityToken::new(text.clone()));
        prop_assert_eq!(result.is_ok(), text == token.reveal());
    }
}

#[test]
fn what_forged_tools_call_is_not_what_their_caller_may_call() {
    let caveats = Caveats { inner: words(&["exec_sql"]), ..tools(&["exec_tool"]) };
    let tool = Actor::Tool(RelativePath::new("tools/a.ts").unwrap());
    let by = |actor: &Actor, tool: &str| {
        let call = PastCall { actor: actor.clone(), ..call(tool, Effect::Execute, vec![]) };
        refusal(std::slice::from_ref(&caveats), &call, 0)
    };
    let agent = Actor::Agent("agent".to_owned());
    assert_eq!((by(&agent, "exec_tool"), by(&tool, "exec_tool")), (String::new(), String::new()));
    assert_eq!(by(&tool, "exec_sql"), "", "a tool that was run may");
    assert!(by(&agent, "exec_sql").contains("`exec_sql` is not among its tools"), "its caller may not");
    assert!(by(&tool, "fetch").contains("`fetch` is not among its tools"));
    // A block that follows narrows both.
    let narrowed = refusal(
        &[caveats.clone(), tools(&["exec_tool"])],
        &PastCall { actor: tool, ..call("exec_sql", Effect::Execute, vec![]) },
        0,
    );
    assert!(narrowed.contains("`exec_sql` is not among its tools"), "{narrowed}");
}

#[test]
fn a_family_outlives_every_attenuation() {
    let root = mint(&key(), &tools(&["*"])).unwrap();
    let family = verify(&key(), &root).unwrap().family_id().to_owned();
    assert_eq!(family.len(), 12);
    let mut token = root;
    for note in 0..5 {
        token = attenuate(&token, &Caveats { note: Some(format!("n{note}")), ..Caveats::default() }).unwrap();
        let grant = verify(&key(), &token).unwrap();
        assert_eq!(grant.family_id(), family, "an attenuation made another family");
        assert!(grant.id().starts_with(&family));
    }
    let other = mint(&key(), &tools(&["*"])).unwrap();
    assert_ne!(verify(&key(), &other).unwrap().family_id(), family);
}

#[test]
fn only_the_first_generation_speaks_for_a_session() {
    let of = |session: &str| Caveats { session: Some(session.to_owned()), ..Caveats::default() };
    let own = mint(&key(), &of("20261115-220915-dfc9")).unwrap();
    let grant = verify(&key(), &own).unwrap();
    assert!(grant.speaks_for("20261115-220915-dfc9"));
    assert!(!grant.speaks_for("20261115-220915-dfc8") && !grant.speaks_for(""));
    // A holder of a token can write a session into the next generation.
    let wide = mint(&key(), &Caveats::default()).unwrap();
    let claimed = attenuate(&wide, &of("20261115-220915-dfc9")).unwrap();
    assert!(!verify(&key(), &claimed).unwrap().speaks_for("20261115-220915-dfc9"));
    // A run speaks for its agents, and for no other session that begins like it.
    let run = Caveats { run: Some("20261115-220915-aaaa".to_owned()), ..Caveats::default() };
    let grant = verify(&key(), &mint(&key(), &run).unwrap()).unwrap();
    assert!(grant.speaks_for("20261115-220915-aaaa") && grant.speaks_for("20261115-220915-aaaa-0f"));
    assert!(!grant.speaks_for("20261115-220915-aaaab") && !grant.speaks_for("20261115-220915-dfc9"));
    // No client is an agent, whatever its token says.
    for session in ["cli", "cli/x", "token/0123456789ab/x"] {
        let grant = verify(&key(), &mint(&key(), &of(session)).unwrap()).unwrap();
        assert!(!grant.speaks_for(session), "{session}");
    }
}

#[test]
fn a_session_caveat_means_the_name_of_a_clients_session() {
    let caveats = Caveats { session: Some("build".to_owned()), ..Caveats::default() };
    let of = |session: &str| PastCall { session: session.to_owned(), ..call("x", Effect::Read, vec![]) };
    for (session, holds) in [
        ("build", true),
        ("token/0123456789ab/build", true),
        ("cli/build", true),
        ("token/0123456789ab", false),
        ("token/0123456789ab/other", false),
        ("token/0123456789ab/build/x", false),
        ("other", false),
    ] {
        let refused = refusal(std::slice::from_ref(&caveats), &of(session), 0);
        assert_eq!(refused.is_empty(), holds, "{session}: {refused}");
    }
}
