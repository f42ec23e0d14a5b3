export default () => /(unclosed/;
