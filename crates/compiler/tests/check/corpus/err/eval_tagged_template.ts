/** Runs text as a tag. */
export default () => eval`1`;
