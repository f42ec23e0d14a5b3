const { URL: Address } = globalThis;

/** The global object may be asked for allowed names. */
export default function host(args: { url: string; key: string }): { host: string; id: string } {
  const root = globalThis;
  return { host: new Address(args.url).host, id: root.crypto.randomUUID() + globalThis['Math'].max(1, 2) };
}
