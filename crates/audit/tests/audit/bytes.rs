//! Any byte of the file: either the damage is found, or what is read is what was written.

use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::json;
use tgp_audit::{AuditFilter, ExportFormat};
use tgp_contract::Code;

use crate::support::{Place, with_arguments};

/// Enough to hit every kind of page and field of the file many times.
const FLIPS: usize = 400;

fn random(below: usize) -> usize {
    usize::try_from(RandomState::new().build_hasher().finish() % below as u64).unwrap()
}

#[test]
fn a_flipped_byte_is_found_or_harmless() {
    let records = (0..40).map(|number| with_arguments(json!({"number": number, "text": "x".repeat(700)})));
    let place = Place::with(records.collect());
    place.settle();
    let all = AuditFilter::default();
    let session = AuditFilter { session: Some("session-1".to_owned()), ..AuditFilter::default() };
    let whole = std::fs::read(place.path()).unwrap();
    let exports = [&all, &session].map(|filter| place.export(filter, ExportFormat::Jsonl).unwrap());
    let mut found = 0;
    for round in 0..FLIPS {
        let mut bytes = whole.clone();
        // The header, the schema and the ends of pages are rare among random places, so every other flip is there.
        let place_of_flip = match round % 4 {
            0 => random(200),
            1 => (random(whole.len() / 4096) * 4096 + random(40)).min(whole.len() - 1),
            _ => random(whole.len()),
        };
        bytes[place_of_flip] ^= 1 << random(8);
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(place.folder.path().join(format!("audit.db{suffix}")));
        }
        std::fs::write(place.path(), &bytes).unwrap();
        match place.verify() {
            Err(error) => {
                found += 1;
                assert_eq!(error.code, Code::Integrity, "{place_of_flip}: {error}");
            }
            Ok(report) => {
                assert_eq!(report.entries, 40);
                for (filter, export) in [&all, &session].iter().zip(&exports) {
                    let now = place.export(filter, ExportFormat::Jsonl).unwrap();
                    assert!(now == *export, "byte {place_of_flip} changes what is read, unseen");
                }
            }
        }
    }
    assert!(found > FLIPS / 4, "only {found} were found; do the flips hit the file at all?");
}

#[test]
fn a_file_that_is_no_database_is_no_audit() {
    let place = Place::filled(2);
    for content in [&b"not a database, but long enough to look at it"[..], &[0; 8192], b""] {
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(place.folder.path().join(format!("audit.db{suffix}")));
        }
        std::fs::write(place.path(), content).unwrap();
        assert_eq!(place.verify().unwrap_err().code, Code::Integrity);
        assert_eq!(place.open().unwrap_err().code, Code::Integrity);
    }
}
