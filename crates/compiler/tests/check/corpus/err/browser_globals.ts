/** What browsers have. */
export default () => [
  new XMLHttpRequest(),
  new WebSocket('x'),
  new Worker('x'),
  importScripts('x'),
  document,
];
