// What all of `Intl` shares: locales, options and constructors.
const { apply, construct, currentTime, defineProperty, parse, setPrototypeOf, stringify } = kit;
const native = host.intl;
const { getTime } = Date.prototype;
const bigIntValue = BigInt.prototype.valueOf;
const numberValue = Number.prototype.valueOf;

// No valid text of an option or a locale is longer; what is cut off makes it invalid.
const MAX_TEXT = 256;
const MAX_LOCALES = 100;

/** Text for the natives, which take well-formed text only. */
const wellFormed = (value) => `${value}`.toWellFormed();
const shortText = (value) => `${value}`.slice(0, MAX_TEXT).toWellFormed();

/** The requested locales, as texts. */
function localeList(locales) {
  if (locales === undefined) return [];
  if (typeof locales === 'string') return [shortText(locales)];
  if (locales === null) throw new TypeError('locales must be a text or an array of texts, not null');
  if (locales instanceof Locale) return [shortText(locales)];
  const source = Object(locales);
  const length = Number(source.length) || 0;
  if (length > MAX_LOCALES) throw new RangeError(`too many locales: ${length}, at most ${MAX_LOCALES}`);
  const list = [];
  for (let at = 0; at < length; at += 1) {
    if (!(at in source)) continue;
    const value = source[at];
    if (typeof value !== 'string' && (typeof value !== 'object' || value === null)) {
      throw new TypeError(`a locale must be a text or an Intl.Locale, not ${typeof value}`);
    }
    list.push(shortText(value));
  }
  return list;
}

function numberOption(name, value) {
  const number = Number(value);
  if (!(number > -Infinity && number < Infinity)) throw new RangeError(`invalid value of option \`${name}\`: expected a number`);
  return number;
}

/** `useGrouping` is a word, or true or false. */
function groupingOption(value) {
  if (value === true || value === false) return value;
  return value ? shortText(value) : false;
}

/** The JSON of locales and options: `names` says in which order options are read, and as what. */
function request(locales, options, names, more) {
  const read = { __proto__: null, locales: localeList(locales), ...more };
  if (options === null) throw new TypeError('options must be an object, not null');
  if (options !== undefined) {
    const source = Object(options);
    for (const [name, type] of names) {
      const value = source[name];
      if (value === undefined) continue;
      if (type === 'text') read[name] = shortText(value);
      else if (type === 'flag') read[name] = Boolean(value);
      else if (type === 'grouping') read[name] = groupingOption(value);
      else read[name] = numberOption(name, value);
    }
  }
  return stringify(read);
}

/** Like `request`, for the constructors that take no other value in place of an object. */
function strictRequest(locales, options, names) {
  if (options !== undefined && (typeof options !== 'object' || options === null) && typeof options !== 'function') {
    throw new TypeError(`options must be an object, not ${options === null ? 'null' : typeof options}`);
  }
  return request(locales, options, names);
}

// Options that were valid, so that a loop which formats with the same ones does not have them checked each time.
const MAX_ACCEPTED = 64;
let accepted = { __proto__: null };
let acceptedCount = 0;

/** Throws when the options are invalid. */
function accept(kind, options) {
  const key = `${kind} ${options}`;
  if (accepted[key]) return;
  native.check(kind, options);
  if (acceptedCount >= MAX_ACCEPTED) {
    accepted = { __proto__: null };
    acceptedCount = 0;
  }
  accepted[key] = true;
  acceptedCount += 1;
}

/** A number as the natives take it: its text. */
function numberText(value) {
  if (typeof value === 'bigint') return `${value}`;
  if (typeof value === 'string') {
    const text = value.trim();
    // Digits that a number could not hold are kept.
    if (/^[+-]?\d+(\.\d+)?$/.test(text)) return text;
  }
  const primitive = typeof value === 'object' && value !== null ? toPrimitive(value) : value;
  if (typeof primitive === 'bigint') return `${primitive}`;
  const number = Number(primitive);
  return Object.is(number, -0) ? '-0' : `${number}`;
}

function toPrimitive(value) {
  const convert = value[Symbol.toPrimitive];
  return convert === undefined || convert === null ? value.valueOf() : apply(convert, value, ['number']);
}

/** The clock is looked up when it is read: a run may have stopped it after this script was loaded. */
function timeOf(value) {
  return value === undefined ? currentTime() : Number(value);
}

function hide(target, name, value) {
  defineProperty(target, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });
}

/** Names a class, gives it `supportedLocalesOf`, and makes it callable without `new` where the standard does. */
function finish(name, Class, callable = false) {
  let made = Class;
  if (callable) {
    made = function (locales = undefined, options = undefined) {
      return construct(Class, [locales, options], new.target === undefined ? made : new.target);
    };
    defineProperty(made, 'prototype', { __proto__: null, value: Class.prototype, writable: false });
    hide(Class.prototype, 'constructor', made);
  }
  defineProperty(made, 'name', { __proto__: null, value: name, configurable: true });
  defineProperty(made, 'length', { __proto__: null, value: 0, configurable: true });
  defineProperty(Class.prototype, Symbol.toStringTag, { __proto__: null, value: `Intl.${name}`, configurable: true });
  hide(made, 'supportedLocalesOf', function supportedLocalesOf(locales) {
    return parse(native.supportedLocales(stringify(localeList(locales))));
  });
  return made;
}

/** A method that does not exist here, with what to do instead. */
function unsupported(name, instead) {
  return () => {
    throw new TypeError(`${name} is not supported: ${instead}`);
  };
}

class Locale {
  #tag;
  constructor(tag, options = undefined) {
    if (typeof tag !== 'string' && (typeof tag !== 'object' || tag === null)) throw new TypeError('Intl.Locale takes a text or an Intl.Locale');
    if (options !== undefined) throw new RangeError('options of Intl.Locale are not supported: write them into the tag, as in `en-u-hc-h23`');
    [this.#tag] = parse(native.canonicalLocales(stringify([shortText(tag)])));
  }
  #keyword(key) {
    return new RegExp(`-u(?:-[a-z0-9]{3,8})*(?:-[a-z0-9]{2}(?:-[a-z0-9]{3,8})*)*?-${key}((?:-[a-z0-9]{3,8})*)`).exec(this.#tag)?.[1].slice(1);
  }
  get baseName() {
    return this.#tag.replace(/-[a-z0-9]-.*$/, '');
  }
  get language() {
    return this.#tag.split('-')[0];
  }
  get script() {
    return /^[a-z]+-([A-Z][a-z]{3})(?:-|$)/.exec(this.#tag)?.[1];
  }
  get region() {
    return /^[a-z]+(?:-[A-Z][a-z]{3})?-([A-Z]{2}|\d{3})(?:-|$)/.exec(this.#tag)?.[1];
  }
  get calendar() {
    return this.#keyword('ca');
  }
  get collation() {
    return this.#keyword('co');
  }
  get hourCycle() {
    return this.#keyword('hc');
  }
  get numberingSystem() {
    return this.#keyword('nu');
  }
  get caseFirst() {
    return this.#keyword('kf');
  }
  get numeric() {
    const value = this.#keyword('kn');
    return value === '' || value === 'true';
  }
  maximize() {
    return new Locale(native.maximize(this.#tag));
  }
  minimize() {
    return new Locale(native.minimize(this.#tag));
  }
  toString() {
    return this.#tag;
  }
}
