/** The constructor of async functions. */
export default () => Object.getPrototypeOf(async function () {}).constructor('return 1');
