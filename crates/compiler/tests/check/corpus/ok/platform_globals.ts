/** What the worker has of Node and of the web. */
export default async (args: { text: string; value: unknown }): Promise<unknown[]> => {
  const key = await crypto.subtle.digest('SHA-256', Buffer.from(args.text));
  setImmediate(() => console.count());
  return [
    Buffer.from(key).toString('hex'),
    await new Response(new Blob([args.text])).text(),
    self.URL.canParse(args.text),
    global.Math.abs(args.text.length),
    args.value instanceof Function,
  ];
};
