import a from '../../../secrets';
import b from '/etc/passwd';
import c from '/lib/../../secrets';
import d from './..\\..\\secrets';
import e from '../../..';

/** Paths that leave the tool root. */
export default () => [a, b, c, d, e];
