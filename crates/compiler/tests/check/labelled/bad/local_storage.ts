/** Remembers a theme. */
export default function theme(args: { theme: string }): string {
  localStorage.setItem('theme', args.theme);
  return args.theme;
}
