/** The age in full years on a day. */
export default function ageFromBirthday(args: { birthday: string; on: string }): number {
  const [by, bm, bd] = args.birthday.split('-').map(Number);
  const [y, m, d] = args.on.split('-').map(Number);
  return y - by - (m < bm || (m === bm && d < bd) ? 1 : 0);
}
