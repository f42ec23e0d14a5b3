/** What only Node.js has. */
export default () => [__dirname, __filename];
