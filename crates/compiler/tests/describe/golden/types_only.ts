/** Shared types. */
export interface Shared {
  a: number;
}
export type Alias = Shared | null;
