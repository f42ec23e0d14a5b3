/** Merges settings over the defaults. */
export default function mergeSettings(args: { defaults: Record<string, unknown>; settings: Record<string, unknown> }) {
  return Object.assign(args.defaults, args.settings);
}
