import { price } from 'mcp:carrier';

/** What a carrier asks for a parcel of this weight, in euros. */
export default async function quote(args: { weight: number }): Promise<number> {
  const answer = await price({ weight: args.weight });
  return (JSON.parse(String(answer)) as { result: number }).result;
}
