/** The same tool under another name. */
export { default } from './fibonacci';
