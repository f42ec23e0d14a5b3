//! The embedded model is the one that was exported, and gives what the original gives.

use std::path::{Path, PathBuf};

use tgp_contract::canonical::sha256_hex;

/// The fingerprint under which vectors are kept, and the model it belongs to. A change of one requires a change
/// of the other.
const MODEL: (&str, &str) =
    ("minilm-l6-v2-int8-2", "f380c41b03460fcb17d9ea3f878e465c84d45d57de3bc30e8c003275e974f2d0");

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets")
}

#[test]
fn every_asset_has_the_checksum_that_was_noted() {
    let noted = std::fs::read_to_string(assets().join("CHECKSUMS")).unwrap();
    let (source, files) = noted.split_once('\n').unwrap();
    assert!(source.starts_with("53aa5117"), "the f32 original: {source}");
    let mut checked = Vec::new();
    for line in files.lines() {
        let (digest, name) = line.split_once("  ").unwrap();
        assert_eq!(sha256_hex(&std::fs::read(assets().join(name)).unwrap()), digest, "{name}");
        checked.push(name);
    }
    assert_eq!(checked, ["minilm-l6-v2-int8.bin", "LICENSE", "NOTICE", "export.py"]);
    assert_eq!(tgp_registry::EMBEDDED_FINGERPRINT, MODEL.0);
    assert!(files.starts_with(MODEL.1), "a new model needs a new fingerprint");
}

#[cfg(feature = "embedded-model")]
#[tokio::test]
async fn tokens_and_vectors_are_those_of_the_original() {
    use tgp_registry::{Embedder as _, MiniLm};

    #[derive(serde::Deserialize)]
    struct Golden {
        text: String,
        ids: Vec<usize>,
        /// The f32 vector of the original as int8, in hex.
        vector: String,
    }
    let golden = include_str!("golden/embeddings.jsonl");
    let golden: Vec<Golden> = golden.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(golden.len() >= 20);
    let model = MiniLm::new();
    let texts: Vec<String> = golden.iter().map(|entry| entry.text.clone()).collect();
    let vectors = model.embed(&texts).await.unwrap();
    for (entry, vector) in golden.iter().zip(vectors) {
        assert_eq!(model.token_ids(&entry.text).unwrap(), entry.ids, "{}", entry.text);
        let bytes = entry.vector.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        let original: Vec<f32> =
            bytes.map(|pair| f32::from(u8::from_str_radix(pair, 16).unwrap().cast_signed())).collect();
        assert_eq!(original.len(), vector.len());
        let dot = |left: &[f32], right: &[f32]| left.iter().zip(right).map(|(l, r)| l * r).sum::<f32>();
        let cosine =
            dot(&original, &vector) / dot(&original, &original).sqrt() / dot(&vector, &vector).sqrt();
        assert!(cosine > 0.998, "{cosine} for {}", entry.text);
    }
}

/// The export sets the rows of words to zero that the tokenizer never finds.
#[cfg(feature = "embedded-model")]
#[test]
fn no_text_needs_a_word_whose_row_is_zero() {
    let asset = std::fs::read(assets().join("minilm-l6-v2-int8.bin")).unwrap();
    let size = |at: usize| u32::from_le_bytes(asset[at..at + 4].try_into().unwrap()) as usize;
    let (words, hidden, vocabulary) = (size(8), size(16), size(32));
    let (_, rest) = asset.split_at(40);
    let (pieces, rest) = rest.split_at(vocabulary);
    let rows = rest[words * 4..].chunks(hidden).take(words);
    let model = tgp_registry::MiniLm::new();
    let mut unused = 0;
    for (id, (piece, row)) in std::str::from_utf8(pieces).unwrap().lines().zip(rows).enumerate() {
        if row.iter().any(|weight| *weight != 0) {
            continue;
        }
        unused += 1;
        let word = piece.strip_prefix("##").unwrap_or(piece);
        for text in [piece.to_owned(), word.to_owned(), format!("a{word}"), format!("a{word}a")] {
            assert!(!model.token_ids(&text).unwrap().contains(&id), "`{text}` needs `{piece}`");
        }
    }
    assert_eq!(unused, 1333);
}
