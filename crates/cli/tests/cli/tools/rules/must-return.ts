/** Says something. */
export default function say(args: { text: string }) {
  console.log(args.text);
}
