// The constructors of `Intl`. An object holds the JSON of its options; the natives keep the formatters themselves.
const DIGIT_OPTIONS = [
  ['minimumIntegerDigits', 'number'], ['minimumFractionDigits', 'number'], ['maximumFractionDigits', 'number'],
  ['minimumSignificantDigits', 'number'], ['maximumSignificantDigits', 'number'], ['roundingIncrement', 'number'],
  ['roundingMode', 'text'], ['roundingPriority', 'text'], ['trailingZeroDisplay', 'text'],
];
const NUMBER_OPTIONS = [
  ['localeMatcher', 'text'], ['numberingSystem', 'text'], ['style', 'text'], ['currency', 'text'], ['currencyDisplay', 'text'], ['currencySign', 'text'],
  ['unit', 'text'], ['unitDisplay', 'text'], ['notation', 'text'], ...DIGIT_OPTIONS, ['compactDisplay', 'text'], ['useGrouping', 'grouping'],
  ['signDisplay', 'text'],
];
const DATE_OPTIONS = [
  ['localeMatcher', 'text'], ['calendar', 'text'], ['numberingSystem', 'text'], ['hour12', 'flag'], ['hourCycle', 'text'], ['timeZone', 'text'],
  ['weekday', 'text'], ['era', 'text'], ['year', 'text'], ['month', 'text'], ['day', 'text'], ['dayPeriod', 'text'], ['hour', 'text'], ['minute', 'text'],
  ['second', 'text'], ['fractionalSecondDigits', 'number'], ['timeZoneName', 'text'], ['formatMatcher', 'text'], ['dateStyle', 'text'], ['timeStyle', 'text'],
];
const COLLATOR_OPTIONS = [
  ['usage', 'text'], ['localeMatcher', 'text'], ['collation', 'text'], ['numeric', 'flag'], ['caseFirst', 'text'], ['sensitivity', 'text'],
  ['ignorePunctuation', 'flag'],
];
const PLURAL_OPTIONS = [['localeMatcher', 'text'], ['type', 'text'], ...DIGIT_OPTIONS];
const LIST_OPTIONS = [['localeMatcher', 'text'], ['type', 'text'], ['style', 'text']];
const RELATIVE_OPTIONS = [['localeMatcher', 'text'], ['numberingSystem', 'text'], ['style', 'text'], ['numeric', 'text']];
const SEGMENTER_OPTIONS = [['localeMatcher', 'text'], ['granularity', 'text']];
const NAMES_OPTIONS = [['localeMatcher', 'text'], ['style', 'text'], ['type', 'text'], ['fallback', 'text'], ['languageDisplay', 'text']];
const JOIN_BOTH = 'format both values and join them, as in `${a} – ${b}`';

