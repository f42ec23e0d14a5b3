/** Two module systems at once. */
export default () => 1;
module.exports = () => 2;
