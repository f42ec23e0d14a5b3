// Writes currencies.tsv: the currencies that a locale writes with their code although the root locale has a symbol.
// ICU4X finds the symbol of the root instead. Run with Node 20 or newer: node currencies.mjs > currencies.tsv
const LOCALES = [
  'en', 'en-GB', 'en-AU', 'en-CA', 'en-IN', 'de', 'de-AT', 'de-CH', 'fr', 'fr-CA', 'fr-CH', 'es', 'es-MX', 'es-US', 'es-AR', 'it', 'it-CH', 'pt', 'pt-PT', 'nl', 'sv', 'da',
  'nb', 'no', 'fi', 'et', 'lv', 'lt', 'pl', 'cs', 'sk', 'hu', 'ro', 'bg', 'hr', 'sl', 'sr', 'tr', 'ru', 'uk', 'el', 'he', 'ar', 'hi', 'bn', 'ja', 'ko', 'zh', 'zh-TW', 'th', 'vi', 'id',
  'ms', 'ca', 'eu', 'gl',
];
const CODES = 'AUD BRL CAD CNY EUR GBP HKD ILS INR JPY KRW MXN NZD PHP TWD USD VND XAF XCD XOF XPF'.split(' ');
for (const locale of LOCALES) {
  const codes = CODES.filter((currency) => {
    const parts = new Intl.NumberFormat(locale, { style: 'currency', currency }).formatToParts(1);
    return parts.some(({ type, value }) => type === 'currency' && value === currency);
  });
  console.log(`${locale}\t${codes.join(' ')}`);
}
