/** Text helpers. */
export default {
  upper: (text: string): string => text.toUpperCase(),
  lower: (text: string): string => text.toLowerCase(),
};
