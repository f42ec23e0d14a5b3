// Methods that need `Intl`, which is loaded at its first use: most tools never need it.
const intl = () => part('intl');

const { toLowerCase, toUpperCase } = String.prototype;

for (const [prototype, methods] of [
  [Number.prototype, { toLocaleString(locales = undefined, options = undefined) { return intl().numberText(this, locales, options); } }],
  [globalThis.BigInt.prototype, { toLocaleString(locales = undefined, options = undefined) { return intl().bigIntText(this, locales, options); } }],
  [Array.prototype, { toLocaleString(locales = undefined, options = undefined) { return intl().arrayText(this, locales, options); } }],
  [Object.getPrototypeOf(Uint8Array.prototype), { toLocaleString(locales = undefined, options = undefined) { return intl().arrayText(this, locales, options); } }],
  [Date.prototype, {
    toLocaleString(locales = undefined, options = undefined) { return intl().dateText(this, locales, options, 'any', 'all'); },
    toLocaleDateString(locales = undefined, options = undefined) { return intl().dateText(this, locales, options, 'date', 'date'); },
    toLocaleTimeString(locales = undefined, options = undefined) { return intl().dateText(this, locales, options, 'time', 'time'); },
  }],
  [String.prototype, {
    localeCompare(that, locales = undefined, options = undefined) { return intl().compareText(this, that, locales, options); },
    // Without a locale they are those of English, which the engine has.
    toLocaleUpperCase(locales = undefined) { return locales === undefined ? apply(toUpperCase, this, []) : intl().upperText(this, locales); },
    toLocaleLowerCase(locales = undefined) { return locales === undefined ? apply(toLowerCase, this, []) : intl().lowerText(this, locales); },
  }],
]) {
  for (const name of keys(methods)) {
    defineProperty(prototype, name, { __proto__: null, value: methods[name], writable: true, configurable: true, enumerable: false });
  }
}
