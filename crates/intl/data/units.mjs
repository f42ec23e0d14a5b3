// Writes units.tsv: the patterns of measurement units, which ICU4X has for a few categories only.
// Run with Node 20 or newer: node units.mjs > units.tsv
const LOCALES = [
  'en', 'en-GB', 'en-AU', 'en-CA', 'en-IN', 'de', 'de-AT', 'de-CH', 'fr', 'fr-CA', 'fr-CH', 'es', 'es-MX', 'it', 'pt', 'pt-PT', 'nl', 'sv', 'da',
  'nb', 'fi', 'pl', 'cs', 'sk', 'hu', 'ro', 'bg', 'hr', 'tr', 'ru', 'uk', 'el', 'he', 'ar', 'hi', 'ja', 'ko', 'zh', 'zh-TW', 'th', 'vi', 'id', 'ms',
];
const UNITS = [
  ...Intl.supportedValuesOf('unit'),
  'kilometer-per-hour', 'mile-per-hour', 'meter-per-second', 'foot-per-second', 'mile-per-gallon', 'liter-per-kilometer',
  'bit-per-second', 'kilobit-per-second', 'megabit-per-second', 'gigabit-per-second',
  'byte-per-second', 'kilobyte-per-second', 'megabyte-per-second', 'gigabyte-per-second',
];
const SAMPLES = [...Array(121).keys(), 1.5, 0.5, 1000000];
const NUMBER = new Set(['integer', 'group', 'decimal', 'fraction']);

function samplesOf(locale) {
  const rules = new Intl.PluralRules(locale);
  const samples = {};
  for (const sample of SAMPLES) samples[rules.select(sample)] ??= sample;
  return samples;
}

function patternOf(locale, unit, unitDisplay, sample) {
  const parts = new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay }).formatToParts(sample);
  let pattern = '';
  for (const { type, value } of parts) {
    if (!NUMBER.has(type)) pattern += value;
    else if (!pattern.includes('{0}')) pattern += '{0}';
  }
  return pattern;
}

const rows = new Map();
for (const locale of LOCALES) {
  const samples = samplesOf(locale);
  for (const unit of UNITS) {
    for (const display of ['short', 'narrow', 'long']) {
      const patterns = Object.entries(samples).map(([category, sample]) => [category, patternOf(locale, unit, display, sample)]);
      const other = patterns.find(([category]) => category === 'other')[1];
      const special = patterns.filter(([category, pattern]) => category !== 'other' && pattern !== other);
      const row = [other, ...special.map(([category, pattern]) => `${category}=${pattern}`)].join('\t');
      const parent = rows.get(`${locale.split('-')[0]}\t${unit}\t${display}`);
      rows.set(`${locale}\t${unit}\t${display}`, row);
      if (!locale.includes('-') || parent !== row) console.log(`${locale}\t${unit}\t${display}\t${row}`);
    }
  }
}
