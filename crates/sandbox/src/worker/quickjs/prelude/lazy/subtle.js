// crypto.subtle: digests, HMAC, AES-GCM, HKDF, PBKDF2, ECDSA and Ed25519; `crypto_keys.js` comes first.
function mayUse(key, name, usage) {
  const material = materialOf(key);
  if (material.algorithm.name !== name) throw refusal('InvalidAccessError', 'Key algorithm mismatch');
  if (!material.usages.includes(usage)) throw refusal('InvalidAccessError', `Unable to use this key to ${usage}`);
  return material;
}

const succeeded = (bytes) => {
  if (bytes === undefined) throw refusal('OperationError', 'The operation failed for an operation-specific reason');
  return bytes;
};

function secretLength(algorithm) {
  if (algorithm.name === 'HMAC') {
    if (algorithm.length === 0) throw refusal('OperationError', 'Zero-length key is not supported');
    return algorithm.length ?? HASHES[hashOf(algorithm.hash)].block * 8;
  }
  if (![128, 192, 256].includes(algorithm.length)) throw refusal('OperationError', 'Invalid key length');
  return algorithm.length;
}

function newSecret(algorithm, bytes, extractable, usages) {
  if (algorithm.name === 'HMAC') {
    if (bytes.length === 0) throw refusal('DataError', 'Zero-length key is not supported');
    const described = { hash: { name: hashOf(algorithm.hash) }, length: bytes.length * 8, name: 'HMAC' };
    return secretKey(described, bytes, extractable, checkedUsages(usages, ['sign', 'verify'], true));
  }
  if (![16, 24, 32].includes(bytes.length)) throw refusal('DataError', 'Invalid key length');
  const allowed = ['encrypt', 'decrypt', 'wrapKey', 'unwrapKey'];
  return secretKey({ name: 'AES-GCM', length: bytes.length * 8 }, bytes, extractable, checkedUsages(usages, allowed, true));
}

const curveAlgorithm = (algorithm) => (algorithm.name === 'Ed25519' ? { name: 'Ed25519' } : { name: 'ECDSA', namedCurve: curveOf(algorithm) });

function curveKeys(algorithm, pair, extractable, usages) {
  const listed = checkedUsages(usages, ['sign', 'verify'], false);
  const key = (type, allowed) => newKey({
    type, algorithm, bytes: type === 'private' ? pair.secret : undefined, open: pair.open,
    extractable: type === 'public' || Boolean(extractable), usages: listed.filter((usage) => usage === allowed),
  });
  return { publicKey: key('public', 'verify'), privateKey: key('private', 'sign') };
}

function generateCurve(algorithm, extractable, usages) {
  const described = curveAlgorithm(algorithm);
  const curve = described.namedCurve ?? 'Ed25519';
  if (!checkedUsages(usages, ['sign', 'verify'], true).includes('sign')) {
    throw refusal('SyntaxError', 'Usages cannot be empty when creating a key.');
  }
  for (;;) {
    const secret = randomBytes(CURVES[curve] ?? 32);
    const open = host.curveKey(curve, 'public', secret);
    // A number outside of the curve's order is very rare; the next one will do.
    if (open !== undefined) return curveKeys(described, { secret, open }, extractable, usages);
  }
}

function importCurve(format, data, algorithm, extractable, usages) {
  const described = curveAlgorithm(algorithm);
  const pair = curvePair(described.namedCurve ?? 'Ed25519', format, data);
  const isPrivate = pair.secret !== undefined;
  checkedUsages(usages, [isPrivate ? 'sign' : 'verify'], isPrivate);
  const { publicKey, privateKey } = curveKeys(described, pair, extractable, usages);
  if (!isPrivate && !extractable) materialOf(publicKey).extractable = false;
  return isPrivate ? privateKey : publicKey;
}

const MAX_ITERATIONS = 2 ** 32 - 1;

/** Bits of a key derivation, whole bytes only. */
function derive(algorithm, key, usage, length) {
  const { bytes } = mayUse(key, algorithm.name, usage);
  if (length === null || length === undefined) throw refusal('OperationError', 'length cannot be null');
  const bits = Number(length);
  if (!Number.isInteger(bits) || bits < 0 || bits % 8 !== 0) throw refusal('OperationError', 'length must be a multiple of 8');
  const hash = hashOf(algorithm.hash);
  const salt = copied(algorithm.salt);
  if (algorithm.name === 'HKDF') return succeeded(host.hkdf(hash, bytes, salt, copied(algorithm.info), bits / 8));
  const { iterations } = algorithm;
  if (!Number.isInteger(iterations) || iterations > MAX_ITERATIONS) throw new TypeError('iterations must be an integer');
  if (iterations < 1) throw refusal('OperationError', 'iterations cannot be zero');
  return succeeded(host.pbkdf2(hash, bytes, salt, iterations, bits / 8));
}

function aesGcm(way, given, key, data, usage) {
  const algorithm = algorithmOf(given);
  const { bytes } = mayUse(key, 'AES-GCM', usage);
  if (algorithm.name !== 'AES-GCM') throw refusal('InvalidAccessError', 'Key algorithm mismatch');
  const { tagLength = 128 } = algorithm;
  if (tagLength !== 128) throw refusal('NotSupportedError', 'AES-GCM has tags of 128 bits here');
  const iv = copied(algorithm.iv);
  if (iv.length !== 12 && iv.length !== 16) throw refusal('NotSupportedError', 'AES-GCM takes an iv of 12 or 16 bytes here');
  const aad = algorithm.additionalData === undefined ? new Uint8Array(0) : copied(algorithm.additionalData);
  return succeeded(host.aesGcm(way, bytes, iv, copied(data), aad)).buffer;
}

