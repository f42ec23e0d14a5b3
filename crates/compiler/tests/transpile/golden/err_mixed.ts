import { a } from './a';
module.exports = () => a;
