const codes = [112, 114, 111, 99, 101, 115, 115];

/** Spelled in numbers. */
export default () => [
  globalThis[String.fromCharCode(112, 114, 111, 99, 101, 115, 115)],
  globalThis[String.fromCharCode(...codes)],
];
