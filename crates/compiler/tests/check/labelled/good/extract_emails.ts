/** All e-mail addresses in a text, each once, in lower case. */
export default function extractEmails(args: { text: string }): string[] {
  const pattern = /[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}/gi;
  return [...new Set((args.text.match(pattern) ?? []).map((email) => email.toLowerCase()))];
}
