import effect from './effect.js';
export default (args) => args.n;
