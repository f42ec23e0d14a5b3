/** Says something. */
export default function say(args: { text: string }): void {
  console.log(args.text);
}