class NumberFormat {
  #options;
  #format;
  constructor(locales, options) {
    this.#options = request(locales, options, NUMBER_OPTIONS);
    accept('number', this.#options);
  }
  get format() {
    this.#format ??= (value) => native.number(this.#options, numberText(value));
    return this.#format;
  }
  formatToParts(value) {
    return parse(native.numberParts(this.#options, numberText(value)));
  }
  resolvedOptions() {
    return parse(native.resolve('number', this.#options));
  }
}
hide(NumberFormat.prototype, 'formatRange', unsupported('Intl.NumberFormat.formatRange', JOIN_BOTH));
hide(NumberFormat.prototype, 'formatRangeToParts', unsupported('Intl.NumberFormat.formatRangeToParts', JOIN_BOTH));

class DateTimeFormat {
  #options;
  #format;
  constructor(locales, options, required = 'any', defaults = 'date') {
    this.#options = request(locales, options, DATE_OPTIONS, { required, defaults });
    accept('date', this.#options);
  }
  get format() {
    this.#format ??= (value) => native.date(this.#options, timeOf(value));
    return this.#format;
  }
  formatToParts(value) {
    return parse(native.dateParts(this.#options, timeOf(value)));
  }
  resolvedOptions() {
    return parse(native.resolve('date', this.#options));
  }
}
hide(DateTimeFormat.prototype, 'formatRange', unsupported('Intl.DateTimeFormat.formatRange', JOIN_BOTH));
hide(DateTimeFormat.prototype, 'formatRangeToParts', unsupported('Intl.DateTimeFormat.formatRangeToParts', JOIN_BOTH));

class Collator {
  #options;
  #compare;
  constructor(locales, options) {
    this.#options = request(locales, options, COLLATOR_OPTIONS);
    accept('collator', this.#options);
  }
  get compare() {
    this.#compare ??= (left, right) => native.compare(this.#options, wellFormed(left), wellFormed(right));
    return this.#compare;
  }
  resolvedOptions() {
    return parse(native.resolve('collator', this.#options));
  }
}

class PluralRules {
  #options;
  constructor(locales, options) {
    this.#options = request(locales, options, PLURAL_OPTIONS);
    accept('plural', this.#options);
  }
  select(value) {
    return native.plural(this.#options, numberText(Number(value)));
  }
  selectRange(start, end) {
    if (start === undefined || end === undefined) throw new TypeError('selectRange takes a start and an end');
    return native.pluralRange(this.#options, numberText(Number(start)), numberText(Number(end)));
  }
  resolvedOptions() {
    return parse(native.resolve('plural', this.#options));
  }
}

class ListFormat {
  #options;
  constructor(locales, options) {
    this.#options = strictRequest(locales, options, LIST_OPTIONS);
    accept('list', this.#options);
  }
  static #texts(list) {
    const texts = [];
    if (list === undefined) return stringify(texts);
    for (const item of list) {
      if (typeof item !== 'string') throw new TypeError(`an item of the list must be a text, not ${typeof item}`);
      texts.push(item.toWellFormed());
    }
    return stringify(texts);
  }
  format(list) {
    return native.list(this.#options, ListFormat.#texts(list));
  }
  formatToParts(list) {
    return parse(native.listParts(this.#options, ListFormat.#texts(list)));
  }
  resolvedOptions() {
    return parse(native.resolve('list', this.#options));
  }
}

class RelativeTimeFormat {
  #options;
  constructor(locales, options) {
    this.#options = request(locales, options, RELATIVE_OPTIONS);
    accept('relative', this.#options);
  }
  format(value, unit) {
    return native.relative(this.#options, numberText(Number(value)), shortText(unit));
  }
  formatToParts(value, unit) {
    const { parts, unit: singular } = parse(native.relativeParts(this.#options, numberText(Number(value)), shortText(unit)));
    return parts.map((part) => (part.type === 'literal' ? part : { ...part, unit: singular }));
  }
  resolvedOptions() {
    return parse(native.resolve('relative', this.#options));
  }
}

class Segments {
  #text;
  #ends;
  #words;
  constructor(text, ends, words) {
    this.#text = text;
    this.#ends = ends;
    this.#words = words;
  }
  #segment(at) {
    const index = at === 0 ? 0 : this.#ends[at - 1][0];
    const [end, isWordLike] = this.#ends[at];
    const segment = { segment: this.#text.slice(index, end), index, input: this.#text };
    if (this.#words) segment.isWordLike = isWordLike === 1;
    return segment;
  }
  containing(position = 0) {
    const index = Math.trunc(Number(position)) || 0;
    if (index < 0 || index >= this.#text.length) return undefined;
    let [low, high] = [0, this.#ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle][0] > index) high = middle;
      else low = middle + 1;
    }
    return this.#segment(low);
  }
  *[Symbol.iterator]() {
    for (let at = 0; at < this.#ends.length; at += 1) yield this.#segment(at);
  }
}

class Segmenter {
  #options;
  constructor(locales, options) {
    this.#options = strictRequest(locales, options, SEGMENTER_OPTIONS);
    accept('segmenter', this.#options);
  }
  segment(value) {
    const text = `${value}`;
    const { ends, words } = parse(native.segment(this.#options, text.toWellFormed()));
    return new Segments(text, ends, words);
  }
  resolvedOptions() {
    return parse(native.resolve('segmenter', this.#options));
  }
}

class DisplayNames {
  #options;
  constructor(locales, options) {
    if (options === undefined) throw new TypeError('Intl.DisplayNames needs options with a `type`');
    this.#options = strictRequest(locales, options, NAMES_OPTIONS);
    accept('names', this.#options);
  }
  of(code) {
    return native.name(this.#options, shortText(code));
  }
  resolvedOptions() {
    return parse(native.resolve('names', this.#options));
  }
}
