/** Asks for more than whether it exists. */
export default () => typeof process.env;
