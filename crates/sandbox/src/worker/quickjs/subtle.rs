//! Natives of `crypto.subtle`: functions of bytes. Keys are bytes here; what a key may be used for is the prelude's
//! business. Whatever takes time in proportion to its input asks between slices whether the run must stop.

use std::rc::Rc;

use aes_gcm::AesGcm;
use aes_gcm::aead::consts::{U12, U16};
use aes_gcm::aead::{Aead, Nonce, Payload};
use hmac::{EagerHash, Hmac, Mac};
use rquickjs::{Ctx, Exception, Function, Object, Result, TypedArray};
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, Sha384, Sha512};

use super::natives::copy_of;
use crate::worker::host::Host;

mod curves;

/// Bytes that are hashed between two looks at the clock.
const SLICE_BYTES: usize = 256 * 1024;
/// Iterations of PBKDF2 between two looks at the clock.
const SLICE_ITERATIONS: u32 = 1024;
/// The most that one derivation may give.
const MAX_DERIVED_BYTES: usize = 1024 * 1024;

type Bytes<'js> = TypedArray<'js, u8>;

/// Runs `$function::<D>(…)` for the hash called `$name`; `None` when there is none of that name.
macro_rules! with_hash {
    ($name:expr, $function:ident ( $($argument:expr),* )) => {
        match $name {
            "SHA-1" => $function::<Sha1>($($argument),*),
            "SHA-256" => $function::<Sha256>($($argument),*),
            "SHA-384" => $function::<Sha384>($($argument),*),
            "SHA-512" => $function::<Sha512>($($argument),*),
            _ => None,
        }
    };
}

/// What a native gives: new bytes, or undefined when the input is not valid.
fn given<'js>(ctx: &Ctx<'js>, host: &Host, bytes: Option<Vec<u8>>) -> Result<Option<Bytes<'js>>> {
    if host.must_stop() {
        // The engine stops at its next check, whatever the tool makes of this.
        return Err(Exception::throw_message(ctx, "the run is over its limit"));
    }
    bytes.map(|bytes| TypedArray::new_copy(ctx.clone(), bytes)).transpose()
}

pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>, host: &Rc<Host>) -> Result<()> {
    let owner = Rc::clone(host);
    natives.set(
        "digest",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, hash: String, data: Bytes<'js>| {
            let data = copy_of(&data);
            given(&ctx, &owner, with_hash!(hash.as_str(), digest(&owner, &data)))
        })?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "hmacSign",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, hash: String, key: Bytes<'js>, data: Bytes<'js>| {
            let (key, data) = (copy_of(&key), copy_of(&data));
            given(&ctx, &owner, with_hash!(hash.as_str(), hmac(&owner, &key, &data)))
        })?,
    )?;
    natives.set(
        "equalBytes",
        Function::new(ctx.clone(), |left: Bytes<'js>, right: Bytes<'js>| {
            equal_bytes(&copy_of(&left), &copy_of(&right))
        })?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "aesGcm",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  way: String,
                  key: Bytes<'js>,
                  iv: Bytes<'js>,
                  data: Bytes<'js>,
                  aad: Bytes<'js>| {
                let seal = way == "encrypt";
                let (key, iv, data, aad) = (copy_of(&key), copy_of(&iv), copy_of(&data), copy_of(&aad));
                given(&ctx, &owner, aes_gcm(seal, &key, &iv, &data, &aad))
            },
        )?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "hkdf",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  hash: String,
                  key: Bytes<'js>,
                  salt: Bytes<'js>,
                  info: Bytes<'js>,
                  length: usize| {
                let (key, salt, info) = (copy_of(&key), copy_of(&salt), copy_of(&info));
                given(&ctx, &owner, with_hash!(hash.as_str(), hkdf(&owner, &key, &salt, &info, length)))
            },
        )?,
    )?;
    let owner = Rc::clone(host);
    natives.set(
        "pbkdf2",
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  hash: String,
                  key: Bytes<'js>,
                  salt: Bytes<'js>,
                  iterations: f64,
                  length: usize| {
                let (key, salt) = (copy_of(&key), copy_of(&salt));
                let iterations = iterations as u32;
                given(
                    &ctx,
                    &owner,
                    with_hash!(hash.as_str(), pbkdf2(&owner, &key, &salt, iterations, length)),
                )
            },
        )?,
    )?;
    curves::install(ctx, natives, host)
}

fn digest<D: Digest>(host: &Host, data: &[u8]) -> Option<Vec<u8>> {
    let mut state = D::new();
    for slice in data.chunks(SLICE_BYTES) {
        if host.must_stop() {
            return None;
        }
        state.update(slice);
    }
    Some(state.finalize().to_vec())
}

