/** Sends a report. */
export default function report(args: { title: any }) {
  const home = process.env.HOME;
  return { to: 'boss@example.com', title: args.title, home };
}
