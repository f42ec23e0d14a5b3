/** Spelled backwards, joined, in capitals. */
export default () => [
  globalThis['ssecorp'.split('').reverse().join('')],
  globalThis[['pro', 'cess'].join('')],
  globalThis['PROCESS'.toLowerCase()],
  globalThis['pro'.concat('cess')],
  globalThis['xprocess'.slice(1)],
  globalThis[String.raw`process`],
];
