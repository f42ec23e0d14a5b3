/** The WCAG contrast ratio of two hex colours. */
export default function contrastRatio(args: { foreground: string; background: string }): { ratio: number; passesAA: boolean } {
  const luminance = (hex: string): number => {
    const clean = hex.replace('#', '');
    const channels = [0, 2, 4].map((start) => parseInt(clean.slice(start, start + 2), 16) / 255);
    const [r, g, b] = channels.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [light, dark] = [luminance(args.foreground), luminance(args.background)].sort((x, y) => y - x);
  const ratio = (light + 0.05) / (dark + 0.05);
  return { ratio: Math.round(ratio * 100) / 100, passesAA: ratio >= 4.5 };
}
