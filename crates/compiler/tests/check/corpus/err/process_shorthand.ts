/** Hands it on. */
export default () => ({ process });
