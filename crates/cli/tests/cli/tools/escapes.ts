/** Tries to play with the terminal of whoever reads it. */
export default function escapes(args: { fail?: boolean }): string {
  console.log('\u001b[2Jcleared\u0007 \u202ereversed');
  if (args.fail) throw new Error('\u001b[31mred\u0007');
  return 'plain';
}
