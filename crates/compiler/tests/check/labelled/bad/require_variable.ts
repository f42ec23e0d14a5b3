/** Formats with a locale. */
export default function localized(args: { locale: string; key: string }): string {
  const messages = require('./locales/' + args.locale);
  return messages[args.key];
}
