// The `Intl` object, and what the methods of numbers, dates and texts call.
const Intl = {};
for (const [name, Class, callable] of [
  ['Collator', Collator, true], ['DateTimeFormat', DateTimeFormat, true], ['DisplayNames', DisplayNames], ['ListFormat', ListFormat], ['Locale', Locale],
  ['NumberFormat', NumberFormat, true], ['PluralRules', PluralRules], ['RelativeTimeFormat', RelativeTimeFormat], ['Segmenter', Segmenter],
]) hide(Intl, name, finish(name, Class, callable));
delete Intl.Locale.supportedLocalesOf;
hide(Intl, 'getCanonicalLocales', function getCanonicalLocales(locales) {
  return parse(native.canonicalLocales(stringify(localeList(locales))));
});
hide(Intl, 'supportedValuesOf', function supportedValuesOf(key) {
  return parse(native.supportedValues(shortText(key)));
});
defineProperty(Intl, Symbol.toStringTag, { __proto__: null, value: 'Intl', configurable: true });

// A loop that formats without options makes the same formatter again and again; these are made once.
const plain = { __proto__: null };
const plainFormatter = (name, make) => (plain[name] ??= make());

function formatNumber(value, locales, options) {
  if (locales === undefined && options === undefined) return plainFormatter('number', () => new NumberFormat()).format(value);
  return new NumberFormat(locales, options).format(value);
}

function compareText(left, right, locales, options) {
  if (left === undefined || left === null) throw new TypeError('String.prototype.localeCompare called on null or undefined');
  const text = `${left}`;
  const other = `${right}`;
  if (locales === undefined && options === undefined) return plainFormatter('collator', () => new Collator()).compare(text, other);
  return new Collator(locales, options).compare(text, other);
}

function caseText(text, locales, map) {
  if (text === undefined || text === null) throw new TypeError('the method is called on null or undefined');
  return map(wellFormed(text), stringify(localeList(locales)));
}

function dateText(date, locales, options, required, defaults) {
  const time = apply(getTime, date, []);
  if (time !== time) return 'Invalid Date';
  if (locales === undefined && options === undefined) {
    return plainFormatter(`${required} ${defaults}`, () => new DateTimeFormat(undefined, undefined, required, defaults)).format(time);
  }
  return new DateTimeFormat(locales, options, required, defaults).format(time);
}

// Arrays that are being written; one that contains itself shows nothing there.
const writing = [];

function arrayText(array, locales, options) {
  const source = Object(array);
  if (writing.includes(source)) return '';
  writing.push(source);
  try {
    const texts = [];
    for (let at = 0; at < source.length; at += 1) {
      const value = source[at];
      texts.push(value === undefined || value === null ? '' : `${value.toLocaleString(locales, options)}`);
    }
    return texts.join(',');
  } finally {
    writing.pop();
  }
}

return {
  Intl,
  arrayText,
  bigIntText: (value, locales, options) => formatNumber(apply(bigIntValue, value, []), locales, options),
  compareText,
  dateText,
  lowerText: (text, locales) => caseText(text, locales, native.lowerCase),
  numberText: (value, locales, options) => formatNumber(apply(numberValue, value, []), locales, options),
  upperText: (text, locales) => caseText(text, locales, native.upperCase),
};
