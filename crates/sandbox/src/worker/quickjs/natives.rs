//! Natives that need nothing but their arguments: URLs and random bytes.
#![expect(clippy::needless_pass_by_value, reason = "the engine hands natives owned values")]

use rquickjs::{Ctx, Function, Object, Result, TypedArray, Value, qjs};
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

/// The bytes of a typed array; none when its buffer is detached or has become too short for it.
pub(super) fn copy_of(array: &TypedArray<'_, u8>) -> Vec<u8> {
    let Ok(buffer) = array.arraybuffer() else {
        // What the engine threw would be found by the next call that asks for an exception.
        array.ctx().catch();
        return Vec::new();
    };
    let Some(raw) = buffer.as_raw() else {
        array.ctx().catch();
        return Vec::new();
    };
    // SAFETY: the pointer describes the live bytes of the buffer, and no JavaScript runs while they are copied.
    let whole = unsafe { raw.as_ref() };
    let (offset, length) = extent(array, whole.len());
    whole.get(offset..offset.saturating_add(length)).map_or_else(Vec::new, <[u8]>::to_vec)
}

/// Where the bytes of a typed array begin in its buffer of `total` bytes, and how many they are. The engine gives the
/// length that a view of a resizable buffer had when it was made; one that follows its buffer may have another by now.
fn extent(array: &TypedArray<'_, u8>, total: usize) -> (usize, usize) {
    let ctx = array.ctx();
    let (mut offset, mut length): (qjs::size_t, qjs::size_t) = (0, 0);
    // SAFETY: the value is a live typed array, the buffer that is given belongs to the new handle, and the engine only
    // writes the two numbers.
    unsafe {
        let (value, step) = (array.as_value().as_raw(), std::ptr::null_mut());
        let raw = qjs::JS_GetTypedArrayBuffer(ctx.as_raw().as_ptr(), value, &mut offset, &mut length, step);
        drop(Value::from_raw(ctx.clone(), raw));
    }
    let number = |size: qjs::size_t| usize::try_from(size).unwrap_or(usize::MAX);
    let (offset, length) = (number(offset), number(length));
    let rest = total.saturating_sub(offset);
    let follows = match rest.cmp(&length) {
        std::cmp::Ordering::Equal => false,
        // One that does not follow would be out of bounds, which the engine has refused.
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Greater => has_element(array, length),
    };
    (offset, if follows { rest } else { length })
}

/// Whether a typed array has an element at an index, asked of the engine and not of a property that a tool can change.
fn has_element(array: &TypedArray<'_, u8>, index: usize) -> bool {
    let Ok(index) = u32::try_from(index) else { return false };
    let ctx = array.ctx().as_raw().as_ptr();
    // SAFETY: the value is a live typed array, no descriptor is asked for, and the name is given back.
    unsafe {
        let name = qjs::JS_NewAtomUInt32(ctx, index);
        let found = qjs::JS_GetOwnProperty(ctx, std::ptr::null_mut(), array.as_value().as_raw(), name);
        qjs::JS_FreeAtom(ctx, name);
        found > 0
    }
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count.min(65_536)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match crate::os::random_bytes(rest) {
            Some(got) => filled += got,
            None => crate::worker::leave(),
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
