//! Natives that need nothing but their arguments: URLs and random bytes.
#![expect(clippy::needless_pass_by_value, reason = "the engine hands natives owned values")]

use rquickjs::{Ctx, Function, Object, Result, TypedArray};
use serde_json::json;
use url::Url;
use url::form_urlencoded;

pub(super) fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set(
        "randomBytes",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, count: usize| {
            TypedArray::<u8>::new_copy(ctx, random_bytes(count))
        })?,
    )?;
    natives.set("urlParse", Function::new(ctx.clone(), url_parse)?)?;
    natives.set("urlSet", Function::new(ctx.clone(), url_set)?)?;
    natives.set(
        "queryParse",
        Function::new(ctx.clone(), |text: String| {
            let pairs: Vec<_> = form_urlencoded::parse(text.as_bytes()).collect();
            json!(pairs).to_string()
        })?,
    )?;
    natives.set(
        "querySerialize",
        Function::new(ctx.clone(), |pairs: String| {
            let pairs: Vec<(String, String)> = serde_json::from_str(&pairs).unwrap_or_default();
            form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
        })?,
    )?;
    Ok(())
}

/// An object for natives. It inherits nothing, so that no setter of a tool sees it when a native is added to it.
pub(super) fn object<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set_prototype(None)?;
    Ok(object)
}

/// The bytes of a typed array; none when its buffer is detached.
pub(super) fn copy_of(array: &TypedArray<'_, u8>) -> Vec<u8> {
    // SAFETY: the pointer describes the array's live bytes, and no JavaScript runs while they are copied.
    array.as_raw().map_or_else(Vec::new, |bytes| unsafe { bytes.as_ref().to_vec() })
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count.min(65_536)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the pointer and length describe the slice `rest`.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => filled += got,
            Err(_) => crate::worker::leave(),
        }
    }
    bytes
}

fn url_parse(text: String, base: Option<String>) -> Option<String> {
    let base = match base {
        Some(base) => Some(Url::parse(&base).ok()?),
        None => None,
    };
    let url = Url::options().base_url(base.as_ref()).parse(&text).ok()?;
    Some(parts(&url))
}

fn url_set(href: String, part: String, value: String) -> Option<String> {
    use url::quirks;
    let mut url = Url::parse(&href).ok()?;
    match part.as_str() {
        "href" => url = Url::parse(&value).ok()?,
        "protocol" => quirks::set_protocol(&mut url, &value).ok()?,
        "username" => quirks::set_username(&mut url, &value).ok()?,
        "password" => quirks::set_password(&mut url, &value).ok()?,
        "host" => quirks::set_host(&mut url, &value).ok()?,
        "hostname" => quirks::set_hostname(&mut url, &value).ok()?,
        "port" => quirks::set_port(&mut url, &value).ok()?,
        "pathname" => quirks::set_pathname(&mut url, &value),
        "search" => quirks::set_search(&mut url, &value),
        "hash" => quirks::set_hash(&mut url, &value),
        _ => return None,
    }
    Some(parts(&url))
}

fn parts(url: &Url) -> String {
    use url::quirks;
    json!({
        "href": url.as_str(),
        "origin": quirks::origin(url),
        "protocol": quirks::protocol(url),
        "username": quirks::username(url),
        "password": quirks::password(url),
        "host": quirks::host(url),
        "hostname": quirks::hostname(url),
        "port": quirks::port(url),
        "pathname": quirks::pathname(url),
        "search": quirks::search(url),
        "hash": quirks::hash(url),
    })
    .to_string()
}
