//! Signatures on curves: ECDSA on P-256 and P-384, and Ed25519. Nonces follow RFC 6979, so a seeded run repeats.

use std::rc::Rc;

use ed25519_dalek::{Signature, Signer, SigningKey, Verifier, VerifyingKey};
use rquickjs::{Ctx, Function, Object, Result};

use super::{Bytes, copy_of, given};
use crate::worker::host::Host;

/// The functions of one NIST curve. Their types differ by curve, their text does not.
macro_rules! nist_curve {
    ($name:ident, $library:ident) => {
        mod $name {
            use $library::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
            use $library::ecdsa::{Signature, SigningKey, VerifyingKey};
            use $library::elliptic_curve::sec1::ToSec1Point;
            use $library::pkcs8::{DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey};
            use $library::{PublicKey, SecretKey};

            fn point(key: &PublicKey) -> Vec<u8> {
                key.to_sec1_point(false).as_bytes().to_vec()
            }

            /// One conversion of key material, by its name.
            pub(super) fn convert(what: &str, input: &[u8]) -> Option<Vec<u8>> {
                Some(match what {
                    "public" => point(&SecretKey::from_slice(input).ok()?.public_key()),
                    "point" => point(&PublicKey::from_sec1_bytes(input).ok()?),
                    "toPkcs8" => SecretKey::from_slice(input).ok()?.to_pkcs8_der().ok()?.as_bytes().to_vec(),
                    "fromPkcs8" => SecretKey::from_pkcs8_der(input).ok()?.to_bytes().to_vec(),
                    "toSpki" => {
                        PublicKey::from_sec1_bytes(input).ok()?.to_public_key_der().ok()?.as_bytes().to_vec()
                    }
                    "fromSpki" => point(&PublicKey::from_public_key_der(input).ok()?),
                    _ => return None,
                })
            }

            pub(super) fn sign(key: &[u8], hashed: &[u8]) -> Option<Vec<u8>> {
                let signature: Signature = SigningKey::from_slice(key).ok()?.sign_prehash(hashed).ok()?;
                Some(signature.to_bytes().to_vec())
            }

            pub(super) fn verify(point: &[u8], hashed: &[u8], signature: &[u8]) -> bool {
                let valid = || {
                    let key = VerifyingKey::from_sec1_bytes(point).ok()?;
                    let signature = Signature::from_slice(signature).ok()?;
                    key.verify_prehash(hashed, &signature).ok()
                };
                valid().is_some()
            }
        }
    };
}

nist_curve!(p_256, p256);
nist_curve!(p_384, p384);

pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, host: &Rc<Host>) -> Result<()> {
    let owner = Rc::clone(host);
    natives.set(
        "curveKey",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, curve: String, what: String, input: Bytes<'js>| {
            given(&ctx, &owner, key(&curve, &what, &copy_of(&input)))
        })?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "curveSign",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>, curve: String, key: Bytes<'js>, data: Bytes<'js>| {
                given(&ctx, &owner, sign(&curve, &copy_of(&key), &copy_of(&data)))
            },
        )?,
    )?;
    natives.set(
        "curveVerify",
        Function::new(
            ctx.clone(),
            |curve: String, key: Bytes<'js>, data: Bytes<'js>, signature: Bytes<'js>| {
                verify(&curve, &copy_of(&key), &copy_of(&data), &copy_of(&signature))
            },
        )?,
    )
}

fn key(curve: &str, what: &str, input: &[u8]) -> Option<Vec<u8>> {
    match curve {
        "P-256" => p_256::convert(what, input),
        "P-384" => p_384::convert(what, input),
        "Ed25519" => match what {
            "public" => {
                Some(SigningKey::from_bytes(input.try_into().ok()?).verifying_key().to_bytes().to_vec())
            }
            "point" => Some(VerifyingKey::from_bytes(input.try_into().ok()?).ok()?.to_bytes().to_vec()),
            _ => None,
        },
        _ => None,
    }
}

/// `data` is the hash for ECDSA and the whole message for Ed25519.
fn sign(curve: &str, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    match curve {
        "P-256" => p_256::sign(key, data),
        "P-384" => p_384::sign(key, data),
        "Ed25519" => Some(SigningKey::from_bytes(key.try_into().ok()?).sign(data).to_bytes().to_vec()),
        _ => None,
    }
}

fn verify(curve: &str, key: &[u8], data: &[u8], signature: &[u8]) -> bool {
    match curve {
        "P-256" => p_256::verify(key, data, signature),
        "P-384" => p_384::verify(key, data, signature),
        "Ed25519" => {
            let valid = || {
                let key = VerifyingKey::from_bytes(key.try_into().ok()?).ok()?;
                key.verify(data, &Signature::from_slice(signature).ok()?).ok()
            };
            valid().is_some()
        }
        _ => false,
    }
}
