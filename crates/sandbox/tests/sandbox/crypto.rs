//! `crypto.subtle` beyond the golden list: refusals, round trips, limits.

use std::time::Duration;

use serde_json::json;
use tgp_sandbox::{RunErrorKind, RunLimits, ToolRunOptions};

use crate::Test;
use crate::worker::{Tested, Workers, limits};

pub const TESTS: &[Test] = &[
    ("crypto_keys_survive_every_format", formats),
    ("crypto_refuses_what_a_key_is_not_for", refusals),
    ("crypto_wraps_keys", wraps),
    ("crypto_pbkdf2_ends_with_the_cpu_limit", pbkdf2_is_bounded),
];

fn formats(workers: &Workers) -> Tested {
    for (algorithm, parameters) in [
        ("{ name: 'ECDSA', namedCurve: 'P-256' }", "{ name: 'ECDSA', hash: 'SHA-256' }"),
        ("{ name: 'ECDSA', namedCurve: 'P-384' }", "{ name: 'ECDSA', hash: 'SHA-512' }"),
        ("'Ed25519'", "'Ed25519'"),
    ] {
        let code = format!(
            "(async () => {{
              const {{ subtle }} = crypto;
              const pair = await subtle.generateKey({algorithm}, true, ['sign', 'verify']);
              const data = Buffer.from('message');
              const results = [];
              for (const secret of ['pkcs8', 'jwk']) for (const open of ['spki', 'raw', 'jwk']) {{
                const signer = await subtle.importKey(secret, await subtle.exportKey(secret, pair.privateKey), {algorithm}, false, ['sign']);
                const verifier = await subtle.importKey(open, await subtle.exportKey(open, pair.publicKey), {algorithm}, true, ['verify']);
                results.push(await subtle.verify({parameters}, verifier, await subtle.sign({parameters}, signer, data), data));
              }}
              return results.every(Boolean) && results.length;
            }})()"
        );
        workers.check(&code, &json!(6))?;
    }
    Ok(())
}

fn refusals(workers: &Workers) -> Tested {
    for (code, name) in [
        (
            "subtle.exportKey('raw', await subtle.importKey('raw', Buffer.alloc(16), 'AES-GCM', false, ['encrypt']))",
            "InvalidAccessError",
        ),
        (
            "subtle.sign('HMAC', await subtle.importKey('raw', Buffer.alloc(16), 'AES-GCM', false, ['encrypt']), data)",
            "InvalidAccessError",
        ),
        (
            "subtle.encrypt({ name: 'AES-GCM', iv: Buffer.alloc(5) }, await subtle.importKey('raw', Buffer.alloc(16), 'AES-GCM', false, ['encrypt']), data)",
            "NotSupportedError",
        ),
        (
            "subtle.importKey('raw', Buffer.alloc(65), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify'])",
            "DataError",
        ),
        ("subtle.importKey('pkcs8', Buffer.alloc(9), 'Ed25519', true, ['sign'])", "DataError"),
        ("subtle.importKey('raw', data, 'PBKDF2', true, ['deriveBits'])", "SyntaxError"),
        ("subtle.generateKey({ name: 'RSA-PSS' }, true, ['sign'])", "NotSupportedError"),
        (
            "subtle.deriveBits({ name: 'HKDF', hash: 'SHA-256', salt: data, info: data }, await subtle.importKey('raw', data, 'HKDF', false, ['deriveBits']), 8 * 256 * 32)",
            "OperationError",
        ),
        (
            "subtle.generateKey({ name: 'HMAC', hash: 'SHA-256', length: 2 ** 40 }, true, ['sign'])",
            "OperationError",
        ),
        ("subtle.sign('HMAC', {}, data)", "TypeError"),
        ("subtle.digest('SHA-256', 'text')", "TypeError"),
    ] {
        let caught = format!(
            "(async () => {{ const {{ subtle }} = crypto; const data = Buffer.from('x'); try {{ return await {code}; }} catch (error) {{ return error.name; }} }})()"
        );
        workers.check(&caught, &json!(name))?;
    }
    Ok(())
}

fn wraps(workers: &Workers) -> Tested {
    workers.check(
        "(async () => {
          const { subtle } = crypto;
          const wrapping = await subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['wrapKey', 'unwrapKey']);
          const key = await subtle.importKey('raw', Buffer.from('secret'), { name: 'HMAC', hash: 'SHA-256' }, true, ['sign']);
          const way = { name: 'AES-GCM', iv: Buffer.alloc(12) };
          const wrapped = await subtle.wrapKey('jwk', key, wrapping, way);
          const again = await subtle.unwrapKey('jwk', wrapped, wrapping, way, { name: 'HMAC', hash: 'SHA-256' }, true, ['sign']);
          return Buffer.from(await subtle.exportKey('raw', again)).toString();
        })()",
        &json!("secret"),
    )
}

fn pbkdf2_is_bounded(workers: &Workers) -> Tested {
    let cpu = RunLimits { cpu: Duration::from_millis(200), ..limits() };
    let code = "(async () => {
      const key = await crypto.subtle.importKey('raw', Buffer.from('p'), 'PBKDF2', false, ['deriveBits']);
      try {
        await crypto.subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-512', salt: Buffer.from('s'), iterations: 4294967295 }, key, 512);
      } catch {}
      return 'went on';
    })()";
    let report = workers.evaluate_with(code, ToolRunOptions { limits: cpu, ..ToolRunOptions::default() });
    match report.result {
        // The worker reports its own end: the kernel did not have to kill it, so its heap is known.
        Err(error) if error.kind == RunErrorKind::CpuTime && report.stats.heap_peak_bytes > 0 => Ok(()),
        other => Err(format!("{other:?} after {} ms", report.stats.cpu_ms).into()),
    }
}
