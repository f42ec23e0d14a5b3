// expect: ECOMPILE | ESECURITY | ENOTFOUND
import { load } from 'tgp:require';
export default () => load('x');
