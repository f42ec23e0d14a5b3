// Randomness and time come from the kernel, so that a run can be repeated exactly.
let [s0, s1, s2, s3] = [1, 2, 3, 4];
let seeded = false;

/** xoshiro128**: 32 random bits. */
function nextBits() {
  const rotate = (bits, by) => (bits << by) | (bits >>> (32 - by));
  const result = Math.imul(rotate(Math.imul(s1, 5), 7), 9) >>> 0;
  const shifted = s1 << 9;
  s2 ^= s0;
  s3 ^= s1;
  s1 ^= s2;
  s0 ^= s3;
  s2 ^= shifted;
  s3 = rotate(s3, 11);
  return result;
}

function seedWith(words, isSeeded) {
  [s0, s1, s2, s3] = words.map((word) => word | 0);
  if ((s0 | s1 | s2 | s3) === 0) s0 = 1;
  seeded = isSeeded;
}

defineProperty(Math, 'random', {
  value: function random() {
    return ((nextBits() >>> 5) * 67108864 + (nextBits() >>> 6)) / 9007199254740992;
  },
  writable: true,
  configurable: true,
  enumerable: false,
});

const MAX_RANDOM_BYTES = 65536;

function randomBytes(count) {
  if (!seeded) return host.randomBytes(count);
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; at += 1) bytes[at] = nextBits() >>> 24;
  return bytes;
}

const typedArrayTag = Object.getOwnPropertyDescriptor(getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;

install('crypto', {
  getRandomValues(array) {
    const tag = ArrayBuffer.isView(array) ? apply(typedArrayTag, array, []) : undefined;
    if (tag === undefined || tag.startsWith('Float')) {
      throw new DOMException('crypto.getRandomValues takes an integer typed array', 'TypeMismatchError');
    }
    if (array.byteLength > MAX_RANDOM_BYTES) {
      throw new DOMException(`crypto.getRandomValues gives at most ${MAX_RANDOM_BYTES} bytes`, 'QuotaExceededError');
    }
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(randomBytes(array.byteLength));
    return array;
  },
  randomUUID() {
    const bytes = randomBytes(16);
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  },
  get subtle() {
    return part('subtle').subtle;
  },
});

// What the parts of the prelude read the time from. The engine's clock counts from the start of the machine, which is
// none of a tool's business; this one counts from the start of the run.
const engineClock = globalThis.performance;
const engineNow = engineClock.now;
const realNow = Date.now;
let frozenAt;
let clockStart = 0;
let timeOrigin = 0;
const now = () => (frozenAt === undefined ? apply(engineNow, engineClock, []) - clockStart : 0);
const currentTime = () => frozenAt ?? realNow();
function startClock() {
  clockStart = apply(engineNow, engineClock, []);
  timeOrigin = realNow();
}
install('performance', {
  now,
  get timeOrigin() {
    return frozenAt ?? timeOrigin;
  },
  toJSON: () => ({ timeOrigin: frozenAt ?? timeOrigin }),
});

// The engine leaves a date as it was when one of its fields is set to NaN; such a date is invalid.
const { setTime } = Date.prototype;
for (const field of ['Milliseconds', 'Seconds', 'Minutes', 'Hours', 'Date', 'Month', 'FullYear']) {
  for (const name of [`set${field}`, `setUTC${field}`]) {
    const set = Date.prototype[name];
    const { [name]: value } = {
      [name](...values) {
        const time = apply(set, this, values);
        if (time !== time) apply(setTime, this, [time]);
        return time;
      },
    };
    defineProperty(value, 'length', { __proto__: null, value: set.length, configurable: true });
    defineProperty(Date.prototype, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
  }
}

/** Stops the clock at one moment; only then is `Date` replaced. */
function freezeClock(milliseconds) {
  frozenAt = milliseconds;
  const FrozenDate = function Date(...parts) {
    if (!new.target) return new RealDate(milliseconds).toString();
    const made = parts.length === 0 ? new RealDate(milliseconds) : new RealDate(...parts);
    Object.setPrototypeOf(made, new.target.prototype);
    return made;
  };
  const RealDate = Date;
  FrozenDate.prototype = RealDate.prototype;
  FrozenDate.now = () => milliseconds;
  FrozenDate.parse = RealDate.parse;
  FrozenDate.UTC = RealDate.UTC;
  defineProperty(FrozenDate, 'length', { value: 7 });
  defineProperty(RealDate.prototype, 'constructor', { value: FrozenDate, writable: true, configurable: true });
  install('Date', FrozenDate);
}
