/** Numbers that carry no data. */
export default function numbers(args: { list: number[]; text: string }) {
  const [first, , third] = args.list;
  const share = (args.list[3] - args.list[args.list.length - 5]) / 100;
  const matrix = Array.from({ length: 3 }, () => new Array(4));
  const bits = (first << 5) | (third & 0xff);
  const cube = first ** 3;
  const isDate = args.text.length === 8 && args.text.slice(4, 6) !== '00';
  return { share, matrix, bits, cube, isDate, hex: parseInt(args.text, 16).toString(36), minus: -1 * 10, big: 1n + 2n };
}
