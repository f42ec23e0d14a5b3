/** Runs text later. */
export default function tool(): number {
  setTimeout('tgp.log(1)', 0);
  return 1;
}
