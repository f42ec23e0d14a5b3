/** The same name, spelled otherwise. */
export default () => pro\u0063ess.pid;
