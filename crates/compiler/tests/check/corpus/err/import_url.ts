import a from 'https://esm.sh/lodash';
import b from 'data:text/javascript,export default 1';
import c from 'file:///etc/passwd';
import d from '';

/** Modules from elsewhere. */
export default () => [a, b, c, d];
