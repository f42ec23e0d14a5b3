//! The counters of tokens: shared by parent and child, by threads and by processes.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use tempfile::TempDir;
use tgp_contract::{CapabilityToken, Code};
use tgp_policy::{Caveats, Grant, TokenKey, TokenLedger, attenuate, mint, verify};

fn key() -> TokenKey {
    TokenKey::from_bytes([9; 32])
}

fn calls(calls: u64) -> Caveats {
    Caveats { calls: Some(calls), ..Caveats::default() }
}

fn grant(token: &CapabilityToken) -> Grant {
    verify(&key(), token).unwrap()
}

/// How many calls can still be made.
fn drain(ledger: &TokenLedger, grant: &Grant) -> usize {
    (0..10_000).take_while(|_| ledger.spend(grant, 0).is_ok()).count()
}

fn ledger(folder: &TempDir) -> TokenLedger {
    TokenLedger::open(&folder.path().join("tokens.db")).unwrap()
}

#[test]
fn children_share_their_parents_calls() {
    let folder = TempDir::new().unwrap();
    let ledger = ledger(&folder);
    let parent = mint(&key(), &calls(10)).unwrap();
    let (one, two) = (attenuate(&parent, &calls(4)).unwrap(), attenuate(&parent, &calls(4)).unwrap());
    let free = attenuate(&parent, &Caveats::default()).unwrap();
    assert_ne!(one, two, "two children with the same number of calls are two tokens");
    assert_eq!(drain(&ledger, &grant(&one)), 4);
    assert_eq!(drain(&ledger, &grant(&two)), 4);
    assert_eq!(drain(&ledger, &grant(&free)), 2);
    assert_eq!(drain(&ledger, &grant(&parent)), 0);
    let error = ledger.spend(&grant(&parent), 0).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (Code::Policy, "the token's 10 calls are used up"));
    // A refused child takes nothing from the parent.
    let other = mint(&key(), &calls(3)).unwrap();
    let child = attenuate(&other, &calls(0)).unwrap();
    assert_eq!(drain(&ledger, &grant(&child)), 0);
    assert_eq!(drain(&ledger, &grant(&other)), 3);
    // Without a number there is nothing to count.
    let unlimited = grant(&mint(&key(), &Caveats::default()).unwrap());
    assert!(!unlimited.is_counted() && grant(&child).is_counted());
    assert_eq!(drain(&ledger, &unlimited), 10_000);
}

#[test]
fn a_call_that_did_not_run_is_given_back_and_the_rest_outlives_the_process() {
    let folder = TempDir::new().unwrap();
    let token = attenuate(&mint(&key(), &calls(3)).unwrap(), &calls(2)).unwrap();
    {
        let ledger = ledger(&folder);
        let first = ledger.spend(&grant(&token), 0).unwrap();
        let _second = ledger.spend(&grant(&token), 0).unwrap();
        assert!(ledger.spend(&grant(&token), 0).is_err());
        ledger.refund(first).unwrap();
    }
    assert_eq!(drain(&ledger(&folder), &grant(&token)), 1);
    // Other kernels with other keys count for themselves.
    assert_eq!(drain(&ledger(&folder), &grant(&mint(&key(), &calls(2)).unwrap())), 2);
}

#[test]
fn one_family_cannot_fill_the_ledger() {
    let folder = TempDir::new().unwrap();
    let ledger = ledger(&folder);
    let parent = mint(&key(), &Caveats { expires_ms: Some(500), ..Caveats::default() }).unwrap();
    for _ in 0..1000 {
        let _call = ledger.spend(&grant(&attenuate(&parent, &calls(1)).unwrap()), 100).unwrap();
    }
    let further = grant(&attenuate(&parent, &calls(1)).unwrap());
    assert_eq!(ledger.spend(&further, 100).unwrap_err().code, Code::Policy);
    // Others are not hurt, and what has expired makes room.
    let _other = ledger.spend(&grant(&mint(&key(), &calls(1)).unwrap()), 100).unwrap();
    let _late = ledger.spend(&further, 500).unwrap();
    let rows: i64 = Connection::open(folder.path().join("tokens.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM token_counters", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 2);
}

#[test]
fn a_broken_or_missing_place_is_an_error() {
    let folder = TempDir::new().unwrap();
    let garbage = folder.path().join("garbage.db");
    std::fs::write(&garbage, "this is not a database, and long enough to be looked at".repeat(50)).unwrap();
    for place in [garbage.as_path(), Path::new("/nowhere/at/all/tokens.db"), folder.path()] {
        let error = TokenLedger::open(place).unwrap_err();
        assert_eq!(error.code, Code::Internal, "{error}");
    }
}

const PLACE: &str = "TGP_TEST_LEDGER";
const TOKEN: &str = "TGP_TEST_TOKEN";

/// What a further process does: spends until there is nothing left, and writes down how often it could.
#[test]
fn spender_process() {
    let (Some(place), Ok(token)) = (std::env::var_os(PLACE), std::env::var(TOKEN)) else { return };
    let place = Path::new(&place);
    let ledger = TokenLedger::open(&place.join("tokens.db")).unwrap();
    let spent = drain(&ledger, &grant(&CapabilityToken::new(token)));
    std::fs::write(place.join(format!("{}.spent", std::process::id())), spent.to_string()).unwrap();
}

#[test]
fn processes_together_spend_exactly_what_there_is() {
    const PROCESSES: usize = 4;
    let folder = TempDir::new().unwrap();
    drop(ledger(&folder));
    let token = mint(&key(), &calls(200)).unwrap();
    let spenders: Vec<Child> = (0..PROCESSES)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "ledger::spender_process"])
                .env(PLACE, folder.path())
                .env(TOKEN, token.reveal())
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut spender in spenders {
        assert!(spender.wait().unwrap().success());
    }
    let counts: Vec<usize> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "spent"))
        .map(|path| std::fs::read_to_string(path).unwrap().parse().unwrap())
        .collect();
    assert_eq!(counts.len(), PROCESSES);
    assert_eq!(counts.iter().sum::<usize>(), 200, "{counts:?}");
}
