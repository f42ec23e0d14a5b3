/** There is no browser. */
export default () => window.innerWidth + document.title.length;
