/** Scales a picture. */
function main({ width, factor = 2 }: { width: number; factor?: number }) {
  return width * factor;
}
main(args);
