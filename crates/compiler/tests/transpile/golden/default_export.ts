import { helper, type Kind } from './helper.ts';
import type { Shape } from './shape.ts';
import unused from './unused.ts';

interface Args { n: number; kind: Kind; shape: Shape }

/** Doubles. */
export default async function double({ n }: Args): Promise<number> {
  return helper(n) satisfies number as number;
}

export const answer = 42 as const;
export type { Args };