fn hmac<D: EagerHash>(host: &Host, key: &[u8], data: &[u8]) -> Option<Vec<u8>>
where
    Hmac<D>: Mac + hmac::KeyInit,
{
    let mut state = <Hmac<D> as hmac::KeyInit>::new_from_slice(key).ok()?;
    for slice in data.chunks(SLICE_BYTES) {
        if host.must_stop() {
            return None;
        }
        state.update(slice);
    }
    Some(state.finalize().into_bytes().to_vec())
}

/// Compares in a time that depends on the lengths only.
fn equal_bytes(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).fold(0, |seen, (left, right)| seen | (left ^ right)) == 0
}

/// RFC 5869.
fn hkdf<D: EagerHash>(host: &Host, key: &[u8], salt: &[u8], info: &[u8], length: usize) -> Option<Vec<u8>>
where
    Hmac<D>: Mac + hmac::KeyInit,
{
    const MAX_BLOCKS: usize = 255;
    let hash_bytes = hmac::<D>(host, &[], &[])?.len();
    if length > MAX_BLOCKS * hash_bytes {
        return None;
    }
    let zeros = vec![0; hash_bytes];
    let extracted = hmac::<D>(host, if salt.is_empty() { &zeros } else { salt }, key)?;
    let mut derived = Vec::with_capacity(length + hash_bytes);
    let mut block = Vec::new();
    let mut counter = 1_u8;
    while derived.len() < length {
        block.extend_from_slice(info);
        block.push(counter);
        block = hmac::<D>(host, &extracted, &block)?;
        derived.extend_from_slice(&block);
        counter = counter.wrapping_add(1);
    }
    derived.truncate(length);
    Some(derived)
}

/// RFC 8018, in slices: a large number of iterations ends with the run's CPU limit.
fn pbkdf2<D: EagerHash>(
    host: &Host,
    password: &[u8],
    salt: &[u8],
    iterations: u32,
    length: usize,
) -> Option<Vec<u8>>
where
    Hmac<D>: Mac + hmac::KeyInit + Clone,
{
    if iterations == 0 || length > MAX_DERIVED_BYTES {
        return None;
    }
    let keyed = <Hmac<D> as hmac::KeyInit>::new_from_slice(password).ok()?;
    let mut derived = Vec::with_capacity(length);
    let mut index = 1_u32;
    while derived.len() < length {
        let mut first = keyed.clone();
        first.update(salt);
        first.update(&index.to_be_bytes());
        let mut last = first.finalize().into_bytes();
        let mut block = last.to_vec();
        for iteration in 1..iterations {
            if iteration % SLICE_ITERATIONS == 0 && host.must_stop() {
                return None;
            }
            let mut next = keyed.clone();
            next.update(&last);
            last = next.finalize().into_bytes();
            for (mixed, byte) in block.iter_mut().zip(&last) {
                *mixed ^= byte;
            }
        }
        if host.must_stop() {
            return None;
        }
        derived.extend_from_slice(&block);
        index = index.checked_add(1)?;
    }
    derived.truncate(length);
    Some(derived)
}

/// `None` when the key or the nonce has a wrong length, or when the tag does not fit.
fn aes_gcm(seal: bool, key: &[u8], iv: &[u8], data: &[u8], aad: &[u8]) -> Option<Vec<u8>> {
    fn run<C: Aead + aes_gcm::KeyInit>(
        seal: bool,
        key: &[u8],
        iv: &[u8],
        data: &[u8],
        aad: &[u8],
    ) -> Option<Vec<u8>> {
        let cipher = C::new_from_slice(key).ok()?;
        let nonce = Nonce::<C>::try_from(iv).ok()?;
        let payload = Payload { msg: data, aad };
        if seal { cipher.encrypt(&nonce, payload) } else { cipher.decrypt(&nonce, payload) }.ok()
    }
    match (key.len(), iv.len()) {
        (16, 12) => run::<AesGcm<aes::Aes128, U12>>(seal, key, iv, data, aad),
        (24, 12) => run::<AesGcm<aes::Aes192, U12>>(seal, key, iv, data, aad),
        (32, 12) => run::<AesGcm<aes::Aes256, U12>>(seal, key, iv, data, aad),
        (16, 16) => run::<AesGcm<aes::Aes128, U16>>(seal, key, iv, data, aad),
        (24, 16) => run::<AesGcm<aes::Aes192, U16>>(seal, key, iv, data, aad),
        (32, 16) => run::<AesGcm<aes::Aes256, U16>>(seal, key, iv, data, aad),
        _ => None,
    }
}
