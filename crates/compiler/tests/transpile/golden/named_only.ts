export * from './a';
export * as b from './b';
export { c as d, default as e } from './c';
export const { x, y: [z] } = { x: 1, y: [2] };
export class K {}
export function f() {}
export enum E { A }
export namespace N { export const q = 1; }
