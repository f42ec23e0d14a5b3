// Readers and writers of numbers on Buffer; `buffer.js` comes first.
const INTEGERS = [
  // Name, bytes, signed, and the accessor of DataView.
  ['UInt8', 1, 'Uint8'], ['Int8', 1, 'Int8'],
  ['UInt16', 2, 'Uint16'], ['Int16', 2, 'Int16'],
  ['UInt32', 4, 'Uint32'], ['Int32', 4, 'Int32'],
  ['BigUInt64', 8, 'BigUint64'], ['BigInt64', 8, 'BigInt64'],
  ['Float', 4, 'Float32'], ['Double', 8, 'Float64'],
];

const outOfRange = (name, range, value) =>
  withCode(new RangeError(`The value of "${name}" is out of range. It must be ${range}. Received ${typeof value === 'bigint' ? `${value}n` : grouped(value)}`), 'ERR_OUT_OF_RANGE');

/** Node groups the digits of large integers in its messages. */
const grouped = (value) =>
  Number.isInteger(value) && Math.abs(value) > 2 ** 32 ? `${value}`.replace(/\B(?=(\d{3})+$)/g, '_') : `${value}`;

function checkedOffset(buffer, offset, size) {
  if (typeof offset !== 'number') throw wrongType('"offset" argument', 'of type number', offset);
  if (!Number.isInteger(offset)) throw outOfRange('offset', 'an integer', offset);
  if (buffer.length < size) throw withCode(new RangeError('Attempt to access memory outside buffer bounds'), 'ERR_BUFFER_OUT_OF_BOUNDS');
  if (offset < 0 || offset + size > buffer.length) throw outOfRange('offset', `>= 0 and <= ${buffer.length - size}`, offset);
  return offset;
}

const viewOf = (buffer) => new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength);

function checkedInteger(value, bits, signed) {
  const [low, high] = signed ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
  if (typeof value !== 'number' && typeof value !== 'string') return;
  if (value < low || value > high) {
    const range = bits > 24 ? (signed ? `>= -(2 ** ${bits - 1}) and < 2 ** ${bits - 1}` : `>= 0 and < 2 ** ${bits}`) : `>= ${low} and <= ${high}`;
    throw outOfRange('value', range, value);
  }
}

function method(name, value) {
  defineProperty(BufferBytes.prototype, name, { __proto__: null, value, writable: true, configurable: true });
  // Node knows both spellings.
  if (name.includes('UInt')) {
    defineProperty(BufferBytes.prototype, name.replace('UInt', 'Uint'), { __proto__: null, value, writable: true, configurable: true });
  }
}

for (const [name, size, accessor] of INTEGERS) {
  const integer = !name.startsWith('Big') && !accessor.startsWith('Float');
  const signed = accessor.startsWith('Int');
  for (const order of size === 1 ? [''] : ['LE', 'BE']) {
    const little = order === 'LE';
    method(`read${name}${order}`, function (offset = 0) {
      return viewOf(this)[`get${accessor}`](checkedOffset(this, offset, size), little);
    });
    method(`write${name}${order}`, function (value, offset = 0) {
      if (integer) checkedInteger(value, size * 8, signed);
      else if (name.startsWith('Big')) {
        const [low, high] = name === 'BigInt64' ? [-(2n ** 63n), 2n ** 63n - 1n] : [0n, 2n ** 64n - 1n];
        if (typeof value !== 'bigint') throw wrongType('"value" argument', 'of type bigint', value);
        if (value < low || value > high) throw outOfRange('value', name === 'BigInt64' ? '>= -(2n ** 63n) and < 2n ** 63n' : '>= 0n and < 2n ** 64n', value);
      }
      viewOf(this)[`set${accessor}`](checkedOffset(this, offset, size), value, little);
      return offset + size;
    });
  }
}

const checkedSize = (size) => {
  if (typeof size !== 'number') throw wrongType('"byteLength" argument', 'of type number', size);
  if (!Number.isInteger(size) || size < 1 || size > 6) throw outOfRange('byteLength', '>= 1 and <= 6', size);
  return size;
};
for (const [order, little] of [['LE', true], ['BE', false]]) {
  const readUnsigned = (buffer, offset, size) => {
    checkedOffset(buffer, offset, checkedSize(size));
    let value = 0;
    for (let at = 0; at < size; at += 1) value = value * 256 + buffer[little ? offset + size - 1 - at : offset + at];
    return value;
  };
  const write = (buffer, value, offset, size, signed) => {
    checkedOffset(buffer, offset, checkedSize(size));
    checkedInteger(value, size * 8, signed);
    let rest = Math.trunc(Number(value)) || 0;
    if (rest < 0) rest += 2 ** (size * 8);
    for (let at = 0; at < size; at += 1) {
      buffer[little ? offset + at : offset + size - 1 - at] = rest % 256;
      rest = Math.floor(rest / 256);
    }
    return offset + size;
  };
  method(`readUInt${order}`, function (offset, size) {
    return readUnsigned(this, offset, size);
  });
  method(`readInt${order}`, function (offset, size) {
    const value = readUnsigned(this, offset, size);
    return value >= 2 ** (size * 8 - 1) ? value - 2 ** (size * 8) : value;
  });
  method(`writeUInt${order}`, function (value, offset, size) {
    return write(this, value, offset, size, false);
  });
  method(`writeInt${order}`, function (value, offset, size) {
    return write(this, value, offset, size, true);
  });
}
return { __proto__: null, Buffer };
