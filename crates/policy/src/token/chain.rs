//! The bytes of a token and its chain of signatures.
//!
//! Layout: 16 bytes of id, one byte with the number of blocks, each block behind its length in two bytes (the higher
//! one first), 32 bytes of signature.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tgp_contract::{CapabilityToken, canonical};

use super::TokenFault;

pub(super) type Secret = [u8; 32];
pub(super) type TokenId = [u8; 16];

/// Says what kind of token it is, and is signed with it.
const PREFIX: &str = "tgp1.";
/// A token travels in headers and frames.
const MAX_TEXT_BYTES: usize = 8 * 1024;
/// Generations of a token; each costs one HMAC whenever it is verified.
const MAX_BLOCKS: usize = 32;

/// A token, taken apart. Only [`Chain::verify`] says whether it is one of ours.
pub(super) struct Chain {
    id: TokenId,
    blocks: Vec<Vec<u8>>,
    signature: Secret,
}

fn mac(key: &Secret) -> Result<Hmac<Sha256>, TokenFault> {
    Hmac::<Sha256>::new_from_slice(key).map_err(|_| TokenFault::Malformed("a key has a wrong length"))
}

fn sign(key: &Secret, parts: &[&[u8]]) -> Result<Secret, TokenFault> {
    let mut mac = mac(key)?;
    for part in parts {
        mac.update(part);
    }
    Ok(mac.finalize().into_bytes().into())
}

/// A name derived from a signature, which does not give it away.
pub(super) fn name_of(signature: &Secret, purpose: &str) -> Result<String, TokenFault> {
    Ok(canonical::hex(&sign(signature, &[purpose.as_bytes()])?))
}

impl Chain {
    pub(super) fn begin(key: &Secret, id: TokenId) -> Result<Self, TokenFault> {
        let signature = sign(key, &[PREFIX.as_bytes(), &id])?;
        Ok(Self { id, blocks: Vec::new(), signature })
    }

    /// Adds a block; the signature that could have been used to leave it out is gone.
    pub(super) fn add(&mut self, block: Vec<u8>) -> Result<(), TokenFault> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(TokenFault::Full("as many caveats as it can hold"));
        }
        self.signature = sign(&self.signature, &[&block])?;
        self.blocks.push(block);
        Ok(())
    }

    pub(super) fn id(&self) -> &TokenId {
        &self.id
    }

    pub(super) fn blocks(&self) -> &[Vec<u8>] {
        &self.blocks
    }

    /// The signature after each block.
    pub(super) fn verify(&self, key: &Secret) -> Result<Vec<Secret>, TokenFault> {
        let mut signature = sign(key, &[PREFIX.as_bytes(), &self.id])?;
        let mut signatures = Vec::with_capacity(self.blocks.len());
        let Some((last, others)) = self.blocks.split_last() else {
            return Err(TokenFault::Malformed("it has no caveat block"));
        };
        for block in others {
            signature = sign(&signature, &[block])?;
            signatures.push(signature);
        }
        let mut mac = mac(&signature)?;
        mac.update(last);
        // This comparison takes the same time wherever the first difference is.
        mac.verify_slice(&self.signature).map_err(|_| TokenFault::Forged)?;
        signatures.push(self.signature);
        Ok(signatures)
    }

    pub(super) fn encode(&self) -> Result<CapabilityToken, TokenFault> {
        let full = || TokenFault::Full("more text than it can hold");
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.id);
        bytes.push(u8::try_from(self.blocks.len()).map_err(|_| full())?);
        for block in &self.blocks {
            bytes.extend_from_slice(&u16::try_from(block.len()).map_err(|_| full())?.to_be_bytes());
            bytes.extend_from_slice(block);
        }
        bytes.extend_from_slice(&self.signature);
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        if text.len() > MAX_TEXT_BYTES { Err(full()) } else { Ok(CapabilityToken::new(text)) }
    }

    pub(super) fn decode(token: &CapabilityToken) -> Result<Self, TokenFault> {
        let text = token.reveal();
        if text.len() > MAX_TEXT_BYTES {
            return Err(TokenFault::Malformed("it is too long"));
        }
        let body =
            text.strip_prefix(PREFIX).ok_or(TokenFault::Malformed("it does not begin with `tgp1.`"))?;
        // The engine refuses padding and stray bits, so no two texts are the same token.
        let bytes = URL_SAFE_NO_PAD.decode(body).map_err(|_| TokenFault::Malformed("it is not base64url"))?;
        let mut rest = bytes.as_slice();
        let id = take(&mut rest)?;
        let [count] = take(&mut rest)?;
        if usize::from(count) > MAX_BLOCKS {
            return Err(TokenFault::Malformed("it has too many caveats"));
        }
        let mut blocks = Vec::new();
        for _ in 0..count {
            let length = usize::from(u16::from_be_bytes(take(&mut rest)?));
            let (block, after) = rest.split_at_checked(length).ok_or(SHORT)?;
            blocks.push(block.to_vec());
            rest = after;
        }
        let signature = take(&mut rest)?;
        if !rest.is_empty() {
            return Err(TokenFault::Malformed("something follows its end"));
        }
        Ok(Self { id, blocks, signature })
    }
}

const SHORT: TokenFault = TokenFault::Malformed("it is cut off");

fn take<const LENGTH: usize>(rest: &mut &[u8]) -> Result<[u8; LENGTH], TokenFault> {
    let (head, after) = rest.split_first_chunk().ok_or(SHORT)?;
    *rest = after;
    Ok(*head)
}
