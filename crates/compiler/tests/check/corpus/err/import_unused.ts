import { exec } from 'node:child_process';
import 'net';

/** An import that nothing uses vanishes from the output, and is refused all the same. */
export default () => 1;
