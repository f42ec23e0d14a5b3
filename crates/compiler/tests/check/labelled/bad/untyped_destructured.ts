/** Repeats a text. */
export default ({ text, times }) => text.repeat(times);
