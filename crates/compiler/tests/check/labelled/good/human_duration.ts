/** Writes seconds as hours, minutes and seconds. */
export default function humanDuration(args: { seconds: number }): string {
  const hours = Math.floor(args.seconds / 3600);
  const minutes = Math.floor((args.seconds % 3600) / 60);
  const seconds = Math.floor(args.seconds % 60);
  return [hours && `${hours}h`, minutes && `${minutes}m`, `${seconds}s`].filter(Boolean).join(' ');
}
