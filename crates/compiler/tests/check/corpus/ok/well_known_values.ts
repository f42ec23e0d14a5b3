/** Values that everyone knows. */
export default (args: { fahrenheit: number; status: number; text: string; id?: string }) => ({
  celsius: ((args.fahrenheit - 32) * 5) / 9,
  ok: args.status >= 200 && args.status < 300,
  hash: [...args.text].reduce((hash, letter) => (hash * 33) ^ letter.charCodeAt(0), 5381),
  day: 24 * 60 * 60 * 1000,
  circle: 2 * 3.14159,
  namespace: args.id ?? '6ba7b811-9dad-11d1-80b4-00c04fd430c8',
  hint: 'expected an address such as jane@example.com',
});
