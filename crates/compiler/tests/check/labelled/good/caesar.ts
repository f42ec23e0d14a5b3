/** Shifts the letters of a text by a number of places. */
export default function caesar(args: { text: string; shift: number }): string {
  const shift = ((args.shift % 26) + 26) % 26;
  return args.text.replace(/[a-z]/gi, (char) => {
    const base = char <= 'Z' ? 65 : 97;
    return String.fromCharCode(((char.charCodeAt(0) - base + shift) % 26) + base);
  });
}
