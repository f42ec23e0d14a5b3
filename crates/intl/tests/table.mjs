// Writes table.tsv: what Node.js gives for each row. Run with Node 20: node table.mjs > table.tsv
// Columns: constructor, locale, options as JSON, input as JSON, result as JSON.
// `DateTimeFormat` takes milliseconds, `Collator` two texts, `RelativeTimeFormat` a number and a unit, `Upper` and
// `Lower` a text.
const LOCALES = [
  'en', 'en-US', 'en-GB', 'de', 'de-AT', 'de-CH', 'fr', 'fr-CA', 'es', 'es-MX', 'it', 'pt', 'pt-BR', 'nl', 'sv', 'da', 'nb', 'fi', 'pl', 'cs', 'tr',
  'ru', 'uk', 'el', 'he', 'ar', 'hi', 'ja', 'ko', 'zh', 'zh-TW', 'th', 'vi', 'id',
];
const MOMENT = Date.UTC(2024, 2, 10, 14, 5, 9, 78);
const WINTER = Date.UTC(2024, 0, 5, 2, 30);
const SUMMER = Date.UTC(2024, 6, 4, 23, 15);

function resultOf(kind, locale, options, input) {
  switch (kind) {
    case 'Collator': return Math.sign(new Intl.Collator(locale, options).compare(...input));
    case 'RelativeTimeFormat': return new Intl.RelativeTimeFormat(locale, options).format(...input);
    case 'PluralRules': return new Intl.PluralRules(locale, options).select(input);
    case 'Segmenter': return [...new Intl.Segmenter(locale, options).segment(input)].map(({ segment }) => segment);
    case 'DisplayNames': return new Intl.DisplayNames(locale, options).of(input);
    case 'Upper': return input.toLocaleUpperCase(locale);
    case 'Lower': return input.toLocaleLowerCase(locale);
    case 'NumberParts': return new Intl.NumberFormat(locale, options).formatToParts(input).map(({ type, value }) => `${type}:${value}`);
    case 'DateParts': return new Intl.DateTimeFormat(locale, { timeZone: 'UTC', ...options }).formatToParts(input).map(({ type, value }) => `${type}:${value}`);
    case 'DateTimeFormat': return new Intl.DateTimeFormat(locale, { timeZone: 'UTC', ...options }).format(input);
    default: return new Intl[kind](locale, options).format(input);
  }
}

function row(kind, locale, options, input) {
  const result = resultOf(kind, locale, options, input);
  console.log([kind, locale, JSON.stringify(options), JSON.stringify(input), JSON.stringify(result)].join('\t'));
}

