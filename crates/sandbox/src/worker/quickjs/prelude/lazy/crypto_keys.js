// CryptoKey and the formats of keys; `subtle.js` uses them.
const { defineProperty, parse, part, randomBytes, stringify } = kit;

const refusal = (name, message) => new DOMException(message, name);
const HASHES = { __proto__: null, 'SHA-1': { bytes: 20, block: 64 }, 'SHA-256': { bytes: 32, block: 64 }, 'SHA-384': { bytes: 48, block: 128 }, 'SHA-512': { bytes: 64, block: 128 } };
const CURVES = { __proto__: null, 'P-256': 32, 'P-384': 48 };
const NAMES = ['HMAC', 'AES-GCM', 'HKDF', 'PBKDF2', 'ECDSA', 'Ed25519', ...Object.keys(HASHES)];
const USAGES = ['encrypt', 'decrypt', 'sign', 'verify', 'deriveKey', 'deriveBits', 'wrapKey', 'unwrapKey'];

/** The bytes of a buffer source, copied: what the tool does to its own later changes nothing. */
const copied = (source) => new Uint8Array(part('encoding').bytesOf(source));

function algorithmOf(given) {
  const from = typeof given === 'string' ? { name: given } : given;
  if (typeof from !== 'object' || from === null || from.name === undefined) throw new TypeError('The algorithm must be a name or an object with a name.');
  const wanted = `${from.name}`.toLowerCase();
  const name = NAMES.find((known) => known.toLowerCase() === wanted);
  if (name === undefined) throw refusal('NotSupportedError', 'Unrecognized algorithm name');
  return { ...from, name };
}

function hashOf(given) {
  const { name } = algorithmOf(given);
  if (!(name in HASHES)) throw refusal('NotSupportedError', 'Unrecognized algorithm name');
  return name;
}

function curveOf(algorithm) {
  if (!(algorithm.namedCurve in CURVES)) throw refusal('NotSupportedError', 'Unrecognized namedCurve');
  return algorithm.namedCurve;
}

let newKey;
let materialOf;
let material;

class CryptoKey {
  #material;
  constructor() {
    if (material === undefined) throw new TypeError('Illegal constructor');
    this.#material = material;
  }
  static {
    newKey = (made) => {
      material = made;
      try {
        return new CryptoKey();
      } finally {
        material = undefined;
      }
    };
    materialOf = (key) => {
      if (typeof key !== 'object' || key === null || !(#material in key)) throw new TypeError('The argument must be a CryptoKey.');
      return key.#material;
    };
  }
  get type() {
    return materialOf(this).type;
  }
  get extractable() {
    return materialOf(this).extractable;
  }
  get algorithm() {
    return materialOf(this).algorithm;
  }
  get usages() {
    return [...materialOf(this).usages];
  }
}
defineProperty(CryptoKey.prototype, Symbol.toStringTag, { __proto__: null, value: 'CryptoKey', configurable: true });

function checkedUsages(usages, allowed, needed) {
  const list = [...usages].map(String);
  for (const usage of list) {
    if (!USAGES.includes(usage)) throw new TypeError(`'${usage}' is not a valid KeyUsage.`);
    if (!allowed.includes(usage)) throw refusal('SyntaxError', 'Unsupported key usage for this key');
  }
  if (needed && list.length === 0) throw refusal('SyntaxError', 'Usages cannot be empty when importing a private key.');
  return USAGES.filter((usage) => list.includes(usage));
}

const secretKey = (algorithm, bytes, extractable, usages) => newKey({ type: 'secret', algorithm, bytes, extractable: Boolean(extractable), usages });

const invalid = () => refusal('DataError', 'Invalid key data');
const base64Url = (bytes) => host.base64Encode(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const fromBase64Url = (text) => {
  if (typeof text !== 'string') throw refusal('DataError', 'Invalid JWK');
  return host.base64Decode(text);
};

/** A symmetric key from `raw` or `jwk`. */
function secretBytes(format, data) {
  if (format === 'raw') return copied(data);
  if (format !== 'jwk') throw refusal('NotSupportedError', `Unable to import a secret key from ${format}`);
  if (data?.kty !== 'oct') throw refusal('DataError', 'Invalid JWK "kty" Parameter');
  return fromBase64Url(data.k);
}

const ED_PRIVATE = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
const ED_PUBLIC = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

function withoutPrefix(bytes, prefix) {
  if (bytes.length !== prefix.length + 32 || prefix.some((byte, at) => bytes[at] !== byte)) throw invalid();
  return bytes.slice(prefix.length);
}

function joinedBytes(...parts) {
  const bytes = new Uint8Array(parts.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of parts) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Public and, where there is one, private bytes of a key on a curve, from one of its formats. */
function curvePair(curve, format, data) {
  const isEd = curve === 'Ed25519';
  const convert = (what, bytes) => host.curveKey(curve, what, bytes) ?? fail();
  const fail = () => {
    throw invalid();
  };
  const pair = (secret) => ({ secret, open: convert('public', secret) });
  switch (format) {
    case 'raw':
      return { secret: undefined, open: convert('point', copied(data)) };
    case 'spki':
      return { secret: undefined, open: isEd ? convert('point', withoutPrefix(copied(data), ED_PUBLIC)) : convert('fromSpki', copied(data)) };
    case 'pkcs8':
      return pair(isEd ? withoutPrefix(copied(data), ED_PRIVATE) : convert('fromPkcs8', copied(data)));
    case 'jwk': {
      if (data?.kty !== (isEd ? 'OKP' : 'EC') || data.crv !== curve) throw refusal('DataError', 'Invalid JWK');
      const point = isEd ? fromBase64Url(data.x) : joinedBytes([4], fromBase64Url(data.x), fromBase64Url(data.y));
      const open = convert('point', point);
      if (data.d === undefined) return { secret: undefined, open };
      const made = pair(fromBase64Url(data.d));
      if (base64Url(made.open) !== base64Url(open)) throw invalid();
      return made;
    }
    default:
      throw refusal('NotSupportedError', `Unable to import a key from ${format}`);
  }
}

function exportCurve(key, format) {
  const curve = key.algorithm.namedCurve ?? 'Ed25519';
  const isEd = curve === 'Ed25519';
  const isPrivate = key.type === 'private';
  if (format === 'raw' && !isPrivate) return key.open.slice().buffer;
  if (format === 'spki' && !isPrivate) return (isEd ? joinedBytes(ED_PUBLIC, key.open) : host.curveKey(curve, 'toSpki', key.open)).buffer;
  if (format === 'pkcs8' && isPrivate) return (isEd ? joinedBytes(ED_PRIVATE, key.bytes) : host.curveKey(curve, 'toPkcs8', key.bytes)).buffer;
  if (format !== 'jwk') throw refusal('InvalidAccessError', `Unable to export a raw ${curve} ${key.type} key`);
  const jwk = { key_ops: key.usages, ext: key.extractable };
  if (isEd) Object.assign(jwk, { crv: curve, x: base64Url(key.open), kty: 'OKP' });
  else {
    const size = CURVES[curve];
    Object.assign(jwk, { kty: 'EC', x: base64Url(key.open.slice(1, 1 + size)), y: base64Url(key.open.slice(1 + size)), crv: curve });
  }
  if (isPrivate) jwk.d = base64Url(key.bytes);
  return jwk;
}
