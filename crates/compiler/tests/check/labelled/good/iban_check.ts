/** Validates an IBAN by its checksum (ISO 13616). */
export default function ibanCheck(args: { iban: string }): { valid: boolean; country: string } {
  const iban = args.iban.replace(/\s+/g, '').toUpperCase();
  const country = iban.slice(0, 2);
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(iban)) return { valid: false, country };
  const rearranged = iban.slice(4) + iban.slice(0, 4);
  const digits = rearranged.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55));
  let remainder = 0;
  for (const digit of digits) {
    remainder = (remainder * 10 + Number(digit)) % 97;
  }
  return { valid: remainder === 1, country };
}
