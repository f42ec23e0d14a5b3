export interface A { n: number }
export type B = A | null;
