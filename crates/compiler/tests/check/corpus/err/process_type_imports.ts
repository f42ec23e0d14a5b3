import type process = require('./types');
import { type Worker } from './types';
import type * as Deno from './types';

/** Type imports vanish when compiled; the globals stay. */
export default () => [process.exit(), Worker('x'), Deno.args];
