/** Saves settings. */
export default async function save(args: { path: string; settings: Record<string, unknown> }) {
  await tgp.writeFile(args.path, JSON.stringify(args.settings));
  return { saved: args.path };
}
