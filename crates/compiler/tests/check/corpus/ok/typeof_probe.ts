/** Tells which world it runs in. */
export default function where(): string {
  return typeof process === 'undefined' && typeof window === 'undefined' ? 'sandbox' : 'elsewhere';
}