for (const locale of LOCALES) {
  const number = (options, ...values) => values.forEach((value) => row('NumberFormat', locale, options, value));
  number({}, 0, 1234.5, -1234567.891);
  number({ style: 'percent', maximumFractionDigits: 1 }, 0.256, -3);
  number({ style: 'currency', currency: 'EUR' }, 1234567.891, -9.5);
  number({ style: 'currency', currency: 'USD' }, 1234.5);
  number({ style: 'currency', currency: 'JPY' }, 1234.5);
  number({ style: 'currency', currency: 'EUR', currencyDisplay: 'code' }, 1234.5);
  number({ style: 'currency', currency: 'USD', currencyDisplay: 'name' }, 1, 2.5, 5);
  number({ style: 'currency', currency: 'GBP', currencySign: 'accounting' }, -42);
  number({ style: 'currency', currency: 'EUR', signDisplay: 'always', minimumFractionDigits: 0, maximumFractionDigits: 0 }, 1234);
  number({ notation: 'compact' }, 999, 1234, 12345, 999999, 1.5e9);
  number({ notation: 'compact', compactDisplay: 'long' }, 1234, 2.5e6);
  number({ style: 'currency', currency: 'EUR', notation: 'compact' }, 1234567);
  number({ style: 'unit', unit: 'kilometer-per-hour' }, 50);
  number({ style: 'unit', unit: 'megabyte', unitDisplay: 'long' }, 1, 16);
  number({ style: 'unit', unit: 'celsius', unitDisplay: 'narrow' }, -3.5);
  number({ maximumSignificantDigits: 3 }, 123456);
  number({ signDisplay: 'exceptZero' }, 5, -5, 0);

  const date = (options, ...values) => values.forEach((value) => row('DateTimeFormat', locale, options, value));
  date({}, MOMENT);
  for (const style of ['full', 'long', 'medium', 'short']) {
    date({ dateStyle: style }, MOMENT);
    date({ timeStyle: style }, MOMENT);
    date({ dateStyle: style, timeStyle: 'short' }, MOMENT);
  }
  date({ year: 'numeric', month: 'long', day: 'numeric' }, MOMENT);
  date({ weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' }, MOMENT);
  date({ weekday: 'short', month: 'short', day: 'numeric' }, MOMENT);
  date({ year: 'numeric', month: '2-digit', day: '2-digit' }, WINTER);
  date({ year: 'numeric', month: 'short' }, MOMENT);
  date({ month: 'long' }, MOMENT);
  date({ weekday: 'long' }, MOMENT);
  date({ hour: '2-digit', minute: '2-digit' }, WINTER);
  date({ hour: 'numeric', minute: '2-digit', hour12: true }, MOMENT);
  date({ hour: 'numeric', minute: '2-digit', second: '2-digit', hour12: false }, WINTER);
  date({ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' }, MOMENT);
  date({ dateStyle: 'short', timeStyle: 'long', timeZone: 'America/New_York' }, WINTER, SUMMER);
  date({ timeZone: 'Europe/Berlin', hour: 'numeric', minute: 'numeric', timeZoneName: 'long' }, SUMMER);
  date({ timeZone: 'Europe/Berlin', timeZoneName: 'short' }, SUMMER);

  row('RelativeTimeFormat', locale, {}, [-3, 'day']);
  row('RelativeTimeFormat', locale, {}, [1, 'hour']);
  row('RelativeTimeFormat', locale, { numeric: 'auto' }, [-1, 'day']);
  row('RelativeTimeFormat', locale, { numeric: 'auto', style: 'short' }, [2, 'months']);
  row('ListFormat', locale, {}, ['A', 'B', 'C']);
  row('ListFormat', locale, { type: 'disjunction' }, ['A', 'B']);
  row('ListFormat', locale, { type: 'unit', style: 'short' }, ['A', 'B', 'C']);
  for (const value of [0, 1, 2, 3, 5, 21, 1.5]) row('PluralRules', locale, {}, value);
  for (const value of [1, 2, 3, 4, 11, 22]) row('PluralRules', locale, { type: 'ordinal' }, value);
  for (const pair of [['a', 'B'], ['ä', 'z'], ['z', 'å'], ['a', 'A'], ['cote', 'côté'], ['10', '9']]) row('Collator', locale, {}, pair);
  row('DisplayNames', locale, { type: 'region' }, 'DE');
  row('DisplayNames', locale, { type: 'currency' }, 'USD');
  row('DisplayNames', locale, { type: 'language' }, 'fr');
  row('NumberParts', locale, { style: 'currency', currency: 'EUR' }, -1234.5);
  row('NumberParts', locale, { notation: 'compact', compactDisplay: 'long' }, 12345);
  row('DateParts', locale, { dateStyle: 'medium', timeStyle: 'medium' }, MOMENT);
}

// Options that do not depend on the locale much.
for (const roundingMode of ['ceil', 'floor', 'expand', 'trunc', 'halfCeil', 'halfFloor', 'halfExpand', 'halfTrunc', 'halfEven']) {
  for (const value of [1.25, -1.25, 1.35]) row('NumberFormat', 'en', { roundingMode, maximumFractionDigits: 1 }, value);
}
for (const [options, value] of [
  [{ minimumIntegerDigits: 3 }, 7], [{ useGrouping: false }, 123456], [{ useGrouping: 'min2' }, 1234], [{ useGrouping: 'always' }, 1234],
  [{ minimumFractionDigits: 2 }, 1], [{ minimumSignificantDigits: 4 }, 1.5],
  [{ roundingIncrement: 5, minimumFractionDigits: 2, maximumFractionDigits: 2 }, 1.23], [{ trailingZeroDisplay: 'stripIfInteger', minimumFractionDigits: 2 }, 5],
  [{ roundingPriority: 'morePrecision', maximumFractionDigits: 2, maximumSignificantDigits: 2 }, 123.456],
  [{ roundingPriority: 'lessPrecision', maximumFractionDigits: 2, maximumSignificantDigits: 2 }, 123.456],
  [{ notation: 'scientific' }, 123456], [{ notation: 'engineering' }, 123456], [{ notation: 'scientific', maximumFractionDigits: 1 }, 0.000999],
  [{ style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' }, 5], [{ style: 'currency', currency: 'CAD' }, 5], [{ style: 'currency', currency: 'XYZ' }, 5],
  [{ signDisplay: 'never' }, -5], [{ signDisplay: 'negative' }, -0.0001], [{}, 1e21], [{}, 5e-7], [{ maximumFractionDigits: 20 }, 5e-7],
  [{ style: 'unit', unit: 'byte' }, 1], [{ style: 'unit', unit: 'liter', unitDisplay: 'long' }, 16], [{ style: 'percent' }, 1.005],
]) row('NumberFormat', 'en-US', options, value);
for (const locale of ['es', 'pl', 'pt-PT', 'hi', 'de-AT', 'de-CH', 'en-IN', 'fr-CH']) row('NumberFormat', locale, {}, 1234567.5);
for (const locale of ['es', 'pl', 'pt-PT', 'it']) row('NumberFormat', locale, {}, 1234.5);
for (const locale of ['default', 'default-DE']) row('DateTimeFormat', locale, { month: 'long' }, MOMENT);
for (const [locale, value] of [['ar-EG', 1234.5], ['fa', 1234.5], ['en-u-nu-thai', 1234.5], ['bn', 1234567]]) row('NumberFormat', locale, {}, value);
for (const timeZone of ['America/New_York', 'Europe/London', 'Asia/Kolkata', 'Australia/Sydney', 'America/St_Johns', 'Asia/Tokyo', 'UTC', 'Pacific/Auckland', 'America/Sao_Paulo', 'Africa/Cairo']) {
  for (const moment of [WINTER, SUMMER]) {
    row('DateTimeFormat', 'en-US', { timeZone, dateStyle: 'short', timeStyle: 'short' }, moment);
    for (const timeZoneName of ['short', 'long', 'shortOffset', 'longOffset', 'shortGeneric', 'longGeneric']) {
      row('DateTimeFormat', 'en-US', { timeZone, hour: 'numeric', timeZoneName }, moment);
      row('DateTimeFormat', 'en-US', { timeZone, timeZoneName }, moment);
      row('DateParts', 'en-US', { timeZone, month: 'long', day: 'numeric', timeZoneName }, moment);
    }
  }
}
for (const options of [
  { hour: 'numeric' }, { hour: 'numeric', hourCycle: 'h23' }, { hour: 'numeric', minute: 'numeric', hourCycle: 'h11' }, { minute: 'numeric' }, { second: 'numeric' },
  { minute: '2-digit', second: '2-digit' }, { year: '2-digit', month: 'numeric' }, { year: 'numeric' }, { day: 'numeric' }, { era: 'short', year: 'numeric' },
  { era: 'long', year: 'numeric', month: 'long', day: 'numeric' }, { weekday: 'narrow' }, { month: 'narrow' }, { weekday: 'long', month: 'short', day: 'numeric' },
  { weekday: 'short', month: 'long', day: 'numeric', year: 'numeric' }, { hour: 'numeric', minute: 'numeric', second: 'numeric', fractionalSecondDigits: 3 },
  { month: 'long', year: 'numeric', hour: 'numeric' }, { month: 'long', day: 'numeric', hour: 'numeric', minute: '2-digit' }, { weekday: 'long', hour: 'numeric' },
  { weekday: 'short', day: 'numeric' }, { year: 'numeric', month: 'numeric', day: 'numeric', weekday: 'long' }, { month: 'numeric', day: 'numeric' },
]) for (const locale of ['en-US', 'de', 'fr', 'ja']) row('DateTimeFormat', locale, options, MOMENT);
for (const moment of [0, -1, -62198755200000, 253402300800000, 8.64e15, -8.64e15]) row('DateTimeFormat', 'en-US', { dateStyle: 'long', timeStyle: 'medium' }, moment);
// What date-fns-tz, dayjs and luxon ask for.
for (const timeZone of ['America/New_York', 'Asia/Kolkata', 'UTC']) {
  for (const moment of [MOMENT, SUMMER, -1]) {
    row('DateParts', 'en-US', { hourCycle: 'h23', timeZone, year: 'numeric', month: 'numeric', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' }, moment);
    row('DateParts', 'en-US', { hour12: false, timeZone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', era: 'short' }, moment);
    row('DateParts', 'en-US', { hour12: false, timeZone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' }, moment);
    row('DateTimeFormat', 'en-US', { timeZone, year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' }, moment);
    row('DateTimeFormat', 'sv-SE', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit' }, moment);
    row('DateTimeFormat', 'en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' }, moment);
  }
}
for (const [options, pair] of [
  [{ numeric: true }, ['item10', 'item9']], [{ sensitivity: 'base' }, ['a', 'Á']], [{ sensitivity: 'accent' }, ['a', 'A']], [{ sensitivity: 'accent' }, ['a', 'á']],
  [{ sensitivity: 'case' }, ['a', 'A']], [{ sensitivity: 'case' }, ['a', 'á']], [{ caseFirst: 'upper' }, ['a', 'A']], [{ ignorePunctuation: true }, ['co-op', 'coop']],
  [{}, ['', 'a']], [{}, ['resume', 'résumé']], [{}, ['😀', 'a']],
]) row('Collator', 'en', options, pair);
for (const locale of ['de-u-co-phonebk', 'sv', 'es', 'cs', 'ja', 'zh']) for (const pair of [['Ä', 'Az'], ['ch', 'd'], ['ö', 'z'], ['ñ', 'o'], ['中', '文'], ['あ', 'ア']]) row('Collator', locale, {}, pair);
row('Segmenter', 'en', { granularity: 'grapheme' }, 'e\u0301👩‍👩‍👧‍👦🇩🇪x');
row('Segmenter', 'en', { granularity: 'word' }, 'Hello, world! It costs 3.50 €.');
row('Segmenter', 'en', { granularity: 'sentence' }, 'Hello. How are you? Fine!');
row('Segmenter', 'ja', { granularity: 'word' }, '吾輩は猫である。');
for (const [locale, text] of [['tr', 'istanbul ıI'], ['en', 'straße'], ['el', 'Άνθρωπος'], ['lt', 'i̇']]) row('Upper', locale, {}, text);
for (const [locale, text] of [['tr', 'ISTANBUL İ'], ['en', 'ΟΔΟΣ İ'], ['de', 'ÄÖ']]) row('Lower', locale, {}, text);
for (const type of ['conjunction', 'disjunction', 'unit']) for (const items of [[], ['a'], ['a', 'b'], ['a', 'b', 'c', 'd']]) row('ListFormat', 'en', { type }, items);
row('ListFormat', 'es', {}, ['Juan', 'Isabel']);
row('ListFormat', 'es', { type: 'disjunction' }, ['siete', 'ocho']);
for (const value of [-0, 0, 1, -1, 2, -2, 1.5, 1000]) for (const unit of ['second', 'day', 'quarter', 'year']) row('RelativeTimeFormat', 'en', { numeric: 'auto' }, [value, unit]);
row('DisplayNames', 'en', { type: 'language' }, 'en-GB');
row('DisplayNames', 'en', { type: 'language' }, 'zh-Hant');
row('DisplayNames', 'en', { type: 'script' }, 'Latn');
row('DisplayNames', 'de', { type: 'region', style: 'short' }, 'US');
