import * as lib from 'cjs-lib';
import { named } from 'cjs-lib';
export default () => [lib.first, lib['second'], lib.first, named];
