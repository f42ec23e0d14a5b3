/** Words in sentences. */

/** Counts words. */
export function count(text: string): number {
  return text.split(/\s+/).length;
}
export class Counter {}
export enum Kind {
  Word,
}
export const [first, { second }] = [1, { second: 2 }];
export interface Options {
  deep: boolean;
}
interface Hidden {
  a: string;
}
export { Hidden };
export declare const ambient: number;
