/** Converts an RGB colour (0 to 255) to hue, saturation and lightness. */
export default function rgbToHsl(args: { r: number; g: number; b: number }): { h: number; s: number; l: number } {
  const [r, g, b] = [args.r / 255, args.g / 255, args.b / 255];
  const max = Math.max(r, g, b);
  const min = Math.min(r, g, b);
  const l = (max + min) / 2;
  const delta = max - min;
  if (delta === 0) return { h: 0, s: 0, l };
  const s = delta / (1 - Math.abs(2 * l - 1));
  const h = max === r ? ((g - b) / delta) % 6 : max === g ? (b - r) / delta + 2 : (r - g) / delta + 4;
  return { h: Math.round((h * 60 + 360) % 360), s, l };
}