class SubtleCrypto {
  constructor() {
    if (instance !== undefined) throw new TypeError('Illegal constructor');
  }
  async digest(algorithm, data) {
    return succeeded(host.digest(hashOf(algorithm), copied(data))).buffer;
  }
  async generateKey(given, extractable, usages) {
    const algorithm = algorithmOf(given);
    if (algorithm.name === 'ECDSA' || algorithm.name === 'Ed25519') return generateCurve(algorithm, extractable, usages);
    if (algorithm.name !== 'HMAC' && algorithm.name !== 'AES-GCM') throw refusal('NotSupportedError', 'Unrecognized algorithm name');
    const bytes = Math.ceil(secretLength(algorithm) / 8);
    if (!(bytes <= MAX_KEY_BYTES)) throw refusal('OperationError', 'Invalid key length');
    return newSecret(algorithm, randomBytes(bytes), extractable, usages);
  }
  async importKey(format, data, given, extractable, usages) {
    const algorithm = algorithmOf(given);
    switch (algorithm.name) {
      case 'HMAC':
      case 'AES-GCM':
        return newSecret(algorithm, secretBytes(format, data), extractable, usages);
      case 'HKDF':
      case 'PBKDF2':
        if (format !== 'raw') throw refusal('NotSupportedError', `Unable to import a ${algorithm.name} key from ${format}`);
        if (extractable) throw refusal('SyntaxError', `${algorithm.name} keys are not extractable`);
        return secretKey({ name: algorithm.name }, copied(data), false, checkedUsages(usages, ['deriveKey', 'deriveBits'], true));
      case 'ECDSA':
      case 'Ed25519':
        return importCurve(format, data, algorithm, extractable, usages);
      default:
        throw refusal('NotSupportedError', 'Unrecognized algorithm name');
    }
  }
  async exportKey(format, key) {
    const material = materialOf(key);
    if (!material.extractable) throw refusal('InvalidAccessError', 'key is not extractable');
    if (material.type !== 'secret') return exportCurve(material, format);
    if (format === 'raw') return material.bytes.slice().buffer;
    if (format !== 'jwk') throw refusal('NotSupportedError', `Unable to export a secret key using ${format} format`);
    const { algorithm } = material;
    const alg = algorithm.name === 'HMAC' ? `HS${algorithm.hash.name.slice(4)}` : `A${algorithm.length}GCM`;
    return { key_ops: [...material.usages], ext: true, kty: 'oct', k: base64Url(material.bytes), alg };
  }
  async sign(given, key, data) {
    const algorithm = algorithmOf(given);
    const material = mayUse(key, algorithm.name, 'sign');
    if (algorithm.name === 'HMAC') return succeeded(host.hmacSign(material.algorithm.hash.name, material.bytes, copied(data))).buffer;
    if (algorithm.name === 'Ed25519') return succeeded(host.curveSign('Ed25519', material.bytes, copied(data))).buffer;
    const hashed = succeeded(host.digest(hashOf(algorithm.hash), copied(data)));
    return succeeded(host.curveSign(material.algorithm.namedCurve, material.bytes, hashed)).buffer;
  }
  async verify(given, key, signature, data) {
    const algorithm = algorithmOf(given);
    const material = mayUse(key, algorithm.name, 'verify');
    const signed = copied(signature);
    if (algorithm.name === 'HMAC') return host.equalBytes(succeeded(host.hmacSign(material.algorithm.hash.name, material.bytes, copied(data))), signed);
    if (algorithm.name === 'Ed25519') return host.curveVerify('Ed25519', material.open, copied(data), signed);
    const hashed = succeeded(host.digest(hashOf(algorithm.hash), copied(data)));
    return host.curveVerify(material.algorithm.namedCurve, material.open, hashed, signed);
  }
  async encrypt(algorithm, key, data) {
    return aesGcm('encrypt', algorithm, key, data, 'encrypt');
  }
  async decrypt(algorithm, key, data) {
    return aesGcm('decrypt', algorithm, key, data, 'decrypt');
  }
  async deriveBits(given, key, length = null) {
    return derive(algorithmOf(given), key, 'deriveBits', length).buffer;
  }
  async deriveKey(given, key, wanted, extractable, usages) {
    const target = algorithmOf(wanted);
    if (target.name !== 'HMAC' && target.name !== 'AES-GCM') throw refusal('NotSupportedError', 'Unrecognized algorithm name');
    return newSecret(target, derive(algorithmOf(given), key, 'deriveKey', secretLength(target)), extractable, usages);
  }
  async wrapKey(format, key, wrapping, algorithm) {
    const exported = await this.exportKey(format, key);
    const bytes = format === 'jwk' ? host.utf8Encode(stringify(exported)) : exported;
    return aesGcm('encrypt', algorithm, wrapping, bytes, 'wrapKey');
  }
  async unwrapKey(format, wrapped, wrapping, unwrapAlgorithm, algorithm, extractable, usages) {
    const bytes = aesGcm('decrypt', unwrapAlgorithm, wrapping, wrapped, 'unwrapKey');
    const data = format === 'jwk' ? parse(host.decodeBytes('utf-8', new Uint8Array(bytes), false, false)) : bytes;
    return this.importKey(format, data, algorithm, extractable, usages);
  }
}
defineProperty(SubtleCrypto.prototype, Symbol.toStringTag, { __proto__: null, value: 'SubtleCrypto', configurable: true });
const MAX_KEY_BYTES = 1024;
let instance;
instance = new SubtleCrypto();
return { __proto__: null, subtle: instance, SubtleCrypto, CryptoKey };
