// role: library, id: npm:pkg/index.mjs
import { a } from './a.js';
export const isFunction = (value) => value instanceof Function;
export const env = typeof process === 'undefined' ? 'none' : process.env.NODE_ENV;
export * from './rest.js';
export { a as default };
