/** The constructor of a constructor. */
export default () => [].constructor.constructor('return process')();
