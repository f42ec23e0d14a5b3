/** Dimensional weight with the usual divisor unless another is given. */
export default function dimWeight({ volume, divisor = 139 }: { volume: number; divisor?: number }): number {
  return volume / divisor;
}
