/** Put together from pieces. */
export default () => globalThis['pro' + 'cess'].pid;
