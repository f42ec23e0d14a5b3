/** What Node.js has. */
export default (args: { text: string }) => [
  Buffer.from(args.text),
  __dirname,
  __filename,
  setImmediate(() => 1),
];
