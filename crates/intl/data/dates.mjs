// Writes dates.tsv: the patterns of numeric dates. ICU4X has those of the short style only, which pads and cuts
// differently in many locales. Run with Node 20 or newer: node dates.mjs > dates.tsv
const LOCALES = [
  'en', 'en-GB', 'en-AU', 'en-CA', 'en-IN', 'en-IE', 'en-NZ', 'en-ZA', 'de', 'de-AT', 'de-CH', 'fr', 'fr-CA', 'fr-CH', 'fr-BE', 'es', 'es-MX', 'es-US', 'es-AR', 'it', 'it-CH',
  'pt', 'pt-PT', 'nl', 'nl-BE', 'sv', 'da', 'nb', 'nn', 'no', 'fi', 'is', 'et', 'lv', 'lt', 'pl', 'cs', 'sk', 'hu', 'ro', 'bg', 'hr', 'sl', 'sr', 'tr', 'ru', 'uk', 'el', 'he',
  'ar', 'ar-EG', 'ar-AE', 'hi', 'bn', 'ja', 'ko', 'zh', 'zh-TW', 'zh-HK', 'th', 'vi', 'id', 'ms', 'ca', 'eu', 'gl',
];
const SKELETONS = {
  yMd: { year: 'numeric', month: 'numeric', day: 'numeric' },
  yMEd: { year: 'numeric', month: 'numeric', day: 'numeric', weekday: 'short' },
  yMEEEEd: { year: 'numeric', month: 'numeric', day: 'numeric', weekday: 'long' },
  yM: { year: 'numeric', month: 'numeric' },
  Md: { month: 'numeric', day: 'numeric' },
  MEd: { month: 'numeric', day: 'numeric', weekday: 'short' },
  MEEEEd: { month: 'numeric', day: 'numeric', weekday: 'long' },
};
const MOMENT = Date.UTC(2024, 2, 5);
// One digit is a field without padding, two digits one with it, in whatever digits the locale has.
const FIELDS = { year: () => 'y', month: (value) => 'M'.repeat([...value].length), day: (value) => 'd'.repeat([...value].length), era: () => 'G' };

for (const locale of LOCALES) {
  for (const [skeleton, options] of Object.entries(SKELETONS)) {
    const parts = new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' }).formatToParts(MOMENT);
    const pattern = parts.map(({ type, value }) => {
      if (type === 'weekday') return options.weekday === 'long' ? 'EEEE' : 'EEE';
      if (type in FIELDS) return FIELDS[type](value);
      return /[a-z']/i.test(value) ? `'${value.replaceAll("'", "''")}'` : value;
    }).join('');
    console.log(`${locale}\t${skeleton}\t${pattern}`);
  }
}
