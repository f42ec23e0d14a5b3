/** Brings a phone number into the form +CCNNNN. */
export default function normalizePhone(args: { phone: string; countryCode?: string }): string {
  const digits = args.phone.replace(/[^\d+]/g, '');
  if (digits.startsWith('+')) return digits;
  if (digits.startsWith('00')) return `+${digits.slice(2)}`;
  return `+${args.countryCode ?? '1'}${digits.replace(/^0/, '')}`;
}
