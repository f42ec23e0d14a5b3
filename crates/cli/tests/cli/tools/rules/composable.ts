/** Not a function. */
export default { answer: 1 };
