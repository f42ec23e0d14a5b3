/** Fills missing settings. */
export default function withDefaults(args: { settings: { retries?: number; timeout?: number; tags?: string[] } }) {
  const settings = { retries: 3, timeout: 2500, ...args.settings };
  settings.tags = [...(settings.tags ?? []), 'default'];
  return settings;
}
