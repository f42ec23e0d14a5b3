/** The API base URL. */
export default function apiBase(args: { path: string }): string {
  return `${process.env.API_BASE}${args.path}`;
}
