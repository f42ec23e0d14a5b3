/** Only logs. */
export default function tool(args: { name: string }) {
  console.log(args.name);
}
